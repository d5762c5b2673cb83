"""Records to the queues that they feed, in columns: `DefaultMessageStore#doDispatch` for consume queues."""

from __future__ import annotations

import weakref
from enum import Enum
from types import MethodType
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import SysFlag
from rmqtool.broker.queue_records import NO_CODE, QueueRecords
from rmqtool.scan.events import Records
from rmqtool.scan.fields import DispatchColumn, Field
from rmqtool.scan.multi import MultiDispatch, extra_rows, hold_batches, inner_batches
from rmqtool.scan.partitions import Partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.partitions import Placed

    Flags = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]
    TakesPlaced = Callable[[Records, Ints, list[Key]], object]
    """takes a run, its records that want a unit in columns, the keys of their partitions"""

CHUNK_ROWS = 1 << 18
"""records that are handed over together, so that many queues cost little; 14 MiB of columns"""


class MultiDispatchError(Exception):
    """A list of queue offsets holds what is not a number: dispatching throws there, at every try."""


class Codes(Enum):
    """Which tags codes records get; the others have `NO_CODE`."""

    NONE = 0
    HASHES = 1
    """of tags; not the times at which delayed messages are delivered, which the broker's delays decide"""
    ALL = 2


class Dispatcher:
    """Collects records and hands them to their queues; call `flush` before the queues are looked at.

    append: takes the records of a queue, in the order of the log; columns are overwritten afterwards. The
    owner of a method is not kept alive: in a cycle, columns would wait for the garbage collector.
    multi_dispatch: which records feed further queues; lmq: see `extra_rows`. levels: delays in ms by level,
    the broker's defaults when not given. is_batch: whether the queues of a topic are batch queues (None: no
    topic's); it is reported that some record of it is an inner batch, which a broker takes for batch topics
    only.

    by_place: as `rebuild` wants it, not as a broker does: units lead to where records lie and not to where
    they state; topics that are not UTF-8 get no queue, numbers that are none no unit.
    """

    def __init__(
        self,
        append: Callable[[Key, QueueRecords], object],
        kernels: Kernels,
        *,
        multi_dispatch: MultiDispatch = MultiDispatch.NONE,
        lmq: bool = False,
        levels: Mapping[int, int] | None = None,
        is_batch: Callable[[str, bool], bool] | None = None,
        codes: Codes = Codes.ALL,
        by_place: bool = False,
    ) -> None:
        self._append = _weak(append)
        self._kernels = kernels
        self._multi_dispatch, self._lmq = multi_dispatch, lmq
        self._is_batch = is_batch
        self._codes = codes
        self._by_place = by_place
        self.throws = not by_place
        """whether lists of queue offsets that hold what is not a number end dispatching"""
        self._partitions = Partitions(
            kernels, CHUNK_ROWS, levels, any_topic=not by_place, delivery_times=codes is Codes.ALL
        )
        self._kinds: dict[str, bool] = {}
        """whether a topic is one of batch queues"""
        self._judged = 0
        """partitions whose topic is in `_kinds`"""
        self._in_place: Flags | None = None
        self._batches: tuple[Ints, Ints] | None = None
        """first queue offset and number of messages by column, where some are batches"""
        self._further: dict[Key, list[tuple[Ints, Ints]]] = {}
        """by queue, of the units that come by multi-dispatch: columns of their records, queue offsets"""
        self._waiting = 0
        """such units"""
        self.dispatched = 0
        """records that were handed over, those without a unit included"""
        self.covered: tuple[int, int] | None = None
        """smallest and largest physical offset that they state"""
        self.watch: Callable[[Records, int], object] | None = None
        """called with every run that is handed over, for who asks what the files hold afterwards"""
        self.unlisted = 0
        """records whose lists of queues and of offsets differ in length: those queues get nothing"""
        self.numberless = 0
        """entries of such lists without a number"""

    def take(self, run: Records, base: int, placed: TakesPlaced | None = None) -> None:
        """A run of records, made with `Check.TEXT`; base: physical offset of the file's first byte.

        placed: gets what was placed of it, before anything is set in the columns. Raises
        `MultiDispatchError`, not with `by_place`.
        """
        rows = run.rows
        if self.watch is not None:
            self.watch(run, base)
        self.dispatched += len(rows)
        for start in range(0, len(rows), CHUNK_ROWS):
            self._take(Records(rows[start : start + CHUNK_ROWS], run.window, run.origin), base, placed)

    def _take(self, run: Records, base: int, placed: TakesPlaced | None) -> None:
        partitions = self._partitions
        if len(partitions) + len(run.rows) > CHUNK_ROWS or self._waiting > CHUNK_ROWS:
            self.flush()
        before = len(partitions)
        for _ in partitions.take(run, base):
            pass  # the columns are exactly full; the next run empties them
        here = slice(before, len(partitions))
        if placed is not None:
            placed(run, partitions.columns[:, here], partitions.keys)
        if not self._by_place:
            self._lead_where_stated(run, here)
        if self._codes is Codes.NONE:
            partitions.columns[DispatchColumn.CODE, here] = NO_CODE
        elif self._codes is Codes.HASHES and partitions.delayed:
            delayed = np.isin(partitions.columns[DispatchColumn.PARTITION, here], list(partitions.delayed))
            partitions.columns[DispatchColumn.CODE, here][delayed] = NO_CODE
        if self._is_batch is not None:
            self._set_batches(run, here, self._is_batch)
        if self._multi_dispatch is not MultiDispatch.NONE:
            self._multiply(run, here)

    def take_placed(self, placed: Placed, records: int) -> None:
        """Single messages (`Check.SINGLE`) that `Partitions` have placed; only with `by_place`.

        records: how many they were, with those that want no unit. For topics without batch queues.
        """
        self.dispatched += records
        if len(self._partitions) + placed.columns.shape[1] > CHUNK_ROWS:
            self.flush()
        before = len(self._partitions)
        for _ in self._partitions.take_placed(placed):
            pass  # as in `_take`
        if self._batches is not None:
            here = slice(before, len(self._partitions))
            bases, counts = self._batches
            bases[here], counts[here] = self._partitions.columns[DispatchColumn.SLOT, here], 1

    def _lead_where_stated(self, run: Records, here: slice) -> None:
        columns = self._partitions.columns[:, here]
        offsets = np.ascontiguousarray(run.rows[:, Field.STORED_PHYSICAL_OFFSET])
        low, high = self.covered or (int(offsets[0]), int(offsets[0]))
        self.covered = min(low, int(offsets.min())), max(high, int(offsets.max()))
        stated = offsets[columns[DispatchColumn.OWNER]]
        in_place = stated == columns[DispatchColumn.OFFSET]
        if not in_place.all():
            if self._in_place is None:
                self._in_place = np.ones(CHUNK_ROWS, np.bool_)
            self._in_place[here] = in_place
            columns[DispatchColumn.OFFSET] = stated

    def _set_batches(self, run: Records, here: slice, is_batch: Callable[[str, bool], bool]) -> None:
        """First queue offset and number of messages of records that go to batch queues."""
        columns, keys, kinds = self._partitions.columns[:, here], self._partitions.keys, self._kinds
        for topic, _ in keys[self._judged :]:
            if topic not in kinds:
                kinds[topic] = is_batch(topic, False)
        self._judged = len(keys)
        inner = (run.rows[columns[DispatchColumn.OWNER], Field.SYS_FLAG] & int(SysFlag.INNER_BATCH)) != 0
        if inner.any():
            records = Records(run.rows[columns[DispatchColumn.OWNER]], run.window, run.origin)
            inner = hold_batches(records, inner, self._kernels)
            for topic in {
                keys[partition][0]
                for partition in np.unique(columns[DispatchColumn.PARTITION, inner]).tolist()
            }:
                kinds[topic] = kinds[topic] or is_batch(topic, True)
        if not any(kinds.values()):
            return
        if self._batches is None:
            self._batches = np.empty(CHUNK_ROWS, np.int64), np.ones(CHUNK_ROWS, np.int64)
            self._batches[0][: here.start] = self._partitions.columns[DispatchColumn.SLOT, : here.start]
        bases, counts = (one[here] for one in self._batches)
        bases[:], counts[:] = columns[DispatchColumn.SLOT], 1
        wanted = [
            partition
            for partition in np.unique(columns[DispatchColumn.PARTITION]).tolist()
            if kinds[keys[partition][0]]
        ]
        places = np.flatnonzero(np.isin(columns[DispatchColumn.PARTITION], wanted))
        if places.size:
            every, ones = np.ones(len(places), np.bool_), np.ones(len(places), np.int64)
            records = Records(run.rows[columns[DispatchColumn.OWNER, places]], run.window, run.origin)
            bases[places], counts[places] = inner_batches(records, every, bases[places], ones, self._kernels)

    def _multiply(self, run: Records, here: slice) -> None:
        """Units of the queues that records name besides their own."""
        if not self._kernels.building.feeds_further_queues(run.window, run.origin, run.rows):
            return
        columns, keys = self._partitions.columns[:, here], self._partitions.keys
        records = Records(run.rows[columns[DispatchColumn.OWNER]], run.window, run.origin)
        there, topics = np.unique(columns[DispatchColumn.PARTITION], return_inverse=True)
        names = [keys[partition][0] for partition in there.tolist()]
        extra = extra_rows(records, topics, names, self._kernels, self._multi_dispatch, lmq=self._lmq)
        if extra.stuck and self.throws:
            raise MultiDispatchError
        self.unlisted += extra.unlisted
        self.numberless += extra.stuck
        self._waiting += len(extra.records)
        order = np.lexsort((extra.queue_ids, extra.name_of))
        changes = (np.diff(extra.name_of[order]) != 0) | (np.diff(extra.queue_ids[order]) != 0)
        for which in np.split(order, np.flatnonzero(changes) + 1) if len(order) else ():
            key = extra.names[extra.name_of[which[0]]], int(extra.queue_ids[which[0]])
            places = here.start + extra.records[which]
            self._further.setdefault(key, []).append((places, extra.slots[which]))

    @property
    def batch_topics(self) -> frozenset[str]:
        """Topics of what was taken whose queues are batch queues."""
        return frozenset(topic for topic, batch in self._kinds.items() if batch)

    def flush(self) -> None:
        """Hands over what was collected."""
        further, self._further, self._waiting = self._further, {}, 0
        try:
            for key, chosen in self._groups():
                self._hand_over(key, chosen, further.pop(key, []))
            for key, parts in further.items():
                self._hand_over(key, np.empty(0, np.int64), parts)
        finally:
            self._partitions.clear()
            self._in_place = self._batches = None

    def _groups(self) -> Iterator[tuple[Key, Ints]]:
        """Queues and the columns of their records; topics that decode to the same name are one."""
        groups = self._partitions.groups()
        if not self._partitions.decoded:
            yield from groups
            return
        found: dict[Key, Ints] = {}
        for key, chosen in groups:
            found[key] = np.sort(np.concatenate([found[key], chosen])) if key in found else chosen.copy()
        yield from found.items()

    def _hand_over(self, key: Key, chosen: Ints, parts: list[tuple[Ints, Ints]]) -> None:
        """Records that name the queue as their own, and units from others, in the order of the log."""
        columns = self._partitions.columns
        if self._is_batch is not None and key[0] not in self._kinds:
            self._kinds[key[0]] = self._is_batch(key[0], False)
        if self._kinds.get(key[0]):
            if len(chosen):  # no other record has an entry in a batch queue
                self._append(key, QueueRecords(columns, chosen, self._in_place, *(self._batches or ())))
            return
        if not parts:
            self._append(key, QueueRecords(columns, chosen, self._in_place))
            return
        places = np.concatenate([chosen, *(one for one, _ in parts)])
        own = np.arange(len(places)) < len(chosen)
        order = np.lexsort((~own, places))  # of one record its own unit comes first
        places, slots = (
            places[order],
            np.concatenate([columns[DispatchColumn.SLOT, chosen], *(one for _, one in parts)]),
        )
        merged = columns[:, places]
        merged[DispatchColumn.SLOT] = slots[order]
        in_place = None if self._in_place is None else self._in_place[places]
        self._append(key, QueueRecords(merged, np.arange(len(places)), in_place, own=own[order]))


def _weak(append: Callable[[Key, QueueRecords], object]) -> Callable[[Key, QueueRecords], object]:
    if not isinstance(append, MethodType):
        return append
    owner, function = weakref.proxy(append.__self__), append.__func__
    return lambda key, run: function(owner, key, run)


def dispatcher_by_place(
    append: Callable[[Key, QueueRecords], object], rules: FileRules, kernels: Kernels
) -> Dispatcher:
    """For queues that are built by these rules from whatever lies in a log.

    Inner batches tell of batch topics where nothing else does, see `batch_topics`.
    """
    batches, plain = rules.batch_topics, rules.plain_topics
    return Dispatcher(
        append,
        kernels,
        multi_dispatch=rules.multi_dispatch,
        lmq=rules.lmq,
        levels=rules.levels,
        is_batch=(
            (lambda topic, inner: topic in batches or (inner and plain is not None and topic not in plain))
            if batches or plain is not None
            else None
        ),
        by_place=True,
    )


def wants_unit(rows: Ints) -> Flags:
    """Which records want a unit: not prepared and rolled back ones (`#dispatch`)."""
    kind = rows[:, Field.SYS_FLAG] & int(SysFlag.TRANSACTION_MASK)
    wanted: Flags = (kind != int(SysFlag.PREPARED)) & (kind != int(SysFlag.ROLLBACK))
    return wanted
