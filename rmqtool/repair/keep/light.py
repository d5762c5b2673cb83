"""Positions in queues that are not a record's own (`INNER_MULTI_DISPATCH`), for what takes its place.

A light queue counts only what names it. A tombstone that names nobody would move every later message of the
queue one position down, so it carries the positions that its message had there: as its own properties say
where they can be trusted, as units say that point at it, or as the queue misses them there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from formats import properties as props
from formats.crc_trailer import TRAILER_SIZE
from formats.java import java_parse_int, java_split
from rmqtool.repair.keep.counted import Ahead
from rmqtool.repair.keep.gaps import light_missing, tail_gaps
from rmqtool.repair.keep.light_gaps import Further, Gaps, OpenGaps
from rmqtool.repair.keep.room import Room
from rmqtool.repair.keep.unlisted import count_dropped
from rmqtool.repair.list_remains import only_pairs, without_lists
from rmqtool.scan.multi import MultiDispatch, is_exempt, takes_number

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.repair.keep.model import Frame, QueueKey, Run, Survey
    from rmqtool.repair.keep.unlisted import Dropped

_NAMES, _SLOTS = props.INNER_MULTI_DISPATCH, props.INNER_MULTI_QUEUE_OFFSET
_FRAME = len(_NAMES) + len(_SLOTS) + 4


class MultiDispatchPositions:
    """Hands out the positions that records in holes had, in the order of the log.

    units: frames that units of light queues tell. records: broken ones that stay, with the properties that
    can be read. ahead: by how much records state more than their place.
    proven: positions that units tell, or records that have a unit and whose properties are left. dropped:
    entries of messages that stay and have no room to name the queue.
    """

    def __init__(
        self,
        survey: Survey,
        rules: FileRules,
        units: Sequence[Frame],
        records: Iterable[tuple[Frame, bytes]] = (),
        ahead: Ahead | None = None,
    ) -> None:
        self._rule, self._lmq, self._ahead = rules.multi_dispatch, rules.lmq, ahead or Ahead()
        self._pointed: dict[int, dict[Further, None]] = {}
        self._taken: dict[QueueKey, set[int]] = defaultdict(set)
        self.proven: dict[QueueKey, set[int]] = defaultdict(set)
        self._highest: dict[QueueKey, int] = {}
        self.dropped: Dropped = {}
        self._ends = {key: runs[-1] for key, runs in survey.light.items() if runs}
        self._room = Room(survey.holes, ())
        missing, self._apart = light_missing(survey, self._ahead.blank)
        stated = list(self._stated_by(records)) if missing else []
        for key, behind in self._behind_the_end(stated, missing).items():
            missing[key] += tail_gaps(self._ends[key], behind, self._room)
        self._gaps = Gaps(missing)
        counted = {key: survey.light[key] for key in missing}
        for frame in units if rules.multi_dispatch is not MultiDispatch.NONE else ():
            if frame.key is None or frame.slot is None or _contradicts(frame, counted):
                continue
            if frame.key not in counted or not self._beyond(frame.key, frame.slot, frame.start):
                self._point(Further(frame.key, frame.slot), frame.start)
        for frame, one in stated:  # what comes later is not given to one in front that states nothing
            self._gaps.point(one, frame.start)
        self._open = OpenGaps(self._gaps.besides(self._apart), self._highest, lmq=self._lmq)

    @property
    def active(self) -> bool:
        """Whether records may have positions in further queues."""
        return self._rule is not MultiDispatch.NONE

    def _point(self, one: Further, start: int) -> None:
        self._pointed.setdefault(start, {})[one] = None
        if not self._fits(one, start):
            self._apart.add(one.key)
        self._gaps.point(one, start)

    def _stated_by(self, records: Iterable[tuple[Frame, bytes]]) -> Iterator[tuple[Frame, Further]]:
        """The places of what broken records state."""
        for frame, own in records if self.active else ():
            if frame.key is not None and not is_exempt(frame.key[0], self._rule):
                for one in self.stated(frame.key[1], own) or ():
                    yield frame, self._moved(one, frame.start, -1)

    def _behind_the_end(
        self, stated: Iterable[tuple[Frame, Further]], keys: Collection[QueueKey]
    ) -> dict[QueueKey, list[tuple[int, int, int]]]:
        """Start, end and position of broken records behind the last intact one of a queue, by start."""
        found: dict[QueueKey, list[tuple[int, int, int]]] = defaultdict(list)
        for frame, one in stated:
            if one.key in keys and frame.start >= self._ends[one.key].end:
                found[one.key].append((frame.start, frame.end, one.slot))
        return {key: sorted(there) for key, there in found.items()}

    def _beyond(self, key: QueueKey, slot: int, start: int) -> bool:
        """Whether the queue would have had more messages than were lost there, as in a moved file."""
        end = self._ends.get(key)
        if end is None or start < end.end:
            return False
        return slot - end.last > self._room.inside(end.end, start)

    def _fits(self, one: Further, start: int) -> bool:
        """Whether the queue misses the position there, or may go on with it."""
        if self._gaps.around(one, start) is not None:
            return True
        end = self._ends.get(one.key)
        if end is None:
            return one.slot >= 0
        return one.slot > end.last and start >= end.end

    def of(
        self,
        topic: str,
        queue_id: int,
        start: int,
        own: bytes | None,
        room: int,
        *,
        dispatched: bool = True,
        keeps: bool = False,
    ) -> list[Further]:
        """What the record at a physical offset states. own: its properties, where they were read.

        keeps: the record is a message that stays, with all other properties that it has.
        dispatched: its type of transaction is not one without a unit, as far as it is known.
        room: bytes for the names of queues that nothing but what they miss tells. Called in the order of the
        log, once a record.
        """
        if self._rule is MultiDispatch.NONE or is_exempt(topic, self._rule):
            return []
        pointed = self._pointed.get(start, {})
        known = {one: None for one in pointed if one.key[1] == self._queue_id(one.key[0], queue_id)}
        stated = self.stated(queue_id, own) or []
        self._count(stated, start, known)
        stated = [self._moved(one, start, -1) for one in stated]
        trusted = bool(stated) and all(self._free(one, start) for one in stated)
        if trusted and known.keys() - set(stated):
            # a queue that nothing else names, and without an entry, is another one's name with a wrong letter
            trusted = all(one in known or one.key in self._ends for one in stated)
        found = stated if trusted else list(known)
        for one in found if dispatched else known:
            self.proven[one.key].add(one.slot)
        if keeps and not trusted and (not known or _relisted(own or b"", found) is None):
            for one in known.keys() - set(stated) if dispatched else ():
                count_dropped(self.dropped, *one)
            found = stated
        if not stated and len(found) == len(known):  # there was room for all that entries tell
            if own:
                found = found + self._named(queue_id, start, own, found, None if keeps else room)
            found = found + self._guessed(queue_id, start, found, room - _FRAME)
        for one in found:
            self._taken[one.key].add(one.slot)
            self._highest[one.key] = max(self._highest.get(one.key, -1), one.slot)
        return [self._moved(one, start, 1) for one in found]

    def relisted(
        self, topic: str, queue_id: int, start: int, own: bytes, *, dispatched: bool = True
    ) -> bytes:
        """Properties of a message that stays, of the same length, with the positions that are true.

        Called as `of` is, and instead of it.
        """
        if self._rule is MultiDispatch.NONE or is_exempt(topic, self._rule):
            return own
        found = self.of(topic, queue_id, start, own, 0, dispatched=dispatched, keeps=True)
        return own if found == self.stated(queue_id, own) else _relisted(own, found) or own

    def give_back(self, start: int, stated: Iterable[Further]) -> None:
        """The record at a physical offset does not name these after all: their places stay blank."""
        for one in stated:
            there = self._moved(one, start, -1)
            self._taken[there.key].discard(there.slot)

    def _count(self, stated: list[Further], start: int, known: Collection[Further]) -> None:
        """Where units count, the unit of a record whose own properties are left counts too."""
        slots = {one.key: one.slot for one in known}
        for key, slot in stated:
            if key in slots and self._free(Further(key, slots[key]), start):
                self._ahead.tell(key, start, slot - slots[key])

    def _moved(self, one: Further, start: int, way: int) -> Further:
        """From what a record states to its place, or back."""
        return Further(one.key, one.slot + way * self._ahead.at(one.key, start))

    def _named(
        self, queue_id: int, start: int, own: bytes, known: list[Further], room: int | None
    ) -> list[Further]:
        """The next positions of queues that properties name, where their numbers cannot be read: all or none.

        room: bytes that the properties may grow by; None where they keep their length.
        """
        keys = dict.fromkeys((name, self._queue_id(name, queue_id)) for name in _names_without_slots(own))
        slots = {key: self._open.next_slot(key, start) for key in keys if key not in self._apart}
        there = {one.key for one in known}
        found = [Further(key, slot) for key, slot in slots.items() if slot is not None and key not in there]
        made = _relisted(own, [*known, *found]) if room is None else with_lists(own, [*known, *found])
        return found if made is not None and len(made) <= len(own) + (room or 0) else []

    def _guessed(self, queue_id: int, start: int, known: list[Further], room: int) -> list[Further]:
        """The next positions that queues miss here, as far as there is room to name them."""
        found: list[Further] = []
        names = {one.key for one in known}
        room -= sum(_width(one) for one in known)
        if room <= 0:
            return found
        for one in self._open.at(start, queue_id):
            if one.key in names:
                continue
            room -= _width(one)
            if room < 0:
                break
            found.append(one)
        return found

    def stated(self, queue_id: int, own: bytes | None) -> list[Further] | None:
        """The positions that properties name; None where their lists do not go together."""
        there = props.decode(own) if own else {}
        if not there.get(_NAMES) or not there.get(_SLOTS):
            return []
        names, slots = (java_split(there[name], ",") for name in (_NAMES, _SLOTS))
        numbers = [java_parse_int(one, 64) for one in slots]
        if len(names) != len(slots) or None in numbers:
            return None
        return [
            Further((name, self._queue_id(name, queue_id)), slot)
            for name, slot in zip(names, numbers, strict=True)
            if slot is not None
        ]

    def _queue_id(self, name: str, own: int) -> int:
        return own if takes_number(name, lmq=self._lmq) else 0

    def _free(self, one: Further, start: int) -> bool:
        """Whether nobody else has the position, and the order of the queue stays that of the log."""
        if one in self._pointed.get(start, {}):
            return True
        if not self._fits(one, start):
            return False
        return self._highest.get(one.key, -1) < one.slot

    def without(self) -> Counter[QueueKey]:
        """How many positions of each queue no record took."""
        found: Counter[QueueKey] = Counter()
        for key, count in self._gaps.untaken(self._apart, self._taken):
            found[key] += count
        for key, blank in self._ahead.blank.items():
            found[key] += 0 if key in self._apart else sum(blank.values())
        return +found


def _contradicts(unit: Frame, runs: Mapping[QueueKey, Sequence[Run]]) -> bool:
    """Whether an intact record has the unit's position, or lies on the wrong side of it in the log.

    Then the unit lies, as those of a foreign file do. runs: of queues whose records state the place of their
    units, ascending.
    """
    if unit.key is None or unit.slot is None:
        return False
    there = runs.get(unit.key, ())
    at = bisect_right(there, unit.slot, key=lambda run: run.first)
    before, behind = there[max(at - 1, 0) : at], there[at : at + 1]
    return any(unit.slot <= run.last or unit.start < run.end for run in before) or any(
        unit.start >= run.start for run in behind
    )


def _width(one: Further) -> int:
    """Bytes that the lists of names and numbers have for it."""
    return len(one.key[0].encode()) + len(str(one.slot)) + 2


def pairs_of(found: Sequence[Further]) -> dict[str, str]:
    """The two properties that name these positions."""
    if not found:
        return {}
    names, slots = ",".join(one.key[0] for one in found), ",".join(str(one.slot) for one in found)
    return {_NAMES: names, _SLOTS: slots}


def _names_without_slots(own: bytes) -> list[str]:
    """The queues that a list names whose positions are torn. A broker leaves some blank, which is none."""
    there = props.decode(own)
    slots = java_split(there.get(_SLOTS) or "", ",")
    if _SLOTS in there and all(not one or java_parse_int(one, 64) is not None for one in slots):
        return []
    return java_split(there.get(_NAMES) or "", ",")


def with_lists(raw: bytes, found: Sequence[Further]) -> bytes:
    """Properties that name these positions and no others."""
    return _ended(without_lists(raw)) + props.encode(pairs_of(found), trailing_separator=True)


def _ended(raw: bytes) -> bytes:
    return raw if not raw or raw.endswith(b"\x02") else raw + b"\x02"


def _relisted(raw: bytes, found: Sequence[Further]) -> bytes | None:
    """Properties of the same length that name these positions; None where they have no room."""
    seal = raw[-TRAILER_SIZE:] if raw[-TRAILER_SIZE:].startswith(props.CRC32.encode()) else b""
    length = len(raw) - len(seal)
    own = without_lists(raw[:length])
    # pieces that Java drops go only where they take the room
    for kept in (own, only_pairs(own)):
        made = _ended(kept) + props.encode(pairs_of(found), trailing_separator=False) if found else kept
        if len(made) <= length:
            return made.ljust(length, b"\x02") + seal
    return None
