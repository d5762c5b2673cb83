"""Queues without files: records whose queue offset fits another queue of their topic, by the log's order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmqtool.scan.fields import Stretch

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
    """Queue offsets of one queue in log order: the stretch that may go on, and where the order is broken.

    open: rows of `Stretch` without the partition, of one stretch at most. odd: (queue offset, physical
    offset) of records that do not follow one, or are not followed by one. missing: (queue offset, physical
    offset before, behind) where exactly one is left out.
    """

    open: Ints = field(default_factory=lambda: np.empty((len(Stretch) - 1, 0), np.int64))
    odd: list[tuple[int, int]] = field(default_factory=list)
    missing: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, stretches: Ints) -> None:
        """Takes more stretches, in log order."""
        slots, offsets, last_slots, last_offsets = every = np.concatenate([self.open, stretches], axis=1)
        breaks = np.flatnonzero(~_apart(slots[1:], last_slots[:-1], 1))
        firsts = np.concatenate(([0], breaks + 1))
        lasts = np.concatenate((breaks, [every.shape[1] - 1]))
        left_out = breaks[_apart(slots[breaks + 1], last_slots[breaks], 2)][: _MOST - len(self.missing)]
        for at in left_out.tolist():
            self.missing.append((int(last_slots[at]) + 1, int(last_offsets[at]), int(offsets[at + 1])))
        joined = np.stack((slots[firsts], offsets[firsts], last_slots[lasts], last_offsets[lasts]))
        self._note(joined[:, :-1])
        self.open = joined[:, -1:]

    def close(self) -> None:
        """The last record is followed by none."""
        self._note(self.open)

    def _note(self, stretches: Ints) -> None:
        """The first and the last record of each, which may be one."""
        room = _MOST - len(self.odd)
        for slot, offset, last_slot, last_offset in stretches[:, :room].T.tolist():
            self.odd += [(slot, offset), (last_slot, last_offset)][: 1 if offset == last_offset else 2]
        del self.odd[_MOST:]


def _apart(slots: Ints, before: Ints, by: int) -> npt.NDArray[np.bool_]:
    """Which queue offsets are so much larger than others; differences may leave int64."""
    found: npt.NDArray[np.bool_] = (slots > before) & (slots - before == by)
    return found


class QueueNumbers:
    """Takes the records of queues that have no files."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str, int], _Order] = {}

    def add(self, key: tuple[str, int], stretches: Ints) -> None:
        """Records of one topic and queue, in log order: rows of `Stretch` without the partition."""
        if stretches.shape[1]:
            self._orders.setdefault(key, _Order()).add(stretches)

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
