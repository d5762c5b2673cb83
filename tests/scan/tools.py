"""What the tests of the scan share: records of all kinds, kernels called, events made comparable."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fixtures.builder import FIRST_TIME
from formats.commitlog import (
    HEADERS,
    MESSAGE_MAGIC_CODE_V2,
    TOPIC_LENGTH,
    Message,
    SysFlag,
    body_crc_ok,
    encode_message,
    is_v6,
)
from formats.crc_trailer import TRAILER_SIZE, reserve, seal, value_of
from formats.primitives import crc32_masked, java_utf8_decode, sizeof
from formats.properties import decode_pairs
from rmqtool.scan.events import Blank, End, Gap, Records, Tail
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, CrcState, Field, Issue
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.bytes import MemorySource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

    from rmqtool.store.bytes import ByteSource

SCHEDULED = b"SCHEDULE_TOPIC_XXXX"
COMBINED = {SysFlag.ROLLBACK, SysFlag.TRANSACTION_MASK, SysFlag.COMPRESSION_ZLIB, SysFlag.COMPRESSION_MASK}
LEGAL = frozenset(b"%|_-") | frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
I16, I32, I64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (16, 32, 64))


def check_property(prop: Callable[..., None], *strategies: Any, examples: int) -> None:
    """Run `prop` on so many examples of the strategies."""
    chosen = settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    chosen(given(*strategies)(prop))()


# ---- strategies ----------------------------------------------------------------------------------


PLAIN = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=40)
NAMES = st.sampled_from([b"TAGS", b"KEYS", b"UNIQ_KEY", b"WAIT", b"CLUSTER", b"A", b"TAGSX", b"XTAGS"])


@st.composite
def clean_properties(draw: st.DrawFn) -> bytes:
    """Pairs as a broker writes them, with or without the last separator."""
    pairs = draw(st.lists(st.tuples(NAMES, PLAIN.map(str.encode)), max_size=8))
    raw = b"".join(name + b"\x01" + value + b"\x02" for name, value in pairs)
    return raw[:-1] if raw and draw(st.booleans()) else raw


ODD_PIECES = st.sampled_from(
    [
        b"\x01", b"\x02", b"\x00", b"TAGS", b"KEYS", b"UNIQ_KEY", b"TAGS\x01", b"\x02KEYS\x01", b"a", b"bc",
        b"\xc3\xa9", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\xff", b"\xe4\xb8\xad", b"\xe4\xb8", b"\xf4\x90",
        b"x" * 50, b"y" * 63, b"z" * 64, b"v\x01w\x02", b"UNIQ_KEY\x01ID\x02", b"TAGS\x01\x02",
        b"\x01KEYS\x02",
    ]
)  # fmt: skip


def odd_properties() -> st.SearchStrategy[bytes]:
    """Pieces that make trouble, in any order."""
    return st.lists(ODD_PIECES, max_size=14).map(b"".join)


@st.composite
def sized_properties(draw: st.DrawFn) -> bytes:
    """Strings whose length lies around whole blocks of 64 bytes, with a name anywhere in them."""
    size = draw(st.sampled_from([61, 62, 63, 64, 65, 66, 127, 128, 129, 192]))
    name = draw(st.sampled_from([b"TAGS", b"KEYS", b"UNIQ_KEY"]))
    at = draw(st.integers(0, size - len(name) - 2))
    before = (
        (b"a\x01" + b"b" * (at - 3) + b"\x02") if at >= 4 else b"" if at == 0 else b"q" * (at - 1) + b"\x02"
    )
    raw = before + name + b"\x01"
    return raw.ljust(size, b"v") if draw(st.booleans()) else raw.ljust(size - 1, b"v") + b"\x02"


PROPERTIES = clean_properties() | odd_properties() | sized_properties() | st.binary(max_size=150)
TOPICS = st.text(st.sampled_from("abcXYZ019%|_-"), min_size=1, max_size=70) | st.sampled_from(
    [
        "TopicTest",
        "%RETRY%g",
        "%RETRY%g+Topic",
        "rmq_sys_REVIVE_LOG_a.b",
        "",
        "a b",
        "ü",
        "topic\0nul",
        "t" * 127,
        "x" * 64,
        "[/x]\x1b[2J",
    ]
)
V4_HOSTS = st.tuples(st.binary(min_size=4, max_size=4), I32)
HOSTS = V4_HOSTS | st.tuples(st.binary(min_size=16, max_size=16), I32)
BODIES = (
    st.binary(max_size=200)
    | st.sampled_from([bytes(8) + b'{"code":', bytes(9) + b'{"code":1'])
    | st.integers(0, 5000).map(lambda n: bytes(i * 7 & 0xFF for i in range(n)))
)


@st.composite
def message_fields(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of `encode_message` except the physical offset: any values that fit the fields."""
    return {
        "topic": draw(TOPICS),
        "body": draw(BODIES),
        "properties": draw(PROPERTIES),
        "queue_id": draw(I32),
        "flag": draw(I32),
        "queue_offset": draw(I64),
        "sys_flag": draw(I32),
        "born_timestamp": draw(I64),
        "born_host": draw(HOSTS),
        "store_timestamp": draw(st.integers(FIRST_TIME, FIRST_TIME + 1000)),
        "store_host": draw(HOSTS),
        "reconsume_times": draw(I32),
        "prepared_transaction_offset": draw(I64),
        "magic": draw(st.sampled_from([None, None, MESSAGE_MAGIC_CODE_V2])),
    }


def encode_raw_topic(topic: bytes, **fields: Any) -> bytes:
    """A record whose topic is these bytes, whatever they are."""
    record = Message.parse(encode_message("x" * len(topic), **fields))
    return bytes(Message.build({**record, "topic": topic}))


@st.composite
def logs(draw: st.DrawFn, base: int = 0, max_records: int = 6) -> bytes:
    """Records behind each other, mostly with the right physical offset."""
    data = b""
    for fields in draw(st.lists(message_fields(), max_size=max_records)):
        right = draw(st.integers(0, 9)) > 0
        offset = base + len(data) if right else draw(I64)
        data += encode_message(**fields, physical_offset=offset)
        if draw(st.integers(0, 4)) == 0:
            fields["properties"] = reserve(fields["properties"])
            sealed = seal(encode_message(**fields, physical_offset=base + len(data)))
            data += sealed[:-11] + draw(st.sampled_from([sealed[-11:], sealed[-11:-1] + b"\x03", b"9" * 11]))
    return data


# ---- what construct says -------------------------------------------------------------------------


_POP_RETRY = re.compile(rb"%RETRY%[%|\w-]+\+[%|\w-]+")
_REVIVE = re.compile(rb"rmq_sys_REVIVE_LOG_[^\0-\x1f\x7f]+")


def declared_topic_issues(topic: bytes) -> Issue:
    issues = Issue(0)
    own = _POP_RETRY.fullmatch(topic) or (_REVIVE.fullmatch(topic) and not java_utf8_decode(topic)[1])
    if not topic or not (own or LEGAL.issuperset(topic)):
        issues |= Issue.TOPIC_CHARACTERS
    if java_utf8_decode(topic)[1]:
        issues |= Issue.TOPIC_UTF8
    if 0 in topic:
        issues |= Issue.TOPIC_NUL
    return issues


def declared_property_issues(raw: bytes) -> Issue:
    issues = Issue(0)
    if java_utf8_decode(raw)[1]:
        issues |= Issue.PROPERTIES_UTF8
    if 0 in raw:
        issues |= Issue.PROPERTIES_NUL
    if any(segment.raw and not segment.is_pair for segment in decode_pairs(raw)):
        issues |= Issue.PROPERTIES_SYNTAX
    return issues


def declared_spans(raw: bytes) -> list[tuple[bytes, int, int]]:
    """(name, position of the value, length of the value) of every pair."""
    spans = []
    at = 0
    for segment in decode_pairs(raw):
        if segment.is_pair:
            name, _, value = segment.raw.partition(b"\x01")
            spans.append((name, at + len(name) + 1, len(value)))
        at += len(segment.raw) + 1
    return spans


_NAMES = {
    b"TAGS": (Field.TAGS_POSITION, Field.TAGS_LENGTH),
    b"KEYS": (Field.KEYS_POSITION, Field.KEYS_LENGTH),
    b"UNIQ_KEY": (Field.UNIQ_KEY_POSITION, Field.UNIQ_KEY_LENGTH),
}


def declared_row(data: bytes, at: int, base: int = 0, checks: Check = Check.ALL) -> dict[Field, int]:
    """The row of the record at `at` by the schema of the format."""
    size = int.from_bytes(data[at : at + 4], "big")
    message = Message.parse_exact(data[at : at + size])
    body = at + sizeof(HEADERS[is_v6(message.sys_flag)])
    topic = body + max(message.body_length, 0) + sizeof(TOPIC_LENGTH[message.magic])
    properties = topic + message.topic_length + 2
    row = {
        Field.POSITION: at,
        Field.STORE_SIZE: message.total_size,
        Field.MAGIC: message.magic,
        Field.BODY_CRC: message.body_crc,
        Field.QUEUE_ID: message.queue_id,
        Field.FLAG: message.flag,
        Field.QUEUE_OFFSET: message.queue_offset,
        Field.STORED_PHYSICAL_OFFSET: message.physical_offset,
        Field.SYS_FLAG: message.sys_flag,
        Field.BORN_TIMESTAMP: message.born_timestamp,
        Field.STORE_TIMESTAMP: message.store_timestamp,
        Field.RECONSUME_TIMES: message.reconsume_times,
        Field.PREPARED_TRANSACTION_OFFSET: message.prepared_transaction_offset,
        Field.BODY_POSITION: body,
        Field.BODY_LENGTH: message.body_length,
        Field.TOPIC_POSITION: topic,
        Field.TOPIC_LENGTH: message.topic_length,
        Field.PROPERTIES_POSITION: properties,
        Field.PROPERTIES_LENGTH: message.properties_length,
    }
    crc = CrcState.OK if body_crc_ok(message) else CrcState.BAD
    crc = crc if checks & Check.CRC else CrcState.UNCHECKED
    row[Field.CRC_STATE] = CrcState.ABSENT if message.body_length <= 0 else crc
    issues = Issue(0) if message.physical_offset == base + at else Issue.OFFSET
    if checks & Check.TEXT:
        raw = bytes(message.properties)
        issues |= declared_topic_issues(bytes(message.topic)) | declared_property_issues(raw)
        spans = declared_spans(raw)
        row[Field.PROPERTY_COUNT] = len(spans)
        row |= {length: -1 for _, length in _NAMES.values()}
        for name, value, length in spans:
            if name in _NAMES:
                row[_NAMES[name][0]] = properties + value
                row[_NAMES[name][1]] = length
    if checks & Check.CONTENT:
        issues |= declared_remarks(data[at : at + size], message)
        tags = row.get(Field.TAGS_LENGTH, -1)
        start = row.get(Field.TAGS_POSITION, 0)
        issues |= Issue.SEPARATOR if 1 in data[start : start + max(tags, 0)] else Issue(0)
    row[Field.ISSUES] = int(issues)
    return row


def declared_remarks(record: bytes, message: Any) -> Issue:
    """What a verification tells of a whole record besides its text."""
    issues = Issue(0)
    if message.sys_flag & ~int(sum(set(SysFlag.__members__.values()) - COMBINED)):
        issues |= Issue.SYS_FLAG
    if bytes(message.body)[8:16] == b'{"code":':
        issues |= Issue.COMMAND
    properties = bytes(message.properties)
    if bytes(message.topic) == SCHEDULED or message.sys_flag & SysFlag.INNER_BATCH:
        named = re.findall(rb"(?:^|\x02)(DELAY|INNER_NUM|INNER_BASE)\x01([^\x02]+)", properties)
        plain = {b"DELAY": rb"\d{1,9}", b"INNER_NUM": rb"\d{1,4}", b"INNER_BASE": rb"\d{1,18}"}
        if not all(re.fullmatch(plain[name], value) for name, value in named):
            issues |= Issue.NUMBER
    if len(properties) >= TRAILER_SIZE and properties[-TRAILER_SIZE:].startswith(b"__CRC32#\x01"):
        issues |= Issue.SEALED
        value = value_of(properties[-11:-1].decode("latin-1"))
        right = properties.endswith(b"\x02") and value == crc32_masked(record[:-TRAILER_SIZE])
        issues |= Issue(0) if right else Issue.CRC32
    return issues


def declared_rows(data: bytes, base: int = 0, checks: Check = Check.ALL) -> list[dict[Field, int]]:
    """Rows of all records that `data` begins with."""
    rows: list[dict[Field, int]] = []
    at = 0
    while at < len(data):
        rows.append(declared_row(data, at, base, checks))
        at += rows[-1][Field.STORE_SIZE]
    return rows


# ---- kernels -------------------------------------------------------------------------------------


def array(data: bytes) -> np.ndarray:
    """A buffer of exactly these bytes that cannot be written."""
    return np.frombuffer(bytes(data), np.uint8)


@dataclass
class Walked:
    """What `walk` left: its rows and its status."""

    rows: list[dict[Field, int]]
    position: int
    stop: int
    expected: int
    found: int

    @property
    def status(self) -> tuple[int, int, int, int, int]:
        return len(self.rows), self.position, self.stop, self.expected, self.found


def meaning(row: np.ndarray, checks: Check = Check.ALL) -> dict[Field, int]:
    """The fields of a row that mean something: no place of an absent value, no text that nobody asked for."""
    kept = {field: int(row[field]) for field in Field}
    if not checks & Check.TEXT:
        return {field: value for field, value in kept.items() if field < Field.TAGS_POSITION}
    for place, length in _NAMES.values():
        if kept[length] < 0:
            del kept[place]
    return kept


def walk(
    kernels: ModuleType,
    data: bytes,
    *,
    start: int = 0,
    origin: int = 0,
    file_size: int | None = None,
    base: int = 0,
    checks: Check = Check.ALL,
    limit: int = 64,
) -> Walked:
    """Call `walk` on exactly these bytes. Rows are filled with rubbish before."""
    rows = np.full((limit, ROW_WIDTH), 0x5A5A5A5A, np.int64)
    status = np.full(STATUS_WIDTH, -77, np.int64)
    size = origin + len(data) if file_size is None else file_size
    kernels.walk(array(data), start, origin, size, base, int(checks), rows, status)
    count, position, stop, expected, found = status.tolist()
    return Walked([meaning(row, checks) for row in rows[:count]], position, stop, expected, found)


def find(
    kernels: ModuleType,
    data: bytes,
    *,
    start: int = 0,
    origin: int = 0,
    file_size: int | None = None,
    base: int = 0,
    shift: int = 0,
    any_offset: bool = False,
) -> tuple[int, int, int, int | None, dict[Field, int] | None]:
    """Call `find_record`: (hit, position, stop, bytes wanted if cut, row if a record was found)."""
    from rmqtool.scan.fields import Stop

    rows = np.full((1, ROW_WIDTH), 0x5A5A5A5A, np.int64)
    status = np.full(STATUS_WIDTH, -77, np.int64)
    size = origin + len(data) if file_size is None else file_size
    kernels.find_record(array(data), start, origin, size, base, shift, int(any_offset), rows, status)
    hit, position, stop, expected, _ = status.tolist()
    wanted = expected if stop == Stop.NEED_MORE else None
    row = meaning(rows[0]) if hit and stop == Stop.ROWS_FULL else None
    return hit, position, stop, wanted, row


# ---- scans ---------------------------------------------------------------------------------------


class SmallWindows(MemorySource):
    """A source that copies, with windows of a few bytes."""

    zero_copy = False

    def __init__(self, data: bytes, window_bytes: int) -> None:
        super().__init__(data)
        self.window_bytes = window_bytes


def scan(data: bytes | ByteSource, kernels: ModuleType, base: int = 0, **options: Any) -> list[Any]:
    """All events; runs of records as lists of rows, one for all that follow each other."""
    source = MemorySource(data) if isinstance(data, (bytes, bytearray)) else data
    found: list[Any] = []
    for event in SegmentScan(source, base, kernels=kernels, **options):
        if not isinstance(event, Records):
            found.append(event)
            continue
        rows = [meaning(row, options.get("checks", Check.ALL)) for row in event.rows]
        if found and isinstance(found[-1], list):
            found[-1] += rows
        else:
            found.append(rows)
    return found


def messages(events: Iterable[Any]) -> list[tuple[int, int]]:
    """(position, size) of all records."""
    return [
        (row[Field.POSITION], row[Field.STORE_SIZE])
        for event in events
        if isinstance(event, list)
        for row in event
    ]


def others(events: Iterable[Any], *kinds: type) -> list[Any]:
    """Events of these kinds, by default all but records and the end."""
    return [event for event in events if isinstance(event, kinds or (Blank, Gap, Tail))]


def spans(events: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """[start, end) of everything in the order of the events."""
    for event in events:
        if isinstance(event, list):
            for row in event:
                yield row[Field.POSITION], row[Field.POSITION] + row[Field.STORE_SIZE]
        elif not isinstance(event, End):
            yield event.position, event.position + event.length


def assert_tiles(events: list[Any], size: int) -> None:
    """One End, at the end; no byte twice, none left out."""
    assert [isinstance(event, End) for event in events] == [False] * (len(events) - 1) + [True]
    at = 0
    for start, end in spans(events):
        assert start == at
        assert end > start
        at = end
    assert at == size
