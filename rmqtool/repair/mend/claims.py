"""Which queue position a broken record had: by a unit, its own header, or what its queue misses there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from formats import properties as props
from formats.commitlog import MESSAGE_MAGIC_CODES, transaction_of
from formats.java import java_parse_int
from rmqtool.repair.mend.headers import text_of
from rmqtool.repair.mend.order import Missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.repair.mend.model import Frame, Header, QueueKey, Survey
    from rmqtool.repair.mend.order import Order

_BEYOND = 1 << 62
_AGREEING = 2
"""of topic, queue number and queue offset, so many have to be right in a header that names a place"""


@dataclass
class Claims:
    """Frames of every hole, by its number, in order; those that are to be tombstones have a key and a slot.

    open: positions that no frame claims, by queue, in order, each to be placed in [low, high).
    """

    frames: dict[int, list[Frame]] = field(default_factory=dict)
    open: dict[QueueKey, list[Missing]] = field(default_factory=dict)


class Claimant:
    """Make it with what is known of the log, call `claims` once."""

    def __init__(self, survey: Survey, order: Order, known: Sequence[QueueKey]) -> None:
        self._survey, self._order = survey, order
        self._known = {*known, *(key for key, runs in order.chosen.items() if runs)}
        self._missing: dict[QueueKey, list[Missing]] = defaultdict(list)
        for one in order.missing:
            self._missing[one.key].append(one)
        self._claimed: dict[QueueKey, dict[int, Frame]] = defaultdict(dict)
        self._slots: dict[QueueKey, list[int]] = defaultdict(list)

    def claims(self, headers: dict[int, list[Frame]], units: dict[int, list[Frame]]) -> Claims:
        """Frames by header and by unit, by hole, as one list without overlap."""
        made = Claims()
        for number in range(len(self._survey.holes)):
            pointed = [one for one in units.get(number, ()) if self._takes_unit(one)]
            made.frames[number] = self._merged(headers.get(number, []), pointed)
        for frames in made.frames.values():
            for frame in frames:
                self._claim(frame)
        for frames in made.frames.values():
            for frame in frames:
                if frame.key is None and frame.header is not None and _speaks(frame.header):
                    self._claim_nearly(frame, frame.header)
        self._find_open(made)
        return made

    @staticmethod
    def _merged(headers: list[Frame], units: list[Frame]) -> list[Frame]:
        """Units win over headers; a header of the same extent goes with its unit."""
        by_extent = {(one.start, one.end): one for one in headers}
        chosen: list[Frame] = []
        for unit in units:
            if chosen and unit.start < chosen[-1].end:
                continue
            same = by_extent.get((unit.start, unit.end))
            if same is not None:
                unit.header, unit.suspect = same.header, same.suspect
            chosen.append(unit)
        starts = [one.start for one in chosen]
        free: list[Frame] = []
        for one in headers:
            at = bisect_left(starts, one.end) - 1
            if at < 0 or chosen[at].end <= one.start:
                free.append(one)
        chosen += free
        return sorted(chosen, key=lambda one: one.start)

    def _bounds(self, key: QueueKey, slot: int, frame: Frame) -> bool:
        """Whether the queue has no record at this slot and would have it just there."""
        last = slot + frame.count - 1
        runs = self._order.chosen.get(key) or []
        if key in self._order.twice:
            return False
        if not runs:
            return key in self._known
        if slot > runs[-1].last:
            return frame.start >= runs[-1].end
        if slot < runs[0].first:
            return slot >= 0 and last < runs[0].first and frame.end <= runs[0].start
        gap = self._gap_around(key, frame)
        return gap is not None and gap.first <= slot and last <= gap.last

    def _gap_around(self, key: QueueKey, frame: Frame) -> Missing | None:
        """What the queue misses where the frame lies; gaps of a queue are in order and apart."""
        gaps = self._missing.get(key, [])
        at = bisect_right(gaps, frame.start, key=lambda one: one.low) - 1
        return gaps[at] if at >= 0 and frame.end <= gaps[at].high else None

    def _takes_unit(self, frame: Frame) -> bool:
        return frame.key is not None and frame.slot is not None and self._bounds(frame.key, frame.slot, frame)

    def _claim(self, frame: Frame) -> None:
        """By its unit, else by its own header when that is plausible as a whole."""
        key, slot = frame.key, frame.slot
        if key is None and frame.header is not None:
            key, slot = self._by_header(frame, frame.header)
        if key is None or slot is None or not self._in_order(key, slot, frame):
            frame.key = frame.slot = None
            frame.count = 1
            return
        self._take(key, slot, frame)

    def _by_header(self, frame: Frame, header: Header) -> tuple[QueueKey | None, int | None]:
        topic = text_of(header.topic)
        if topic is None or transaction_of(header.sys_flag) in {"prepared", "rollback"}:
            return None, None
        key = topic, header.queue_id
        if topic in self._survey.batches:
            count = batch_count(header)
            if count is None:
                return None, None
            frame.count = count
        fits = key in self._known and self._bounds(key, header.queue_offset, frame)
        if fits and not self._is_next(key, header.queue_offset) and not header.own_place:
            fits = False
        return (key, header.queue_offset) if fits else (None, None)

    def _is_next(self, key: QueueKey, slot: int) -> bool:
        """Inside of what the queue misses, or right behind its end: no jump."""
        runs = self._order.chosen.get(key) or []
        return not runs or slot <= self._next(key)

    def _next(self, key: QueueKey) -> int:
        """The slot behind all that is known of a queue."""
        runs, slots = self._order.chosen.get(key) or [], self._slots[key]
        claimed = slots[-1] + self._claimed[key][slots[-1]].count if slots else 0
        return max(runs[-1].last + 1 if runs else 0, claimed)

    def _in_order(self, key: QueueKey, slot: int, frame: Frame) -> bool:
        """No other frame has the slot, and frames of the queue stay in the order of their slots."""
        claimed, slots = self._claimed[key], self._slots[key]
        if slot in claimed:
            return False
        at = bisect_left(slots, slot)
        if at:
            before = claimed[slots[at - 1]]
            if before.start >= frame.start or slots[at - 1] + before.count > slot:
                return False
        if at == len(slots):
            return True
        return claimed[slots[at]].start > frame.start and slot + frame.count <= slots[at]

    def _take(self, key: QueueKey, slot: int, frame: Frame) -> None:
        frame.key, frame.slot = key, slot
        self._claimed[key][slot] = frame
        insort(self._slots[key], slot)

    def _claim_nearly(self, frame: Frame, header: Header) -> None:
        """By a header of which one part is wrong: the queue that misses something there tells which."""
        best: tuple[int, QueueKey, int] | None = None
        ties = 0
        for key, slot in self._candidates(frame, header):
            topic = text_of(header.topic)
            points = (topic == key[0]) + (header.queue_id == key[1]) + (header.queue_offset == slot)
            if points < _AGREEING or not self._in_order(key, slot, frame):
                continue
            if best is None or points > best[0]:
                best, ties = (points, key, slot), 0
            elif points == best[0] and (key, slot) != best[1:]:
                ties += 1
        if best is None or ties:
            return
        self._take(best[1], best[2], frame)

    def _candidates(self, frame: Frame, header: Header) -> list[tuple[QueueKey, int]]:
        found: list[tuple[QueueKey, int]] = []
        batches = self._survey.batches
        for key in self._missing:
            gap = self._gap_around(key, frame) if key[0] not in batches else None
            if gap is not None:
                if gap.first <= header.queue_offset <= gap.last:
                    found.append((key, header.queue_offset))
                found += [(key, gap.first), (key, gap.last)]
        for key, runs in self._order.chosen.items():
            if key[0] in batches:
                continue
            if runs and frame.start >= runs[-1].end and key not in self._order.twice:
                found.append((key, self._next(key)))
        return found

    def _find_open(self, made: Claims) -> None:
        """What is missing and not claimed, between the claims around it."""
        for key in {*self._missing, *self._claimed}:
            if key in self._order.twice:
                continue
            wanted = list(self._missing.get(key, ())) + self._outer(key)
            gaps: list[Missing] = []
            for one in wanted:
                gaps += self._unclaimed(one)
            if gaps:
                made.open[key] = sorted(gaps, key=lambda one: one.first)

    def _outer(self, key: QueueKey) -> list[Missing]:
        """Positions in front of the first and behind the last record that claims reach to."""
        slots = self._claimed.get(key)
        if not slots:
            return []
        runs = self._order.chosen.get(key) or []
        if not runs:
            return [Missing(key, min(slots), max(slots), 0, _BEYOND)]
        found = []
        inner = min((one.first for one in self._missing.get(key, ())), default=runs[0].first)
        if min(slots) < min(runs[0].first, inner):
            found.append(Missing(key, min(slots), runs[0].first - 1, 0, runs[0].start))
        if max(slots) > runs[-1].last:
            found.append(Missing(key, runs[-1].last + 1, max(slots), runs[-1].end, _BEYOND))
        return found

    def _unclaimed(self, one: Missing) -> list[Missing]:
        """The rest of a gap as ranges of slots, each bounded by the claims next to it."""
        known = self._slots[one.key]
        slots = known[bisect_left(known, one.first) : bisect_right(known, one.last)]
        found: list[Missing] = []
        first, low = one.first, one.low
        for slot in slots:
            frame = self._claimed[one.key][slot]
            if slot > first:
                found.append(Missing(one.key, first, slot - 1, low, frame.start))
            first, low = slot + frame.count, frame.end
        if first <= one.last:
            found.append(Missing(one.key, first, one.last, low, one.high))
        return found


def _speaks(header: Header) -> bool:
    """Whether there is a header at all: its magic is one, or it states its place."""
    return header.own_place or header.magic in MESSAGE_MAGIC_CODES


def batch_count(header: Header) -> int | None:
    """How many messages a record of a batch queue says to have, None where it cannot be believed."""
    if not header.framed or header.properties is None:
        return None
    there = props.decode(header.properties)
    if props.INNER_NUM not in there or props.INNER_BASE not in there:
        return 1
    count = java_parse_int(there[props.INNER_NUM], 16)
    base = java_parse_int(there[props.INNER_BASE], 64)
    return count if count is not None and count > 0 and base == header.queue_offset else None
