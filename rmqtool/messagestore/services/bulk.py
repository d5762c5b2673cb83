"""Plain delayed messages that lie near each other, delivered in columns, bodies and properties as they lie.

What needs more than another topic, queue and time is left to `copying.copy_of`, one by one: records whose
properties would be written otherwise, addresses of IPv6, batches, further queues, `__CRC32#`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats import properties as props
from formats.commitlog import HEADERS, SysFlag
from formats.java import java_parse_int
from formats.primitives import offset_of
from formats.system_topics import HALF_TOPIC
from rmqtool.broker.encoder import MessageColumns
from rmqtool.messagestore.messages import IllegalMessageError
from rmqtool.scan.fields import ROW_WIDTH, Check, Field

if TYPE_CHECKING:
    from rmqtool.messagestore.records import RecordMaker
    from rmqtool.messagestore.services.engine import Engine, Ints, Units

    Key = tuple[str, int]

LEAST = 32
"""messages from which on columns of them are worth making"""
_FEW = 1024
_NEAR, _WINDOW = 16 << 10, 4 << 20
"""bytes between two records, and of all of them together"""
_BORN_HOST = offset_of(HEADERS[False, False], "born_host")
_STORE_HOST = offset_of(HEADERS[False, False], "store_host")
_TOPIC, _QUEUE = props.REAL_TOPIC.encode(), props.REAL_QID.encode()
_OTHERWISE = int(
    SysFlag.BORNHOST_V6 | SysFlag.STOREHOST_V6 | SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP | SysFlag.PREPARED
)
"""flags of records that are not for columns; half and rolled back transactions have the bit of the first"""
_MADE_AGAIN = (b"INNER_", props.CRC32.encode())


def near(units: Units, segment_size: int) -> int:
    """How many of the first units have records near each other, in their order, in one segment."""
    begins = units.physical_offsets
    ends = begins + units.sizes
    apart = (begins[1:] < ends[:-1]) | (begins[1:] - ends[:-1] > _NEAR)
    apart |= (begins[1:] // segment_size != begins[0] // segment_size) | (ends[1:] - begins[0] > _WINDOW)
    return int(np.argmax(apart)) + 1 if apart.any() else len(begins)


def few(units: Units) -> int:
    """How many of the first units have records that may be in memory together."""
    return max(int(np.searchsorted(np.cumsum(units.sizes[:_FEW]), _WINDOW, "right")), 1)


def columns_of(engine: Engine, units: Units, count: int) -> tuple[MessageColumns, list[Key], Ints] | None:
    """The copies of the first `count` messages, which are near each other: columns, and whose queue each is.

    None where some of them need more. Raises `StoreIOError`, `UnreadableError`.
    """
    maker = engine.maker
    if maker.trailer:
        return None
    first, size = int(units.physical_offsets[0]), engine.log.segment_size
    data = engine.log.copy(first, int(units.physical_offsets[count - 1] + units.sizes[count - 1]) - first)
    window = np.frombuffer(data, np.uint8)
    position, rows = first % size, np.empty((count, ROW_WIDTH), np.int64)
    places = units.physical_offsets[:count] - first
    kernels = engine.kernels
    read = kernels.records_at(window, places, position, size, first - position, int(Check.FRAME), rows)
    flags = rows[:, Field.SYS_FLAG]
    if read != count or (flags & _OTHERWISE).any():
        return None
    for place in (Field.BODY_POSITION, Field.PROPERTIES_POSITION):
        rows[:, place] -= position
    found = _real_places(rows, data, maker)
    if found is None:
        return None
    keys, which = found
    if not _set_topics(rows, keys, which, maker):
        return None
    hosts = np.stack([places + _BORN_HOST, places + _STORE_HOST], axis=1)
    rows[:, Field.STORE_TIMESTAMP] = -1
    rows[:, Field.PREPARED_TRANSACTION_OFFSET] = 0
    topics = np.frombuffer("".join(topic for topic, _ in keys).encode(), np.uint8)
    columns = MessageColumns(rows, hosts, window, topics, window, window)
    sizes = columns.sizes()
    large = (sizes > maker.most_record) | (rows[:, Field.BODY_LENGTH] > maker.most_body)
    return None if large.any() else (columns, keys, which)


def _real_places(rows: Ints, data: bytes, maker: RecordMaker) -> tuple[list[Key], Ints] | None:
    """Topics and queues of the messages; None where one names none, or its properties would change."""
    numbers: dict[tuple[bytes, bytes], int] = {}
    found: list[int] = []
    begins = rows[:, Field.PROPERTIES_POSITION].tolist()
    for begin, length in zip(begins, rows[:, Field.PROPERTIES_LENGTH].tolist(), strict=True):
        raw = data[begin : begin + length]
        if raw.endswith(b"\x02") != maker.separated or not raw.isascii() or _MADE_AGAIN[0] in raw:
            return None
        parts = [one.partition(b"\x01") for one in raw.removesuffix(b"\x02").split(b"\x02")]
        pairs = {name: value for name, _, value in parts if name and value}
        if len(pairs) != len(parts) or _MADE_AGAIN[1] in pairs:
            return None
        place = pairs.get(_TOPIC, b""), pairs.get(_QUEUE, b"")
        found.append(numbers.setdefault(place, len(numbers)))
    keys: list[Key] = []
    for topic, queue in numbers:
        number = java_parse_int(queue.decode())
        if not topic or number is None or number < 0:
            return None
        keys.append((topic.decode(), number))
    return keys, np.array(found, np.int64)


def _set_topics(rows: Ints, keys: list[Key], which: Ints, maker: RecordMaker) -> bool:
    """Topic and queue of each row; False where one is for none that can be."""
    about: list[tuple[int, int, int, int]] = []
    at = 0
    for topic, queue_id in keys:
        try:
            magic, _ = maker.topic(topic)
        except IllegalMessageError:
            return False
        if topic == HALF_TOPIC:
            return False
        about.append((magic, at, len(topic), queue_id))
        at += len(topic)
    fields = (Field.MAGIC, Field.TOPIC_POSITION, Field.TOPIC_LENGTH, Field.QUEUE_ID)
    rows[:, list(map(int, fields))] = np.array(about, np.int64)[which]
    return True
