"""`verify` over many stores: one task a store.

The checks hold log, queues and index of a store against each other in the order of its log, with what they
know of the records before, so a store is not cut; its task reads segments side by side with as many threads
as the cluster would leave idle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rmqtool.check.findings import Severity
from rmqtool.check.levels import Level
from rmqtool.check.reading import Reading
from rmqtool.check.verify import Verification
from rmqtool.errors import ExitCode, worst
from rmqtool.pipeline.opening import open_any
from rmqtool.pipeline.runner import Lost, lost_store, run_each
from rmqtool.pipeline.session import parallelism
from rmqtool.store.coverage import coverage

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    session: SparkSession, options: SourceOptions, level: Level = Level.DEFAULT
) -> Iterator[StoreVerdict]:
    """The verdict of `rmqtool verify` on each store, in the order given.

    A store that is gone, or whose task dies again and again, has a verdict that names it as not covered.
    """
    threads = max(parallelism(session) // len(options.paths), 1)
    work = partial(_verify_one, options=options, level=level, threads=threads)
    for path, (found,) in run_each(session, {path: [path] for path in options.paths}, work):
        if isinstance(found, Lost):
            yield StoreVerdict(path, [], _nothing_known(level) | coverage([lost_store(found)]))
        else:
            yield found


def _verify_one(path: str, options: SourceOptions, level: Level, threads: int) -> StoreVerdict:
    run = Verification(open_any(path, config=options.config), Reading(threads, level))
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
