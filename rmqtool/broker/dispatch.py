"""Records to the queues that they feed, in columns: `DefaultMessageStore#doDispatch` for consume queues."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from formats.commitlog import SysFlag
from rmqtool.broker.queue_records import NO_CODE, QueueRecords
from rmqtool.scan import text
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Column, Field, Issue
from rmqtool.scan.multi import extra_rows, inner_batches

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.traits import Traits
    from rmqtool.scan.kernel_types import Kernels

    Flags = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

_FIELDS = (
    (Column.SLOT, Field.QUEUE_OFFSET),
    (Column.OFFSET, Field.STORED_PHYSICAL_OFFSET),
    (Column.SIZE, Field.STORE_SIZE),
    (Column.TIME, Field.STORE_TIMESTAMP),
)
CHUNK_ROWS = 1 << 18
"""records that are handed over together, so that many queues cost little; 10 MiB of columns"""


class MultiDispatchError(Exception):
    """A list of queue offsets holds what is no number: dispatching throws there, at every try."""


class QueueLike(Protocol):
    """What a dispatched run is appended to."""

    def append(self, run: QueueRecords) -> None:
        """Takes records in the order of the log."""
        ...


@dataclass(frozen=True, slots=True)
class _Part:
    """Topic code and queue id of some records, `fields.Column` of them, and the rest of `QueueRecords`."""

    topics: Ints
    queue_ids: Ints
    columns: Ints
    in_place: Flags
    first: Ints
    counts: Ints
    own: Flags


class Dispatcher:
    """Collects records and appends them to their queues; call `flush` before the queues are looked at.

    queue_of: the queue of a topic and number, made when there is none (`#findOrCreateConsumeQueue`).
    is_batch: whether the queues of a topic are batch queues; it is told that some record of it is an inner
    batch, which a broker takes for batch topics only. codes_of: the tags codes of a run.
    """

    def __init__(
        self,
        queue_of: Callable[[str, int], QueueLike],
        is_batch: Callable[[str, bool], bool],
        kernels: Kernels,
        traits: Traits,
        settings: StartSettings,
        codes_of: Callable[[Records, int], Ints] | None = None,
    ) -> None:
        self._queue_of = queue_of
        self._codes_of = codes_of
        self._is_batch = is_batch
        self._kernels = kernels
        self._traits = traits
        self._settings = settings
        self._codes: dict[str, int] = {}
        self._parts: list[_Part] = []
        self._waiting = 0
        self.dispatched = 0
        """records that were handed over, those without a unit included"""
        self.covered: tuple[int, int] | None = None
        """smallest and largest physical offset among them"""
        self.watch: Callable[[Records, int], object] | None = None
        """told every run that is handed over, for who asks what the files hold afterwards"""
        self.unlisted = 0
        """records whose lists of queues and of offsets differ in length: those queues get nothing"""

    def take(self, run: Records, base: int) -> None:
        """A run of records that are dispatched; `base`: physical offset of the file's first byte."""
        rows = run.rows
        if self.watch is not None:
            self.watch(run, base)
        self.dispatched += len(rows)
        if len(rows):
            offsets = rows[:, Field.STORED_PHYSICAL_OFFSET]
            low, high = self.covered or (int(offsets[0]), int(offsets[0]))
            self.covered = min(low, int(offsets.min())), max(high, int(offsets.max()))
        kind = rows[:, Field.SYS_FLAG] & int(SysFlag.TRANSACTION_MASK)
        wants = (kind != int(SysFlag.PREPARED)) & (kind != int(SysFlag.ROLLBACK))
        if not wants.all():
            run = Records(rows[wants], run.window, run.origin)
        if len(run.rows):
            self._add(run, base)

    def _add(self, run: Records, base: int) -> None:
        rows = run.rows
        topics = self._topics(run)
        columns = np.zeros((len(Column), len(rows)), np.int64)
        columns[[column for column, _ in _FIELDS]] = rows[:, [field for _, field in _FIELDS]].T
        columns[Column.CODE] = NO_CODE if self._codes_of is None else self._codes_of(run, base)
        part = _Part(
            topics,
            rows[:, Field.QUEUE_ID].copy(),
            columns,
            rows[:, Field.STORED_PHYSICAL_OFFSET] == rows[:, Field.POSITION] + base,
            *self._batches(run, topics, columns[Column.SLOT]),
            np.ones(len(rows), np.bool_),
        )
        self._parts.append(part)
        self._waiting += len(rows)
        if self._settings.multi_dispatch:
            self._multiply(run, part)
        if self._waiting >= CHUNK_ROWS:
            self.flush()

    def _multiply(self, run: Records, part: _Part) -> None:
        """Adds the units of the queues that records name besides their own."""
        names = list(self._codes)
        extra = extra_rows(
            run, part.topics, names, self._kernels, self._traits.multi_dispatch, lmq=self._settings.lmq
        )
        if extra.stuck:
            raise MultiDispatchError
        self.unlisted += extra.unlisted
        if len(extra.records):
            codes = [self._codes.setdefault(name, len(self._codes)) for name in extra.names]
            which = extra.records
            columns = part.columns[:, which]
            columns[Column.SLOT] = extra.slots
            self._parts.append(
                _Part(
                    np.array(codes, np.int64)[extra.name_of],
                    extra.queue_ids,
                    columns,
                    part.in_place[which],
                    extra.slots,
                    np.ones(len(which), np.int64),
                    np.zeros(len(which), np.bool_),
                )
            )
            self._waiting += len(which)

    def _batches(self, run: Records, topics: Ints, slots: Ints) -> tuple[Ints, Ints]:
        """First queue offset and number of messages in each record; one, at its slot, unless it says more."""
        ones = np.ones(len(slots), np.int64)
        inner = np.zeros(len(self._codes), np.bool_)
        inner[topics[(run.rows[:, Field.SYS_FLAG] & int(SysFlag.INNER_BATCH)) != 0]] = True
        kinds = [self._is_batch(name, bool(seen)) for name, seen in zip(self._codes, inner, strict=True)]
        batch = np.array(kinds, np.bool_)[topics]
        return inner_batches(run, batch, slots, ones, self._kernels) if batch.any() else (slots, ones)

    def _topics(self, run: Records) -> Ints:
        """A small number for each topic, the same all through the log."""
        rows = run.rows
        places = np.ascontiguousarray(rows[:, Field.TOPIC_POSITION]) - run.origin
        lengths = np.ascontiguousarray(rows[:, Field.TOPIC_LENGTH])
        ill = (rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8)) != 0
        present = np.ones(len(rows), np.bool_)
        encoded = text.strings(self._kernels, run.window, places, lengths, present, ill).dictionary_encode()
        known = [self._codes.setdefault(name, len(self._codes)) for name in encoded.dictionary.to_pylist()]
        codes: Ints = np.array(known, np.int64)[encoded.indices.to_numpy()]
        return codes

    def flush(self) -> None:
        """Appends what was collected."""
        if not self._parts:
            return
        topics, queue_ids, columns, in_place, first, counts, own = (
            np.concatenate([getattr(part, name) for part in self._parts], axis=-1) for name in _Part.__slots__
        )
        self._parts, self._waiting = [], 0
        order = np.lexsort((queue_ids, topics))
        changes = (np.diff(topics[order]) != 0) | (np.diff(queue_ids[order]) != 0)
        borders = [0, *(np.flatnonzero(changes) + 1).tolist(), len(order)]
        names = list(self._codes)
        for start, end in pairwise(borders):
            which = order[start:end]
            queue = self._queue_of(names[topics[which[0]]], int(queue_ids[which[0]]))
            queue.append(QueueRecords(columns, which, in_place, first, counts, own[which]))
