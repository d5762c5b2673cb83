"""Records picked by physical offset → Arrow batches, in the order asked for.

For answers that name their records. Whoever wants a large part of a log scans it (`scan.log`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rmqtool.errors import RmqtoolError
from rmqtool.scan import kernels_python
from rmqtool.scan.events import Records
from rmqtool.scan.fields import TORN, Check, CrcState, Field
from rmqtool.scan.one import RecordReader
from rmqtool.scan.table import table_schema, to_batch
from rmqtool.store.coverage import Incomplete
from rmqtool.store.doubts import Doubt, doubtful

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.segments import Segment, SegmentSet

_NEAR = 1 << 16
"""bytes between two records up to which they share a window"""
_WINDOW = 4 << 20
_AT_ONCE = 4096
"""records that are held together while they are brought into the order asked for"""


@dataclass(frozen=True, slots=True)
class Missing:
    """An offset at which no sound record lies. reason: `no_file`, `unreadable` or the name of a `Stop`."""

    physical_offset: int
    reason: str
    error: str | None = None

    def row(self) -> dict[str, Any]:
        """As a row of `not_covered`."""
        reason = Incomplete.UNREADABLE if self.reason == "unreadable" else Incomplete.DAMAGE
        words = self.error or f"no record at {self.physical_offset}: {self.reason}"
        return {
            "path": "commitlog",
            "physical_offset": self.physical_offset,
            "reason": reason,
            "error": words,
        }


@dataclass(frozen=True, slots=True)
class Damaged:
    """A record that is given, and whose body fails its CRC or that is `torn`."""

    path: str
    position: int
    physical_offset: int
    length: int
    torn: bool = False

    def row(self) -> dict[str, Any]:
        """As a row of `not_covered`."""
        place = {name: value for name, value in asdict(self).items() if name != "torn"}
        cause = Doubt.TORN if self.torn else Doubt.BODY
        return {**place, "reason": Incomplete.DAMAGE, **doubtful(1, cause)}


def damage_of(row: Any) -> bool | None:
    """Whether a record, by its row, is torn; None where nothing is wrong with it. See `Damaged`."""
    if row[Field.CRC_STATE] == CrcState.BAD:
        return False
    return True if row[Field.ISSUES] & int(TORN) else None


@dataclass(frozen=True, slots=True)
class _Found:
    """A record, its row and the place in the answer."""

    rank: int
    segment: Segment
    row: list[int]

    @property
    def start(self) -> int:
        return self.row[Field.POSITION]

    @property
    def end(self) -> int:
        return self.row[Field.POSITION] + self.row[Field.STORE_SIZE]

    def as_damaged(self, *, torn: bool) -> Damaged:
        return Damaged(
            self.segment.file.display_path,
            self.start,
            self.segment.base + self.start,
            self.row[Field.STORE_SIZE],
            torn,
        )


def pick(
    segments: SegmentSet,
    offsets: Sequence[int],
    columns: Sequence[str],
    *,
    checks: Check = Check.ALL,
    damaged: list[Damaged] | None = None,
) -> Iterator[pa.RecordBatch | Missing]:
    """The records that begin at `offsets`, in that order; what is not there comes before the batch around it.

    The broker does not ask whether a record begins at an offset (`CommitLog#lookMessageByOffset`); here a
    frame that does not hold together, or one that says it lies elsewhere, is `Missing`. damaged: takes those
    that are given with a wrong body.
    """
    for start in range(0, len(offsets), _AT_ONCE):
        yield from _pick_some(segments, offsets[start : start + _AT_ONCE], columns, checks, damaged)


def _pick_some(
    segments: SegmentSet,
    offsets: Sequence[int],
    columns: Sequence[str],
    checks: Check,
    damaged: list[Damaged] | None,
) -> Iterator[pa.RecordBatch | Missing]:
    found: list[_Found] = []
    parts: list[pa.RecordBatch] = []
    ranks: list[int] = []
    sources: dict[Segment, ByteSource] = {}
    reader = RecordReader(checks)
    try:
        for rank, offset in enumerate(offsets):
            one = _find(segments, offset, rank, sources, reader)
            if isinstance(one, Missing):
                yield one
            else:
                found.append(one)
        for near in _clusters(sorted(found, key=lambda one: (one.segment.base, one.start))):
            parts.append(_batch(near, sources[near[0].segment], columns))
            ranks += [one.rank for one in near]
    finally:
        for source in sources.values():
            source.close()
    if damaged is not None:
        judged = ((one, damage_of(one.row)) for one in found)
        damaged += [one.as_damaged(torn=torn) for one, torn in judged if torn is not None]
    if parts:
        table = pa.Table.from_batches(parts, table_schema(columns))
        yield from table.take(np.argsort(ranks)).combine_chunks().to_batches()


def _find(
    segments: SegmentSet, offset: int, rank: int, sources: dict[Segment, ByteSource], reader: RecordReader
) -> _Found | Missing:
    def opened(segment: Segment) -> ByteSource:
        if segment not in sources:
            sources[segment] = segment.open("pread")
        return sources[segment]

    try:
        there = reader.at(segments, offset, opened)
    except RmqtoolError as error:
        return Missing(offset, "unreadable", str(error))
    if there is None:
        return Missing(offset, "no_file")
    if there.row is None:
        return Missing(offset, there.stop.name.lower())
    if there.row[Field.STORED_PHYSICAL_OFFSET] != offset:
        return Missing(offset, "elsewhere")
    return _Found(rank, there.segment, there.row)


def _clusters(found: Sequence[_Found]) -> Iterator[list[_Found]]:
    near: list[_Found] = []
    for one in found:
        if near and not (
            one.segment is near[0].segment
            and one.start - near[-1].end <= _NEAR
            and one.end - near[0].start <= _WINDOW
        ):
            yield near
            near = []
        near.append(one)
    if near:
        yield near


def _batch(near: Sequence[_Found], source: ByteSource, columns: Sequence[str]) -> pa.RecordBatch:
    segment, start = near[0].segment, near[0].start
    window = source.window(start, max(one.end for one in near) - start)
    records = Records(np.array([one.row for one in near], np.int64), window, start)
    path = segment.file.display_path
    return to_batch(records, base=segment.base, path=path, kernels=kernels_python, columns=columns)
