"""Which queue offsets the messages of every queue have, by the log: what a queue must reach at both ends.

A queue that ends lower after the start gives offsets to new messages that older messages have already; one
that begins higher hides messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from formats.commitlog import SysFlag
from rmqtool.scan import text
from rmqtool.scan.fields import CrcState, Field, Issue

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]

Key: TypeAlias = tuple[str, int]
_ENDLESS = (1 << 63) - 1
_LOWEST_ID = -(1 << 31)


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
    """Fed with runs of records; `of` then answers for each queue. Memory depends on the number of queues."""

    def __init__(self, kernels: Kernels, known: Callable[[Key], int] = lambda _: _ENDLESS) -> None:
        """known: the queue offset from which on a queue has no unit yet."""
        self._kernels = kernels
        self.known = known
        self._spans: dict[Key, tuple[int, int]] = {}
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

    def take(self, run: Records, base: int) -> None:
        """A run of records whose topics were looked at; `base` does not matter."""
        del base
        rows = run.rows
        kind = rows[:, Field.SYS_FLAG] & int(SysFlag.TRANSACTION_MASK)
        wants = (kind != int(SysFlag.PREPARED)) & (kind != int(SysFlag.ROLLBACK))
        wants &= rows[:, Field.CRC_STATE] != CrcState.BAD
        if not wants.all():
            rows = rows[wants]
        if not len(rows):
            return
        keys, queue = self._queues(run, rows)
        slots = np.ascontiguousarray(rows[:, Field.QUEUE_OFFSET])
        lowest, highest = np.full(len(keys), _ENDLESS), np.full(len(keys), -_ENDLESS)
        np.minimum.at(lowest, queue, slots)
        np.maximum.at(highest, queue, slots)
        ends = rows[:, Field.STORED_PHYSICAL_OFFSET] + rows[:, Field.STORE_SIZE]
        tops, at_top = np.full(len(keys), -1), slots == highest[queue]
        np.maximum.at(tops, queue[at_top], ends[at_top])
        found = (keys, lowest.tolist(), highest.tolist(), tops.tolist())
        for key, low, high, end in zip(*found, strict=True):
            self._widen(key, low, high + 1)
            self._note_last(key, LastMessage(high, end))
        bounds = np.array([self.known(key) for key in keys], np.int64)
        if (highest >= bounds).any():
            late = slots >= bounds[queue]
            self._count(keys, queue[late], rows[late])

    def _queues(self, run: Records, rows: Ints) -> tuple[list[Key], Ints]:
        """The queues that occur, and the number of its queue for each record."""
        places = np.ascontiguousarray(rows[:, Field.TOPIC_POSITION]) - run.origin
        lengths = np.ascontiguousarray(rows[:, Field.TOPIC_LENGTH])
        ill = (rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8)) != 0
        present = np.ones(len(rows), np.bool_)
        topics = text.strings(self._kernels, run.window, places, lengths, present, ill).dictionary_encode()
        names = topics.dictionary.to_pylist()
        ids = np.ascontiguousarray(rows[:, Field.QUEUE_ID])
        packed = (topics.indices.to_numpy().astype(np.int64) << 32) + ids - _LOWEST_ID
        encoded = pa.array(packed).dictionary_encode()
        found = encoded.dictionary.to_pylist()
        keys = [(names[one >> 32], (one & 0xFFFFFFFF) + _LOWEST_ID) for one in found]
        return keys, encoded.indices.to_numpy().astype(np.int64)

    def add(self, other: QueueSpans) -> None:
        """The spans of other records too; what queues lack of them does not count."""
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

    def _count(self, keys: list[Key], queue: Ints, rows: Ints) -> None:
        """Adds records without a unit; `queue` is the number of its queue for each."""
        messages = np.bincount(queue, minlength=len(keys))
        sizes, oldest = np.zeros(len(keys), np.int64), np.full(len(keys), _ENDLESS)
        np.add.at(sizes, queue, rows[:, Field.STORE_SIZE])
        np.minimum.at(oldest, queue, rows[:, Field.STORE_TIMESTAMP])
        for number in np.flatnonzero(messages).tolist():
            key = keys[number]
            added = Lag(*key, int(messages[number]), int(sizes[number]), int(oldest[number]))
            before = self._lags.get(key)
            self._lags[key] = added if before is None else before.plus(added)
