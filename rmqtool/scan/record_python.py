"""The plain-Python twin of `kernels.record` and `kernels.text`: one record, its frame and what is in it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from formats.commitlog import BLANK_MAGIC_CODE, END_FILE_MIN_BLANK_LENGTH, SysFlag
from formats.commitlog import MESSAGE_MAGIC_CODE as MAGIC_V1
from formats.commitlog import MESSAGE_MAGIC_CODE_V2 as MAGIC_V2
from formats.crc_trailer import TRAILER_SIZE, CrcTrailer, value_of
from formats.errors import FormatError
from formats.properties import CRC32, NAME_SEPARATOR
from rmqtool.scan import fields as f
from rmqtool.scan.crc import crc32
from rmqtool.scan.fields import Check, CrcState, Field, Issue, Stop
from rmqtool.scan.legal import TOPIC_CHARACTERS, made_by_broker

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_I8 = struct.Struct(">b")
_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_LEGAL = frozenset(TOPIC_CHARACTERS)
_LONGEST_TEXT = 2 * 0x7FFF
ACCEPTED = -1
_NAME_END = bytes([NAME_SEPARATOR])
_KNOWN = {
    b"TAGS": Field.TAGS_POSITION,
    b"KEYS": Field.KEYS_POSITION,
    b"UNIQ_KEY": Field.UNIQ_KEY_POSITION,
}

_TEXT_LENGTHS = [Field.TAGS_LENGTH, Field.KEYS_LENGTH, Field.UNIQ_KEY_LENGTH]

Verdict = tuple[int, int, int]


def i32(data: memoryview, at: int) -> int:
    """A big-endian field."""
    value: int = _I32.unpack_from(data, at)[0]
    return value


def _i64(data: memoryview, at: int) -> int:
    value: int = _I64.unpack_from(data, at)[0]
    return value


def _prefix(data: memoryview, at: int, file_left: int) -> Verdict | None:
    """Everything that total size and magic alone decide; None when both are plausible."""
    left = len(data) - at
    if file_left < END_FILE_MIN_BLANK_LENGTH:
        return (Stop.END if file_left == 0 else Stop.SHORT), END_FILE_MIN_BLANK_LENGTH, file_left
    if left < END_FILE_MIN_BLANK_LENGTH:
        return Stop.NEED_MORE, END_FILE_MIN_BLANK_LENGTH, left
    size, magic = i32(data, at), i32(data, at + f.OFF_MAGIC)
    if magic == BLANK_MAGIC_CODE:
        return Stop.BLANK, file_left, size
    if magic not in (MAGIC_V1, MAGIC_V2):
        return (Stop.ZERO, MAGIC_V1, 0) if size == magic == 0 else (Stop.BAD_MAGIC, MAGIC_V1, magic)
    least = f.HEADER_SIZE + (2 if magic == MAGIC_V2 else 1) + 2
    if size < least:
        return Stop.BAD_SIZE, least, size
    if size > file_left:
        return Stop.EXCEEDS_FILE, file_left, size
    if left < f.OFF_SYS_FLAG + 4:
        return Stop.NEED_MORE, f.HEADER_SIZE, left
    return None


def frame(  # noqa: PLR0911 - one return a rule
    data: memoryview, at: int, origin: int, file_size: int, row: Ints
) -> Verdict:
    """See `kernels.record.frame`."""
    verdict = _prefix(data, at, file_size - origin - at)
    if verdict is not None:
        return verdict
    left = len(data) - at
    size, magic = i32(data, at), i32(data, at + f.OFF_MAGIC)
    width = 2 if magic == MAGIC_V2 else 1
    sys_flag = i32(data, at + f.OFF_SYS_FLAG)
    born = f.HOST_V6_EXTRA if sys_flag & 0x10 else 0
    extra = born + (f.HOST_V6_EXTRA if sys_flag & 0x20 else 0)
    fixed = f.HEADER_SIZE + extra
    if size < fixed + width + 2:
        return Stop.BAD_SIZE, fixed + width + 2, size
    if left < fixed:
        return Stop.NEED_MORE, fixed, left
    body_length = i32(data, at + f.OFF_BODY_LENGTH + extra)
    body = max(body_length, 0)
    if fixed + body + width + 2 > size:
        return Stop.BAD_BODY_LENGTH, size - fixed - width - 2, body_length
    longest = fixed + body + width + _LONGEST_TEXT + 2
    if size > longest:
        return Stop.SIZE_MISMATCH, longest, size
    if left < size:
        return Stop.NEED_MORE, size, left
    topic = fixed + body + width
    reader = _I16 if width == 2 else _I8
    (topic_length,) = reader.unpack_from(data, at + topic - width)
    if topic_length < 0 or topic + topic_length + 2 > size:
        return Stop.BAD_TOPIC_LENGTH, size - topic - 2, topic_length
    properties = topic + topic_length + 2
    (properties_length,) = _I16.unpack_from(data, at + properties - 2)
    end = properties + max(properties_length, 0)
    if end > size:
        return Stop.BAD_PROPERTIES_LENGTH, size - properties, properties_length
    if end != size:
        return Stop.SIZE_MISMATCH, end, size
    position = origin + at
    row[: Field.CRC_STATE] = (
        position,
        size,
        magic,
        i32(data, at + f.OFF_BODY_CRC),
        i32(data, at + f.OFF_QUEUE_ID),
        i32(data, at + f.OFF_FLAG),
        _i64(data, at + f.OFF_QUEUE_OFFSET),
        _i64(data, at + f.OFF_PHYSICAL_OFFSET),
        sys_flag,
        _i64(data, at + f.OFF_BORN_TIMESTAMP),
        _i64(data, at + f.OFF_STORE_TIMESTAMP + born),
        i32(data, at + f.OFF_RECONSUME_TIMES + extra),
        _i64(data, at + f.OFF_PREPARED_TRANSACTION_OFFSET + extra),
        position + fixed,
        body_length,
        position + topic,
        topic_length,
        position + properties,
        properties_length,
    )
    row[Field.CRC_STATE] = CrcState.UNCHECKED
    row[Field.ISSUES] = 0
    return ACCEPTED, size, size


def _well_formed(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _topic_issues(topic: bytes) -> Issue:
    if topic and _LEGAL.issuperset(topic):
        return Issue(0)
    if not _well_formed(topic):
        issues = Issue.TOPIC_CHARACTERS | Issue.TOPIC_UTF8
    else:
        issues = Issue(0) if made_by_broker(topic) else Issue.TOPIC_CHARACTERS
    if b"\0" in topic:
        issues |= Issue.TOPIC_NUL
    return issues


def _scan_properties(raw: bytes, position: int, row: Ints) -> Issue:
    issues = Issue.PROPERTIES_NUL if b"\0" in raw else Issue(0)
    count = 0
    at = 0
    for segment in raw.split(b"\x02"):
        name, separator, value = segment.partition(b"\x01")
        if name and separator and value:
            count += 1
            if name in _KNOWN:
                row[_KNOWN[name]] = position + at + len(name) + 1
                row[_KNOWN[name] + 1] = len(value)
        elif segment:
            issues |= Issue.PROPERTIES_SYNTAX
        at += len(segment) + 1
    row[Field.PROPERTY_COUNT] = count
    if not _well_formed(raw):
        issues |= Issue.PROPERTIES_UTF8
    return issues


def _span(data: memoryview, position: int, length: int) -> memoryview:
    return data[position : position + max(length, 0)]


def contents(data: memoryview, origin: int, checks: int, row: Ints) -> None:
    """CRC and text of a record whose frame is right."""
    body_length = int(row[Field.BODY_LENGTH])
    if body_length <= 0:
        row[Field.CRC_STATE] = CrcState.ABSENT
    elif checks & Check.CRC:
        body = _span(data, int(row[Field.BODY_POSITION]) - origin, body_length)
        good = crc32(body) == row[Field.BODY_CRC]
        row[Field.CRC_STATE] = CrcState.OK if good else CrcState.BAD
    if checks & Check.TEXT:
        row[_TEXT_LENGTHS] = -1
        topic = _span(data, int(row[Field.TOPIC_POSITION]) - origin, int(row[Field.TOPIC_LENGTH]))
        position = int(row[Field.PROPERTIES_POSITION])
        raw = _span(data, position - origin, int(row[Field.PROPERTIES_LENGTH]))
        issues = _topic_issues(bytes(topic)) | _scan_properties(bytes(raw), position, row)
        row[Field.ISSUES] |= int(issues)
    if checks & Check.CONTENT:
        row[Field.ISSUES] |= int(_remarks(data, origin, checks, row.tolist()))


def _remarks(data: memoryview, origin: int, checks: int, row: list[int]) -> Issue:
    """What `Check.CONTENT` asks for."""
    issues = Issue.SYS_FLAG if row[Field.SYS_FLAG] & ~f.KNOWN_FLAGS else Issue(0)
    if row[Field.BODY_LENGTH] < 0 or row[Field.PROPERTIES_LENGTH] < 0:
        issues |= Issue.NEGATIVE
    body = _span(data, row[Field.BODY_POSITION] - origin, row[Field.BODY_LENGTH])
    if body[f.COMMAND_AT : f.COMMAND_AT + len(f.COMMAND)] == f.COMMAND:
        issues |= Issue.COMMAND
    if checks & Check.TEXT:
        tags = _span(data, row[Field.TAGS_POSITION] - origin, row[Field.TAGS_LENGTH])
        issues |= Issue.SEPARATOR if _NAME_END in bytes(tags) else Issue(0)
    topic = _span(data, row[Field.TOPIC_POSITION] - origin, row[Field.TOPIC_LENGTH])
    if row[Field.SYS_FLAG] & SysFlag.INNER_BATCH or topic == f.SCHEDULED:
        text = bytes(_span(data, row[Field.PROPERTIES_POSITION] - origin, row[Field.PROPERTIES_LENGTH]))
        issues |= Issue.NUMBER if _has_odd_number(text) else Issue(0)
    record = _span(data, row[Field.POSITION] - origin, row[Field.STORE_SIZE])
    trailer = bytes(record[-TRAILER_SIZE:])
    if row[Field.PROPERTIES_LENGTH] >= TRAILER_SIZE and trailer.startswith(CRC32.encode() + _NAME_END):
        issues |= Issue.SEALED
        if stored_crc32(trailer) != crc32(record[:-TRAILER_SIZE]):
            issues |= Issue.CRC32
    return issues


def _has_odd_number(properties: bytes) -> bool:
    values = (
        (segment[len(name) :], most)
        for segment in properties.split(b"\x02")
        for name, most in f.DIGITS_OF.items()
        if segment.startswith(name)
    )
    return any(value and (len(value) > most or not value.isdigit()) for value, most in values)


def stored_crc32(trailer: bytes) -> int | None:
    """The number in the last 20 bytes of a record; None where they do not end as a property."""
    try:
        return value_of(CrcTrailer.parse(trailer).digits.decode("latin-1"))
    except FormatError:
        return None
