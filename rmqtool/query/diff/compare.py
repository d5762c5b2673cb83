"""Two stores compared by their logs: ranges, messages that one alone has or has elsewhere, and a verdict."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rmqtool.broker.log_view import LogView
from rmqtool.query.diff.blocks import Blocks
from rmqtool.query.diff.records import Differing, Side, differing_records
from rmqtool.query.diff.verdict import Verdict, judge
from rmqtool.query.duplicates.hashes import Share
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.picked import Missing, pick
from rmqtool.store.coverage import each_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import SegmentSet

    Ints = npt.NDArray[np.int64]
    Row = dict[str, Any]

SHOWN = (
    "topic", "queue_id", "queue_offset", "physical_offset", "store_size", "store_timestamp", "uniq_key",
    "keys", "crc",
)  # fmt: skip
"""columns of the record table that a row of a message has"""


@dataclass
class _Log:
    segments: SegmentSet
    start: int
    end: int


def _log_of(store: Store) -> _Log:
    with LogView(store.segments) as view:
        return _Log(store.segments, max(view.low, 0), max(view.high, view.low, 0))


@dataclass
class Comparison:
    """A and B. Call `ranges`, then `messages`, then ask for the rest.

    left: rows of `not_covered`. only_a, only_b, moved, changed: messages; changed ones are at the same place
    in both, with other bytes.
    """

    a: Store
    b: Store
    options: ReadOptions
    left: list[Row] = field(default_factory=list)
    only_a: int = 0
    only_b: int = 0
    moved: int = 0
    changed: int = 0
    first_difference: Row | None = None

    def __post_init__(self) -> None:
        self._logs = _log_of(self.a), _log_of(self.b)
        self._found = Differing(), Differing()
        self._only: tuple[list[Ints], list[Ints]] = [], []

    @property
    def common(self) -> tuple[int, int]:
        """The physical range that both logs have; empty ones are (x, x)."""
        one, other = self._logs
        start = max(one.start, other.start)
        return start, max(min(one.end, other.end), start)

    def ranges(self) -> Iterator[Row]:
        """Rows of ranges in physical order; `messages` of equal ones are not counted."""
        one, other = self._logs
        start, end = self.common
        blocks = Blocks(one.segments, other.segments, self.options)
        blocks.compare(start, end)
        self.left += blocks.left
        alone = _outside(one, (start, end)) + blocks.only_a, _outside(other, (start, end)) + blocks.only_b
        sides = tuple(
            Side(log.segments, _merged([*blocks.differing, *own]), log.end)
            for log, own in zip(self._logs, alone, strict=True)
        )
        self._sides = sides[0], sides[1]
        if any(side.runs for side in sides):
            self._found = (
                differing_records(sides[0], sides[1], self.options),
                differing_records(sides[1], sides[0], self.options),
            )
        for found in self._found:
            self.left += found.left
        spans = self._different(blocks, alone)
        yield from self._rows(spans, alone)

    def _different(self, blocks: Blocks, alone: tuple[list[tuple[int, int]], ...]) -> list[tuple[int, int]]:
        """Ranges that both have and that differ: of records, and of bytes beside them."""
        held = [(int(start), int(end)) for found in self._found for start, end, _ in found.spans]
        outside = _merged([*alone[0], *alone[1]])
        spans = _merged(held)
        beside = [self._bytes(*one) for one in blocks.differing if not _touches(spans, *one)]
        return _without(_merged([*spans, *beside]), outside)

    def _bytes(self, start: int, end: int) -> tuple[int, int]:
        """The first and the last byte of a run that differ, where no record does."""
        first = last = None
        for at in range(start, end, 1 << 20):
            one, other = (_bytes_of(log.segments, at, min(1 << 20, end - at)) for log in self._logs)
            length = min(len(one), len(other))
            found = np.flatnonzero(one[:length] != other[:length])
            if found.size:
                first = at + int(found[0]) if first is None else first
                last = at + int(found[-1]) + 1
        return (start, end) if first is None or last is None else (first, last)

    def _rows(
        self, different: list[tuple[int, int]], alone: tuple[list[tuple[int, int]], ...]
    ) -> Iterator[Row]:
        marked = [("different", *one) for one in different]
        marked += [("only_a", *one) for one in alone[0]]
        marked += [("only_b", *one) for one in alone[1]]
        marked.sort(key=lambda one: one[1])
        start = min(log.start for log in self._logs)
        end = max(log.end for log in self._logs)
        for state, low, high in marked:
            if start < low:
                yield _range("equal", start, low)
            counts = [_count(found, low, high) for found in self._found]
            if self.first_difference is None and state == "different":
                self.first_difference = self._first(low)
            yield _range(state, low, high, *counts)
            start = max(high, start)
        if start < end:
            yield _range("equal", start, end)
        if self.first_difference is None and marked:
            self.first_difference = self._first(marked[0][1])

    def _first(self, place: int) -> Row:
        rows = [_record_at(log.segments, place) for log in self._logs]
        return {"physical_offset": place, "a": rows[0], "b": rows[1]}

    def messages(self) -> Iterator[tuple[list[str], list[list[Any]]]]:
        """Names and columns of messages that are not the same in both, some at once.

        Both logs are asked for the same share of the messages: where one has too many of them, it is parted.
        """
        todo = [Share()]
        first, second = self._found
        while todo:
            share = todo.pop()
            if share.parts > 1:
                first = differing_records(self._sides[0], self._sides[1], self.options, share)
                second = differing_records(self._sides[1], self._sides[0], self.options, share)
            parts = max(first.share.parts, second.share.parts)
            if parts > share.parts:
                todo += [Share(part, parts) for part in range(share.part, parts, share.parts)]
            else:
                yield from self._matched(first, second)

    def _matched(self, first: Differing, second: Differing) -> Iterator[tuple[list[str], list[list[Any]]]]:
        in_b, in_a = np.isin(first.hashes, second.hashes), np.isin(second.hashes, first.hashes)
        pairs = _pairs(first, second)
        same = np.array([place == other for place, other in pairs.items()], np.bool_)
        self.changed += int(same.sum())
        self.moved += len(pairs) - int(same.sum())
        for number, (found, shared, state) in enumerate(((first, in_b, "only_a"), (second, in_a, "only_b"))):
            alone = np.sort(found.offsets[~shared])
            self._only[number].append(alone)
            if number:
                self.only_b += len(alone)
            else:
                self.only_a += len(alone)
            for names, columns in _shown(self._logs[number].segments, alone, self.options):
                yield (
                    ["type", "state", *names],
                    [["message"] * len(columns[0]), [state] * len(columns[0]), *columns],
                )
        places = np.array(sorted(pairs), np.int64)
        at = SHOWN.index("physical_offset")
        for names, columns in _shown(self._logs[0].segments, places, self.options):
            others = [pairs[place] for place in columns[at]]
            states = [
                "changed" if one == place else "moved" for place, one in zip(columns[at], others, strict=True)
            ]
            yield (
                ["type", "state", *names, "b_physical_offset"],
                [["message"] * len(others), states, *columns, others],
            )

    def exclusive(self, which: str) -> Ints:
        """Physical offsets of the messages that A or B alone has, sorted."""
        parts = self._only[which == "b"]
        return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))

    @property
    def verdict(self) -> Verdict:
        """Which one is ahead, which to keep."""
        return judge(
            [(log.start, log.end) for log in self._logs],
            self._found,
            only=(self.only_a, self.only_b),
            moved=self.moved,
            changed=self.changed,
            differs=self.first_difference is not None,
        )

    def summary(self) -> Row:
        """What the closing summary has beside its coverage."""
        start, end = self.common
        counts = {"only_a": self.only_a, "only_b": self.only_b, "moved": self.moved, "changed": self.changed}
        ends = {name: {"from": log.start, "to": log.end} for name, log in zip("ab", self._logs, strict=True)}
        return {
            "common": {"from": start, "to": end},
            **ends,
            **counts,
            "first_difference": self.first_difference,
        }

    def not_covered(self) -> list[Row]:
        """What could not be read."""
        return each_once(self.left)


def _range(state: str, start: int, end: int, a: int | None = None, b: int | None = None) -> Row:
    most = None if a is None or b is None else max(a, b)
    row: Row = {"type": "range", "state": state, "from": start, "to": end, "messages": most}
    return row | ({"messages_a": a, "messages_b": b} if state == "different" else {})


def _count(found: Differing, start: int, end: int) -> int:
    first, last = np.searchsorted(found.spans[:, 0], (start, end))
    return int(found.spans[first:last, 2].sum())


def _outside(log: _Log, common: tuple[int, int]) -> list[tuple[int, int]]:
    """What a log has in front of the common range and behind it."""
    start, end = common
    pieces = [(log.start, min(start, log.end)), (max(end, log.start), log.end)]
    return _merged([(low, high) for low, high in pieces if low < high])


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and found[-1][1] >= start:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _touches(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of the spans, which are merged, lies in [start, end) in part."""
    last = bisect_left(spans, (end,)) - 1
    return last >= 0 and spans[last][1] > start


def _without(spans: list[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans with what lies in others taken out; both merged."""
    found = []
    ends = [high for _, high in others]
    for start, end in spans:
        at = start
        for low, high in others[bisect_right(ends, start) : bisect_left(others, (end,))]:
            if at < low:
                found.append((at, low))
            at = max(at, high)
        if at < end:
            found.append((at, end))
    return found


def _bytes_of(segments: SegmentSet, offset: int, length: int) -> npt.NDArray[np.uint8]:
    found = segments.locate(offset)
    if found is None:
        return np.empty(0, np.uint8)
    with found[0].open("pread") as source:
        return source.window(found[1], length)


def _record_at(segments: SegmentSet, offset: int) -> Row | None:
    """The record that begins there, None without one."""
    for part in pick(segments, [offset], SHOWN):
        if not isinstance(part, Missing):
            return dict(part.to_pylist()[0])
    return None


def _pairs(first: Differing, second: Differing) -> dict[int, int]:
    """Places in B of A's messages that both have, the first of each."""
    hashes, which = np.unique(first.hashes, return_index=True)
    others, where = np.unique(second.hashes, return_index=True)
    _, own, their = np.intersect1d(hashes, others, assume_unique=True, return_indices=True)
    places = first.offsets[which[own]].tolist()
    return dict(zip(places, second.offsets[where[their]].tolist(), strict=True))


def _shown(
    segments: SegmentSet, offsets: Ints, options: ReadOptions
) -> Iterator[tuple[list[str], list[list[Any]]]]:
    """The records at these places, sorted, as columns."""
    if not len(offsets):
        return

    def choose(records: Records, base: int, path: str = "") -> Records:
        del path
        starts = records.rows[:, Field.POSITION] + base
        place = np.minimum(np.searchsorted(offsets, starts), len(offsets) - 1)
        return Records(records.rows[offsets[place] == starts], records.window, records.origin)

    def wanted(segment: Any) -> bool:
        at = int(np.searchsorted(offsets, segment.base))
        return at < len(offsets) and int(offsets[at]) < segment.end

    how = LogScan(columns=SHOWN, choose=choose, wanted=wanted, checks=Check.ALL, options=options)
    for piece in scan_log(segments, how):
        if isinstance(piece.content, pa.RecordBatch) and piece.content.num_rows:
            batch = piece.content.select(SHOWN)
            yield list(SHOWN), [column.to_pylist() for column in batch.columns]
