"""Which whole records of a store its repaired log does not have as they were: found in the bytes alone.

No part of the planner has a say here. What a plan leaves as it is needs no second reading: around the changed
bytes of a segment the source is scanned, from a record in front of them that the result has, too, to one
behind them, and every whole record at its own place must be met by the scan of the result, with the same
bytes. Files that are replaced or leave the store are scanned whole.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.broker.refused_rows import without_number
from rmqtool.repair.list_remains import only_pairs, without_lists
from rmqtool.repair.plan import FROM_DONOR, Action
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, CrcState, Field, Issue
from rmqtool.scan.joined_runs import joined_runs
from rmqtool.scan.segment import SegmentScan
from rmqtool.scan.torn import torn_properties
from rmqtool.store.cut import TruncatedSource
from rmqtool.store.kinds import FileKind
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.repair.plan import Edit
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import Access
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

    Starts = npt.NDArray[np.int64]

_ONE = 1 << 14
"""bytes that are read for one record at first"""
MOST = 100_000
"""changed records that are looked at one by one"""
_BEGINS = 64
"""begins of a file that are counted further"""
_SEPARATOR = b"\x02"


@dataclass(frozen=True, slots=True)
class Record:
    """A whole record at its own place.

    body: its SHA-256. others: that of its properties but for lists of further queues, and pieces that no
    reader sees.
    """

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    size: int
    sys_flag: int
    body: bytes
    others: bytes


@dataclass
class _Change:
    """Positions [start, end) of a segment whose bytes the plan changes."""

    start: int
    end: int


@dataclass
class Comparison:
    """Tell `see` all events of the result's log in order, then call `close`.

    changed: records of the source that the result lacks or has otherwise; more: how many beyond `MOST`.
    compared: whole records of the source that were read again. near: bytes between two changes that are read
    with them, and at once. most_starts: records of the result that are remembered at a change.
    """

    source: Store
    result: Store
    edits: Sequence[Edit]
    kernels: Kernels
    access: Access
    near: int = 1 << 20
    most_starts: int = 1 << 17
    changed: list[Record] = field(default_factory=list)
    more: int = 0
    compared: int = 0
    last: int = -1
    """physical offset of the result's last record"""

    def __post_init__(self) -> None:
        self._mine = {one.file.display_path: one for one in self.source.segments}
        self._changes, self._whole = _changes(self.source, self.edits, self.near)
        changes = (edit.change for edit in self.edits)
        self._given = {(one.path, one.position, one.length) for one in changes if one.why == FROM_DONOR}
        self._at: Segment | None = None
        self._left: list[_Change] = []
        self._before = 0
        self._inside: list[Starts] = []
        self._count = 0

    def see(self, segment: Segment, starts: Starts | None) -> None:
        """Records of the result, in order: positions at which they begin; None for other events."""
        if segment is not self._at:
            self._finish_segment()
            self._at = segment
            self._left = list(reversed(self._changes.pop(segment.file.display_path, ())))
            self._before, self._inside, self._count = 0, [], 0
        if starts is None:
            return
        if len(starts):
            self.last = segment.base + int(starts[-1])
        if not self._left:
            return
        while self._left:
            change = self._left[-1]
            first = int(np.searchsorted(starts, change.start, "right"))
            if first and not self._count:
                self._before = int(starts[first - 1])
            behind = int(np.searchsorted(starts, change.end, "left"))
            if behind > first:
                self._inside.append(starts[first:behind])
                self._count += behind - first
            if behind < len(starts):
                self._settle(change, int(starts[behind]))
                self._left.pop()
                self._before = int(starts[behind - 1]) if behind else self._last_inside()
                self._inside, self._count = [], 0
                continue
            if self._count > self.most_starts:
                landing = int(starts[-1])
                self._settle(_Change(change.start, landing), landing)
                change.start = self._before = landing
                self._inside, self._count = [], 0
            return

    def close(self) -> None:
        """Ends the last segment, and looks at what is not a segment of the result."""
        self._finish_segment()
        for path in self._changes:
            self._whole.append(path)
        for path in self._whole:
            mine = self._mine.get(path)
            if mine is not None:
                self._elsewhere(mine)

    def _last_inside(self) -> int:
        return int(self._inside[-1][-1]) if self._inside else self._before

    def _finish_segment(self) -> None:
        for change in reversed(self._left):
            self._settle(change, None)
            self._inside, self._count = [], 0
        self._left = []

    def _settle(self, change: _Change, landing: int | None) -> None:
        """Compares what the source has from the last common record up to the first one behind the change."""
        theirs = self._at
        mine = None if theirs is None else self._mine.get(theirs.file.display_path)
        if mine is None or theirs is None:
            return
        met = np.concatenate([np.array([self._before], np.int64), *self._inside])
        met.sort()
        with self._open(theirs) as result, self._open(mine) as source:
            for run in self._runs(mine, source, self._before):
                starts = run.rows[:, Field.POSITION]
                inside = int(np.searchsorted(starts, change.end, "left"))
                if inside:
                    part = Records(run.rows[:inside], run.window, run.origin)
                    self._compare(part, mine, result, met)
                if inside < len(starts):
                    if landing is None or int(starts[inside]) < landing:
                        self._note(Records(run.rows[inside : inside + 1], run.window, run.origin), mine)
                    if landing is not None or inside + 1 == len(starts):
                        return
                    self._note(Records(run.rows[inside + 1 :], run.window, run.origin), mine)

    def _elsewhere(self, mine: Segment) -> None:
        """A file that is replaced or goes: its records must lie at the same physical offset of the result."""
        with self._open(mine) as source:
            for run in self._runs(mine, source, 0):
                theirs = self.result.segments.locate(mine.base + int(run.rows[0, Field.POSITION]))
                if theirs is None or theirs[0].base != mine.base:
                    self.compared += len(run.rows)
                    self._note(run, mine)
                    continue
                with self._open(theirs[0]) as result:
                    self._compare(run, mine, result, None)
        self._misplaced(mine)

    def _misplaced(self, mine: Segment) -> None:
        """Records of such a file that state other places, none of which the result's log reaches.

        What lies in front of that has expired. Among records of another segment one may have a wrong offset,
        which the result has put right.
        """
        begin = LikelyBegin()
        log = self.result.segments
        bases, ends = np.array([(one.base, one.end) for one in log], np.int64).reshape(-1, 2).T
        with self._open(mine) as source:
            scan = SegmentScan(
                source,
                mine.base,
                checks=Check.ALL,
                active=True,
                keep_stale=True,
                past_blanks=True,
                kernels=self.kernels,
            )
            for run in joined_runs(scan):
                stated, positions = run.rows[:, Field.STORED_PHYSICAL_OFFSET], run.rows[:, Field.POSITION]
                missing = (stated != positions + mine.base) & (stated >= log.first_offset)
                missing &= np.searchsorted(bases, stated, "right") == np.searchsorted(ends, stated, "right")
                numbers = np.flatnonzero(missing & sound(run, self.kernels))
                numbers = self._without_put_right(run, numbers, begin.of(run))
                self._note_at(run, numbers, stated[numbers])

    def _without_put_right(self, run: Records, numbers: Starts, begin: int) -> Starts:
        """Of some rows those that the result does not have where they lie in a file that begins there."""
        looked, rest = numbers[:MOST], numbers[MOST:]
        has = [has_at(self.result, run, one, begin, self.kernels, self.access) for one in looked.tolist()]
        return np.concatenate((looked[~np.array(has, np.bool_)], rest))

    def _open(self, segment: Segment) -> ByteSource:
        return open_segment(segment, self.access, self.near)

    def _runs(self, mine: Segment, source: ByteSource, start: int) -> Iterator[Records]:
        """Whole records at their own place, from `start` on up to the end of the log."""
        active = self.source.segments.is_active(mine)
        scan = SegmentScan(
            source, mine.base, checks=Check.ALL, active=active, start=start, kernels=self.kernels
        )
        return whole(joined_runs(scan), mine.base, self.kernels)

    def _compare(self, run: Records, mine: Segment, result: ByteSource, met: Starts | None) -> None:
        """met: where records of the result begin, in order; None where that is not known."""
        rows = run.rows
        self.compared += len(rows)
        starts = rows[:, Field.POSITION]
        odd = differing(run, result, int(starts[0]))
        is_met = np.ones(len(rows), np.bool_)
        if met is not None:
            is_met = met[np.minimum(np.searchsorted(met, starts), len(met) - 1)] == starts
            odd |= ~is_met
        for number in np.flatnonzero(odd).tolist():
            place = int(starts[number])
            same = _same_message(run, number, result, place) or self._is_given(run, number, mine, result)
            if not (is_met[number] and same):
                self._note(Records(rows[number : number + 1], run.window, run.origin), mine)

    def _is_given(self, run: Records, number: int, mine: Segment, result: ByteSource) -> bool:
        """Whether a donor gave other properties for a record that no whole one follows: they may be torn."""
        row = run.rows[number]
        start, size, at = map(int, row[[Field.POSITION, Field.STORE_SIZE, Field.PROPERTIES_POSITION]])
        if (mine.file.display_path, start, size) not in self._given:
            return False
        was = run.window[start - run.origin : at - run.origin].tobytes()
        behind = record_at(self.source, mine.base + start + size, self.kernels, self.access)
        return behind is None and result.window(start, at - start).tobytes() == was

    def _note(self, run: Records, mine: Segment) -> None:
        self._note_at(run, np.arange(len(run.rows)), run.rows[:, Field.POSITION] + mine.base)

    def _note_at(self, run: Records, numbers: Starts, physical_offsets: Starts) -> None:
        """Rows of a run that the result lacks, by their numbers, and where it would have to have them."""
        room = max(MOST - len(self.changed), 0)
        self.more += max(len(numbers) - room, 0)
        places = zip(numbers[:room].tolist(), physical_offsets[:room].tolist(), strict=True)
        self.changed += [_record(run, number, offset) for number, offset in places]


class LikelyBegin:
    """The physical offset of a file's first byte that most of its records state, run by run."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def of(self, run: Records) -> int:
        """As far as this run and those before it tell."""
        begins = run.rows[:, Field.STORED_PHYSICAL_OFFSET] - run.rows[:, Field.POSITION]
        self._counts.update(begins.tolist())
        self._counts = Counter(dict(self._counts.most_common(_BEGINS)))
        return self._counts.most_common(1)[0][0]


def has_at(store: Store, run: Records, number: int, begin: int, kernels: Kernels, access: Access) -> bool:
    """Whether a store has the message of a row where it lies in a file that begins at a physical offset."""
    offset = begin + int(run.rows[number, Field.POSITION])
    return record_at(store, offset, kernels, access) == _record(run, number, offset)


def _record(run: Records, number: int, physical_offset: int) -> Record:
    row = run.rows[number]
    properties = _bytes(run, row, Field.PROPERTIES_POSITION, Field.PROPERTIES_LENGTH)
    return Record(
        _bytes(run, row, Field.TOPIC_POSITION, Field.TOPIC_LENGTH).decode("utf-8", "replace"),
        int(row[Field.QUEUE_ID]),
        int(row[Field.QUEUE_OFFSET]),
        physical_offset,
        int(row[Field.STORE_SIZE]),
        int(row[Field.SYS_FLAG]),
        sha256(_bytes(run, row, Field.BODY_POSITION, Field.BODY_LENGTH)).digest(),
        sha256(b"\x02".join(sorted(_parts(only_pairs(without_lists(properties)))))).digest(),
    )


def _bytes(run: Records, row: Starts, position: Field, length: Field) -> bytes:
    start = int(row[position]) - run.origin
    return run.window[start : start + int(row[length])].tobytes()


def record_at(store: Store, offset: int, kernels: Kernels, access: Access) -> Record | None:
    """The whole record at a physical offset, if it says that it belongs there."""
    found = store.segments.locate(offset)
    if found is None:
        return None
    segment, position = found
    with open_segment(segment, access, _ONE) as source:
        scan = SegmentScan(
            source, segment.base, checks=Check.CRC, start=position, kernels=kernels, batch_rows=1
        )
        for run in whole((event for event in scan if isinstance(event, Records)), segment.base, kernels):
            own = int(run.rows[0, Field.POSITION]) == position
            return _record(run, 0, offset) if own else None
    return None


def open_segment(segment: Segment, access: Access, step: int) -> ByteSource:
    """Its bytes up to its size, zeros where they cannot be read. step: bytes that are read at once."""
    return TruncatedSource(ZeroFilledSource(segment.open(access), segment.size), segment.size, step)


def whole(runs: Iterable[Records], base: int, kernels: Kernels) -> Iterator[Records]:
    """Runs of whole records at their own place.

    One with torn properties or a zero byte in its topic (`CL-NUL`) is none, and one with a topic that is not
    UTF-8: it is in no queue.
    Nor is one at which brokers end their log, as a property is no number, or one with a queue or a queue
    offset below zero, which no broker gives (`SendMessageProcessor#sendMessage`).
    """
    for run in runs:
        rows = run.rows
        own = rows[:, Field.STORED_PHYSICAL_OFFSET] == rows[:, Field.POSITION] + base
        good = own & sound(run, kernels)
        if good.any():
            yield Records(rows[good], run.window, run.origin)


def sound(run: Records, kernels: Kernels) -> npt.NDArray[np.bool_]:
    """Which records are whole but for their place, see `whole`."""
    rows = run.rows
    good = rows[:, Field.CRC_STATE] != CrcState.BAD
    good &= (rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8 | Issue.TOPIC_NUL)) == 0
    good &= (rows[:, Field.QUEUE_ID] >= 0) & (rows[:, Field.QUEUE_OFFSET] >= 0)
    whole_ones: npt.NDArray[np.bool_] = good & ~torn_properties(run) & ~without_number(run, kernels)
    return whole_ones


def differing(run: Records, result: ByteSource, position: int) -> npt.NDArray[np.bool_]:
    """Which records of a run have other bytes in a result that has the run at this position."""
    starts = run.rows[:, Field.POSITION]
    ends = starts + run.rows[:, Field.STORE_SIZE]
    low, high = int(starts[0]), int(ends[-1])
    now = result.window(position, high - low)
    was = run.window[low - run.origin : high - run.origin]
    differs = np.ones(was.size + 1, np.bool_)
    differs[: now.size] = was[: now.size] != now
    bounds = np.stack((starts, ends), axis=1).ravel() - low
    return np.asarray(np.logical_or.reduceat(differs, bounds)[::2], np.bool_)


def _changes(store: Store, edits: Sequence[Edit], near: int) -> tuple[dict[str, list[_Change]], list[str]]:
    """Changed positions of segments that stay, joined where near; files that go or are replaced."""
    found: dict[str, list[_Change]] = {}
    whole: list[str] = []
    sizes = {one.display_path: one.size for one in store.of_kind(FileKind.COMMITLOG)}
    for edit in edits:
        change, size = edit.change, sizes.get(edit.change.path)
        if size is None:
            continue
        if change.action in {Action.PUT, Action.REMOVE}:
            whole.append(change.path)
        elif change.action is Action.WRITE and change.position is not None and change.length:
            place = _Change(change.position, change.position + change.length)
            found.setdefault(change.path, []).append(place)
        elif change.action is Action.RESIZE and change.size is not None:
            low, high = sorted((size, change.size))
            found.setdefault(change.path, []).append(_Change(low, high))
    for path in whole:
        found.pop(path, None)
    return {path: _joined(places, near) for path, places in found.items()}, list(dict.fromkeys(whole))


def _joined(places: list[_Change], near: int) -> list[_Change]:
    joined: list[_Change] = []
    for one in sorted(places, key=lambda one: (one.start, one.end)):
        if joined and one.start <= joined[-1].end + near:
            joined[-1].end = max(joined[-1].end, one.end)
        else:
            joined.append(one)
    return joined


def _same_message(run: Records, number: int, result: ByteSource, position: int) -> bool:
    """Whether the result has the same message there, separators among its properties apart."""
    row = run.rows[number]
    start, size = int(row[Field.POSITION]), int(row[Field.STORE_SIZE])
    was = run.window[start - run.origin : start - run.origin + size].tobytes()
    now = result.window(position, size).tobytes()
    if was == now:
        return True
    text = int(row[Field.PROPERTIES_POSITION]) - start
    if now[4 : text - 2] != was[4 : text - 2]:
        return False
    length = int.from_bytes(now[text - 2 : text], "big", signed=True)
    if length < 0 or int.from_bytes(now[:4], "big") != text + length:
        return False
    held = result.window(position + text, length).tobytes()
    return _parts(held) == _parts(was[text:])


def _parts(properties: bytes) -> list[bytes]:
    return [one for one in properties.split(_SEPARATOR) if one]
