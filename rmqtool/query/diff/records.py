"""Records of a log that are not the same, byte for byte, at the same place of another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.commitlog import SysFlag
from rmqtool.query.duplicates.hashes import Share, text_hashes
from rmqtool.query.not_read import not_read
from rmqtool.scan.events import Gap, Records, Unreadable
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.log import LogScan, scan_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.segments import Segment, SegmentSet

    Ints = npt.NDArray[np.int64]
    Hashes = npt.NDArray[np.uint64]
    Span = tuple[int, int]

MOST = 4_000_000
"""records of a log whose hashes are in memory at once"""
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_IDENTITY = ("queue_id", "born_timestamp", "body_crc", "body_length", "sys_flag")
_COLUMNS = ("physical_offset", "store_size", "store_timestamp", "crc", "topic", "uniq_key", *_IDENTITY)


class Side(NamedTuple):
    """A log. runs: places [start, end) to look at, sorted. end: of its data; nothing counts behind it."""

    segments: SegmentSet
    runs: Sequence[Span]
    end: int


@dataclass
class Differing:
    """What of a log is not the same in the other.

    hashes, offsets: of the records of `share`, identity and place; a smaller share than was asked for where
    there are too many. spans: starts, ends and numbers of records of stretches of neighbours, of all
    records, in order of the log. damaged: of them, and gaps. last_timestamp: the greatest store time of them.
    """

    share: Share = field(default_factory=Share)
    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    offsets: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    spans: Ints = field(default_factory=lambda: np.empty((0, 3), np.int64))
    records: int = 0
    damaged: int = 0
    last_timestamp: int | None = None
    left: list[dict[str, Any]] = field(default_factory=list)


def differing_records(side: Side, other: Side, options: ReadOptions, share: Share | None = None) -> Differing:
    """The records in the runs of `side` that `other` does not have at their place, in order of the log."""
    found = Differing(share or Share())
    hashes: list[Hashes] = []
    offsets: list[Ints] = []
    spans: list[Ints] = []
    held = 0
    chooser = _Chooser(side, other, options)
    how = LogScan(
        columns=_COLUMNS,
        choose=chooser.choose,
        wanted=chooser.wanted,
        checks=Check.ALL,
        options=options,
    )
    for piece in scan_log(side.segments, how):
        if isinstance(piece.content, pa.RecordBatch):
            if not piece.content.num_rows:
                continue
            own, places = _identity(piece.content), piece.content["physical_offset"].to_numpy()
            _note(found, spans, piece.content)
            kept = found.share.holds(own)
            hashes.append(own[kept])
            offsets.append(places[kept])
            held += int(kept.sum())
            while held > MOST and found.share.divisible:
                held = _halve(found, hashes, offsets)
        elif chooser.touches(piece.segment, piece.content):
            if isinstance(piece.content, Gap):
                start = piece.segment.base + piece.content.position
                spans.append(np.array([[start, start + piece.content.length, 0]], np.int64))
                found.damaged += 1
            elif isinstance(piece.content, Unreadable):
                found.left += not_read(piece.segment, piece.content)
    found.hashes = np.concatenate([np.empty(0, np.uint64), *hashes])
    found.offsets = np.concatenate([np.empty(0, np.int64), *offsets])
    every = np.concatenate([np.empty((0, 3), np.int64), *spans])
    found.spans = every[np.argsort(every[:, 0], kind="stable")]
    return found


def _halve(found: Differing, hashes: list[Hashes], offsets: list[Ints]) -> int:
    found.share, _ = found.share.halves()
    for number, one in enumerate(hashes):
        kept = found.share.holds(one)
        hashes[number], offsets[number] = one[kept], offsets[number][kept]
    return sum(map(len, hashes))


def _identity(batch: pa.RecordBatch) -> Hashes:
    """A hash of what makes a message the same at another place: topic, unique id, birth, body."""
    found = np.zeros(batch.num_rows, np.uint64)
    for name in ("topic", "uniq_key"):
        found = found * _PRIME + text_hashes(pc.fill_null(batch[name], ""))
    for name in _IDENTITY:
        values = batch[name].to_numpy(zero_copy_only=False).astype(np.int64)
        if name == "sys_flag":
            values = values & int(SysFlag.TRANSACTION_MASK)
        found = (found ^ values.view(np.uint64)) * _PRIME
        found ^= found >> np.uint64(29)
    return found


def _note(found: Differing, known: list[Ints], batch: pa.RecordBatch) -> None:
    """Counts the records of a batch and puts their stretches behind those that are known."""
    starts = batch["physical_offset"].to_numpy()
    ends = starts + batch["store_size"].to_numpy()
    first = np.flatnonzero(np.concatenate([[True], starts[1:] != ends[:-1]]))
    last = np.concatenate([first[1:], [len(starts)]]) - 1
    spans = np.column_stack([starts[first], ends[last], last - first + 1])
    if known and known[-1][-1, 1] == spans[0, 0]:
        spans[0, 0] = known[-1][-1, 0]
        spans[0, 2] += known[-1][-1, 2]
        known[-1] = known[-1][:-1]
    known.append(spans)
    found.records += len(starts)
    found.damaged += int(pc.sum(pc.equal(batch["crc"], "bad")).as_py() or 0)
    newest = pc.max(batch["store_timestamp"]).as_py()
    found.last_timestamp = max(newest, found.last_timestamp or newest)


class _Chooser:
    """Keeps the records of a scan that the other log does not have. Asked from several threads."""

    def __init__(self, side: Side, other: Side, options: ReadOptions) -> None:
        self._side, self._other, self._options = side, other, options
        runs = np.array(side.runs, np.int64).reshape(-1, 2)
        self._starts, self._ends = runs[:, 0], runs[:, 1]

    def wanted(self, segment: Segment) -> bool:
        """Whether a run touches the segment."""
        return self._hits(np.array([segment.base]), np.array([segment.end]))[0]  # type: ignore[no-any-return]

    def touches(self, segment: Segment, event: Any) -> bool:
        """Whether what is not a record does."""
        position, length = getattr(event, "position", None), getattr(event, "length", None)
        if position is None or length is None:
            return False
        start = segment.base + position
        return bool(self._hits(np.array([start]), np.array([start + length]))[0])

    def _hits(self, starts: Ints, ends: Ints) -> npt.NDArray[np.bool_]:
        """Which of these ranges a run touches: the first run that ends behind their start."""
        if not len(self._starts):
            return np.zeros(len(starts), np.bool_)
        place = np.searchsorted(self._ends, starts, side="right")
        inside = place < len(self._starts)
        found = np.zeros(len(starts), np.bool_)
        found[inside] = self._starts[place[inside]] < ends[inside]
        return found

    def choose(self, records: Records, base: int, path: str = "") -> Records:
        """See the class."""
        del path
        starts = records.rows[:, Field.POSITION] + base
        ends = starts + records.rows[:, Field.STORE_SIZE]
        near = np.flatnonzero(self._hits(starts, ends) & (starts < self._side.end))
        if near.size:
            first, last = int(starts[near[0]]), int(ends[near[-1]])
            counted = self._count(records, base, first, last)
            near = near[counted[ends[near] - first] > counted[starts[near] - first]]
        return Records(records.rows[near], records.window, records.origin)

    def _count(self, records: Records, base: int, first: int, last: int) -> npt.NDArray[np.int32]:
        """How many bytes of [first, last) differ in front of each place."""
        begin = first - base - records.origin
        own = records.window[begin : begin + last - first]
        differ = np.ones(last - first + 1, np.bool_)
        at = first
        until = min(last, self._other.end)
        while at < until:
            place = self._other.segments.locate(at)
            if place is None:
                at = min((one.base for one in self._other.segments if one.base > at), default=until)
                continue
            segment, position = place
            with self._options.open(segment.file) as source:
                theirs = source.window(position, min(until, segment.end) - at)
                differ[at - first + 1 : at - first + 1 + len(theirs)] = (
                    own[at - first : at - first + len(theirs)] != theirs
                )
            at = min(until, segment.end)
        differ[0] = False
        return np.cumsum(differ, dtype=np.int32)
