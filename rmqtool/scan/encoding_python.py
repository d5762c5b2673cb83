"""The plain-Python twin of `kernels.encoding`: same function, same arguments, no compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats import crc_trailer
from formats.commitlog import (
    FLAT_HEADERS,
    MAX_PROPERTIES_LENGTH,
    PROPERTIES_LENGTH,
    TOPIC_LENGTH,
    fits,
    is_v6,
)
from formats.primitives import HostV4, HostV6, crc32_masked, sizeof
from formats.properties import KEYS, NAME_SEPARATOR, PROPERTY_SEPARATOR, TAGS, UNIQ_KEY
from rmqtool.scan.fields import Field, Refused, TopicColumn

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]

_LENGTHS = {wide: sizeof(HostV6 if wide else HostV4) for wide in (False, True)}
_PORT = 4
_OWN = tuple(one.encode() for one in (UNIQ_KEY, KEYS, TAGS))
_AFTER_NAME, _AFTER_VALUE = bytes([NAME_SEPARATOR]), bytes([PROPERTY_SEPARATOR])


def encode(
    rows: Ints,
    hosts: Ints,
    sources: tuple[Bytes, Bytes, Bytes, Bytes],
    trailer: int,
    places: Ints,
    out: Bytes,
) -> None:
    """See `kernels.encoding.encode`."""

    def taken(source: Bytes, position: int, length: int) -> bytes:
        return source[position : position + length].tobytes()

    bodies, topics, texts, addresses = sources
    for row, both, place in zip(rows.tolist(), hosts.tolist(), places.tolist(), strict=True):
        body = taken(bodies, row[Field.BODY_POSITION], row[Field.BODY_LENGTH])
        topic = taken(topics, row[Field.TOPIC_POSITION], row[Field.TOPIC_LENGTH])
        text = taken(texts, row[Field.PROPERTIES_POSITION], row[Field.PROPERTIES_LENGTH])
        values = {name.lower(): row[field] for name, field in Field.__members__.items()}
        values |= {
            "total_size": row[Field.STORE_SIZE],
            "physical_offset": row[Field.STORED_PHYSICAL_OFFSET],
            "body_crc": crc32_masked(body),
        }
        wide = is_v6(row[Field.SYS_FLAG])
        for name, position, long in zip(("born_host", "store_host"), both, wide, strict=True):
            raw = taken(addresses, position, _LENGTHS[long])
            values[f"{name}.ip"] = raw[:-_PORT]
            values[f"{name}.port"] = int.from_bytes(raw[-_PORT:], "big", signed=True)
        parts = (
            FLAT_HEADERS[wide].pack(values),
            body,
            len(topic).to_bytes(sizeof(TOPIC_LENGTH[row[Field.MAGIC]]), "big"),
            topic,
            len(text).to_bytes(sizeof(PROPERTIES_LENGTH), "big"),
            text,
        )
        record = b"".join(parts)
        if trailer:
            record = crc_trailer.seal(record)
        out[place : place + len(record)] = np.frombuffer(record, np.uint8)
    rows[:, Field.POSITION] = places


def prepare_rows(
    values: tuple[Ints, Bytes, Ints, Bytes, Ints, Bytes, Ints, Bytes, Ints, Bytes],
    numbers: tuple[Ints, Ints, Ints, Ints],
    topics: Ints,
    limits: tuple[int, int, int, int, int],
    texts: Bytes,
    rows: Ints,
    refused: Ints,
) -> tuple[int, int]:
    """See `kernels.encoding.prepare_rows`."""
    count = len(refused)
    behind, trimmed, sys_flag, most_body, most_record = limits
    columns = list(zip(values[2::2], values[3::2], (*_OWN, b""), strict=True))
    for offsets, data in zip(values[::2], values[1::2], strict=True):
        if len(offsets) <= count or offsets[0] < 0 or offsets[count] > len(data):
            return -1, 0
        if (offsets[:count] > offsets[1 : count + 1]).any():
            return -1, 0
    room = count * behind
    for offsets, _, name in columns:
        room += int(offsets[count] - offsets[0]) + count * (len(name) + 2 if name else 0)
    if room > len(texts) or len(rows) < count:
        return -1, 0
    codes, queues, flags, born = numbers
    bodies, at = values[0], 0
    for row in range(count):
        topic = topics[codes[row]]
        if queues[row] < 0:
            queues[row] = -1
            if topic[TopicColumn.QUEUES] >= 0:
                queues[row] = topic[TopicColumn.TURN] % max(topic[TopicColumn.QUEUES], 1)
                topic[TopicColumn.TURN] += 1
        text, separated = _properties(columns, row)
        text += bytes(behind)
        texts[at : at + len(text)] = np.frombuffer(text, np.uint8)
        length, body = len(text) - trimmed, int(bodies[row + 1] - bodies[row])
        size = int(topic[TopicColumn.FIXED] + topic[TopicColumn.NAME_LENGTH]) + body + length
        refused[row] = (
            Refused.ILLEGAL
            if refused[row] or queues[row] >= topic[TopicColumn.QUEUES] or separated or body > most_body
            else Refused.PROPERTIES_SIZE
            if length > MAX_PROPERTIES_LENGTH
            else Refused.ILLEGAL
            if size > most_record
            else Refused.NOTHING
        )
        for field, value in (
            (Field.MAGIC, topic[TopicColumn.MAGIC]),
            (Field.STORE_SIZE, size),
            (Field.QUEUE_ID, queues[row]),
            (Field.FLAG, flags[row] if len(flags) else 0),
            (Field.SYS_FLAG, sys_flag),
            (Field.BORN_TIMESTAMP, born[row] if len(born) else -1),
            (Field.STORE_TIMESTAMP, -1),
            (Field.RECONSUME_TIMES, 0),
            (Field.PREPARED_TRANSACTION_OFFSET, 0),
            (Field.BODY_POSITION, bodies[row]),
            (Field.BODY_LENGTH, body),
            (Field.TOPIC_POSITION, topic[TopicColumn.NAME_AT]),
            (Field.TOPIC_LENGTH, topic[TopicColumn.NAME_LENGTH]),
            (Field.PROPERTIES_POSITION, at),
            (Field.PROPERTIES_LENGTH, length),
        ):
            rows[row, field] = value
        at += len(text)
    return at, int((refused != Refused.NOTHING).sum())


def _properties(columns: list[tuple[Ints, Bytes, bytes]], row: int) -> tuple[bytes, bool]:
    """The properties of a message, and whether a value has a separator."""
    text, separated = b"", False
    for offsets, data, name in columns:
        value = data[offsets[row] : offsets[row + 1]].tobytes()
        if name and value:
            separated |= _AFTER_VALUE in value
            value = name + _AFTER_NAME + value + _AFTER_VALUE
        text += value
    return text, separated


def number_rows(which: Ints, following: Ints, rows: Ints, now: int) -> None:
    """See `kernels.encoding.number_rows`."""
    for row, one in enumerate(which.tolist()):
        rows[row, Field.QUEUE_OFFSET] = following[one]
        following[one] += 1
    for stamp in (Field.STORE_TIMESTAMP, Field.BORN_TIMESTAMP):
        rows[rows[:, stamp] < 0, stamp] = now


def place_rows(rows: Ints, begin: int, free: int, most: int, places: Ints) -> tuple[int, int]:
    """See `kernels.encoding.place_rows`."""
    at, count = 0, 0
    for row in rows[: len(places)]:
        size = int(row[Field.STORE_SIZE])
        if at >= most or not fits(at + size, free):
            break
        places[count], row[Field.STORED_PHYSICAL_OFFSET] = at, begin + at
        at, count = at + size, count + 1
    return count, at
