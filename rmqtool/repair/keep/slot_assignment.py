"""Which queue position a broken record had: by a unit, its own header, or what its queue misses there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from formats import properties as props
from formats.commitlog import transaction_of
from formats.java import java_parse_int
from rmqtool.repair.keep.chain import BATCH
from rmqtool.repair.keep.missed import length_and_number
from rmqtool.repair.keep.model import Frame, Trust, text_of
from rmqtool.repair.keep.offers import Offer, Offers
from rmqtool.repair.keep.room import Missing
from rmqtool.repair.place import Place
from rmqtool.repair.tombstone import LONGEST_TIME, smallest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rmqtool.repair.keep.model import Header, QueueKey, Run, Survey
    from rmqtool.repair.keep.offers import Part
    from rmqtool.repair.keep.order import Order

_BEYOND = 1 << 62
_UNPLACED = frozenset({"prepared", "rollback"})
"""transactions whose records have no units"""


@dataclass
class Claims:
    """Frames of every hole, by its number, in order; those that are to be tombstones have a key and a slot.

    open: positions that no frame claims, by queue, in order, each to be placed in [low, high). contested:
    whole records that stay alone in the queue that they state, as more than one other queue misses them, or
    that go on with it by a guess.
    """

    frames: dict[int, list[Frame]] = field(default_factory=dict)
    open: dict[QueueKey, list[Missing]] = field(default_factory=dict)
    contested: list[Frame] = field(default_factory=list)


class SlotAssigner:
    """Make it with what is known of the log, call `claims` once.

    Units of a queue that skips queue offsets stay as they are: what it gets, one of them tells.
    """

    def __init__(self, survey: Survey, order: Order, known: Sequence[QueueKey]) -> None:
        self._survey, self._order = survey, order
        named = (one.key for one in order.outliers if one.start in order.refuted)
        self._known = {*known, *named, *(key for key, runs in order.chosen.items() if runs)}
        self._missing: dict[QueueKey, list[Missing]] = defaultdict(list)
        for one in order.missing:
            if order.chosen[one.key]:  # a queue whose only record is another's misses nothing
                self._missing[one.key].append(one)
        self._claimed: dict[QueueKey, dict[int, Frame]] = defaultdict(dict)
        self._slots: dict[QueueKey, list[int]] = defaultdict(list)
        self._least: dict[str, int] = {}

    def claims(
        self,
        headers: dict[int, list[Frame]],
        units: dict[int, list[Frame]],
        places: dict[int, list[Frame]],
        misplaced: Callable[[Frame], Header | None] = lambda _: None,
    ) -> Claims:
        """Frames by header and by unit, by hole, as one list without overlap.

        places: those that units of further queues tell. They say where a record was, not whose. misplaced:
        the header of a record that a unit points at and that states another offset.
        """
        made = Claims()
        for number in range(len(self._survey.holes)):
            pointed = [one for one in units.get(number, ()) if self._takes_unit(one)]
            own, further = headers.get(number, []), places.get(number, [])
            self._lengthen_short(pointed, [*own, *further], self._survey.holes[number].end)
            made.frames[number] = self._merged(own, pointed, further)
            for frame in made.frames[number]:
                if frame.header is None and frame.key is not None:
                    frame.header = misplaced(frame)
        for frames in made.frames.values():
            for frame in frames:
                self._claim(frame)
        left = [frame for frames in made.frames.values() for frame in frames if frame.key is None]
        contested = self._claim_nearly(left)
        self._claim_batches([frame for frame in left if frame.key is None])
        for frame in left:
            self._claim_alone(frame)
            if frame.key is not None and frame.start in contested:
                made.contested.append(frame)
        self._find_open(made)
        return made

    def _lengthen_short(self, units: Sequence[Frame], others: Sequence[Frame], end: int) -> None:
        """Units whose size no record of their queue can have take what a tombstone needs, if it is there.

        The size lies, not the place. end: of the hole.
        """
        short = [one for one in units if one.length < self._least_of(one)]
        starts = sorted(one.start for one in (*units, *others)) if short else []
        for one in short:
            at = bisect_right(starts, one.start)
            following = starts[at] if at < len(starts) else end
            one.end = max(one.end, min(one.start + self._least_of(one), following))

    def _least_of(self, frame: Frame) -> int:
        """Bytes of the smallest tombstone for a topic; several messages in one are as good as one."""
        topic = frame.key[0] if frame.key is not None else ""
        if topic not in self._least:
            self._least[topic] = smallest(Place(topic, 0, 0, 0, LONGEST_TIME))
        return self._least[topic]

    def _merged(self, headers: list[Frame], units: list[Frame], places: list[Frame]) -> list[Frame]:
        """Units win over headers, proven ones over others; a header of the same extent goes with its unit.

        One that leads into a whole record at its own place, or over its end, leads to none.
        """
        by_extent = {(one.start, one.end): one for one in headers}
        whole = [one for one in headers if _is_whole(one)]
        units, places = _no_part_of(whole, units), _no_part_of(whole, places)
        chosen: list[Frame] = []
        for trust in Trust:
            chosen = _beside(chosen, [one for one in units if one.trust is trust])
        chosen = _beside(chosen, places)
        for unit in chosen:
            same = by_extent.get((unit.start, unit.end))
            if same is not None:
                unit.header, unit.suspect = same.header, same.suspect
        return _beside(chosen, headers)

    def _bounds(self, key: QueueKey, slot: int, frame: Frame) -> bool:
        """Whether the queue has no record at this slot and would have it just there."""
        last = slot + frame.count - 1
        runs = self._order.chosen.get(key) or []
        if key in self._order.twice - self._order.skipping:
            return False
        if not runs:
            return key in self._known
        if slot > runs[-1].last:
            between = runs[-1].end, frame.start
            return frame.start >= runs[-1].end and self._room(key, runs[-1].last + 1, slot, between, frame)
        if slot < runs[0].first:
            between = frame.end, runs[0].start
            fits = slot >= 0 and last < runs[0].first and frame.end <= runs[0].start
            return fits and self._room(key, last + 1, runs[0].first, between, frame)
        if key in self._order.skipping:
            return self._beside_jump(runs, slot, frame)
        gap = self._gap_around(key, frame)
        return gap is not None and gap.first <= slot and last <= gap.last

    def _beside_jump(self, runs: Sequence[Run], slot: int, frame: Frame) -> bool:
        """Whether a slot lies between two runs, and what is missing up to one of them has room in the log."""
        at, end = bisect_right(runs, frame.start, key=lambda one: one.start), slot + frame.count
        if not (0 < at < len(runs) and runs[at - 1].last < slot and end <= runs[at].first):
            return False
        key, before, behind = runs[0].key, runs[at - 1], runs[at]
        in_front, rest = (before.end, frame.start), (frame.end, behind.start)
        return any(
            self._room(key, first, stop, where, frame)
            for first, stop, where in ((before.last + 1, slot, in_front), (end, behind.first, rest))
        )

    def _room(self, key: QueueKey, first: int, slot: int, between: tuple[int, int], frame: Frame) -> bool:
        """Whether records with the slots from `first` on may have been between two places of the log."""
        room = self._order.left if frame.start in self._order.refuted else self._order.room
        most = BATCH if key[0] in self._survey.batches else 1
        return slot - first <= room.inside(*between) * most

    def _gap_around(self, key: QueueKey, frame: Frame) -> Missing | None:
        """What the queue misses where the frame lies; gaps of a queue are in order and apart."""
        gaps = self._missing.get(key, [])
        at = bisect_right(gaps, frame.start, key=lambda one: one.low) - 1
        return gaps[at] if at >= 0 and frame.end <= gaps[at].high else self._outer_around(key, frame)

    def _outer_around(self, key: QueueKey, frame: Frame) -> Missing | None:
        """What it misses there outside of its records, between claims: these are in the order of the log."""
        slots, claimed = self._slots[key], self._claimed[key]
        at = bisect_right(slots, frame.start, key=lambda one: claimed[one].start)
        ends = [(slots[at - 1] + claimed[slots[at - 1]].count, claimed[slots[at - 1]].end)] if at else []
        begins = [(slots[at], claimed[slots[at]].start)] if at < len(slots) else []
        if runs := self._order.chosen.get(key):
            ends += [(runs[-1].last + 1, runs[-1].end)] if frame.start >= runs[-1].end else []
            begins += [(runs[0].first, runs[0].start)] if frame.end <= runs[0].start else []
        if not ends or not begins or (runs and runs[0].start < frame.start < runs[-1].end):
            return None
        (first, low), (behind, high) = max(ends), min(begins)
        return Missing(key, first, behind - 1, low, high) if first < behind and frame.end <= high else None

    def _takes_unit(self, frame: Frame) -> bool:
        if frame.key is None or frame.slot is None or frame.trust is Trust.REFUTED:
            return False
        return self._bounds(frame.key, frame.slot, frame)

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
        if topic is None or transaction_of(header.sys_flag) in _UNPLACED:
            return None, None
        key = topic, header.queue_id
        if topic in self._survey.batches:
            count = batch_count(header)
            if count is None:
                return None, None
            frame.count = count
        known = key in self._known and key not in self._order.twice
        fits = known and self._bounds(key, header.queue_offset, frame)
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
        at, end = bisect_left(slots, slot), slot + frame.count
        before = claimed[slots[at - 1]] if at else None
        behind = claimed[slots[at]] if at < len(slots) else None
        if before is not None and (before.start >= frame.start or slots[at - 1] + before.count > slot):
            return False
        if behind is not None and (behind.start <= frame.start or end > slots[at]):
            return False
        if self._order.chosen.get(key):
            return True  # how far it may be from what is intact is known
        if before is not None:
            follows = slots[at - 1] + before.count
            if not self._room(key, follows, slot, (before.end, frame.start), frame):
                return False
        return behind is None or self._room(key, end, slots[at], (frame.end, behind.start), frame)

    def _take(self, key: QueueKey, slot: int, frame: Frame) -> None:
        frame.key, frame.slot = key, slot
        self._claimed[key][slot] = frame
        insort(self._slots[key], slot)

    def _claim_nearly(self, frames: Sequence[Frame]) -> set[int]:
        """By headers with one wrong part: the queue that misses something there tells which.

        One that states another place was written there: it says nothing about what is missing here. Returns
        where those begin that more than one queue may have had.
        """
        spoken = [
            (one, one.header)
            for one in frames
            if one.header is not None and one.header.own_place and not _is_unplaced(one.header)
        ]
        if not spoken:
            return set()
        asked = [(part, header.queue_offset) for _, header in spoken for part in _parts(header)]
        proven, possible = Offers(asked), Offers(asked)
        for offer, between in self._offers(batch=False):
            (proven if between else possible).add(offer)
        queues = {
            frame.start: self._claim_one_nearly(frame, header, proven, possible) for frame, header in spoken
        }
        return {start for start, count in queues.items() if count > 1}

    def _claim_one_nearly(self, frame: Frame, header: Header, proven: Offers, possible: Offers) -> int:
        """Two parts of three have to be right, in one queue only; the queue's own header is right in all.

        proven: what queues miss between records that they have. It goes before `possible`: a queue may begin
        behind offset 0, as one does that a flipped bit made, and end anywhere. A whole record out of place
        could always be the next one of its own queue; that it states the next one of another is no chance,
        unless one bit is all that it states otherwise than the next one of its own: then it is believed to be
        that, which is no more than a guess. Returns how many there are.
        """
        topic, slot = text_of(header.topic), header.queue_offset
        own = None if topic is None else (topic, header.queue_id)
        ours = [] if own is None else self._own_slots(own, slot, frame)
        found: set[tuple[QueueKey, int]] = set()
        guessed = 0
        if own is not None and any(one == slot for one, _ in ours):
            found = {(own, slot)}
        for offers, between in (proven, True), (possible, False):
            if found:
                break
            there = [
                one for part in _parts(header) for one in offers.at(part, slot, frame.start, frame.end, own)
            ]
            found = {(one.key, slot) for one in there}
            mine = set() if own is None else {(own, one) for one, inner in ours if inner is between}
            if not (found and frame.suspect and not between):
                found |= mine
            elif near := {one for one in mine if (one[1] ^ slot).bit_count() == 1}:
                guessed, found = len(found), near
        if len(found) == 1:
            ((key, slot),) = found
            self._take(key, slot, frame)
            for offers in (proven, possible):
                offers.take(key, slot, frame.start, frame.end)
        return len(found) + guessed

    def _claim_batches(self, frames: Sequence[Frame]) -> None:
        """By headers in batch queues with a wrong number: one queue of the topic misses all they have.

        By those with a wrong queue offset: their own queue does, at the one that their properties state.
        """
        asked = [(frame, *found) for frame in frames if (found := self._batch_of(frame)) is not None]
        proven, possible = (Offers((topic, slot) for _, topic, slot, _ in asked) for _ in range(2))
        for offer, between in self._offers(batch=True) if asked else ():
            (proven if between else possible).add(offer)
        for frame, topic, slot, count in asked:
            for offers in (proven, possible):
                there = offers.at(topic, slot, frame.start, frame.end, None)
                if frame.header is not None and frame.header.queue_offset != slot:
                    there = [one for one in there if one.key == (topic, frame.header.queue_id)]
                if there:
                    break
            if len(there) != 1 or not (there[0].goes_on or slot + count - 1 <= there[0].last):
                continue
            frame.count, key = count, there[0].key
            if self._in_order(key, slot, frame):
                self._take(key, slot, frame)
                offers.take(key, slot, frame.start, frame.end)
            else:
                frame.count = 1

    def _batch_of(self, frame: Frame) -> tuple[str, int, int] | None:
        """Topic, queue offset and messages of a whole record in a topic of batch queues."""
        header = frame.header
        if header is None or not header.own_place or not header.sound:
            return None
        topic = text_of(header.topic)
        if topic is None or topic not in self._survey.batches:
            return None
        slots = [header.queue_offset, *([] if (base := inner_base(header)) is None else [base])]
        return next(((topic, slot, count) for slot in slots if (count := batch_count(header, slot))), None)

    def _claim_alone(self, frame: Frame) -> None:
        """A whole record that is alone in its queue stays, unless a queue that missed it has taken it.

        So does one of which only size and magic are gone, where its queue skips more than was lost.
        """
        header = frame.header
        if frame.key is not None or header is None or not header.sound:
            return
        if not (frame.suspect or header.headless):
            return
        topic, slot = text_of(header.topic), header.queue_offset
        key = (topic or "", header.queue_id)
        stays = not self._order.chosen.get(key) or (header.headless and self._between(key, slot, frame))
        own = topic is not None and topic not in self._survey.batches
        if own and stays and self._in_order(key, slot, frame):
            self._take(key, slot, frame)

    def _between(self, key: QueueKey, slot: int, frame: Frame) -> bool:
        """Whether a slot and its frame lie between two records of the queue, in order or not as a whole."""
        runs = self._survey.runs.get(key) or []
        at = bisect_right(runs, frame.start, key=lambda one: one.start)
        if not 0 < at < len(runs):
            return False
        before, behind = runs[at - 1], runs[at]
        return before.last < slot < behind.first and before.end <= frame.start < frame.end <= behind.start

    def _own_slots(self, key: QueueKey, stated: int, frame: Frame) -> list[tuple[int, bool]]:
        """What the queue may have had there: the stated slot, the ends of what it misses, the next one.

        And whether that lies between two records that the queue has. Of what it misses, a slot from which the
        stated one differs in a bit goes before the ends.
        """
        if key[0] in self._survey.batches:
            return []
        slots: list[tuple[int, bool]] = []
        gap = self._gap_around(key, frame)
        if gap is not None:
            missed = range(gap.first, gap.last + 1)
            flipped = [one for bit in range(63) if (one := stated ^ (1 << bit)) in missed]
            ends = flipped if len(flipped) == 1 and stated not in missed else [gap.first, gap.last]
            slots += [(slot, gap.first > 0) for slot in ([stated] if stated in missed else []) + ends]
        runs = self._order.chosen.get(key)
        if runs and frame.start >= runs[-1].end and key not in self._order.twice:
            slots.append((self._next(key), False))
        return [one for one in slots if self._in_order(key, one[0], frame)]

    def _offers(self, *, batch: bool) -> Iterator[tuple[Offer, bool]]:
        """All positions that queues miss and nothing claims, and what would be the next ones behind them.

        And whether they lie between two records that the queue has. batch: of batch queues, or of the others.
        """
        batches = self._survey.batches
        for key, gaps in self._missing.items():
            for gap in gaps if (key[0] in batches) is batch else ():
                for one in self._unclaimed(gap):
                    yield Offer(key, one.first, one.last, one.low, one.high), gap.first > 0
        for key in self._claimed:
            for gap in self._outer(key) if (key[0] in batches) is batch else ():
                for one in self._unclaimed(gap):
                    yield Offer(key, one.first, one.last, one.low, one.high), True
        for key, runs in self._order.chosen.items():
            if runs and (key[0] in batches) is batch and key not in self._order.twice:
                slots = self._slots.get(key)
                low = max(runs[-1].end, self._claimed[key][slots[-1]].start + 1 if slots else 0)
                following = self._next(key)
                yield Offer(key, following, following, low, _BEYOND, goes_on=True), False

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


def _parts(header: Header) -> list[Part]:
    """What of its queue's key may be right; where its lengths add up, that of its topic is, too."""
    topic = text_of(header.topic)
    if topic is None:
        return [header.queue_id]
    key = topic, header.queue_id
    return [topic, length_and_number(key) if header.framed else header.queue_id]


def _is_whole(frame: Frame) -> bool:
    header = frame.header
    return header is not None and header.framed and header.sound and header.own_place


def _is_unplaced(header: Header) -> bool:
    """Whether it is of a record that takes no place in its queue: such ones state 0."""
    return header.queue_offset == 0 and transaction_of(header.sys_flag) in _UNPLACED


def _no_part_of(whole: Sequence[Frame], some: Sequence[Frame]) -> list[Frame]:
    """Frames that are one of some whole records, or beside all of them. whole: in order."""
    starts = [one.start for one in whole]
    found: list[Frame] = []
    for one in some:
        at = bisect_left(starts, one.end) - 1
        last = whole[at] if at >= 0 else None
        if last is None or last.end <= one.start or (last.start, last.end) == (one.start, one.end):
            found.append(one)
    return found


def _beside(taken: list[Frame], more: Sequence[Frame]) -> list[Frame]:
    """Frames in order without overlap, and of others, by start, those that overlap none of them."""
    starts, found, end = [one.start for one in taken], list(taken), 0
    for one in more:
        at = bisect_left(starts, one.end) - 1
        if one.start >= end and (at < 0 or taken[at].end <= one.start):
            found.append(one)
            end = one.end
    return sorted(found, key=lambda one: one.start)


def inner_base(header: Header) -> int | None:
    """The queue offset that the properties of a record of a batch queue state."""
    stated = None if header.properties is None else props.decode(header.properties).get(props.INNER_BASE)
    return None if stated is None else java_parse_int(stated, 64)


def batch_count(header: Header, slot: int | None = None) -> int | None:
    """How many messages a record of a batch queue says to have, None where it cannot be believed.

    slot: its queue offset, where something else tells it than the record's field.
    """
    if not header.framed or header.properties is None:
        return None
    there = props.decode(header.properties)
    if props.INNER_NUM not in there or props.INNER_BASE not in there:
        return 1
    count = java_parse_int(there[props.INNER_NUM], 16)
    base = java_parse_int(there[props.INNER_BASE], 64)
    slot = header.queue_offset if slot is None else slot
    return count if count is not None and count > 0 and base == slot else None
