"""The plain-Python twin of `kernels`: same functions, same arguments, same rows, no compiler.

It answers where numba is missing, where `RMQTOOL_KERNELS=python` asks for it, and for inputs so small that
loading a compiler would take longer than reading them. It is written from the format, not from the kernels,
so that the parity tests hold two readings of the format against each other.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from formats.commitlog import BLANK_MAGIC_CODE, END_FILE_MIN_BLANK_LENGTH
from formats.commitlog import MESSAGE_MAGIC_CODE as MAGIC_V1
from formats.commitlog import MESSAGE_MAGIC_CODE_V2 as MAGIC_V2
from rmqtool.scan import fields as f
from rmqtool.scan.crc import crc32
from rmqtool.scan.fields import Check, CrcState, Field, Issue, Stop
from rmqtool.scan.legal import TOPIC_CHARACTERS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]

HAVE_ISAL = False

_MAGIC = re.compile(
    b"|".join(re.escape(struct.pack(">i", magic)) for magic in (MAGIC_V1, MAGIC_V2, BLANK_MAGIC_CODE))
)
_I8 = struct.Struct(">b")
_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_LEGAL = frozenset(TOPIC_CHARACTERS)
_LONGEST_TEXT = 2 * 0x7FFF
_ACCEPTED = -1
_KNOWN = {
    b"TAGS": Field.TAGS_POSITION,
    b"KEYS": Field.KEYS_POSITION,
    b"UNIQ_KEY": Field.UNIQ_KEY_POSITION,
}

_TEXT_LENGTHS = [Field.TAGS_LENGTH, Field.KEYS_LENGTH, Field.UNIQ_KEY_LENGTH]

_Verdict = tuple[int, int, int]


def _i32(data: memoryview, at: int) -> int:
    value: int = _I32.unpack_from(data, at)[0]
    return value


def _i64(data: memoryview, at: int) -> int:
    value: int = _I64.unpack_from(data, at)[0]
    return value


def _prefix(data: memoryview, at: int, file_left: int) -> _Verdict | None:
    """Everything that total size and magic alone decide; None when both are plausible."""
    left = len(data) - at
    if file_left < END_FILE_MIN_BLANK_LENGTH:
        return (Stop.END if file_left == 0 else Stop.SHORT), END_FILE_MIN_BLANK_LENGTH, file_left
    if left < END_FILE_MIN_BLANK_LENGTH:
        return Stop.NEED_MORE, END_FILE_MIN_BLANK_LENGTH, left
    size, magic = _i32(data, at), _i32(data, at + f.OFF_MAGIC)
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


def read_frame(  # noqa: PLR0911 - one return a rule
    data: memoryview, at: int, origin: int, file_size: int, row: Ints
) -> _Verdict:
    """See `kernels.record.frame`."""
    verdict = _prefix(data, at, file_size - origin - at)
    if verdict is not None:
        return verdict
    left = len(data) - at
    size, magic = _i32(data, at), _i32(data, at + f.OFF_MAGIC)
    width = 2 if magic == MAGIC_V2 else 1
    sys_flag = _i32(data, at + f.OFF_SYS_FLAG)
    born = f.HOST_V6_EXTRA if sys_flag & 0x10 else 0
    extra = born + (f.HOST_V6_EXTRA if sys_flag & 0x20 else 0)
    fixed = f.HEADER_SIZE + extra
    if size < fixed + width + 2:
        return Stop.BAD_SIZE, fixed + width + 2, size
    if left < fixed:
        return Stop.NEED_MORE, fixed, left
    body_length = _i32(data, at + f.OFF_BODY_LENGTH + extra)
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
        _i32(data, at + f.OFF_BODY_CRC),
        _i32(data, at + f.OFF_QUEUE_ID),
        _i32(data, at + f.OFF_FLAG),
        _i64(data, at + f.OFF_QUEUE_OFFSET),
        _i64(data, at + f.OFF_PHYSICAL_OFFSET),
        sys_flag,
        _i64(data, at + f.OFF_BORN_TIMESTAMP),
        _i64(data, at + f.OFF_STORE_TIMESTAMP + born),
        _i32(data, at + f.OFF_RECONSUME_TIMES + extra),
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
    return _ACCEPTED, size, size


def _well_formed(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _topic_issues(topic: bytes) -> Issue:
    issues = Issue(0)
    if not topic or not _LEGAL.issuperset(topic):
        issues |= Issue.TOPIC_CHARACTERS
    if b"\0" in topic:
        issues |= Issue.TOPIC_NUL
    if not _well_formed(topic):
        issues |= Issue.TOPIC_UTF8
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


def check_contents(data: memoryview, origin: int, checks: int, row: Ints) -> None:
    """See `kernels.record.contents`; nothing is left over."""
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


def walk(
    buf: Bytes,
    start: int,
    origin: int,
    file_size: int,
    segment_base: int,
    checks: int,
    rows: Ints,
    status: Ints,
) -> None:
    """See `kernels.walk`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    at = start
    verdict: _Verdict = (Stop.ROWS_FULL, 0, 0)
    count = 0
    while count < rows.shape[0]:
        row = rows[count]
        verdict = read_frame(data, at, origin, file_size, row)
        if verdict[0] != _ACCEPTED:
            break
        if row[Field.STORED_PHYSICAL_OFFSET] != segment_base + origin + at:
            row[Field.ISSUES] = Issue.OFFSET
        check_contents(data, origin, checks, row)
        at += int(row[Field.STORE_SIZE])
        count += 1
    stop = Stop.ROWS_FULL if verdict[0] == _ACCEPTED else verdict[0]
    status[:5] = (count, origin + at, stop, verdict[1], verdict[2])


def find_record(  # noqa: PLR0913, PLR0917 - as the compiled one
    buf: Bytes,
    start: int,
    origin: int,
    file_size: int,
    segment_base: int,
    shift: int,
    any_offset: int,
    rows: Ints,
    status: Ints,
) -> None:
    """See `kernels.find_record`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    row = rows[0]
    for match in _MAGIC.finditer(data, min(start + f.OFF_MAGIC, len(data))):
        at = match.start() - f.OFF_MAGIC
        stop, expected, found = read_frame(data, at, origin, file_size, row)
        if stop == Stop.NEED_MORE:
            status[:4] = (0, origin + at, Stop.NEED_MORE, expected)
            return
        if stop == Stop.BLANK and expected == found:
            status[:3] = (1, origin + at, Stop.BLANK)
            return
        place = segment_base + origin + at
        if stop == _ACCEPTED and (any_offset or row[Field.STORED_PHYSICAL_OFFSET] == place + shift):
            check_contents(data, origin, Check.ALL, row)
            # a record at its own place needs no more proof than its CRC
            wrong = any_offset and row[Field.ISSUES] & (Issue.TOPIC_UTF8 | Issue.TOPIC_CHARACTERS)
            if row[Field.CRC_STATE] != CrcState.BAD and not wrong:
                status[:3] = (1, origin + at, Stop.ROWS_FULL)
                return
    end = max(start, len(data) - END_FILE_MIN_BLANK_LENGTH + 1)
    status[:3] = (0, origin + end, Stop.END)


def first_nonzero(buf: Bytes, start: int) -> int:
    """See `kernels.first_nonzero`."""
    import numpy as np

    block = 1 << 16
    for at in range(start, buf.size, block):
        hits = np.flatnonzero(buf[at : at + block])
        if hits.size:
            return at + int(hits[0])
    return int(buf.size)


def gather(buf: Bytes, positions: Ints, lengths: Ints, offsets: Int32s, out: Bytes) -> int:
    """See `kernels.gather`."""
    total = 0
    offsets[0] = 0
    for i, (at, length) in enumerate(zip(positions.tolist(), lengths.tolist(), strict=True)):
        kept = max(length, 0)
        out[total : total + kept] = buf[at : at + kept]
        total += kept
        offsets[i + 1] = total
    return total


def property_spans(buf: Bytes, positions: Ints, lengths: Ints, spans: Ints, counts: Ints) -> int:
    """See `kernels.property_spans`."""
    total = 0
    for r, (start, length) in enumerate(zip(positions.tolist(), lengths.tolist(), strict=True)):
        pairs: dict[bytes, tuple[int, int, int, int]] = {}
        at = start
        for segment in bytes(buf[start : start + max(length, 0)]).split(b"\x02"):
            name, separator, value = segment.partition(b"\x01")
            if name and separator and value:
                first = pairs.get(name, (at,))[0]
                pairs[name] = (first, len(name), at + len(name) + 1, len(value))
            at += len(segment) + 1
        for span in pairs.values():
            spans[total] = span
            total += 1
        counts[r] = len(pairs)
    return total
