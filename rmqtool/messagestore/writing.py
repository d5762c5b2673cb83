"""Messages into an open store: checks, queue numbers, the append, the flush that is waited for, and answers.

`DefaultMessageStore#asyncPutMessage`, `CommitLog#handleDiskFlush`.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.messagestore.acknowledging import FutureAcks
from rmqtool.messagestore.appending import WHOLE, NotAppendedError, Place
from rmqtool.messagestore.arguments import checked, demand
from rmqtool.messagestore.messages import Ack, AppendContext, IllegalMessageError, Message, PutStatus
from rmqtool.messagestore.plain import PlainPuts
from rmqtool.messagestore.records import is_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.broker.encoder import MessageColumns
    from rmqtool.messagestore.acknowledging import Acknowledging
    from rmqtool.messagestore.dispatching import Dispatching
    from rmqtool.messagestore.memory.routing import RoutedAppender
    from rmqtool.messagestore.records import Prepared, RecordMaker
    from rmqtool.messagestore.settings import StoreSettings
    from rmqtool.messagestore.statistics import Statistics
    from rmqtool.messagestore.topics import Topics
    from rmqtool.store.config_json import TopicConfig

    Ints = npt.NDArray[np.int64]

_PLAIN = AppendContext()
_MANY = 16
"""messages from which on columns of them are worth making"""
_ack_of: Callable[[tuple[Any, ...]], Ack] = partial(tuple.__new__, Ack)
"""as `Ack._make`, in half the time"""


class Writer:
    """Puts messages into an open store.

    refusal: why nothing can be stored now, None when it can; raises `StoreClosedError`.
    """

    def __init__(
        self,
        settings: StoreSettings,
        maker: RecordMaker,
        topics: Topics,
        appender: RoutedAppender,
        acknowledging: Acknowledging,
        dispatching: Dispatching,
        refusal: Callable[[], IllegalMessageError | None],
        statistics: Statistics,
    ) -> None:
        self._settings, self._topics = settings, topics
        self._maker, self._appender, self._dispatching = maker, appender, dispatching
        self._acknowledging = acknowledging
        self._plain, self._host = PlainPuts(maker, topics, appender.stored, appender.memory), maker.host
        self._waits = acknowledging.waits
        self._futures = FutureAcks(acknowledging)
        self._refusal, self._statistics = refusal, statistics

    def put(self, message: Message, context: AppendContext | None) -> Ack:
        """See `MessageStore.put`."""
        began = perf_counter_ns()
        if context is None and self._refusal() is None:
            done = self._plain.put(message)
            if done is not None:
                queue_id, slot, physical, end, uniq_key = done
                if end:
                    self._dispatching.wake()
                status = self._acknowledging.wait(end) if self._waits and end else PutStatus.PUT_OK
                self._statistics.put(1, began)
                return _ack_of((status, message.topic, queue_id, slot, physical, uniq_key, self._host, ""))
        appended = self._append(message, context)
        if isinstance(appended, Ack):
            return appended
        queue_id, record, place = appended
        status = self._flushed(record, place.end) if self._waits else PutStatus.PUT_OK
        self._statistics.put(1, began)
        return self._ack(message, queue_id, record, place, status)

    def put_async(self, message: Message, context: AppendContext | None) -> Future[Ack]:
        """See `MessageStore.put_async`."""
        future: Future[Ack] = Future()
        began = perf_counter_ns()
        appended = self._append(message, context)
        if isinstance(appended, Ack):
            future.set_result(appended)
            return future
        queue_id, record, place = appended
        if not self._waits or not record.waits or not place.end:
            self._statistics.put(1, began)
            future.set_result(self._ack(message, queue_id, record, place, PutStatus.PUT_OK))
            return future

        def answer(status: PutStatus) -> None:
            self._statistics.put(1, began)
            future.set_result(self._ack(message, queue_id, record, place, status))

        self._futures.add(place.end, answer)
        return future

    def put_batch(self, messages: Iterable[Message], contexts: Sequence[AppendContext] | None) -> list[Ack]:
        """See `MessageStore.put_batch`."""
        began = perf_counter_ns()
        given = _listed(messages)
        if contexts is not None and len(contexts) != len(given):
            raise UsageError(f"{len(contexts)} contexts for {len(given)} messages")
        try:
            refused = self._refusal()
            if refused is not None:
                raise refused
            if not given:
                return []
            topic = self._topic_of(given[0].topic) if contexts is None else None
            if topic is not None and self._topics.is_batch(topic):
                return self._put_inner(given, began)
            todo = self._batch(given, contexts)
        except (IllegalMessageError, NotAppendedError) as error:
            return [self._failed(one, error.status, str(error)) for one in given]
        return self._answers(given, todo, self._appender.append_each(todo, together=True), began)

    def _put_inner(self, given: list[Message], began: int) -> list[Ack]:
        """A batch as one record. Raises `IllegalMessageError`, `NotAppendedError`."""
        first = self._of_one_topic(given)
        queue_id = self.queue_of(first)
        record, uniq_keys = self._maker.inner_batch(given)
        place = self._appender.append(first.topic, queue_id, record)
        self._dispatching.wake()
        status = self._flushed(record, place.end) if self._waits else PutStatus.PUT_OK
        self._statistics.put(len(given), began)
        slot, physical, host = place.queue_offset, place.physical_offset, record.store_host
        return [
            Ack(status, first.topic, queue_id, slot + number, physical, uniq_key, host)
            for number, uniq_key in enumerate(uniq_keys)
        ]

    def _of_one_topic(self, given: list[Message]) -> Message:
        """The first of them. Raises `IllegalMessageError`."""
        first = given[0]
        if any(one.topic != first.topic for one in given):
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, "a batch has one topic")
        return first

    def _batch(
        self, given: list[Message], contexts: Sequence[AppendContext] | None
    ) -> list[tuple[str, int, Prepared]]:
        first = self._of_one_topic(given)
        queue_id = self.queue_of(first) if contexts is None else first.queue_id or 0
        todo = [
            (
                one.topic,
                queue_id,
                self._maker.prepare(one, _PLAIN if contexts is None else contexts[number], batched=True),
            )
            for number, one in enumerate(given)
        ]
        size = sum(record.size for _, _, record in todo)
        if size > self._maker.most_batch:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"a batch of {size} bytes")
        return todo

    def put_many(self, messages: Iterable[Message] | pa.Table) -> list[Ack] | pa.Table:
        """See `MessageStore.put_many`."""
        began = perf_counter_ns()
        if hasattr(messages, "__arrow_c_stream__"):
            from rmqtool.messagestore.columns import columns_of

            return self._put_table(columns_of(messages), began)
        return self._put_list(_listed(messages), began)

    def _put_list(self, given: list[Message], began: int) -> list[Ack]:
        refused = self._refusal()
        if not given:
            return []
        if refused is None and len(given) >= _MANY:
            acks_of_all = self._put_as_columns(given, began)
            if acks_of_all is not None:
                return acks_of_all
        acks: list[Ack | None] = [None] * len(given)
        todo: list[tuple[str, int, Prepared]] = []
        numbers: list[int] = []
        for number, message in enumerate(given):
            try:
                if refused is not None:
                    raise refused
                todo.append((message.topic, self.queue_of(message), self._maker.prepare(message)))
                numbers.append(number)
            except IllegalMessageError as error:
                acks[number] = self._failed(message, error.status, str(error))
        kept = [given[number] for number in numbers]
        stored = self._answers(kept, todo, self._appender.append_each(todo), began)
        for number, ack in zip(numbers, stored, strict=True):
            acks[number] = ack
        return [ack for ack in acks if ack is not None]

    def _put_as_columns(self, given: list[Message], began: int) -> list[Ack] | None:
        """Plain messages in columns, for a fraction of the time; None where any has to be looked at."""
        from rmqtool.messagestore.columns import acks_of, batch_of, part_of

        part = part_of(given)
        if part is None:
            return None
        batch = batch_of(part, self._maker, self._topics, self._topic_of, self._appender.kernels)
        if batch.refused.any():
            return None
        physical, failed, why = self._append_columns(batch.columns, batch.keys, batch.which)
        stored = int((physical >= 0).sum())
        status = self._flushed_to(self._appender.end_of(batch.keys)) if stored else PutStatus.PUT_OK
        self._statistics.put(stored, began)
        acks = acks_of(given, batch, physical, status, self._maker.host)
        for number in np.flatnonzero(physical < 0).tolist():
            acks[number] = self._failed(given[number], failed, why)
        return acks

    def _flushed_to(self, end: int) -> PutStatus:
        """Waits for what puts wait for; 0: for nothing, what is in memory only."""
        return self._acknowledging.wait(end) if self._waits and end else PutStatus.PUT_OK

    def _put_table(self, table: pa.Table, began: int) -> pa.Table:
        import pyarrow as pa

        from rmqtool.messagestore.columns import (
            ANSWER,
            AT_ONCE,
            answer_of,
            batch_of,
            messages_of,
            singly,
            table_of,
        )

        parts = table.to_batches(AT_ONCE)
        if any(singly(part, further=self._maker.further.on) for part in parts):
            acks = [self._put_list(messages_of(part), began) for part in parts]
            return pa.Table.from_batches([table_of(one) for one in acks], ANSWER)
        done: list[tuple[Any, Any, str]] = []
        for part in parts:
            batch = batch_of(part, self._maker, self._topics, self._topic_of, self._appender.kernels)
            physical, failed, _ = self._append_columns(batch.columns, batch.keys, batch.which)
            done.append((batch, physical, failed.value))
        end = max((self._appender.end_of(batch.keys) for batch, _, _ in done), default=0)
        status = self._flushed_to(end)
        self._statistics.put(sum(int((physical >= 0).sum()) for _, physical, _ in done), began)
        answers = [answer_of(batch, physical, status.value, failed) for batch, physical, failed in done]
        return pa.Table.from_batches(answers, ANSWER)

    def append_prepared(self, records: Sequence[tuple[str, int, Prepared]]) -> list[Place | NotAppendedError]:
        """Appends records that stand for others, by topic and queue, without a look at the topic table.

        Raises `IllegalMessageError` where nothing can be stored now.
        """
        refused = self._refusal()
        if refused is not None:
            raise refused
        began = perf_counter_ns()
        places = self._appender.append_each(records)
        ends = [place.end for place in places if isinstance(place, Place)]
        if any(ends):
            self._dispatching.wake()
            self.flush_soon(max(ends))
        self._statistics.put(len(ends), began)
        return places

    def flush_soon(self, end: int) -> None:
        """Flushes up to a physical offset in the background, where puts are flushed one by one."""
        if self._waits:
            self._futures.add(end, bool)

    def flush_appended(self, keys: Sequence[tuple[str, int]]) -> None:
        """As `flush_soon`, what was appended for some queues."""
        end = self._appender.end_of(keys)
        if end:
            self.flush_soon(end)

    def wait_for(self, end: int) -> bool:
        """Waits for the medium up to a physical offset where puts do; False when that took too long."""
        return self._acknowledging.flushed(end)

    def put_columns(
        self, columns: MessageColumns, keys: Sequence[tuple[str, int]], which: Ints
    ) -> tuple[Ints, PutStatus, str]:
        """Appends records of columns, see `Appender.append_columns`; nothing is waited for.

        Physical offsets, -1 for what was not appended, and the status and reason of that.
        """
        began = perf_counter_ns()
        columns.sizes()
        answer = self._append_columns(columns, keys, which)
        self._statistics.put(int((answer[0] >= 0).sum()), began)
        return answer

    def _append_columns(
        self, columns: MessageColumns, keys: Sequence[tuple[str, int]], which: Ints
    ) -> tuple[Ints, PutStatus, str]:
        refused = self._refusal()
        if refused is not None:
            return np.full(len(columns), -1, np.int64), refused.status, str(refused)
        physical, failed = self._appender.append_columns(columns, keys, which)
        if self._appender.end_of(keys):
            self._dispatching.wake()
        return (
            (physical, PutStatus.UNKNOWN_ERROR, "")
            if failed is None
            else (physical, failed.status, str(failed))
        )

    def _answers(
        self,
        messages: list[Message],
        records: list[tuple[str, int, Prepared]],
        places: list[Place | NotAppendedError],
        began: int,
    ) -> list[Ack]:
        """Answers for records that were appended together, behind one flush; began: `perf_counter_ns`."""
        ends = [place.end for place in places if isinstance(place, Place)]
        if any(ends):
            self._dispatching.wake()
        status = self._flushed_to(max(ends, default=0))
        self._statistics.put(len(ends), began)
        return [
            self._ack(message, queue_id, record, place, status)
            if isinstance(place, Place)
            else self._failed(message, place.status, str(place))
            for message, (_, queue_id, record), place in zip(messages, records, places, strict=True)
        ]

    @checked
    def _append(self, message: Message, context: AppendContext | None) -> Ack | tuple[int, Prepared, Place]:
        try:
            refused = self._refusal()
            if refused is not None:
                raise refused
            if context is None:
                queue_id = self.queue_of(message)
                record = self._maker.prepare(message)
            else:
                queue_id = message.queue_id or 0
                record = self._maker.prepare(message, context)
            place = self._appender.append(message.topic, queue_id, record)
        except (IllegalMessageError, NotAppendedError) as error:
            return self._failed(message, error.status, str(error))
        if place.end:
            self._dispatching.wake()
        return queue_id, record, place

    def _topic_of(self, name: str) -> TopicConfig:
        """The topic of a message. Raises `IllegalMessageError` for one that takes none."""
        try:
            topic = self._topics.get(name)
        except TypeError:  # no string, and nothing that a table can have
            topic = None
        if topic is None:
            self._maker.topic(name)  # none is made for a name that no topic has
            try:
                topic = self._topics.for_message(name)
            except StoreIOError as error:
                raise IllegalMessageError(PutStatus.SERVICE_NOT_AVAILABLE, str(error)) from error
        if topic is None:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"there is no topic {name}")
        if not topic.writeable:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"topic {name} is not writeable")
        return topic

    def queue_of(self, message: Message) -> int:
        """The queue that a message goes to; its topic is made if it may be. Raises `IllegalMessageError`."""
        topic = self._topic_of(message.topic)
        if message.queue_id is None:
            return self._topics.next_queue(topic)
        if not is_integer(message.queue_id) or not 0 <= message.queue_id < topic.write_queue_nums:
            many, given = topic.write_queue_nums, f"{message.queue_id!r:.60}"
            why = f"topic {topic.name} has {many} write queues, not {given}"
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, why)
        return message.queue_id

    def _flushed(self, record: Prepared, end: int) -> PutStatus:
        """As `_flushed_to`; for a message that does not wait in the background."""
        if not end:
            return PutStatus.PUT_OK
        if record.waits:
            return self._acknowledging.wait(end)
        self._futures.add(end, bool)
        return PutStatus.PUT_OK

    def _ack(self, message: Message, queue_id: int, record: Prepared, place: Place, status: PutStatus) -> Ack:
        slot, physical, _ = place
        uniq_key = record.uniq_key or None
        return Ack._make((status, message.topic, queue_id, slot, physical, uniq_key, record.store_host, ""))

    def _failed(self, message: Message, status: PutStatus, why: str) -> Ack:
        queue_id = -1 if message.queue_id is None else message.queue_id
        return Ack(status, message.topic, queue_id, -1, -1, message.uniq_key, self._settings.host, why)

    @property
    def whole(self) -> bool:
        """No interrupt has left a record that no counter knows."""
        return self._appender.stored.torn == WHOLE

    @property
    def busy(self) -> bool:
        """`DefaultMessageStore#isOSPageCacheBusy`."""
        stored = self._appender.stored
        return stored.entered != 0.0 and stored.held_for > self._settings.busy_after

    def close(self) -> None:
        """Behind it every future has its answer, and what was being put is in the log."""
        self._futures.close()
        with self._appender.stored.lock, self._appender.memory.lock:
            pass


def _listed(messages: Iterable[Message]) -> list[Message]:
    """Raises `UsageError` for what is none; elements of a collection have been looked at."""
    given = list(messages)
    if not isinstance(messages, Collection):
        demand(Writer.put_many, given)
    return given
