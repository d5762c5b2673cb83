"""Records written as the broker encodes them. `encoding_python` is the twin.

`MessageExtEncoder#encode`; with a trailer `MessageDecoder#createCrc32`.
"""

from __future__ import annotations

import numpy as np

from formats.commitlog import HEADERS, MESSAGE_MAGIC_CODE_V2, SysFlag
from formats.crc_trailer import TRAILER_SIZE, CrcTrailer, build
from formats.primitives import HostV4, HostV6, offset_of, sizeof
from rmqtool.scan.kernels.checksum import crc_at
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    BODY_LENGTH,
    BODY_POSITION,
    BORN_TIMESTAMP,
    FLAG,
    MAGIC,
    POSITION,
    PREPARED,
    PROPERTIES_LENGTH,
    PROPERTIES_POSITION,
    QUEUE_ID,
    QUEUE_OFFSET,
    RECONSUME,
    STORE_SIZE,
    STORE_TIMESTAMP,
    STORED_OFFSET,
    SYS_FLAG,
    TOPIC_LENGTH,
    TOPIC_POSITION,
)
from rmqtool.scan.kernels.intrinsics import copy, put8, put16, put32, put64

_HEADER = HEADERS[False, False]
AT_MAGIC = offset_of(_HEADER, "magic")
AT_CRC = offset_of(_HEADER, "body_crc")
AT_QUEUE_ID = offset_of(_HEADER, "queue_id")
AT_FLAG = offset_of(_HEADER, "flag")
AT_QUEUE_OFFSET = offset_of(_HEADER, "queue_offset")
AT_PHYSICAL_OFFSET = offset_of(_HEADER, "physical_offset")
AT_SYS_FLAG = offset_of(_HEADER, "sys_flag")
AT_BORN_TIME = offset_of(_HEADER, "born_timestamp")
AT_BORN_HOST = offset_of(_HEADER, "born_host")
HOST, LONG_HOST = sizeof(HostV4), sizeof(HostV6)
BORN_V6, STORE_V6 = int(SysFlag.BORNHOST_V6), int(SysFlag.STOREHOST_V6)
V2 = MESSAGE_MAGIC_CODE_V2
TRAILER = TRAILER_SIZE
AT_DIGITS = offset_of(CrcTrailer, "digits")
AT_END = offset_of(CrcTrailer, "property_separator")
DIGITS = AT_END - AT_DIGITS
ZERO_DIGIT = ord("0")
TRAILER_FORM = np.frombuffer(build(0), np.uint8)


@kernel()
def encode(rows, hosts, sources, trailer, places, out):
    """Writes the record of each row to its place (byte) of `out`.

    rows: `fields.Field`; `STORE_SIZE` as the lengths add up, positions count in `sources`: bodies, topics,
    properties, hosts. hosts: positions of both addresses of a row, 8 or 20 bytes by `SYS_FLAG`. trailer:
    `__CRC32#`, with room in the last bytes of the properties, is computed as the body's CRC always is.
    """
    bodies, topics, texts, addresses = sources
    start = out.ctypes.data
    for r in range(rows.shape[0]):
        at = start + places[r]
        size = rows[r, STORE_SIZE]
        flags = rows[r, SYS_FLAG]
        length = rows[r, BODY_LENGTH]
        body = bodies.ctypes.data + rows[r, BODY_POSITION]
        crc = crc_at(body, length) if length > 0 else 0
        put32(at, size)
        put32(at + AT_MAGIC, rows[r, MAGIC])
        put32(at + AT_CRC, crc)
        put32(at + AT_QUEUE_ID, rows[r, QUEUE_ID])
        put32(at + AT_FLAG, rows[r, FLAG])
        put64(at + AT_QUEUE_OFFSET, rows[r, QUEUE_OFFSET])
        put64(at + AT_PHYSICAL_OFFSET, rows[r, STORED_OFFSET])
        put32(at + AT_SYS_FLAG, flags)
        put64(at + AT_BORN_TIME, rows[r, BORN_TIMESTAMP])
        to = at + AT_BORN_HOST
        width = LONG_HOST if flags & BORN_V6 else HOST
        copy(to, addresses.ctypes.data + hosts[r, 0], width)
        to += width
        put64(to, rows[r, STORE_TIMESTAMP])
        to += 8
        width = LONG_HOST if flags & STORE_V6 else HOST
        copy(to, addresses.ctypes.data + hosts[r, 1], width)
        to += width
        put32(to, rows[r, RECONSUME])
        put64(to + 4, rows[r, PREPARED])
        put32(to + 12, length)
        to += 16
        copy(to, body, length)
        to += length
        length = rows[r, TOPIC_LENGTH]
        if rows[r, MAGIC] == V2:
            put16(to, length)
            to += 2
        else:
            put8(to, length)
            to += 1
        copy(to, topics.ctypes.data + rows[r, TOPIC_POSITION], length)
        to += length
        length = rows[r, PROPERTIES_LENGTH]
        put16(to, length)
        copy(to + 2, texts.ctypes.data + rows[r, PROPERTIES_POSITION], length)
        if trailer != 0:
            copy(at + size - TRAILER, TRAILER_FORM.ctypes.data, TRAILER)
            value = crc_at(at, size - TRAILER)
            end = at + size - TRAILER + AT_DIGITS
            for digit in range(DIGITS):
                put8(end + digit, ZERO_DIGIT + value % 10)
                value //= 10
        rows[r, POSITION] = places[r]
