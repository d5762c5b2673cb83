"""A plain message at once: what `RecordMaker.prepare` and `Appender.append` do in general, without objects.

Plain is a message without properties of its own, in a topic that is there, into a store without further
queues and sealing CRCs. Whatever is odd about one is left to the general way, which says why.
"""

from __future__ import annotations

import struct
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from formats.commitlog import MAX_PROPERTIES_LENGTH, TOPIC_LENGTH, overhead
from formats.primitives import sizeof
from rmqtool.broker.encoder import header_packer
from rmqtool.errors import StoreIOError
from rmqtool.messagestore.appending import WHOLE, NotAppendedError
from rmqtool.messagestore.messages import IllegalMessageError
from rmqtool.messagestore.records import crc32, own_properties

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.messagestore.appending import Appender
    from rmqtool.messagestore.memory.log import MemoryLog
    from rmqtool.messagestore.messages import Message
    from rmqtool.messagestore.records import RecordMaker
    from rmqtool.messagestore.topics import Topics
    from rmqtool.store.config_json import TopicConfig


class _Shape(NamedTuple):
    """What the records of a topic share.

    beside: bytes of one beside body and properties. memory: it is kept in memory.
    """

    topic: TopicConfig
    queues: int
    magic: int
    raw: bytes
    beside: int
    memory: bool


class PlainPuts:
    """Puts plain messages."""

    def __init__(self, maker: RecordMaker, topics: Topics, appender: Appender, memory: MemoryLog) -> None:
        self._maker, self._topics, self._appender, self._memory = maker, topics, appender, memory
        self._flags = maker.flags
        self._pack: Callable[..., bytes] = header_packer(maker.flags)
        self._shapes: dict[str, _Shape] = {}
        self._on = not (maker.trailer or maker.further.on)

    def put(self, message: Message) -> tuple[int, int, int, int, str] | None:
        """Queue, queue offset, physical offset, end (0 in memory) and id of a message that is stored now.

        None for an odd one, with which nothing has happened.
        """
        try:
            body, name = message.body, message.topic
            shape = self._shapes.get(name)
        except (AttributeError, TypeError):  # no message, or a list for a topic; who refuses it says so
            return None
        if shape is None or shape[0] is not self._topics.get(name):
            shape = self._shape(name)
        if shape is None or type(body) is not bytes or message.properties or message.born_host is not None:
            return None
        topic, queues, magic, named, beside, in_memory = shape
        maker, length = self._maker, len(body)
        try:
            uniq_key = message.uniq_key or maker.uniq_keys.next_key()
            text, count = own_properties(uniq_key, message.keys, message.tags)
            raw = text.encode()
        except (ValueError, TypeError):  # Java writes something in its place of a lone surrogate
            return None
        if not maker.separated:
            raw = raw[:-1]
            count -= 1
        size = beside + length + len(raw)
        queue_id, born = message.queue_id, message.born_timestamp
        if (
            raw.count(b"\x02") != count
            or length > maker.most_body
            or size > maker.most_record
            or len(raw) > MAX_PROPERTIES_LENGTH
            or (queue_id is not None and (type(queue_id) is not int or not 0 <= queue_id < queues))
        ):
            return None
        tail = named + len(raw).to_bytes(2, "big") + raw
        crc, (ip, port) = crc32(body), maker.host
        if queue_id is None:
            queue_id = self._topics.next_queue(topic)
        if in_memory:

            def encode(slot: int, address: int, now: int) -> bytes:
                head = self._pack(
                    size, magic, crc, queue_id, message.flag, slot, address, self._flags,
                    now if born is None else born, ip, port, now, ip, port, 0, 0, length,
                )  # fmt: skip
                return b"".join((head, body, tail))

            return self._in_memory(name, queue_id, size, encode, uniq_key)
        appender, log = self._appender, self._appender.log
        key = name, queue_id
        with appender.lock:
            if appender.torn >= 0:
                return None
            appender.entered = monotonic()
            try:
                file = log.place_for(size)
                slot, physical, now = appender.offsets.get(key, 0), file.base + file.wrote, appender.clock()
                sent = now if born is None else born
                head = self._pack(
                    size, magic, crc, queue_id, message.flag, slot, physical, self._flags,
                    sent, ip, port, now, ip, port, 0, 0, length,
                )  # fmt: skip
                raw = b"".join((head, body, tail))
                appender.torn = physical
                log.append(file, raw)
            except (OSError, StoreIOError, struct.error, TypeError):
                appender.torn = WHOLE
                return None
            log.last_timestamp = now
            appender.offsets[key] = slot + 1
            appender.torn = WHOLE
            appender.entered = 0.0
        return queue_id, slot, physical, physical + size, uniq_key

    def _in_memory(
        self, name: str, queue_id: int, size: int, encode: Callable[[int, int, int], bytes], uniq_key: str
    ) -> tuple[int, int, int, int, str] | None:
        try:
            place = self._memory.append(name, queue_id, size, encode)
        except (NotAppendedError, struct.error):
            return None
        return queue_id, place.queue_offset, place.physical_offset, 0, uniq_key

    def _shape(self, name: str) -> _Shape | None:
        """Of a topic that plain messages go to, None where they do not."""
        topic = self._topics.get(name)
        if not self._on or topic is None or not topic.writeable or self._topics.is_batch(topic):
            return None
        try:
            magic, raw = self._maker.topic(name)
        except IllegalMessageError:
            return None
        beside = overhead(magic, self._flags) - sizeof(TOPIC_LENGTH[magic]) + len(raw)
        made = self._shapes[name] = _Shape(topic, topic.write_queue_nums, magic, raw, beside, topic.memory)
        return made
