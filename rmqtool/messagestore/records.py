"""Messages to the records that are appended: one by one as bytes, many as columns for the encoder.

Queue offsets, physical offsets and store times are put in where the log is locked; all else is done before.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count as count_from
from operator import index
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formats.batch import encode_batch, join_properties
from formats.commitlog import (
    END_FILE_MIN_BLANK_LENGTH,
    FLAT_HEADERS,
    MAX_PROPERTIES_LENGTH,
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    SysFlag,
    is_v6,
    magic_of,
)
from formats.crc_trailer import reserve
from formats.java import java_parse_int, java_utf8_decode, java_utf8_encode, utf16_length
from formats.message_id import UniqueClientId
from formats.properties import (
    DELAY,
    INNER_BASE,
    INNER_MULTI_DISPATCH,
    INNER_MULTI_QUEUE_OFFSET,
    INNER_NUM,
    KEYS,
    TAGS,
    UNIQ_KEY,
    WAIT,
    decode,
)
from formats.system_topics import RETRY_PREFIX
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.broker.record_check import lacks_number
from rmqtool.messagestore.further_queues import FurtherQueues
from rmqtool.messagestore.messages import AppendContext, IllegalMessageError, PutStatus
from rmqtool.scan.crc import fastest_crc32
from rmqtool.store.names import names_directory
from rmqtool.store.releases import version_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.messagestore.messages import Host, Message
    from rmqtool.store.config import StoreConfig

_PLAIN = AppendContext()
_LONGEST_TOPIC = 127
_LONGEST_TOPIC_V2 = 255
_ROOM_BESIDE_BODY = 64 << 10
_SEPARATED = (4, 9, 1), (5, 2, 0)
"""releases from the first to in front of the second store properties without the last separator"""
_WAIT_REMOVED = (4, 9, 1), (5, 0, 0)
_SIZE_OF_BODY = (4, 9, 5)
"""since then `maxMessageSize` is that of the body, before that of the record"""
_OWN = frozenset({KEYS, TAGS, UNIQ_KEY})
_UNIQ, _KEYS, _TAGS, _END = f"{UNIQ_KEY}\x01", f"{KEYS}\x01", f"{TAGS}\x01", "\x02"
_COUNTED = frozenset({INNER_NUM, INNER_BASE, INNER_MULTI_QUEUE_OFFSET})
"""properties that a store gives (`HookUtils#checkInnerBatch` refuses the first, too)"""
_MOST_INNER = (1 << 15) - 1
_BORN_V6, _STORE_V6 = int(SysFlag.BORNHOST_V6), int(SysFlag.STOREHOST_V6)
_WIDE_HOSTS = _BORN_V6 | _STORE_V6
_HEADER_SIZE = {flags: FLAT_HEADERS[is_v6(flags)].size for flags in (0, _BORN_V6, _STORE_V6, _WIDE_HOSTS)}
_TRANSACTION = int(SysFlag.TRANSACTION_MASK)
_WITHOUT_UNIT = frozenset({int(SysFlag.PREPARED), int(SysFlag.ROLLBACK)})
_INNER = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
_V6 = 16
_ADDRESSES = (4, _V6)
_PORTS = 1 << 16
_INT, _LONG = 1 << 31, 1 << 63
_ELSEWHERE = ("192.0.2.1", 9)
"""an address of no machine (RFC 5737)"""


crc32 = fastest_crc32()
_HEX = tuple(f"{number:02X}" for number in range(256))
_DIGITS = np.frombuffer("".join(_HEX).encode(), np.uint16)
_UNIQUE = 32
"""digits of an id"""


class Late(NamedTuple):
    """Properties that only the append can give. names: further queues. based: it gets `INNER_BASE`.

    stored: numbers in the further queues that a replayed record has already. topic, properties: of the
    record up to then, the topic with its length.
    """

    names: tuple[str, ...]
    stored: tuple[int | None, ...] | None
    based: bool
    topic: bytes
    properties: bytes


class Prepared(NamedTuple):
    """A record without what is only known in the log.

    size: of the whole record, bytes. fields, tail: as `broker.encoder.encode_record` takes them.
    born_timestamp, store_timestamp: ms, None for the time of the append. waits: `WAIT` is not false.
    late: the record is not complete yet, see `RecordMaker.completed`.
    """

    size: int
    fields: tuple[int, ...]
    messages: int
    """how many it is in its queue; half and rolled back transactions have no place there"""
    born_timestamp: int | None
    born_host: Host
    store_timestamp: int | None
    store_host: Host
    queue_offset: int | None
    body: bytes
    tail: bytes
    uniq_key: str
    waits: bool
    late: Late | None


class UniqueKeys:
    """Ids for messages that have none (`MessageClientIDSetter#createUniqID`), for any number of threads.

    Single ones and columns of them count by themselves, so that most of the former need no lock.
    """

    def __init__(self, ip: bytes) -> None:
        self._ip = ip
        self._count = count_from(int.from_bytes(os.urandom(2), "big"))
        self._heads: dict[int, str] = {}
        """of the last two times that 65,536 single ids have"""
        self._lock = threading.Lock()
        self._rows: npt.NDArray[np.uint8] = np.empty((0, _UNIQUE), np.uint8)
        """the ids of one head that are left for columns, one a row"""
        self._rows_head = ""

    def next_key(self) -> str:
        """32 hexadecimal digits, another one at each call of this process."""
        number = next(self._count)
        head = self._heads.get(number >> 16) or self._head_of(number >> 16)
        return head + _HEX[number >> 8 & 0xFF] + _HEX[number & 0xFF]

    def _head_of(self, turn: int) -> str:
        with self._lock:
            if turn not in self._heads:
                self._heads[turn] = self._new_head(self)
                self._heads.pop(turn - 2, None)
            return self._heads[turn]

    def next_keys(self, count: int) -> pa.StringArray:
        """Many of them, slices of columns that are made 65,536 rows at a time."""
        import pyarrow as pa

        with self._lock:
            parts, left = [self._rows[:count]], count - len(self._rows)
            self._rows = self._rows[count:]
            while left > 0:
                rows = self._all_of_new_head()
                parts.append(rows[:left])
                self._rows, left = rows[left:], left - len(rows)
        full = [one for one in parts if len(one)]
        data = full[0] if len(full) == 1 else np.concatenate(parts)
        offsets = np.arange(0, (count + 1) * _UNIQUE, _UNIQUE, dtype=np.int32)
        return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])

    def _all_of_new_head(self) -> npt.NDArray[np.uint8]:
        while (head := self._new_head(self._lock)) == self._rows_head:
            time.sleep(0.001)  # it is the time in ms
        self._rows_head = head
        numbers = np.arange(1 << 16)
        rows = np.empty((len(numbers), _UNIQUE), np.uint8)
        rows[:, : len(head)] = np.frombuffer(head.encode(), np.uint8)
        pairs = rows.view(np.uint16)
        pairs[:, -2], pairs[:, -1] = _DIGITS[numbers >> 8], _DIGITS[numbers & 0xFF]
        return rows

    def _new_head(self, of: object) -> str:
        """All but the count. The time is that of now, as one id a moment is enough; of: who counts."""
        now = time.time()
        month = time.mktime((*time.localtime(now)[:2], 1, 0, 0, 0, 0, 0, -1))
        whole = UniqueClientId(
            self._ip, os.getpid() & 0xFFFF, id(of) >> 4 & 0x7FFFFFFF, int((now - month) * 1000), 0
        ).build()
        return whole[:-4]


LISTED = frozenset({list, tuple})
"""what keys are given in, as a rule"""


def own_properties(uniq_key: str, keys: str | Sequence[str], tags: str | None) -> tuple[str, int]:
    """The properties that have arguments of their own as they are stored, and how many they are.

    Raises `TypeError` for what is no string, and for keys that can be read only once: who asks again, as
    for a message that is odd in another way, would find none.
    """
    text, count = _UNIQ + uniq_key + _END, 1
    if keys:
        if type(keys) is not str:
            if type(keys) not in LISTED and isinstance(keys, Iterator):
                raise TypeError
            keys = " ".join(keys)
        text, count = text + _KEYS + keys + _END, 2
    return (text + _TAGS + tags + _END, count + 1) if tags else (text, count)


def host_flags(born: Host, store: Host) -> int:
    """The flags that say how wide the addresses of a record are."""
    return _BORN_V6 * (len(born[0]) == _V6) | _STORE_V6 * (len(store[0]) == _V6)


class RecordMaker:
    """What a broker of a release makes of messages. host: of the store, where messages do not name it."""

    def __init__(self, release: str, config: StoreConfig, host: Host) -> None:
        version = version_key(release)
        self.separated = not _SEPARATED[0] <= version < _SEPARATED[1]
        self._keeps_wait = not _WAIT_REMOVED[0] <= version < _WAIT_REMOVED[1]
        self._of_5 = version >= (5, 0, 0)
        self.long_topics = version >= (5, 1, 0) and config.auto_message_version_on_topic_len
        self.trailer = version >= (5, 2, 0) and config.enabled_append_prop_crc
        self.most_body = config.max_message_size if version >= _SIZE_OF_BODY else 0x7FFFFFFF
        room = config.max_message_size + (_ROOM_BESIDE_BODY if version >= _SIZE_OF_BODY else 0)
        self.most_record = min(room, config.mapped_file_size_commit_log - END_FILE_MIN_BLANK_LENGTH)
        self.most_batch = min(config.max_message_size, self.most_record)
        """bytes of the records of a client's batch"""
        self._most_light = config.max_message_size if self._of_5 else self.most_record
        """bytes of a record with further queues (`CommitLog#handlePropertiesForLmqMsg`)"""
        self.further = FurtherQueues(release, config)
        self.host = host
        self.flags = host_flags(host, host)
        """of a record whose hosts are both that of the store, and their address as it stands in it"""
        self.address = np.frombuffer(host[0] + host[1].to_bytes(4, "big", signed=True), np.uint8)
        self.uniq_keys = UniqueKeys(host[0] if len(host[0]) == len(bytes(4)) else host[0][:4])
        self._topics: dict[str, tuple[int, bytes]] = {}

    def topic(self, name: str) -> tuple[int, bytes]:
        """Magic of a topic's records, and the name with its length as it stands in them.

        Raises `IllegalMessageError` (`HookUtils#checkBeforePutMessage`, `DefaultMessageStore#checkMessage`).
        """
        if not isinstance(name, str):
            raise _illegal(f"the topic is {type(name).__name__} and not a string")
        found = self._topics.get(name)
        if found is None:
            raw = java_utf8_encode(name)
            length = len(raw) if self._of_5 else utf16_length(name)
            if not raw:
                raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, "the topic is empty")
            if not names_directory(name):
                raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, "the topic can name no directory")
            retried = self._of_5 and name.startswith(RETRY_PREFIX)
            if (length > _LONGEST_TOPIC and not retried) or len(raw) > _LONGEST_TOPIC_V2:
                raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"the topic has {length} characters")
            magic = magic_of(name) if self.long_topics else MESSAGE_MAGIC_CODE
            wide = 2 if magic == MESSAGE_MAGIC_CODE_V2 else 1
            if wide == 1 and len(raw) > _LONGEST_TOPIC:
                raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"the topic has {len(raw)} bytes")
            found = self._topics[name] = magic, len(raw).to_bytes(wide, "big") + raw
        return found

    def properties(self, message: Message) -> tuple[bytes, str, bool]:
        """The stored properties of a message, its id, and whether a put of it waits for the medium.

        Raises `IllegalMessageError`.
        """
        try:
            uniq_key = message.uniq_key or self.uniq_keys.next_key()
            text, count = own_properties(uniq_key, message.keys, message.tags)
            others = dict(message.properties or ())
            names = "".join(others)  # fails where one is no string
            "".join(others.values())
        except (TypeError, ValueError):
            why = "tags and uniq_key are strings, keys a list of strings, properties a mapping of strings"
            raise _illegal(why) from None
        waits = True
        if others:
            if not _OWN.isdisjoint(others):
                raise IllegalMessageError(
                    PutStatus.MESSAGE_ILLEGAL, "KEYS, TAGS and UNIQ_KEY have arguments of their own"
                )
            if not _COUNTED.isdisjoint(others):
                names = ", ".join(sorted(_COUNTED & others.keys()))
                raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"{names}: the store itself gives them")
            if "\x01" in names or "\x02" in names:
                raise _illegal("the name of a property holds a separator, 0x01 or 0x02")
            waits = others.get(WAIT, "true").lower() != "false"
            if not self._keeps_wait:
                others.pop(WAIT, None)
            text += "".join([f"{name}\x01{value}\x02" for name, value in others.items()])
            count += len(others)
        if text.count("\x02") != count:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, "a property holds the separator 0x02")
        raw = java_utf8_encode(text)
        return raw if self.separated else raw[:-1], uniq_key, waits

    def inner_batch(self, messages: Sequence[Message]) -> tuple[Prepared, list[str]]:
        """One record of many messages, as `SendMessageProcessor#sendBatchMessage` makes it; their ids.

        It is stamped as the first of them. Raises `IllegalMessageError`.
        """
        if len(messages) > _MOST_INNER:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"a batch of {len(messages)} messages")
        parts = [(_bytes_of(one.body), one.flag, *self.properties(one)) for one in messages]
        for _, flag, raw, _, _ in parts:
            self._refuse_size(raw, flag)
        body = encode_batch((body, raw, flag) for body, flag, raw, _, _ in parts)
        uniq_key = self.uniq_keys.next_key()
        properties = f"{UNIQ_KEY}\x01{uniq_key}\x02{INNER_NUM}\x01{len(messages)}\x02".encode()
        context = AppendContext(sys_flag=_INNER, properties=properties)
        whole = replace(messages[0], body=body, flag=0, uniq_key=uniq_key)
        record = self.prepare(whole, context)._replace(waits=parts[0][4])
        return record, [key for _, _, _, key, _ in parts]

    def refuse_numbers(self, topic: str, raw: bytes, *, based: bool = False) -> None:
        """Refuses stored properties for which brokers take a record for broken, and with it all behind it.

        based: it gets `INNER_BASE`. Raises `IllegalMessageError`.
        """
        known = decode(raw)
        if based:
            known[INNER_BASE] = "0"
        if lacks_number(java_utf8_encode(topic), known, inner_batches=self._of_5):
            given = [f"{name}={known[name]!r}" for name in (DELAY, INNER_NUM, INNER_BASE) if name in known]
            raise _illegal(f"not a number: {', '.join(given)}")

    def status_of_long(self, properties: bytes) -> PutStatus:
        """Why properties are too long: 4.9.x counts characters first (`DefaultMessageStore#checkMessage`)."""
        if self._of_5 or utf16_length(java_utf8_decode(properties)[0]) <= MAX_PROPERTIES_LENGTH:
            return PutStatus.PROPERTIES_SIZE_EXCEEDED
        return PutStatus.MESSAGE_ILLEGAL

    def _refuse_size(self, properties: bytes, flag: int) -> None:
        if len(properties) > MAX_PROPERTIES_LENGTH:
            status = self.status_of_long(properties)
            raise IllegalMessageError(status, f"{len(properties)} bytes of properties")
        if not is_integer(flag):
            raise _illegal(f"the flag is {type(flag).__name__} and not an integer")
        if not -_INT <= flag < _INT:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"flag {flag} has more than 32 bits")

    def _late(
        self, message: Message, context: AppendContext, topic: bytes, raw: bytes
    ) -> tuple[Late | None, int]:
        """What is left to the append, and how many messages a record is."""
        inner = self._of_5 and bool(context.sys_flag & int(SysFlag.INNER_BATCH))
        if not inner and not self.further.on:
            return None, 1
        stored = context.properties is not None
        properties = decode(raw) if stored else dict(message.properties or ())
        count = java_parse_int(properties.get(INNER_NUM, ""), 16) if inner else 1
        names = self.further.names(message.topic, properties.get(INNER_MULTI_DISPATCH))
        numbers = self.further.stored(names, properties) if stored else None
        if not stored:
            self.further.refuse(message.topic, names)
        based = inner and INNER_BASE not in properties
        late = Late(names, numbers, based, topic, raw) if names or based else None
        return late, max(count or 1, 1)

    def completed(self, record: Prepared, late: Late, further: str) -> Prepared:
        """A record with further properties at the end. Raises `IllegalMessageError`."""
        raw = join_properties(late.properties, java_utf8_encode(further))
        if self.separated:
            raw += b"\x02"
        if self.trailer:
            raw = reserve(raw)
        if len(raw) > MAX_PROPERTIES_LENGTH:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"{len(raw)} bytes of properties")
        tail = late.topic + len(raw).to_bytes(2, "big") + raw
        size = record.size - len(record.tail) + len(tail)
        if size > (self._most_light if late.names else self.most_record):
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"a record of {size} bytes")
        return record._replace(size=size, fields=(size, *record.fields[1:]), tail=tail, late=None)

    def prepare(
        self, message: Message, context: AppendContext = _PLAIN, *, batched: bool = False
    ) -> Prepared:
        """All of a record that does not depend on its place. Raises `IllegalMessageError`.

        batched: one of a client's batch, which feeds no further queues.
        """
        magic, topic = self.topic(message.topic)
        if context is not _PLAIN:
            _refuse_context(message.queue_id or 0, context)
        body = message.body
        if context.properties is None:
            raw, uniq_key, waits = self.properties(message)
        else:
            raw, waits = _bytes_of(context.properties, "properties are"), True
            uniq_key = message.uniq_key or ""
        if type(body) is not bytes:
            body = _bytes_of(body)
        late, count = None, 1
        if (self.further.on or context.sys_flag) and not batched:
            late, count = self._late(message, context, topic, raw)
        if message.topic == SCHEDULE_TOPIC or context.properties is not None:
            self.refuse_numbers(message.topic, raw, based=late is not None and late.based)
        if self.trailer:
            raw = reserve(raw)
        length = len(raw)
        self._refuse_size(raw, message.flag)
        if len(body) > self.most_body:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"a body of {len(body)} bytes")
        if message.born_timestamp is not None:
            _refuse_time(message.born_timestamp)
        if message.born_host is not None:
            _refuse_host(message.born_host)
        born, store = message.born_host or self.host, context.store_host or self.host
        flags = context.sys_flag & ~_WIDE_HOSTS | host_flags(born, store)
        tail = topic + length.to_bytes(2, "big") + raw
        size = _HEADER_SIZE[flags & _WIDE_HOSTS] + len(body) + len(tail)
        if size > self.most_record:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"a record of {size} bytes")
        prepared = context.prepared_transaction_offset
        return Prepared._make(
            (
                size,
                (size, magic, crc32(body), flags, message.flag, context.reconsume_times, prepared),
                0 if flags & _TRANSACTION in _WITHOUT_UNIT else count,
                message.born_timestamp,
                born,
                context.store_timestamp,
                store,
                context.queue_offset,
                body,
                tail,
                uniq_key,
                waits,
                late,
            )
        )


def _illegal(why: str) -> IllegalMessageError:
    return IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, why)


def further_properties(message: Message) -> dict[str, str]:
    """Those without an argument of their own. Raises `IllegalMessageError` for what is no mapping."""
    try:
        return dict(message.properties or ())
    except (TypeError, ValueError):
        raise _illegal("properties are not a mapping of strings") from None


def is_integer(value: object) -> bool:
    """Whether it counts as one, as those of NumPy do, too."""
    try:
        index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _refuse_time(born: int) -> None:
    """Raises `IllegalMessageError` for what is no time in ms that fits."""
    if not is_integer(born) or not -_LONG <= born < _LONG:
        raise _illegal(f"born_timestamp {born!r} is not an integer of 64 bits")


def _refuse_host(host: object) -> None:
    """Raises `IllegalMessageError` for what is not an address and a port."""
    match host:
        case (bytes() as ip, int() as port) if len(ip) in _ADDRESSES and 0 <= port < _PORTS:
            return
    raise _illegal("born_host is not an address of 4 or 16 bytes and a port")


def _bytes_of(given: object, what: str = "the body is") -> bytes:
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    raise _illegal(f"{what} {type(given).__name__} and not bytes")


def _refuse_context(queue_id: int, context: AppendContext) -> None:
    """Raises `IllegalMessageError` for a queue, or an offset in it, that no unit can have, and odd flags."""
    if not is_integer(queue_id) or not 0 <= queue_id < _INT:
        raise _illegal(f"there is no queue {queue_id!r:.60}")
    offset = 0 if context.queue_offset is None else context.queue_offset
    if not is_integer(offset) or not 0 <= offset < _LONG:
        raise _illegal(f"there is no queue offset {offset!r:.60}")
    if not is_integer(context.sys_flag):
        raise _illegal(f"sys_flag is {type(context.sys_flag).__name__} and not an integer")


def local_host(port: int) -> Host:
    """The address of this machine in its network, else 127.0.0.1; nothing is sent to learn it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
            return socket.inet_aton(probe.getsockname()[0]), port
        except OSError:
            return bytes([127, 0, 0, 1]), port
