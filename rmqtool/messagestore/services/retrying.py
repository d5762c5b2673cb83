"""Messages that a consumer gives back: to be tried again later, or to the dead letters.

`AbstractSendMessageProcessor#consumerSendMsgBack`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats import properties as props
from formats.commitlog import SysFlag
from formats.system_topics import dead_letter_topic, retry_topic
from rmqtool.errors import StoreIOError, UsageError
from rmqtool.messagestore.appending import NotAppendedError
from rmqtool.messagestore.messages import Ack, IllegalMessageError, PutStatus, offset_id
from rmqtool.messagestore.services.copying import copy_of, delayed_place, properties_of, store_host_of
from rmqtool.messagestore.topics import READ, WRITE

if TYPE_CHECKING:
    from rmqtool.messagestore.messages import StoredMessage
    from rmqtool.messagestore.services.engine import Engine
    from rmqtool.messagestore.services.groups import Groups

_FIRST_LEVEL = 3
"""delay level of the first retry"""
_READABLE_DLQ = (4, 9, 2)
_INNER = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)


class Retrying:
    """Gives messages back. most_level: the last delay level."""

    def __init__(self, engine: Engine, groups: Groups, most_level: int) -> None:
        self._engine, self._groups, self._most_level = engine, groups, most_level

    def send_back(
        self,
        group: str,
        message: StoredMessage,
        delay_level: int = 0,
        max_times: int | None = None,
        *,
        reconsumed: int | None = None,
    ) -> Ack | None:
        """See `MessageStore.send_back`. reconsumed: how often it was tried again, where one knows better."""
        config = self._groups.of_consumer(group)
        if config.retry_queue_nums <= 0:
            return None
        if message.sys_flag & _INNER:
            raise UsageError("an inner batch cannot be given back")
        times = message.reconsume_times
        most = config.retry_max_times if max_times is None else max_times
        properties = {props.RETRY_TOPIC: message.topic, **properties_of(message), props.WAIT: "false"}
        if not properties.get(props.ORIGIN_MESSAGE_ID, "").strip():
            properties[props.ORIGIN_MESSAGE_ID] = offset_id(store_host_of(message), message.physical_offset)
        place = retry_topic(group), 0
        try:
            if times >= most or delay_level < 0:
                readable = READ if self._engine.since(_READABLE_DLQ) else 0
                place = self._queue(dead_letter_topic(group), 1, readable | WRITE)
                properties[props.DELAY] = "0"
            else:
                place = self._queue(retry_topic(group), config.retry_queue_nums, READ | WRITE)
                level = delay_level or _FIRST_LEVEL + times
                place, properties = delayed_place(place, properties, level, self._most_level)
            host = self._engine.maker.host if self._engine.of_5 else store_host_of(message)
            tried = times + 1 if reconsumed is None else reconsumed
            copy = copy_of(
                self._engine.maker, message, place, properties, reconsume_times=tried, store_host=host
            )
            (found,) = self._engine.append([copy])
        except IllegalMessageError as error:
            return _refused(error.status, place, message, str(error))
        if isinstance(found, NotAppendedError):
            return _refused(found.status, place, message, str(found))
        slot, physical, _ = found
        return Ack(PutStatus.PUT_OK, *place, slot, physical, message.uniq_key, host)

    def _queue(self, topic: str, queues: int, perm: int) -> tuple[str, int]:
        """A queue of a topic, in turn; it is made if it has to be (`#createTopicInSendMessageBackMethod`)."""
        if topic not in self._engine.topics:
            try:
                self._engine.topics.set(topic, read_queues=queues, write_queues=queues, perm=perm)
            except StoreIOError as error:
                raise IllegalMessageError(PutStatus.SERVICE_NOT_AVAILABLE, str(error)) from error
        made = self._engine.topics.get(topic)
        return topic, 0 if made is None else self._engine.topics.next_queue(made) % queues


def _refused(status: PutStatus, place: tuple[str, int], message: StoredMessage, why: str) -> Ack:
    return Ack(status, *place, -1, -1, message.uniq_key, store_host_of(message), why)
