"""A record that stands for another one: delivered, committed, given back, moved to another topic.

Body, flag, born time and host are those of the record that was there; its properties are written again, as a
broker does (`ScheduleMessageService#messageTimeUp`, `EndTransactionProcessor#endMessageTransaction`,
`AbstractSendMessageProcessor#consumerSendMsgBack`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats import properties as props
from formats.commitlog import SysFlag
from formats.java import java_parse_int
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.messagestore.messages import AppendContext, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.messagestore.messages import Host, StoredMessage
    from rmqtool.messagestore.records import Prepared, RecordMaker

_MADE_AGAIN = (props.CRC32, props.INNER_BASE, props.INNER_MULTI_QUEUE_OFFSET)
"""properties that an append gives"""
_TRANSACTION = int(SysFlag.TRANSACTION_MASK)


def properties_of(message: StoredMessage) -> dict[str, str]:
    """The properties that a copy begins with."""
    return {name: value for name, value in message.properties.items() if name not in _MADE_AGAIN}


def store_host_of(message: StoredMessage) -> Host:
    """Address and port of who stored it."""
    return message.header["store_host.ip"], message.header["store_host.port"]


def real_place(properties: Mapping[str, str]) -> tuple[str, int] | None:
    """Topic and queue that a waiting message is for, None where it names none that can be."""
    topic = properties.get(props.REAL_TOPIC)
    queue_id = java_parse_int(properties.get(props.REAL_QID, ""))
    return None if not topic or queue_id is None or queue_id < 0 else (topic, queue_id)


def copy_of(
    maker: RecordMaker,
    message: StoredMessage,
    place: tuple[str, int],
    properties: Mapping[str, str],
    *,
    sys_flag: int | None = None,
    reconsume_times: int | None = None,
    prepared: int = 0,
    store_host: Host | None = None,
) -> tuple[str, int, Prepared]:
    """The record for another topic and queue. What is None is as it was.

    Nobody waits for its flush. Raises `IllegalMessageError` for one that no store takes.
    """
    topic, queue_id = place
    header = message.header
    made = Message(
        topic,
        message.body,
        flag=message.flag,
        uniq_key=message.uniq_key,
        born_timestamp=message.born_timestamp,
        born_host=(header["born_host.ip"], header["born_host.port"]),
    )
    context = AppendContext(
        store_host=store_host_of(message) if store_host is None else store_host,
        sys_flag=message.sys_flag if sys_flag is None else sys_flag,
        reconsume_times=message.reconsume_times if reconsume_times is None else reconsume_times,
        prepared_transaction_offset=prepared,
        properties=props.encode(properties, maker.separated),
    )
    return topic, queue_id, maker.prepare(made, context)._replace(waits=False)


def delayed_place(
    place: tuple[str, int], properties: Mapping[str, str], level: int, most: int
) -> tuple[tuple[str, int], dict[str, str]]:
    """Where a message waits that is delivered to `place` later, and its properties then.

    level: from 1; above `most` it is that (`HookUtils#transformDelayLevelMessage`).
    """
    level = min(level, most)
    waiting = {
        **properties,
        props.DELAY: str(level),
        props.REAL_TOPIC: place[0],
        props.REAL_QID: str(place[1]),
    }
    return (SCHEDULE_TOPIC, level - 1), waiting


def with_transaction(sys_flag: int, kind: SysFlag | int) -> int:
    """The flags with another type of transaction (`MessageSysFlag#resetTransactionValue`)."""
    return sys_flag & ~_TRANSACTION | int(kind)
