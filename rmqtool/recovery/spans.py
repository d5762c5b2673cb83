"""Which queue offsets the messages of every queue have, by the log: what a queue must reach at both ends.

A queue that ends lower after the start gives offsets to new messages that older messages have already; one
that begins higher hides messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from formats.commitlog import SysFlag
from rmqtool.scan import text
from rmqtool.scan.fields import CrcState, Field, Issue

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import numpy.typing as npt

    from rmqtool.scan.events import Records

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


class QueueSpans:
    """Fed with runs of records; `of` then answers for each queue. Memory depends on the number of queues."""

    def __init__(self, kernels: ModuleType, known: Callable[[Key], int] = lambda _: _ENDLESS) -> None:
        """known: the queue offset from which on a queue has no unit yet."""
        self._kernels = kernels
        self.known = known
        self._spans: dict[Key, tuple[int, int]] = {}
        self._lags: dict[Key, Lag] = {}

    @property
    def lags(self) -> tuple[Lag, ...]:
        """Queues with records that had no unit, by name."""
        return tuple(self._lags[key] for key in sorted(self._lags))

    def of(self) -> dict[Key, tuple[int, int]]:
        """(topic, queue id) → lowest queue offset of a record with a unit, highest plus one."""
        return self._spans

    def take(self, run: Records, base: int) -> None:
        """A run of records whose topics were looked at; `base` does not matter."""
        del base
        rows = run.rows
        kind = rows[:, Field.SYS_FLAG] & int(SysFlag.TRANSACTION_MASK)
        wants = (kind != int(SysFlag.PREPARED)) & (kind != int(SysFlag.ROLLBACK))
        rows = rows[wants & (rows[:, Field.CRC_STATE] != CrcState.BAD)]
        if not len(rows):
            return
        places = np.ascontiguousarray(rows[:, Field.TOPIC_POSITION]) - run.origin
        lengths = np.ascontiguousarray(rows[:, Field.TOPIC_LENGTH])
        ill = (rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8)) != 0
        present = np.ones(len(rows), np.bool_)
        encoded = text.strings(self._kernels, run.window, places, lengths, present, ill).dictionary_encode()
        codes, ids = encoded.indices.to_numpy(), rows[:, Field.QUEUE_ID]
        order = np.lexsort((ids, codes))
        changes = (np.diff(codes[order]) != 0) | (np.diff(ids[order]) != 0)
        starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
        slots = rows[order, Field.QUEUE_OFFSET]
        lowest, highest = np.minimum.reduceat(slots, starts), np.maximum.reduceat(slots, starts)
        names = encoded.dictionary.to_pylist()
        firsts = order[starts]
        keys = [(names[c], n) for c, n in zip(codes[firsts].tolist(), ids[firsts].tolist(), strict=True)]
        for key, low, high in zip(keys, lowest.tolist(), highest.tolist(), strict=True):
            self._widen(key, low, high + 1)
        self._count(keys, rows[order], slots, starts)

    def add(self, other: QueueSpans) -> None:
        """The spans of other records too."""
        for key, (low, end) in other.of().items():
            self._widen(key, low, end)

    def _widen(self, key: Key, low: int, end: int) -> None:
        known = self._spans.get(key, (low, end))
        self._spans[key] = min(known[0], low), max(known[1], end)

    def _count(self, keys: list[Key], rows: Ints, slots: Ints, starts: Ints) -> None:
        """Adds the records without a unit; rows are grouped by queue, `starts` are the groups."""
        bounds = np.array([self.known(key) for key in keys], np.int64)
        late = slots >= np.repeat(bounds, np.diff(np.append(starts, len(rows))))
        if not late.any():
            return
        messages = np.add.reduceat(late.astype(np.int64), starts)
        sizes = np.add.reduceat(np.where(late, rows[:, Field.STORE_SIZE], 0), starts)
        oldest = np.minimum.reduceat(np.where(late, rows[:, Field.STORE_TIMESTAMP], _ENDLESS), starts)
        for group in np.flatnonzero(messages).tolist():
            key = keys[group]
            added = Lag(*key, int(messages[group]), int(sizes[group]), int(oldest[group]))
            before = self._lags.get(key)
            self._lags[key] = added if before is None else before.plus(added)
