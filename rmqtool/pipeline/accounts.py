"""What a task reads of a segment for `verify`, on its way to the task that holds a store against itself.

Packages are compressed and small; they are made and opened one after the other, so neither side ever has a
segment in memory.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import zstandard

from rmqtool.check.account import Account, Accounting
from rmqtool.check.index_match import Keys
from rmqtool.check.log_reading import LogReader
from rmqtool.check.reading import Reading
from rmqtool.pipeline.parts import PartOfLog
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.fields import ROW_WIDTH, Column, Field
from rmqtool.scan.lanes import Placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.check.findings import Finding
    from rmqtool.check.levels import Level
    from rmqtool.check.verify import LogEvent
    from rmqtool.pipeline.parts import LogPart
    from rmqtool.store.segments import Segment, SegmentSet

    Package = tuple[tuple[int, int], bytes]
    """number of the segment and of the package in it, and what is in it"""

PACKAGE_BYTES = 2 << 20
"""of accounts that are sent together"""

_SENT = (
    Field.POSITION,
    Field.STORE_SIZE,
    Field.QUEUE_ID,
    Field.QUEUE_OFFSET,
    Field.STORE_TIMESTAMP,
)
"""what checks in the order of the log look at in a row"""


@dataclass(frozen=True)
class SentAccount:
    """An `Account` without what its rows tell as well. new: keys of lanes that are seen first here."""

    rows: np.ndarray[Any, Any]
    judged: list[Finding]
    inside: list[Finding]
    lanes: np.ndarray[Any, Any]
    owners: np.ndarray[Any, Any]
    codes: np.ndarray[Any, Any]
    new: list[tuple[str, int]]
    hashes: np.ndarray[Any, Any]
    hash_owners: np.ndarray[Any, Any]

    @classmethod
    def of(cls, account: Account, known: int) -> SentAccount:
        """known: lanes that were sent before."""
        columns, keys = account.placed.columns, account.keys
        return cls(
            account.rows[:, _SENT],
            account.judged,
            account.inside,
            columns[Column.LANE].astype(np.int32),
            columns[Column.OWNER].astype(np.int32),
            columns[Column.CODE],
            account.placed.keys[known:],
            keys.hashes,
            keys.owners,
        )

    def opened(self, base: int, known: list[tuple[str, int]]) -> Account:
        """The account; of its rows only what is sent. known: keys of lanes, new ones are added."""
        rows = np.zeros((len(self.rows), ROW_WIDTH), np.int64)
        rows[:, _SENT] = self.rows
        known += self.new
        columns = np.empty((len(Column), len(self.owners)), np.int64)
        columns[Column.LANE], columns[Column.OWNER], columns[Column.CODE] = (
            self.lanes,
            self.owners,
            self.codes,
        )
        placed = rows[self.owners]
        columns[Column.SLOT] = placed[:, Field.QUEUE_OFFSET]
        columns[Column.OFFSET] = base + placed[:, Field.POSITION]
        columns[Column.SIZE] = placed[:, Field.STORE_SIZE]
        columns[Column.TIME] = placed[:, Field.STORE_TIMESTAMP]
        offsets = base + rows[:, Field.POSITION]
        ends, times = offsets + rows[:, Field.STORE_SIZE], rows[:, Field.STORE_TIMESTAMP].copy()
        keys = Keys(self.hashes, self.hash_owners, offsets, ends, times)
        return Account(rows, self.judged, self.inside, Placed(columns, known), keys)

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        arrays = self.rows, self.lanes, self.owners, self.codes, self.hashes, self.hash_owners
        return sum(one.nbytes for one in arrays) + 500 * (len(self.judged) + len(self.inside))


def packages(numbered: tuple[int, LogPart], level: Level, log_bytes: int) -> Iterator[Package]:
    """A segment of a store at rest → what the checks want to know of it. log_bytes: of the whole log."""
    number, part = numbered
    segments = PartOfLog(part, (part.segment.base, part.segment.end))
    kernels, reading = choose_kernels(log_bytes), Reading(level=level)
    account = Accounting.of(part.store, kernels, reading)
    reader = LogReader(segments, reading, reading.access(live=False), kernels, account)
    waiting: list[Any] = []
    size = count = known = 0
    for _, event in reader.events():
        if isinstance(event, Account):
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
            yield current, one.opened(current.base, known) if isinstance(one, SentAccount) else one


def _packed(events: list[Any]) -> bytes:
    return zstandard.compress(pickle.dumps(events, protocol=5), 1)
