"""Records written as the broker encodes them, and what is made for them. `encoding_python` is the twin.

`MessageExtEncoder#encode`, with a trailer `MessageDecoder#createCrc32`;
`MessageDecoder#messageProperties2String`.
"""

from __future__ import annotations

import numpy as np

from formats.commitlog import HEADERS, MAX_PROPERTIES_LENGTH, MESSAGE_MAGIC_CODE_V2, SysFlag
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
    MIN_BLANK,
    POSITION,
    PREPARED,
    PROPERTIES_LENGTH,
    PROPERTIES_POSITION,
    QUEUE_ID,
    QUEUE_OFFSET,
    RECONSUME,
    REFUSED_ILLEGAL,
    REFUSED_NOTHING,
    REFUSED_PROPERTIES_SIZE,
    STORE_SIZE,
    STORE_TIMESTAMP,
    STORED_OFFSET,
    SYS_FLAG,
    TOPIC_FIXED,
    TOPIC_LENGTH,
    TOPIC_MAGIC,
    TOPIC_NAME_AT,
    TOPIC_NAME_LENGTH,
    TOPIC_POSITION,
    TOPIC_QUEUES,
    TOPIC_TURN,
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
def put_properties(to, values, r, behind):
    """Writes the properties of message `r`; the address behind them, and whether a value has a separator."""
    uniq_at, uniq, keys_at, keys, tags_at, tags, further_at, further = values
    to, first = put_pair(to, UNIQ_KEY_NAME, uniq_at, uniq, r)
    to, second = put_pair(to, KEYS_NAME, keys_at, keys, r)
    to, third = put_pair(to, TAGS_NAME, tags_at, tags, r)
    length = further_at[r + 1] - further_at[r]
    copy(to, further.ctypes.data + further_at[r], length)
    to += length
    for i in range(behind):
        put8(to + i, 0)
    return to + behind, first or second or third


@kernel()
def prepare_rows(values, numbers, topics, limits, texts, rows, refused):
    """Fills the row of each message with all that `encode` takes but its place, and writes its properties.

    values: offsets (one more than there are messages) and bytes of bodies, unique keys, keys and tags, and of
    further properties, each of which ends with a separator. numbers: of each message the topic, the queue
    (negative for the next in turn, which is put in), the flag and the born timestamp (ms); of the last two
    none for 0 and -1. topics: `fields.TopicColumn`. limits: bytes of 0 that follow the properties, how many
    of their last bytes are not stored, `SYS_FLAG`, the longest body and record. refused: `fields.Refused`,
    before of what is refused in any case. Returns the bytes of all properties and how many messages are
    refused; -1 without room, and for offsets that are not ascending or lie outside of their bytes.
    """
    bodies_at, bodies, uniq_at, uniq, keys_at, keys, tags_at, tags, further_at, further = values
    codes, queues, flags, born = numbers
    behind, trimmed, sys_flag, most_body, most_record = limits
    count = refused.shape[0]
    if not (
        lies_within(bodies_at, bodies, count)
        and lies_within(uniq_at, uniq, count)
        and lies_within(keys_at, keys, count)
        and lies_within(tags_at, tags, count)
        and lies_within(further_at, further, count)
    ):
        return -1, 0
    names = UNIQ_KEY_NAME.shape[0] + KEYS_NAME.shape[0] + TAGS_NAME.shape[0] + 6
    room = count * (names + behind) + uniq_at[count] - uniq_at[0] + keys_at[count] - keys_at[0]
    room += tags_at[count] - tags_at[0] + further_at[count] - further_at[0]
    if room > texts.shape[0] or rows.shape[0] < count:
        return -1, 0
    pairs = uniq_at, uniq, keys_at, keys, tags_at, tags, further_at, further
    start = np.int64(texts.ctypes.data)
    to, odd = start, 0
    for r in range(count):
        code = codes[r]
        most, queue = topics[code, TOPIC_QUEUES], queues[r]
        if queue < 0:
            queue = -1
            if most >= 0:
                queue = topics[code, TOPIC_TURN] % max(most, 1)
                topics[code, TOPIC_TURN] += 1
            queues[r] = queue
        begin = to
        to, separated = put_properties(to, pairs, r, behind)
        length, body = to - begin - trimmed, bodies_at[r + 1] - bodies_at[r]
        size = topics[code, TOPIC_FIXED] + body + topics[code, TOPIC_NAME_LENGTH] + length
        why = REFUSED_NOTHING
        if refused[r] != REFUSED_NOTHING or queue >= most or separated or body > most_body:
            why = REFUSED_ILLEGAL
        elif length > MAX_PROPERTIES_LENGTH:
            why = REFUSED_PROPERTIES_SIZE
        elif size > most_record:
            why = REFUSED_ILLEGAL
        refused[r] = why
        odd += why != REFUSED_NOTHING
        rows[r, MAGIC] = topics[code, TOPIC_MAGIC]
        rows[r, STORE_SIZE] = size
        rows[r, QUEUE_ID] = queue
        rows[r, FLAG] = flags[r] if flags.shape[0] > 0 else 0
        rows[r, SYS_FLAG] = sys_flag
        rows[r, BORN_TIMESTAMP] = born[r] if born.shape[0] > 0 else -1
        rows[r, STORE_TIMESTAMP] = -1
        rows[r, RECONSUME] = 0
        rows[r, PREPARED] = 0
        rows[r, BODY_POSITION] = bodies_at[r]
        rows[r, BODY_LENGTH] = body
        rows[r, TOPIC_POSITION] = topics[code, TOPIC_NAME_AT]
        rows[r, TOPIC_LENGTH] = topics[code, TOPIC_NAME_LENGTH]
        rows[r, PROPERTIES_POSITION] = begin - start
        rows[r, PROPERTIES_LENGTH] = length
    return to - start, odd


@kernel()
def number_rows(which, following, rows, now):
    """Gives each row the next queue offset of what it belongs to, and `now` (ms) where a time is negative."""
    for r in range(which.shape[0]):
        rows[r, QUEUE_OFFSET] = following[which[r]]
        following[which[r]] += 1
        if rows[r, STORE_TIMESTAMP] < 0:
            rows[r, STORE_TIMESTAMP] = now
        if rows[r, BORN_TIMESTAMP] < 0:
            rows[r, BORN_TIMESTAMP] = now


@kernel()
def place_rows(rows, begin, free, most, places):
    """Places records one behind the other into a file with `free` bytes left, `CommitLog#doAppend`.

    begin: physical offset of the first. most: bytes at which no further one follows. places: bytes from the
    first, of each. Returns how many records and bytes.
    """
    at, count = 0, 0
    while count < places.shape[0] and at < most:
        size = rows[count, STORE_SIZE]
        if at + size + MIN_BLANK > free:
            break
        places[count] = at
        rows[count, STORED_OFFSET] = begin + at
        at += size
        count += 1
    return count, at
