"""One record: its frame, then its body CRC and text."""

from __future__ import annotations

import numpy as np

from formats.commitlog import BLANK_MAGIC_CODE
from formats.commitlog import MESSAGE_MAGIC_CODE as MAGIC_V1
from formats.commitlog import MESSAGE_MAGIC_CODE_V2 as MAGIC_V2
from formats.crc_trailer import DIGITS, TRAILER_SIZE
from formats.properties import CRC32, NAME_SEPARATOR, PROPERTY_SEPARATOR
from rmqtool.scan.fields import COMMAND, COMMAND_AT
from rmqtool.scan.kernels.checksum import crc_at
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    ACCEPTED,
    BAD_BODY,
    BAD_MAGIC,
    BAD_PROPERTIES,
    BAD_SIZE,
    BAD_TOPIC,
    BLANK,
    BODY_CRC,
    BODY_LENGTH,
    BODY_POSITION,
    BORN_TIMESTAMP,
    CHECK_CRC,
    CHECK_TEXT,
    CRC_ABSENT,
    CRC_BAD,
    CRC_OK,
    CRC_STATE,
    CRC_UNCHECKED,
    END,
    EXCEEDS_FILE,
    FLAG,
    HEADER_SIZE,
    ISSUE_COMMAND,
    ISSUE_CRC32,
    ISSUE_NEGATIVE,
    ISSUE_NUMBER,
    ISSUE_PROPERTIES_NUL,
    ISSUE_SEALED,
    ISSUE_SYS_FLAG,
    ISSUES,
    KEYS_POSITION,
    KNOWN_FLAGS,
    MAGIC,
    MIN_BLANK,
    NEED_MORE,
    ODD,
    OFF_BODY_CRC,
    OFF_BODY_LENGTH,
    OFF_BORN_TIMESTAMP,
    OFF_FLAG,
    OFF_PHYSICAL_OFFSET,
    OFF_PREPARED,
    OFF_QUEUE_ID,
    OFF_QUEUE_OFFSET,
    OFF_RECONSUME,
    OFF_STORE_TIMESTAMP,
    OFF_SYS_FLAG,
    POSITION,
    PREPARED,
    PROPERTIES_LENGTH,
    PROPERTIES_POSITION,
    PROPERTY_COUNT,
    QUEUE_ID,
    QUEUE_OFFSET,
    RECONSUME,
    SHORT,
    SIZE_MISMATCH,
    STORE_SIZE,
    STORE_TIMESTAMP,
    STORED_OFFSET,
    SYS_FLAG,
    TAGS_POSITION,
    TOPIC_LENGTH,
    TOPIC_POSITION,
    UNIQ_POSITION,
    V6_EXTRA,
    ZERO,
)
from rmqtool.scan.kernels.intrinsics import be16, be32, be64, i8, u8, u64
from rmqtool.scan.kernels.numbers import has_odd_number
from rmqtool.scan.kernels.text import scan_clean_properties, topic_issues

COMMAND_WORD = np.uint64(int.from_bytes(COMMAND, "little"))
COMMAND_END = COMMAND_AT + len(COMMAND)
SEAL_WORD = np.uint64(int.from_bytes(CRC32.encode(), "little"))
DIGITS_AT = len(CRC32) + 1
WORD, SIGN = (1 << 32) - 1, 1 << 31


@kernel(forceinline=True)
def frame(base, at, end, origin, file_size, row):
    """Check one record at window position `at`; (ACCEPTED or a stop, expected, found).

    The order is that of `CommitLog#checkMessageAndReturnSize`, without body and text.
    """
    left = end - at
    file_left = file_size - origin - at
    if file_left < MIN_BLANK:
        return (END if file_left == 0 else SHORT), MIN_BLANK, file_left
    if left < MIN_BLANK:
        return NEED_MORE, MIN_BLANK, left
    address = base + at
    size = be32(address)
    magic = be32(address + 4)
    if magic == BLANK_MAGIC_CODE:
        return BLANK, file_left, size
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        if magic == 0 and size == 0:
            return ZERO, MAGIC_V1, 0
        return BAD_MAGIC, MAGIC_V1, magic
    width = 2 if magic == MAGIC_V2 else 1
    least = HEADER_SIZE + width + 2
    if size < least:
        return BAD_SIZE, least, size
    if size > file_left:
        return EXCEEDS_FILE, file_left, size
    if left < OFF_SYS_FLAG + 4:
        return NEED_MORE, HEADER_SIZE, left
    sys_flag = be32(address + OFF_SYS_FLAG)
    extra = (V6_EXTRA if sys_flag & 0x10 else 0) + (V6_EXTRA if sys_flag & 0x20 else 0)
    fixed = HEADER_SIZE + extra
    if size < fixed + width + 2:
        return BAD_SIZE, fixed + width + 2, size
    if left < fixed:
        return NEED_MORE, fixed, left
    body_length = be32(address + OFF_BODY_LENGTH + extra)
    body = body_length if body_length > 0 else 0
    if fixed + body + width + 2 > size:
        return BAD_BODY, size - fixed - width - 2, body_length
    # nothing after the body can be longer than two signed 16-bit lengths
    if size - fixed - body > 2 * 32767 + width + 2:
        return SIZE_MISMATCH, fixed + body + 2 * 32767 + width + 2, size
    if left < size:
        return NEED_MORE, size, left
    topic = fixed + body + width
    topic_length = be16(address + topic - 2) if width == 2 else i8(address + topic - 1)
    if topic_length < 0 or topic + topic_length + 2 > size:
        return BAD_TOPIC, size - topic - 2, topic_length
    properties = topic + topic_length + 2
    properties_length = be16(address + properties - 2)
    kept = properties_length if properties_length > 0 else 0
    if properties + kept > size:
        return BAD_PROPERTIES, size - properties, properties_length
    if properties + kept != size:
        return SIZE_MISMATCH, properties + kept, size
    position = origin + at
    row[POSITION] = position
    row[STORE_SIZE] = size
    row[MAGIC] = magic
    row[BODY_CRC] = be32(address + OFF_BODY_CRC)
    row[QUEUE_ID] = be32(address + OFF_QUEUE_ID)
    row[FLAG] = be32(address + OFF_FLAG)
    row[QUEUE_OFFSET] = be64(address + OFF_QUEUE_OFFSET)
    row[STORED_OFFSET] = be64(address + OFF_PHYSICAL_OFFSET)
    row[SYS_FLAG] = sys_flag
    row[BORN_TIMESTAMP] = be64(address + OFF_BORN_TIMESTAMP)
    born = V6_EXTRA if sys_flag & 0x10 else 0
    row[STORE_TIMESTAMP] = be64(address + OFF_STORE_TIMESTAMP + born)
    row[RECONSUME] = be32(address + OFF_RECONSUME + extra)
    row[PREPARED] = be64(address + OFF_PREPARED + extra)
    row[BODY_POSITION] = position + fixed
    row[BODY_LENGTH] = body_length
    row[TOPIC_POSITION] = position + topic
    row[TOPIC_LENGTH] = topic_length
    row[PROPERTIES_POSITION] = position + properties
    row[PROPERTIES_LENGTH] = properties_length
    row[CRC_STATE] = CRC_UNCHECKED
    row[ISSUES] = 0
    return ACCEPTED, size, size


@kernel(forceinline=True)
def contents(base, end, origin, checks, row):
    """CRC and text of a record whose frame is right. True when some text is left to `finish_odd`."""
    odd = False
    body = row[BODY_LENGTH]
    if body <= 0:
        row[CRC_STATE] = CRC_ABSENT
    elif checks & CHECK_CRC:
        good = crc_at(base + row[BODY_POSITION] - origin, body) == row[BODY_CRC]
        row[CRC_STATE] = CRC_OK if good else CRC_BAD
    if checks & CHECK_TEXT:
        topic = row[TOPIC_POSITION] - origin
        issues = topic_issues(base + topic, row[TOPIC_LENGTH], end - topic)
        row[TAGS_POSITION + 1] = -1
        row[KEYS_POSITION + 1] = -1
        row[UNIQ_POSITION + 1] = -1
        at = row[PROPERTIES_POSITION]
        length = row[PROPERTIES_LENGTH]
        pairs = 0
        if length > 0:
            place = base + at - origin
            clean, pairs, has_nul = scan_clean_properties(place, length, end - (at - origin), at, row)
            if has_nul:
                issues |= ISSUE_PROPERTIES_NUL
            if not clean:
                odd = True
                pairs = ODD
        row[PROPERTY_COUNT] = pairs
        row[ISSUES] |= issues
        odd |= issues != 0
    return odd


@kernel(forceinline=True)
def remarks(base, origin, row):
    """Issues that `Check.CONTENT` asks for besides separators in TAGS, which only odd text can have."""
    issues = 0
    if row[SYS_FLAG] & ~KNOWN_FLAGS:
        issues = ISSUE_SYS_FLAG
    if row[BODY_LENGTH] < 0 or row[PROPERTIES_LENGTH] < 0:
        issues |= ISSUE_NEGATIVE
    place = base - origin
    if row[BODY_LENGTH] >= COMMAND_END and u64(place + row[BODY_POSITION] + COMMAND_AT) == COMMAND_WORD:
        issues |= ISSUE_COMMAND
    if has_odd_number(place, row):
        issues |= ISSUE_NUMBER
    if row[PROPERTIES_LENGTH] >= TRAILER_SIZE:
        start = place + row[POSITION]
        length = row[STORE_SIZE] - TRAILER_SIZE
        trailer = start + length
        if u64(trailer) == SEAL_WORD and u8(trailer + DIGITS_AT - 1) == NAME_SEPARATOR:
            issues |= ISSUE_SEALED
            if _number(trailer + DIGITS_AT) != crc_at(start, length):
                issues |= ISSUE_CRC32
    return issues


@kernel()
def _number(digits):
    """What Java reads of them, the lowest first (`formats.crc_trailer.value_of`); -1 without an end."""
    if u8(digits + DIGITS) != PROPERTY_SEPARATOR:
        return -1
    value = 0
    for k in range(DIGITS - 1, -1, -1):
        value = (value * 10 + np.int64(u8(digits + k)) - 48) & WORD
    return value - 2 * SIGN if value & SIGN else value
