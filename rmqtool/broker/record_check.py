"""One record as the broker checks it: `CommitLog#checkMessageAndReturnSize`, field by field.

The kernels read the records that are as they should be; this decides about the one where they stop, and
about those that a release or a setting may refuse though they are well formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from formats import properties as props
from formats.commitlog import BLANK_MAGIC_CODE, MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2, SysFlag
from formats.crc_trailer import TRAILER_SIZE, value_of
from formats.primitives import HostV4, HostV6, java_parse_int, java_split, java_utf8_decode, sizeof
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.scan.crc import crc32

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.traits import Traits
    from rmqtool.store.bytes import ByteSource

_HOST = sizeof(HostV4), sizeof(HostV6)
_LARGEST_ARRAY = (1 << 31) - 3
"""bytes in the largest array of a Java VM; allocating more ends the process whatever its heap"""


class StopReason(StrEnum):
    """Why recovery ends where it does."""

    ZERO_TAIL = "zero_tail"
    """size and magic are zero: the ordinary end of data"""
    BLANK = "blank"
    """a filler record, and no file behind it"""
    END = "end"
    """no room for another record in the last file"""
    BAD_MAGIC = "bad_magic"
    BAD_CRC = "bad_crc"
    BAD_SIZE = "bad_size"
    """the total size differs from the sum of the fields, is negative, or leads out of the file"""
    BAD_FIELDS = "bad_fields"
    """a field's length leads out of the record, or a number in its properties is none"""
    BAD_PROPERTY_CRC = "bad_property_crc"
    NO_DUP_INFO = "no_dup_info"
    NO_FILES = "no_files"
    TOO_LARGE = "too_large"
    """the broker would allocate more than a Java array can hold, and dies"""


ORDINARY_STOPS = frozenset({StopReason.ZERO_TAIL, StopReason.END, StopReason.BLANK, StopReason.NO_FILES})
"""ends that are not in the middle of something"""


@dataclass(frozen=True, slots=True)
class Rules:
    """What this release and these settings look at; CRCs and bodies are for recovery only."""

    traits: Traits
    settings: StartSettings
    check_crc: bool
    read_body: bool

    @property
    def check_body(self) -> bool:
        """Bodies are held against their CRC."""
        return self.check_crc and self.read_body and not self.check_property_crc

    @property
    def check_property_crc(self) -> bool:
        """Records are held against their `__CRC32#` instead."""
        return self.check_crc and self.settings.force_property_crc and self.traits.property_crc

    @property
    def check_duplication(self) -> bool:
        """Properties must hold DUP_INFO; dispatching after recovery, which reads no bodies, does not ask."""
        return self.read_body and self.settings.duplication and self.traits.checks_duplication


@dataclass(frozen=True, slots=True)
class Verdict:
    """The broker's answer. reason: None for a record. size: its total size; 0 a filler, -1 broken.

    consumed: bytes that were read before the answer. A broken record with size > 0 is skipped by dispatching.
    """

    reason: StopReason | None
    size: int
    consumed: int = 0


class _UnderflowError(Exception):
    """A read beyond the buffer, or a field longer than the record: an exception in Java."""


class _Cursor:
    """Reads on from one place, up to the end of what the broker has mapped."""

    def __init__(self, source: ByteSource, position: int, limit: int) -> None:
        self._source, self.start, self.at, self._limit = source, position, position, limit
        self.largest = -1

    @property
    def left(self) -> int:
        return self._limit - self.at

    def raw(self, length: int) -> bytes:
        if length > self.left:
            raise _UnderflowError
        data = self._source.window(self.at, length).tobytes()
        self.at += length
        return data

    def integer(self, length: int) -> int:
        return int.from_bytes(self.raw(length), "big", signed=True)

    def field(self, length: int) -> bytes:
        """Bytes that Java copies into a buffer as long as the record."""
        if not 0 <= length <= self.largest:
            raise _UnderflowError
        return self.raw(length)

    def skip(self, length: int) -> None:
        if length > self.left:
            raise _UnderflowError
        self.at += length

    def behind(self, back: int, length: int) -> memoryview:
        """`length` bytes that begin `back` bytes before the next one."""
        if back > self.at or length < 0:
            raise _UnderflowError
        return memoryview(self._source.window(self.at - back, length).tobytes())


def check_record(source: ByteSource, position: int, limit: int, rules: Rules) -> Verdict:
    """The broker's verdict on what begins at `position` of a file with `limit` mapped bytes."""
    cursor = _Cursor(source, position, limit)
    try:
        return _head(cursor, rules)
    except _UnderflowError:
        short = limit - position < 8
        return Verdict(StopReason.END if short else StopReason.BAD_FIELDS, -1, cursor.at - position)


def _head(cursor: _Cursor, rules: Rules) -> Verdict:
    if cursor.left <= 4 and rules.traits.record_must_fit:
        return Verdict(StopReason.END, -1)
    size = cursor.integer(4)
    rest = size - 4 if size - 4 >= -(1 << 31) else size - 4 + (1 << 32)
    if cursor.left < rest and rules.traits.record_must_fit:
        return Verdict(StopReason.BAD_SIZE, -1, 4)
    magic = cursor.integer(4)
    if magic == BLANK_MAGIC_CODE:
        return Verdict(StopReason.BLANK, 0, 8)
    if magic != MESSAGE_MAGIC_CODE and not (magic == MESSAGE_MAGIC_CODE_V2 and rules.traits.long_topics):
        zero = size == 0 and magic == 0
        return Verdict(StopReason.ZERO_TAIL if zero else StopReason.BAD_MAGIC, -1, 8)
    if size < 0:
        return Verdict(StopReason.BAD_SIZE, -1, 8)
    if size > _LARGEST_ARRAY:
        return Verdict(StopReason.TOO_LARGE, -1, 8)
    cursor.largest = size
    return _fields(cursor, rules, size, wide=magic == MESSAGE_MAGIC_CODE_V2)


def _fields(cursor: _Cursor, rules: Rules, size: int, *, wide: bool) -> Verdict:
    body_crc = cursor.integer(4)
    cursor.skip(4 + 4 + 8 + 8)
    flags = cursor.integer(4)
    cursor.skip(8)
    cursor.field(_HOST[bool(flags & SysFlag.BORNHOST_V6)])
    cursor.skip(8)
    cursor.field(_HOST[bool(flags & SysFlag.STOREHOST_V6)])
    cursor.skip(4 + 8)
    body_length = cursor.integer(4)
    if body_length > 0 and rules.read_body:
        body = cursor.field(body_length)
        if rules.check_body and crc32(memoryview(body)) != body_crc:
            return Verdict(StopReason.BAD_CRC, -1, cursor.at - cursor.start)
    elif body_length > 0:
        cursor.skip(body_length)
    topic = cursor.field(cursor.integer(2 if wide else 1))
    properties_length = cursor.integer(2)
    raw = cursor.field(properties_length) if properties_length > 0 else b""
    read = cursor.at - cursor.start
    refused = _properties(rules, topic, raw)
    if refused is not None:
        return Verdict(refused, -1, read)
    if rules.check_property_crc and not _property_crc_fits(cursor, rules, size, raw):
        return Verdict(StopReason.BAD_PROPERTY_CRC, -1, read)
    return Verdict(None, size, read) if read == size else Verdict(StopReason.BAD_SIZE, size, read)


def _properties(rules: Rules, topic: bytes, raw: bytes) -> StopReason | None:
    if not raw:
        return None
    known = props.decode(raw)
    if rules.check_duplication:
        info = known.get(props.DUP_INFO)
        if info is None or len(java_split(info, "_")) != 2:
            return StopReason.NO_DUP_INFO
    if lacks_number(topic, known, inner_batches=rules.traits.inner_batches):
        return StopReason.BAD_FIELDS
    return None


def lacks_number(topic: bytes, known: Mapping[str, str], *, inner_batches: bool) -> bool:
    """Whether a property is no number that a broker takes for one. inner_batches: of a batch queue, too."""
    delayed = props.DELAY in known and java_utf8_decode(topic)[0] == SCHEDULE_TOPIC
    if delayed and not _is_int(known[props.DELAY]):
        return True
    batch = props.INNER_NUM in known and props.INNER_BASE in known and inner_batches
    return batch and not (_is_int(known[props.INNER_NUM], 16) and _is_int(known[props.INNER_BASE], 64))


def _property_crc_fits(cursor: _Cursor, rules: Rules, size: int, raw: bytes) -> bool:
    digits = props.decode(raw).get(props.CRC32)
    expected = -1 if digits is None else value_of(digits)
    if expected < 0 or (expected == 0 and not rules.traits.property_crc_zero):
        return False
    return crc32(cursor.behind(size, size - TRAILER_SIZE)) == expected


def _is_int(text: str, bits: int = 32) -> bool:
    return java_parse_int(text, bits) is not None
