"""The plain-Python twin of `kernels.encoding`: same function, same arguments, no compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats import crc_trailer
from formats.commitlog import FLAT_HEADERS, PROPERTIES_LENGTH, TOPIC_LENGTH, is_v6
from formats.primitives import HostV4, HostV6, crc32_masked, sizeof
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]

_LENGTHS = {wide: sizeof(HostV6 if wide else HostV4) for wide in (False, True)}
_PORT = 4


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
