"""Transactions: a half message waits until it is committed or rolled back, which an op message records.

`TransactionalMessageBridge`, `EndTransactionProcessor`. Asking back about halves that wait too long:
`services.checking`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from formats import properties as props
from formats.commitlog import SysFlag
from formats.java import java_parse_int
from formats.system_topics import HALF_TOPIC, OP_HALF_TOPIC, OP_REMOVE_TAG, TRANSACTION_GROUP, half_offsets
from rmqtool.errors import NoTransactionError, StoreIOError
from rmqtool.messagestore.appending import NotAppendedError
from rmqtool.messagestore.messages import Ack, AppendContext, IllegalMessageError, Message, PutStatus
from rmqtool.messagestore.records import further_properties
from rmqtool.messagestore.services.copying import (
    copy_of,
    delayed_place,
    properties_of,
    real_place,
    with_transaction,
)
from rmqtool.messagestore.services.finished import committed_halves

if TYPE_CHECKING:
    from rmqtool.messagestore.messages import StoredMessage
    from rmqtool.messagestore.services.engine import Engine
    from rmqtool.messagestore.services.progress import Progress

_AT_ONCE = 1024
_WITH_ID = (5, 0, 0)
"""since then a half has its id as `__transactionId__` (`#parseHalfMessageInner`)"""
_BATCHED = (5, 1, 0)
"""since then an op message settles many halves (`TransactionalOpBatchService`)"""
_PUT_BACK = frozenset({props.TRANSACTION_CHECK_TIMES, props.TRAN_PREPARED_QUEUE_OFFSET})


@dataclass(frozen=True, slots=True)
class Half:
    """A half message that waits. transaction_id: its `UNIQ_KEY`."""

    queue_offset: int
    physical_offset: int
    transaction_id: str


class Transactions:
    """Halves of queue 0, where all are, and what settles them; any thread may call."""

    def __init__(self, engine: Engine, progress: Progress, most_level: int) -> None:
        self._engine, self._progress, self._most_level = engine, progress, most_level
        self.lock = threading.RLock()
        self._open: dict[int, Half] = {}
        """by queue offset"""
        self._by_id: dict[str, list[int]] = {}
        """queue offsets of open halves"""
        self._ending: set[int] = set()
        """halves whose messages are being stored"""
        self._ahead: set[int] = set()
        """halves that were prepared here and lie behind what is read of their queue"""
        self._half_at = self._op_at = -1
        """up to where the queues are read, -1 in front of that"""
        self._deleted: list[int] = []
        """halves without an op message yet, by queue offset"""
        self._deleted_since = 0.0
        self._batched = engine.since(_BATCHED)

    # ---- halves

    def prepare(self, message: Message, group: str) -> Ack:
        """Stores a half message; its id is the `uniq_key` of the answer (`#parseHalfMessageInner`)."""
        maker = self._engine.maker
        try:
            place = message.topic, self._engine.writer.queue_of(message)
            given = further_properties(message)
        except IllegalMessageError as error:
            return Ack(error.status, message.topic, -1, -1, -1, message.uniq_key, maker.host, str(error))
        uniq_key = message.uniq_key or maker.uniq_keys.next_key()
        given = {**given, props.TRAN_MSG: "true", props.PRODUCER_GROUP: group}
        if self._engine.since(_WITH_ID):
            given[props.TRANSACTION_ID] = uniq_key
        given |= {props.REAL_TOPIC: place[0], props.REAL_QID: str(place[1])}
        waiting = replace(message, topic=HALF_TOPIC, queue_id=0, uniq_key=uniq_key, properties=given)
        with self.lock:
            self._read_first()
        ack = self._engine.writer.put(waiting, AppendContext())
        if ack.physical_offset >= 0:
            with self.lock:
                self._prepared(Half(ack.queue_offset, ack.physical_offset, uniq_key))
        return ack

    def _prepared(self, half: Half) -> None:
        """A half of ours needs not be read."""
        if half.queue_offset < self._half_at:
            return  # it was
        self._add(half)
        self._ahead.add(half.queue_offset)
        while self._half_at in self._ahead:
            self._ahead.remove(self._half_at)
            self._half_at += 1

    def _add(self, half: Half) -> None:
        self._open[half.queue_offset] = half
        self._by_id.setdefault(half.transaction_id, []).append(half.queue_offset)

    def _remove(self, queue_offset: int) -> None:
        half = self._open.pop(queue_offset, None)
        if half is None:
            return
        same = self._by_id[half.transaction_id]
        same.remove(queue_offset)
        if not same:
            del self._by_id[half.transaction_id]

    def open_halves(self) -> list[Half]:
        """All halves that wait, in their order. Raises `StoreIOError`, `UnreadableError`."""
        with self.lock:
            self._read()
            for gone in [one for one in self._open.values() if one.physical_offset < self._engine.log.low]:
                self._remove(gone.queue_offset)  # its segment has expired
            return list(self._open.values())

    def find(self, transaction_id: str) -> Half:
        """The half with an id, the newest of several. Raises `NoTransactionError`."""
        with self.lock:
            self._read_first()
            if transaction_id not in self._by_id:
                self._read()
            same = self._by_id.get(transaction_id)
            if not same:
                raise NoTransactionError(transaction_id)
            return self._open[max(same)]

    # ---- ends

    def commit(self, transaction_id: str) -> Ack:
        """Stores the message of a half in its topic. Raises `NoTransactionError`.

        Another status than PUT_OK in the answer: it was not stored, and the half waits on.
        """
        with self.lock:
            half = self.find(transaction_id)
            message = self.message(half)
            self._remove(half.queue_offset)  # nobody else commits it meanwhile
            self._ending.add(half.queue_offset)
        try:
            ack = self._store(half, message)
        except BaseException:
            with self.lock:
                self._ending.discard(half.queue_offset)
                self._add(half)
            raise
        with self.lock:
            self._ending.discard(half.queue_offset)
            if ack.physical_offset >= 0:
                self.delete_half(half)
            else:
                self._add(half)
        return ack

    def roll_back(self, transaction_id: str) -> None:
        """Nobody gets the message of a half. Raises `NoTransactionError`, `StoreIOError`.

        Its op message waits for no others: nothing else tells of it behind a crash.
        """
        with self.lock:
            self.delete_half(self.find(transaction_id))
            self.write_ops()

    def message(self, half: Half) -> StoredMessage:
        """A half as it is stored. Raises `NoTransactionError` where its segment has expired."""
        (found,) = self._engine.records([half.physical_offset])
        if found is None and self._engine.flush():  # of a store pool: it is in no file yet
            (found,) = self._engine.records([half.physical_offset])
        if found is None or found.topic != HALF_TOPIC:
            raise NoTransactionError(half.transaction_id)
        return found

    def _store(self, half: Half, message: StoredMessage) -> Ack:
        """The committed message (`EndTransactionProcessor#endMessageTransaction`)."""
        maker, properties = self._engine.maker, properties_of(message)
        place = real_place(properties)
        uniq_key = half.transaction_id
        if place is None:
            why = "the half message names no topic and queue"
            return Ack(PutStatus.MESSAGE_ILLEGAL, HALF_TOPIC, 0, -1, -1, uniq_key, maker.host, why)
        level = java_parse_int(properties.get(props.DELAY, "")) or 0
        target = place
        if level > 0:  # these are cleared in front of the delay, which has its properties written once more
            properties.pop(props.TRAN_MSG, None)
            target, properties = delayed_place(place, properties, level, self._most_level)
        try:
            flags = with_transaction(message.sys_flag, SysFlag.COMMIT)
            copy = copy_of(maker, message, target, properties, sys_flag=flags, prepared=half.physical_offset)
            (found,) = self._engine.append([copy])
        except IllegalMessageError as error:
            return Ack(error.status, *place, -1, -1, uniq_key, maker.host, str(error))
        if isinstance(found, NotAppendedError):
            return Ack(found.status, *place, -1, -1, uniq_key, maker.host, str(found))
        slot, physical, end = found
        status = PutStatus.PUT_OK
        if not self._engine.writer.wait_for(end):
            status = PutStatus.FLUSH_DISK_TIMEOUT
        return Ack(status, *target, slot, physical, uniq_key, copy[2].store_host)

    def delete_half(self, half: Half) -> None:
        """A half is done with: an op message says so, now or with others soon. Raises `StoreIOError`."""
        self._remove(half.queue_offset)
        if not self._deleted:
            self._deleted_since = time.monotonic()
        self._deleted.append(half.queue_offset)
        size = sum(len(str(one)) + 1 for one in self._deleted)
        interval = self._engine.settings.op_batch_interval
        if not self._batched or interval <= 0 or size > self._engine.settings.op_message_size:
            self.write_ops()

    def write_ops(self, *, older_than: float = 0.0) -> None:
        """Writes op messages for what has waited for one so many seconds. Raises `StoreIOError`."""
        with self.lock:
            if not self._deleted or time.monotonic() - self._deleted_since < older_than:
                return
            most = self._engine.settings.op_message_size
            while self._deleted:
                count, size = 0, 0
                while count < len(self._deleted) and (not count or (self._batched and size < most)):
                    size += len(str(self._deleted[count])) + 1
                    count += 1
                some = self._deleted[:count]
                text = "".join(f"{one}," for one in some) if self._batched else str(some[0])
                op = Message(OP_HALF_TOPIC, text.encode(), queue_id=0, tags=OP_REMOVE_TAG)
                ack = self._engine.writer.put(op, AppendContext())
                if ack.physical_offset < 0:
                    raise StoreIOError(f"no op message could be written: {ack.message}")
                del self._deleted[:count]
                if ack.queue_offset == self._op_at:
                    self._op_at += 1  # it tells nothing new

    # ---- what the queues say

    def _read_first(self) -> None:
        """What was there when the store was opened."""
        if self._half_at < 0:
            self._read()

    def _read(self) -> None:
        """Halves and op messages that have come, since the offsets of `CID_RMQ_SYS_TRANS` at first."""
        self._engine.catch_up()
        first = self._half_at < 0
        if first:
            self._half_at, self._op_at = (self.committed(topic) for topic in (HALF_TOPIC, OP_HALF_TOPIC))
        for message in self.messages(HALF_TOPIC, self._half_at):
            self._half_at = message.queue_offset + 1
            if message.queue_offset in self._ahead:
                self._ahead.remove(message.queue_offset)
                continue
            self._take(Half(message.queue_offset, message.physical_offset, message.uniq_key or ""), message)
        for message in self.messages(OP_HALF_TOPIC, self._op_at):
            self._op_at = message.queue_offset + 1
            if message.tags == OP_REMOVE_TAG:
                for offset in half_offsets(message.body):
                    self._remove(offset)
        for offset in self._deleted:
            self._remove(offset)
        if first and not self._engine.clean:
            self._settle_committed()

    def _take(self, half: Half, message: StoredMessage) -> None:
        """A half that was put back for a check takes the place of the one before, with an op or without."""
        if not _PUT_BACK.isdisjoint(message.properties):
            for offset in list(self._by_id.get(half.transaction_id, ())):
                self.delete_half(self._open[offset])
        self._add(half)

    def _settle_committed(self) -> None:
        """Writes op messages that a kill was in front of."""
        waiting = list(self._open.values())
        for at in range(0, len(waiting), _AT_ONCE):
            part = waiting[at : at + _AT_ONCE]
            found = self._engine.records([one.physical_offset for one in part])
            halves = [one for one in found if one is not None]
            done = committed_halves(self._engine, halves, self._most_level)
            for half in part:
                if half.physical_offset in done:
                    self.delete_half(half)
        self.write_ops()

    def committed(self, topic: str) -> int:
        """Where the queue of halves or op messages begins (`#fetchConsumeOffset`)."""
        low, high = self._engine.offsets(topic, 0)
        known = self._progress.query(TRANSACTION_GROUP, topic, 0)
        return low if known is None else min(max(known, low), high)

    def messages(self, topic: str, offset: int) -> list[StoredMessage]:
        """Messages of queue 0 from an offset on."""
        found: list[StoredMessage] = []
        while True:
            units = self._engine.units(topic, 0, offset, _AT_ONCE)
            if units is None:
                return found
            found += [one for one in self._engine.records(units.physical_offsets.tolist()) if one is not None]
            offset = units.first + len(units.codes)

    def advance(self) -> None:
        """Commits how far halves and op messages are settled (`TransactionalMessageServiceImpl#check`)."""
        with self.lock:
            self._read()
            self.write_ops()
            self._read()
            half = min({*self._open, *self._ending}, default=self._half_at)
            if half != self.committed(HALF_TOPIC):
                self._progress.commit(TRANSACTION_GROUP, HALF_TOPIC, 0, half)
            op = before = self.committed(OP_HALF_TOPIC)
            for message in self.messages(OP_HALF_TOPIC, op):
                if any(one >= half for one in half_offsets(message.body)):
                    break
                op = message.queue_offset + 1
            if op != before:
                self._progress.commit(TRANSACTION_GROUP, OP_HALF_TOPIC, 0, op)
