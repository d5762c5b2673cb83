"""Which queue offsets the messages of every queue have, by the log: what a queue must reach at both ends.

A queue that ends lower after the start gives offsets to new messages that older messages have already; one
that begins higher hides messages.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rmqtool.scan.events import Records
from rmqtool.scan.fields import CrcState, DispatchColumn, Field
from rmqtool.scan.multi import inner_batches

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]

Key: TypeAlias = tuple[str, int]
_ENDLESS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Lag:
    """Messages of a queue that are in the log and not in the queue. oldest_timestamp: store time, ms."""

    topic: str
    queue_id: int
    messages: int
    bytes: int
    oldest_timestamp: int

    def plus(self, other: Lag) -> Lag:
        """Both together."""
        oldest = min(self.oldest_timestamp, other.oldest_timestamp)
        return Lag(
            self.topic, self.queue_id, self.messages + other.messages, self.bytes + other.bytes, oldest
        )


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The message of a queue with the highest queue offset. end: physical offset behind it, as stated."""

    slot: int
    end: int


class QueueSpans:
    """Fed with placed records; `of` then answers for each queue. Memory depends on the number of queues."""

    def __init__(
        self,
        kernels: Kernels,
        known: Callable[[Key], int] = lambda _: _ENDLESS,
        is_batch: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """known: the queue offset from which on a queue has no unit yet.

        is_batch: whether the queues of a topic are batch queues, in which a record has the places that its
        properties name, whatever its queue offset is (`BatchConsumeQueue#putMessagePositionInfo`).
        """
        self.known = known
        self._kernels = kernels
        self.is_batch = is_batch
        self._spans: dict[Key, tuple[int, int]] = {}
        self.messages: Counter[Key] = Counter()
        """how many each queue has in its span"""
        self._last: dict[Key, LastMessage] = {}
        self._lags: dict[Key, Lag] = {}

    @property
    def lags(self) -> tuple[Lag, ...]:
        """Queues with records that had no unit, by name."""
        return tuple(self._lags[key] for key in sorted(self._lags))

    def of(self) -> dict[Key, tuple[int, int]]:
        """(topic, queue id) → lowest queue offset of a record with a unit, highest plus one."""
        return self._spans

    def last_of(self, topic: str, queue_id: int) -> LastMessage | None:
        """The last message of a queue, None when none was seen."""
        return self._last.get((topic, queue_id))

    def take(self, run: Records, columns: Ints, keys: list[Key]) -> None:
        """A run of records as `Partitions` placed those that want a unit; keys: of their partitions."""
        good = run.rows[columns[DispatchColumn.OWNER], Field.CRC_STATE] != CrcState.BAD
        if not good.all():
            columns = columns[:, good]
        if not columns.shape[1]:
            return
        partitions, slots = columns[DispatchColumn.PARTITION], columns[DispatchColumn.SLOT]
        there = np.flatnonzero(np.bincount(partitions))
        numbers = np.empty(there[-1] + 1, np.int64)
        numbers[there] = np.arange(len(there))
        queue, keys = numbers[partitions], [keys[partition] for partition in there.tolist()]
        slots, last_slots = self._places(run, columns[DispatchColumn.OWNER], slots, queue, keys)
        lowest, highest = np.full(len(keys), _ENDLESS), np.full(len(keys), -_ENDLESS)
        np.minimum.at(lowest, queue, slots)
        np.maximum.at(highest, queue, last_slots)
        top = np.flatnonzero(last_slots == highest[queue])
        tops, at_top = np.full(len(keys), -1), run.rows[columns[DispatchColumn.OWNER, top]]
        ends = at_top[:, Field.STORED_PHYSICAL_OFFSET] + at_top[:, Field.STORE_SIZE]
        np.maximum.at(tops, queue[top], ends)
        found = (keys, lowest.tolist(), highest.tolist(), tops.tolist())
        counts = np.bincount(queue, last_slots - slots + 1, len(keys)).astype(np.int64)
        self.messages.update(dict(zip(keys, counts.tolist(), strict=True)))
        for key, low, high, end in zip(*found, strict=True):
            self._widen(key, low, high + 1)
            self._note_last(key, LastMessage(high, end))
        bounds = np.array([self.known(key) for key in keys], np.int64)
        if (highest >= bounds).any():
            late = slots >= bounds[queue]
            self._count(
                keys, queue[late], columns[DispatchColumn.SIZE, late], columns[DispatchColumn.TIME, late]
            )

    def _places(
        self, run: Records, owners: Ints, slots: Ints, queue: Ints, keys: list[Key]
    ) -> tuple[Ints, Ints]:
        """First and last queue offset of each record."""
        batch = np.array([self.is_batch(topic) for topic, _ in keys], np.bool_)
        if not batch.any():
            return slots, slots
        which = np.flatnonzero(batch[queue])
        records = Records(run.rows[owners[which]], run.window, run.origin)
        every, ones = np.ones(len(which), np.bool_), np.ones(len(which), np.int64)
        first, last = slots.copy(), slots.copy()
        first[which], counts = inner_batches(records, every, slots[which], ones, self._kernels)
        last[which] = first[which] + np.maximum(counts, 1) - 1
        return first, last

    def add(self, other: QueueSpans) -> None:
        """The spans of other records too; what queues lack of them does not count."""
        self.messages.update(other.messages)
        for key, (low, end) in other.of().items():
            self._widen(key, low, end)
        for key, last in other._last.items():
            self._note_last(key, last)

    def _widen(self, key: Key, low: int, end: int) -> None:
        known = self._spans.get(key, (low, end))
        self._spans[key] = min(known[0], low), max(known[1], end)

    def _note_last(self, key: Key, last: LastMessage) -> None:
        known = self._last.get(key)
        if known is None or last.slot >= known.slot:
            self._last[key] = last

    def _count(self, keys: list[Key], queue: Ints, lengths: Ints, times: Ints) -> None:
        """Adds records without a unit; `queue` is the number of its queue for each."""
        messages = np.bincount(queue, minlength=len(keys))
        sizes, oldest = np.zeros(len(keys), np.int64), np.full(len(keys), _ENDLESS)
        np.add.at(sizes, queue, lengths)
        np.minimum.at(oldest, queue, times)
        for number in np.flatnonzero(messages).tolist():
            key = keys[number]
            added = Lag(*key, int(messages[number]), int(sizes[number]), int(oldest[number]))
            before = self._lags.get(key)
            self._lags[key] = added if before is None else before.plus(added)
