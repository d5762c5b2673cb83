"""`verify` over many stores.

A store is one task, which reads segments side by side with as many threads as would be idle otherwise. Where
a cluster has more processors than there are stores, a task reads a segment, and another one for the store
checks in the order of the log what they tell (`segment_job`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rmqtool.check.findings import Severity
from rmqtool.check.levels import Level
from rmqtool.check.verify import Verification
from rmqtool.errors import ExitCode, worst
from rmqtool.pipeline.opening import open_any
from rmqtool.pipeline.runner import Lost, lost_store, run_group, side_by_side
from rmqtool.pipeline.segment_job import SegmentJob, Unsplittable
from rmqtool.pipeline.session import is_local, parallelism
from rmqtool.scan.options import ReadOptions
from rmqtool.store.coverage import coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from rmqtool.pipeline.options import SourceOptions

    Row = dict[str, Any]


@dataclass
class StoreVerdict:
    """What `verify` says of one store: findings as rows of the contract, and the closing summary."""

    store: str
    findings: list[Row] = field(default_factory=list)
    summary: Row = field(default_factory=dict)

    @property
    def not_covered(self) -> list[Row]:
        """What was not looked at."""
        rows: list[Row] = self.summary.get("not_covered", [])
        return rows

    def exit_code(self, fail_on: Severity | None = Severity.WARNING) -> ExitCode:
        """Of this store. fail_on: the least severity that counts, None for none."""
        codes = [ExitCode.INCOMPLETE] if self.not_covered else []
        order = [Severity.NOTE, Severity.WARNING, Severity.ERROR]
        counted = [] if fail_on is None else order[order.index(fail_on) :]
        if any(self.summary["by_severity"][one.value] for one in counted):
            codes.append(ExitCode.DAMAGE)
        return worst(codes)


def verify(
    session: SparkSession,
    options: SourceOptions,
    level: Level = Level.DEFAULT,
    *,
    by_segment: bool | None = None,
) -> Iterator[StoreVerdict]:
    """The verdict of `rmqtool verify` on each store, in the order given.

    A store that is gone, or whose task dies again and again, has a verdict that names it as not covered.
    by_segment: whether a task reads a segment, or a whole store; None cuts stores where that gives work to
    processors of other machines.
    """
    cores = parallelism(session)
    if by_segment is None:
        by_segment = cores > len(options.paths) and not is_local(session)
    whole = partial(_verify_one, options=options, level=level, threads=max(cores // len(options.paths), 1))
    calls = {
        path: partial(_verdict, session, path, options, level, whole, by_segment) for path in options.paths
    }
    for path, found in side_by_side(session, calls):
        if isinstance(found, Lost):
            yield StoreVerdict(path, [], _nothing_known(level) | coverage([lost_store(found)]))
        else:
            yield found


def _verdict(
    session: SparkSession,
    path: str,
    options: SourceOptions,
    level: Level,
    whole: Callable[[str], StoreVerdict],
    by_segment: bool,
) -> StoreVerdict | Lost:
    """One store; as a whole where it is not to be cut, or cannot be."""
    reason = None
    if by_segment and level is not Level.QUICK:
        cut = SegmentJob(session, path, options, level).run()
        if isinstance(cut, Lost):
            return cut
        if not isinstance(cut, Unsplittable):
            return StoreVerdict(path, *cut)
        reason = cut.reason
    (found,) = run_group(session, [path], whole)
    if reason is not None and not isinstance(found, Lost):
        found.summary["read_again"] = reason
    return found


def _verify_one(path: str, options: SourceOptions, level: Level, threads: int) -> StoreVerdict:
    store = open_any(path, config=options.config)
    run = Verification(store, ReadOptions.of(store, threads), level)
    rows = [one.row() for one in run.findings()]
    return StoreVerdict(path, rows, run.summary())


def _nothing_known(level: Level) -> Row:
    return {
        "level": level.value,
        "findings": 0,
        "by_severity": {one.value: 0 for one in Severity},
        "by_code": {},
        "records": 0,
        "bytes": 0,
        "end_offset": None,
    }


def summary_of(verdicts: list[StoreVerdict]) -> Row:
    """The closing summary: of one store its own, of several all of them and their sums."""
    if len(verdicts) == 1:
        return verdicts[0].summary
    parts = [one.summary | {"store": one.store} for one in verdicts]
    total: dict[str, int] = {}
    for part in parts:
        for name, count in part["by_severity"].items():
            total[name] = total.get(name, 0) + count
    rows = [row | {"store": one.store} for one in verdicts for row in one.not_covered]
    return {"stores": parts, "by_severity": total} | coverage(rows)
