"""The plain-Python twin of `kernels.encoding`: same function, same arguments, no compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats import crc_trailer
from formats.commitlog import FLAT_HEADERS, PROPERTIES_LENGTH, TOPIC_LENGTH, is_v6
from formats.primitives import HostV4, HostV6, crc32_masked, sizeof
from formats.properties import KEYS, NAME_SEPARATOR, PROPERTY_SEPARATOR, TAGS, UNIQ_KEY
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bools = npt.NDArray[np.bool_]
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
    import numpy as np

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


def join_properties(
    values: tuple[Ints, Bytes, Ints, Bytes, Ints, Bytes, Ints, Bytes],
    behind: int,
    out: Bytes,
    places: Ints,
    separated: Bools,
) -> int:
    """See `kernels.encoding.join_properties`."""
    import numpy as np

    count = len(separated)
    columns = list(zip(values[::2], values[1::2], (*_OWN, b""), strict=True))
    room = count * behind
    for offsets, data, name in columns:
        if len(offsets) <= count or offsets[0] < 0 or offsets[count] > len(data):
            return -1
        if (offsets[:count] > offsets[1 : count + 1]).any():
            return -1
        room += int(offsets[count] - offsets[0]) + count * (len(name) + 2 if name else 0)
    if room > len(out) or len(places) <= count:
        return -1
    at = 0
    for row in range(count):
        places[row], separated[row] = at, False
        text = b""
        for offsets, data, name in columns:
            value = data[offsets[row] : offsets[row + 1]].tobytes()
            if name and value:
                separated[row] |= _AFTER_VALUE in value
                text += name + _AFTER_NAME + value + _AFTER_VALUE
            elif not name:
                text += value
        text += bytes(behind)
        out[at : at + len(text)] = np.frombuffer(text, np.uint8)
        at += len(text)
    places[count] = at
    return at


def number_rows(which: Ints, following: Ints, numbers: Ints) -> None:
    """See `kernels.encoding.number_rows`."""
    for row, one in enumerate(which.tolist()):
        numbers[row] = following[one]
        following[one] += 1
