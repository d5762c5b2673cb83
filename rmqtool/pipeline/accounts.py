"""What a task reads of a segment for `verify`, on its way to the task that holds a store against itself.

Packages are compressed and small; they are made and opened one after the other, so neither side ever has a
segment in memory.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import zstandard

from rmqtool.check.account import Accounting, RunSummary
from rmqtool.check.index_keys import Unindexed
from rmqtool.check.log_reading import accounted_log
from rmqtool.pipeline.parts import PartOfLog
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.fields import DispatchColumn
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.partitions import Placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.check.covered import Extent
    from rmqtool.check.findings import Finding
    from rmqtool.check.further import Further, FurtherRules
    from rmqtool.check.index_keys import Keys
    from rmqtool.check.levels import Level
    from rmqtool.check.times import Times
    from rmqtool.check.verify import LogEvent
    from rmqtool.pipeline.parts import LogPart
    from rmqtool.store.segments import Segment, SegmentSet

    Package = tuple[tuple[int, int], bytes]
    """number of the segment and of the package in it, and what is in it"""

PACKAGE_BYTES = 2 << 20
"""of accounts that are sent together"""


@dataclass(frozen=True)
class SentAccount:
    """An `Account` without what its keys tell as well. new: keys of partitions that are seen first here."""

    extent: Extent
    judged: list[Finding]
    inside: list[Finding]
    times: Times
    partitions: np.ndarray[Any, Any]
    owners: np.ndarray[Any, Any]
    codes: np.ndarray[Any, Any]
    slots: np.ndarray[Any, Any]
    new: list[tuple[str, int]]
    keys: Keys
    further: tuple[Further, ...]

    @classmethod
    def of(cls, account: RunSummary, known: int) -> SentAccount:
        """known: partitions that were sent before."""
        columns, keys = account.placed.columns, account.keys
        if isinstance(keys, Unindexed):
            raise TypeError("accounts that are sent have their keys")
        return cls(
            account.extent,
            account.judged,
            account.inside,
            account.times,
            columns[DispatchColumn.PARTITION].astype(np.int32),
            columns[DispatchColumn.OWNER].astype(np.int32),
            columns[DispatchColumn.CODE],
            columns[DispatchColumn.SLOT],
            account.placed.keys[known:],
            keys,
            account.further,
        )

    def opened(self, known: list[tuple[str, int]]) -> RunSummary:
        """The account. known: keys of partitions, new ones are added."""
        known += self.new
        keys = self.keys
        columns = np.empty((len(DispatchColumn), len(self.owners)), np.int64)
        columns[DispatchColumn.PARTITION], columns[DispatchColumn.OWNER], columns[DispatchColumn.CODE] = (
            self.partitions,
            self.owners,
            self.codes,
        )
        columns[DispatchColumn.SLOT] = self.slots
        columns[DispatchColumn.OFFSET] = keys.offsets[self.owners]
        columns[DispatchColumn.SIZE] = keys.ends[self.owners] - columns[DispatchColumn.OFFSET]
        columns[DispatchColumn.TIME] = keys.times[self.owners]
        placed = Placed(columns, known)
        return RunSummary(
            self.extent, self.judged, self.inside, self.times, placed, keys, further=self.further
        )

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        arrays = self.partitions, self.owners, self.codes, self.slots, self.keys
        own = sum(one.nbytes for one in arrays) + sum(one.nbytes for one in self.further)
        return own + 500 * (len(self.judged) + len(self.inside))


def packages(
    numbered: tuple[int, LogPart], level: Level, log_bytes: int, further: FurtherRules | None
) -> Iterator[Package]:
    """A segment of a store at rest → what the checks want to know of it.

    log_bytes: of the whole log. further: of the store, which a part does not know.
    """
    number, part = numbered
    segments = PartOfLog(part, (part.segment.base, part.segment.end))
    kernels = choose_kernels(log_bytes)
    account = replace(Accounting.of(part.store, kernels, level), further=further)
    reader = accounted_log(segments, ReadOptions(), kernels, account)
    waiting: list[Any] = []
    size = count = known = 0
    for _, event in reader.events():
        if isinstance(event, RunSummary):
            sent = SentAccount.of(event, known)
            known += len(sent.new)
            size += sent.nbytes
            waiting.append(sent)
        else:
            waiting.append(event)
        if size >= PACKAGE_BYTES:
            yield (number, count), _packed(waiting)
            waiting, size, count = [], 0, count + 1
    yield (number, count), _packed(waiting)


def opened(segments: SegmentSet, found: Iterable[Package]) -> Iterator[LogEvent]:
    """What `packages` made of the segments, in the order of the log."""
    known: list[tuple[str, int]] = []
    current: Segment | None = None
    every = list(segments)
    for (number, _), data in found:
        if current is not every[number]:
            current, known = every[number], []
        for one in pickle.loads(zstandard.decompress(data)):  # noqa: S301 - made by a task of the same job
            yield current, one.opened(known) if isinstance(one, SentAccount) else one


def _packed(events: list[Any]) -> bytes:
    return zstandard.compress(pickle.dumps(events, protocol=5), 1)
