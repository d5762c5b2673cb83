"""Positions in queues that are not a record's own (`INNER_MULTI_DISPATCH`), for what takes its place.

A light queue counts only what names it. A tombstone that names nobody would move every later message of the
queue one position down, so it carries the positions that its message had there: as its own properties say
where they can be trusted, as units say that point at it, or as the queue misses them there.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from formats import properties as props
from formats.java import java_parse_int, java_split
from rmqtool.repair.mend.order import light_missing
from rmqtool.scan.multi import LMQ_PREFIX, MultiDispatch, is_exempt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.build.rules import Rules
    from rmqtool.repair.mend.model import Frame, QueueKey, Survey
    from rmqtool.repair.mend.order import Missing

_NAMES, _SLOTS = props.INNER_MULTI_DISPATCH, props.INNER_MULTI_QUEUE_OFFSET


class Further(NamedTuple):
    """One position in one further queue."""

    key: QueueKey
    slot: int


@dataclass
class _Gap:
    """Positions [first, last] that a queue misses between two physical offsets; pointed: (start, slot)."""

    missing: Missing
    next_slot: int
    pointed: list[tuple[int, int]] = field(default_factory=list)


class Lights:
    """Hands out the positions that records in holes had, in the order of the log.

    units: frames that units of light queues tell.
    """

    def __init__(self, survey: Survey, rules: Rules, units: Sequence[Frame]) -> None:
        self._rule, self._lmq = rules.multi_dispatch, rules.lmq
        self._pointed: dict[int, list[Further]] = {}
        self._taken: dict[QueueKey, set[int]] = defaultdict(set)
        self._highest: dict[QueueKey, int] = {}
        self._ends = {key: runs[-1] for key, runs in survey.light.items() if runs}
        missing, self._apart = light_missing(survey)
        self._gaps = {key: [_Gap(one, one.first) for one in gaps] for key, gaps in missing.items()}
        for frame in units if rules.multi_dispatch is not MultiDispatch.NONE else ():
            if frame.key is not None and frame.slot is not None:
                self._point(Further(frame.key, frame.slot), frame.start)

    @property
    def active(self) -> bool:
        """Whether records may have positions in further queues."""
        return self._rule is not MultiDispatch.NONE

    def _point(self, one: Further, start: int) -> None:
        gap = self._gap(one, start)
        self._pointed.setdefault(start, []).append(one)
        if not self._fits(one, start):
            self._apart.add(one.key)
        if gap is not None:
            insort(gap.pointed, (start, one.slot))

    def _gap(self, one: Further, start: int) -> _Gap | None:
        for gap in self._gaps.get(one.key, ()):
            if gap.missing.low <= start < gap.missing.high and (
                gap.missing.first <= one.slot <= gap.missing.last
            ):
                return gap
        return None

    def _fits(self, one: Further, start: int) -> bool:
        """Whether the queue misses the position there, or may go on with it."""
        if self._gap(one, start) is not None:
            return True
        end = self._ends.get(one.key)
        if end is None:
            return one.slot >= 0
        return one.slot > end.last and start >= end.end

    def of(self, topic: str, queue_id: int, start: int, own: bytes | None) -> list[Further]:
        """The positions of the record at a physical offset. own: its properties, where they were read.

        Called in the order of the log, once a record.
        """
        if self._rule is MultiDispatch.NONE or is_exempt(topic, self._rule):
            return []
        stated = self.stated(queue_id, own)
        known = self._pointed.get(start, [])
        trusted = bool(stated) and all(self._free(one, start) for one in stated)
        found = stated if trusted else list(known)
        if not stated:
            names = {one.key for one in found}
            found += [one for one in self._guessed(queue_id, start) if one.key not in names]
        for one in found:
            self._taken[one.key].add(one.slot)
            self._highest[one.key] = max(self._highest.get(one.key, -1), one.slot)
        return found

    def stated(self, queue_id: int, own: bytes | None) -> list[Further]:
        """The positions that properties name; none where their lists do not go together."""
        there = props.decode(own) if own else {}
        names = java_split(there.get(_NAMES, ""), ",") if there.get(_NAMES) else []
        slots = [java_parse_int(one, 64) for one in java_split(there.get(_SLOTS, ""), ",")] if names else []
        if len(names) != len(slots):
            return []
        return [
            Further((name, self._queue_id(name, queue_id)), slot)
            for name, slot in zip(names, slots, strict=True)
            if slot is not None
        ]

    def _queue_id(self, name: str, own: int) -> int:
        return 0 if self._lmq and name.startswith(LMQ_PREFIX) else own

    def _free(self, one: Further, start: int) -> bool:
        """Whether nobody else has the position, and the order of the queue stays that of the log."""
        if one in self._pointed.get(start, ()):
            return True
        if not self._fits(one, start):
            return False
        return self._highest.get(one.key, -1) < one.slot

    def _guessed(self, queue_id: int, start: int) -> list[Further]:
        """The next positions that queues miss here and nothing points at."""
        found = []
        for key, gaps in self._gaps.items():
            if key in self._apart or self._queue_id(key[0], queue_id) != key[1]:
                continue
            for gap in gaps:
                if not gap.missing.low <= start < gap.missing.high:
                    continue
                slot = self._next(gap)
                later = gap.pointed[bisect_right(gap.pointed, (start, 1 << 62)) :]
                if slot <= gap.missing.last and not any(one[1] <= slot for one in later):
                    found.append(Further(key, slot))
        return found

    def _next(self, gap: _Gap) -> int:
        taken = self._taken[gap.missing.key]
        while gap.next_slot in taken:
            gap.next_slot += 1
        return gap.next_slot

    def without(self) -> int:
        """Positions that no record took."""
        left = 0
        for key, gaps in self._gaps.items():
            if key in self._apart:
                continue
            taken = self._taken[key]
            left += sum(
                slot not in taken for gap in gaps for slot in range(gap.missing.first, gap.missing.last + 1)
            )
        return left


def pairs_of(found: Sequence[Further]) -> dict[str, str]:
    """The two properties that name these positions."""
    if not found:
        return {}
    names, slots = ",".join(one.key[0] for one in found), ",".join(str(one.slot) for one in found)
    return {_NAMES: names, _SLOTS: slots}


def without_further(raw: bytes) -> bytes:
    """Properties less what they say of further queues."""
    return props.without(props.without(raw, _NAMES), _SLOTS)
