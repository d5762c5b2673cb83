"""Records written as the broker encodes them, and what is made for them. `encoding_python` is the twin.

`MessageExtEncoder#encode`, with a trailer `MessageDecoder#createCrc32`;
`MessageDecoder#messageProperties2String`.
"""

from __future__ import annotations

import numpy as np

from formats.commitlog import HEADERS, MESSAGE_MAGIC_CODE_V2, SysFlag
from formats.crc_trailer import TRAILER_SIZE, CrcTrailer, build
from formats.primitives import HostV4, HostV6, offset_of, sizeof
from formats.properties import KEYS, NAME_SEPARATOR, PROPERTY_SEPARATOR, TAGS, UNIQ_KEY
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
from rmqtool.scan.kernels.intrinsics import copy, put8, put16, put32, put64, u8

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
UNIQ_KEY_NAME, KEYS_NAME, TAGS_NAME = (
    np.frombuffer(one.encode(), np.uint8) for one in (UNIQ_KEY, KEYS, TAGS)
)


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


@kernel()
def lies_within(offsets, data, count):
    """Whether `count` values, between whose offsets they lie, are all in `data`."""
    if offsets.shape[0] <= count or offsets[0] < 0 or offsets[count] > data.shape[0]:
        return False
    descending = 0
    for r in range(count):
        descending += offsets[r] > offsets[r + 1]
    return descending == 0


@kernel()
def put_pair(to, name, offsets, data, r):
    """Writes a property of message `r` where its value is not empty; the address behind it.

    And whether the value has a separator in it.
    """
    length = offsets[r + 1] - offsets[r]
    if length == 0:
        return to, False
    copy(to, name.ctypes.data, name.shape[0])
    to += name.shape[0]
    put8(to, NAME_SEPARATOR)
    to += 1
    copy(to, data.ctypes.data + offsets[r], length)
    found = 0
    for i in range(length):
        found |= u8(to + i) == PROPERTY_SEPARATOR
    put8(to + length, PROPERTY_SEPARATOR)
    return to + length + 1, found != 0


@kernel()
def join_properties(values, behind, out, places, separated):
    """Writes the properties of all messages one behind the other; how many bytes, -1 without room.

    values: offsets (one more than there are messages) and bytes of unique keys, keys and tags, and of further
    properties, each of which ends with a separator. behind: bytes of 0 that follow those of each message.
    places: where those of each begin, and the last end. separated: which have a separator in a value.
    -1 is also for offsets that are not ascending, or lie outside of their bytes.
    """
    uniq_at, uniq, keys_at, keys, tags_at, tags, further_at, further = values
    count = separated.shape[0]
    if not (
        lies_within(uniq_at, uniq, count)
        and lies_within(keys_at, keys, count)
        and lies_within(tags_at, tags, count)
        and lies_within(further_at, further, count)
    ):
        return -1
    names = UNIQ_KEY_NAME.shape[0] + KEYS_NAME.shape[0] + TAGS_NAME.shape[0] + 6
    room = count * (names + behind) + uniq_at[count] - uniq_at[0] + keys_at[count] - keys_at[0]
    room += tags_at[count] - tags_at[0] + further_at[count] - further_at[0]
    if room > out.shape[0] or places.shape[0] <= count:
        return -1
    start = np.int64(out.ctypes.data)
    to = start
    for r in range(count):
        places[r] = to - start
        to, first = put_pair(to, UNIQ_KEY_NAME, uniq_at, uniq, r)
        to, second = put_pair(to, KEYS_NAME, keys_at, keys, r)
        to, third = put_pair(to, TAGS_NAME, tags_at, tags, r)
        length = further_at[r + 1] - further_at[r]
        copy(to, further.ctypes.data + further_at[r], length)
        to += length
        for i in range(behind):
            put8(to + i, 0)
        to += behind
        separated[r] = first or second or third
    places[count] = to - start
    return to - start


@kernel()
def number_rows(which, following, numbers):
    """Numbers rows by what they belong to: each gets the next one of it, which grows."""
    for r in range(which.shape[0]):
        numbers[r] = following[which[r]]
        following[which[r]] += 1
