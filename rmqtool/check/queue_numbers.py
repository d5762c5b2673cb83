"""Queues without files: records whose queue offset fits another queue of their topic, by the log's order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_MOST = 4096
"""places of one queue that are kept"""


class Misplaced(NamedTuple):
    """A record that says `queue_id`, and the queue in which just its queue offset is missing there."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    belongs_to: int


@dataclass(slots=True)
class _Order:
    """Queue offsets of one queue in log order: the last two, and where the order is broken.

    odd: (queue offset, physical offset) of records that do not follow one, or are not followed by one.
    missing: (queue offset, physical offset before, behind) where exactly one is left out.
    """

    slots: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    offsets: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    begun: bool = False
    odd: list[tuple[int, int]] = field(default_factory=list)
    missing: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, slots: Ints, offsets: Ints) -> None:
        """Takes more records, in log order."""
        known = len(self.slots)
        slots, offsets = np.concatenate([self.slots, slots]), np.concatenate([self.offsets, offsets])
        steps = np.diff(slots)
        for at in (np.flatnonzero(steps[max(known - 1, 0) :] == 2) + max(known - 1, 0)).tolist():
            if len(self.missing) < _MOST:
                self.missing.append((int(slots[at]) + 1, int(offsets[at]), int(offsets[at + 1])))
        apart = steps != 1
        inner = np.flatnonzero(apart[:-1] | apart[1:]) + 1
        if not self.begun and len(apart):
            inner = np.concatenate([[0], inner])
        self.begun |= len(slots) > 1
        self._note(slots[inner], offsets[inner])
        self.slots, self.offsets = slots[-2:], offsets[-2:]

    def close(self) -> None:
        """The last record is followed by none."""
        self._note(self.slots[-1:], self.offsets[-1:])

    def _note(self, slots: Ints, offsets: Ints) -> None:
        room = _MOST - len(self.odd)
        self.odd += zip(slots[:room].tolist(), offsets[:room].tolist(), strict=True)


class QueueNumbers:
    """Takes the records of queues that have no files."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str, int], _Order] = {}

    def add(self, key: tuple[str, int], offsets: Ints, slots: Ints) -> None:
        """Records of one topic and queue: physical and queue offsets, in log order."""
        if len(slots):
            self._orders.setdefault(key, _Order()).add(slots, offsets)

    def misplaced(self) -> Iterator[Misplaced]:
        """By topic and queue, one for each queue offset that is missing.

        Both queues must agree. Where two records of one queue have that queue offset, either may be the one.
        """
        missing: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        for (topic, queue_id), order in self._orders.items():
            order.close()
            for slot, before, behind in order.missing:
                missing.setdefault((topic, slot), []).append((before, behind, queue_id))
        for (topic, queue_id), order in sorted(self._orders.items()):
            for slot, offset in order.odd:
                places = missing.get((topic, slot), [])
                for number, (before, behind, other) in enumerate(places):
                    if other != queue_id and before < offset < behind:
                        del places[number]
                        yield Misplaced(topic, queue_id, slot, offset, other)
                        break
