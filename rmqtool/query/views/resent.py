"""A record that a consumer gave back, as it was when it was first sent: for its own topic, never tried."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from formats import properties as props
from formats.commitlog import Message, magic_of, record_size
from formats.java import java_utf8_encode
from rmqtool.query.views.returned import ORIGINS

if TYPE_CHECKING:
    from rmqtool.store.layout import Store

_OF_TRIES = (
    props.RETRY_TOPIC, props.ORIGIN_MESSAGE_ID, props.DLQ_ORIGIN_TOPIC, props.DLQ_ORIGIN_MESSAGE_ID,
    props.DELAY, props.REAL_TOPIC, props.REAL_QID, props.CRC32,
)  # fmt: skip
"""properties that giving back adds (`AbstractSendMessageProcessor#consumerSendMsgBack`), and the seal"""


class Resent:
    """Makes them one by one: there are few of these, and each has other properties.

    The queues of a topic get them in turn, as many as `topics.json` has of them to write to, else one: which
    one a message was first sent to is nowhere stored.
    """

    def __init__(self, store: Store, kind: str) -> None:
        """kind: `retry` or `dlq`."""
        self._topics, self._origins = store.topics, ORIGINS[kind]
        self._sent: Counter[str] = Counter()

    def __call__(self, record: bytes) -> bytes:
        """The record for the topic that it came from; one that names none is as it was."""
        message = Message.parse(record)
        given = props.decode(message.properties)
        topic = next((given[name] for name in self._origins if given.get(name)), None)
        if not topic:
            return record
        message.topic, message.magic = java_utf8_encode(topic), magic_of(topic)
        for name in _OF_TRIES:
            message.properties = props.without(message.properties, name)
        message.topic_length, message.properties_length = len(message.topic), len(message.properties)
        lengths = max(message.body_length, 0), message.topic_length, message.properties_length
        message.total_size = record_size(message.magic, message.sys_flag, *lengths)
        config = self._topics.get(topic)
        message.queue_id = self._sent[topic] % (max(config.write_queue_nums, 1) if config else 1)
        self._sent[topic] += 1
        message.reconsume_times = 0
        return bytes(Message.build(message))
