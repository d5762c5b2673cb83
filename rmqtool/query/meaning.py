"""What the fields of a record mean, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formats import crc_trailer
from formats.batch import inner_messages
from formats.commitlog import BLANK_MAGIC_CODE, SysFlag, compression_of, transaction_of
from formats.errors import FormatError
from formats.message_id import UniqueClientId
from formats.primitives import crc32_masked, host_text
from formats.properties import CRC32, UNIQ_KEY
from rmqtool.query.one_record import MAGIC_NAMES
from rmqtool.scan.bodies import BodyError, decompress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from formats.primitives import Parsed
    from formats.spans import Span
    from rmqtool.query.one_record import OneRecord, PropertyPart

PREVIEW = 60
"""characters of a body or of a value that are shown in words"""


@dataclass(frozen=True)
class FieldView:
    """One field: `length` bytes from `start` (counted in the record), its value fit for JSON, its meaning.

    property: the name of the property that it holds, "" where that cannot be known, None for other fields.
    """

    name: str
    start: int
    length: int
    value: Any
    meaning: str
    property: str | None = None


def explain(record: OneRecord, iso: Callable[[int], str]) -> list[FieldView]:
    """Every field that could be read; the properties one by one. `iso` shows epoch ms as a time."""
    views: list[FieldView] = []
    for span in record.fields:
        if span.name == "properties":
            views += [_property(record, part) for part in record.property_parts()]
            continue
        meaning = _MEANINGS.get(span.name, _nothing)(record, span.value, iso)
        views.append(FieldView(span.name, span.start, span.end - span.start, _value(span), meaning))
    return views


def _value(span: Span) -> Any:
    value = span.value
    if span.name in {"born_host", "store_host"}:
        return host_text(value.ip, value.port)
    if isinstance(value, bytes):
        return _text(value) if span.name == "topic" else None
    return int(value)


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _nothing(_record: OneRecord, _value: Parsed, _iso: Callable[[int], str]) -> str:
    return ""


def _total_size(record: OneRecord, value: int, _iso: Callable[[int], str]) -> str:
    return f"{value} bytes, ends at {record.physical_offset + value}" if record.whole else f"{value} bytes"


def _magic(_record: OneRecord, value: int, _iso: Callable[[int], str]) -> str:
    return "blank" if value == BLANK_MAGIC_CODE else MAGIC_NAMES.get(value, "no record magic")


def _body_crc(record: OneRecord, value: int, _iso: Callable[[int], str]) -> str:
    if "body" not in record.values:
        return "the body was not reached"
    body = bytes(record.values["body"])
    if not body:
        return "no body, not checked"
    computed = crc32_masked(body)
    return "ok" if computed == value else f"BAD: the body has {computed} (0x{computed:08x})"


def _number(_record: OneRecord, value: int, _iso: Callable[[int], str]) -> str:
    return str(value)


def _physical(record: OneRecord, value: int, _iso: Callable[[int], str]) -> str:
    here = record.physical_offset
    return f"{value}, where it lies" if value == here else f"{value}, but it lies at {here}"


def sys_flag_words(value: int) -> list[str]:
    """The bits that are set, by name."""
    words = [transaction_of(value).upper()] if value & SysFlag.TRANSACTION_MASK else []
    compression = compression_of(value)
    if compression is not None:
        words.append(f"COMPRESSED {compression}")
    elif value & SysFlag.COMPRESSION_MASK:
        words.append(f"compression type 0x{value & SysFlag.COMPRESSION_MASK:x} without COMPRESSED")
    names = (
        SysFlag.MULTI_TAGS,
        SysFlag.BORNHOST_V6,
        SysFlag.STOREHOST_V6,
        SysFlag.NEED_UNWRAP,
        SysFlag.INNER_BATCH,
    )
    words += [str(bit.name) for bit in names if value & bit]
    if rest := value & ~0x7FF:
        words.append(f"unknown 0x{rest & 0xFFFFFFFF:x}")
    return words


def _sys_flag(_record: OneRecord, value: int, _iso: Callable[[int], str]) -> str:
    return f"0x{value & 0xFFFFFFFF:x} {', '.join(sys_flag_words(value)) or 'no flags'}"


def _time(_record: OneRecord, value: int, iso: Callable[[int], str]) -> str:
    return iso(value)


def _host(_record: OneRecord, value: Parsed, _iso: Callable[[int], str]) -> str:
    return host_text(value.ip, value.port)


def _half(_record: OneRecord, value: int, _iso: Callable[[int], str]) -> str:
    return f"{value}, the half message" if value else "0"


def _body(record: OneRecord, value: Parsed, _iso: Callable[[int], str]) -> str:
    raw, sys_flag = bytes(value), int(record.values["sys_flag"])
    if not raw:
        return "empty"
    try:
        plain = decompress(raw, sys_flag)
    except BodyError as error:
        return f"cannot be decompressed: {error}"
    lead = "" if plain == raw else f"{compression_of(sys_flag)}, {len(plain):,} bytes plain: "
    if sys_flag & (SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP):
        return f"{lead}{_batch_words(plain)}"
    text = _text(plain)
    return f"{lead}{'binary' if text is None else _short(text)}"


def _batch_words(plain: bytes) -> str:
    count = 0
    try:
        for _ in inner_messages(plain):
            count += 1
    except FormatError as error:
        return f"a batch, {count} messages, then: {error}"
    return f"a batch of {count} messages"


def _short(text: str) -> str:
    return text if len(text) <= PREVIEW else f"{text[:PREVIEW]}…"


def _topic(_record: OneRecord, value: Parsed, _iso: Callable[[int], str]) -> str:
    return bytes(value).decode("utf-8", "backslashreplace")


_MEANINGS: dict[str, Callable[[OneRecord, Parsed, Callable[[int], str]], str]] = {
    "total_size": _total_size,
    "magic": _magic,
    "body_crc": _body_crc,
    "queue_id": _number,
    "flag": _number,
    "queue_offset": _number,
    "physical_offset": _physical,
    "sys_flag": _sys_flag,
    "born_timestamp": _time,
    "born_host": _host,
    "store_timestamp": _time,
    "store_host": _host,
    "reconsume_times": _number,
    "prepared_transaction_offset": _half,
    "body_length": _number,
    "body": _body,
    "topic_length": _number,
    "topic": _topic,
    "properties_length": _number,
}


def _property(record: OneRecord, part: PropertyPart) -> FieldView:
    segment = part.segment
    name, value = segment.name, segment.value
    if name is None or value is None:
        meaning = "separator only" if not segment.raw else "no name or no value: readers skip it"
        return FieldView("properties", part.start, part.length, None, meaning, "")
    meaning = f"{name}={_short(value)}"
    if name == CRC32:
        raw = bytes(record.values["properties"])
        state = crc_trailer.verify(record.raw, raw) if record.whole else "unknown"
        words = {"ok": "ok", "bad": "BAD"}.get(state, "not checked")
        meaning = f"{value} = {crc_trailer.value_of(value)}: {words}"
    if record.properties.get(name) != value:
        meaning += " (a later one of this name counts)"
    return FieldView(f"properties.{name}", part.start, part.length, value, meaning, name)


def unique_id_parts(text: str) -> dict[str, Any] | None:
    """The parts of a unique client id; None when it has another form.

    `time_of_month` counts from the start of a month in the client's time zone, which the id does not tell.
    """
    try:
        one = UniqueClientId.decode(text)
    except FormatError:
        return None
    host = host_text(one.ip, 0).rpartition(":")[0].strip("[]")
    return {
        "host": host,
        "pid": one.pid,
        "class_loader_hash": f"{one.class_loader_hash & 0xFFFFFFFF:08x}",
        "time_of_month_ms": one.time,
        "time_of_month": _of_month(one.time),
        "counter": one.counter,
    }


def _of_month(millis: int) -> str:
    """`day 2, 10:17:36.789`."""
    seconds, rest = divmod(millis, 1000)
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, 3600)
    return f"day {days + 1}, {hours:02d}:{seconds // 60:02d}:{seconds % 60:02d}.{rest:03d}"


def unique_ids(record: OneRecord) -> Iterator[dict[str, Any]]:
    """The parts of the record's UNIQ_KEY, when it has such a form."""
    parts = unique_id_parts(record.properties.get(UNIQ_KEY, ""))
    if parts is not None:
        yield parts
