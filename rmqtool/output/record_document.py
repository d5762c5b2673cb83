"""What `rmqtool show` found, as one document of plain values, with what was to be hidden left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from formats.commitlog import MESSAGE_MAGIC_CODES
from formats.primitives import host_text
from formats.properties import KEYS, UNIQ_KEY, split_keys
from rmqtool.output.redaction import REDACTED
from rmqtool.query.locate import What
from rmqtool.scan.bodies import BodyError, decompress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.output.redaction import RecordRedaction, Redaction
    from rmqtool.query.one_record import OneRecord

Row = dict[str, Any]

_HOSTS = frozenset({"born_host", "store_host"})


@dataclass(frozen=True)
class ShownField:
    """A field with its bytes. `property` is the name of the property in it, None for other fields."""

    name: str
    position: int
    raw: bytes
    value: Any
    meaning: str
    property: str | None


@dataclass(frozen=True)
class FieldRule:
    """Which fields have no bytes to show, and why.

    rule: what is redacted of the record, None for nothing. body: is its body redacted? bodies: False leaves
    the body's bytes out without a secret in them. whole: in a record that does not hold together any field
    may hold anything but a right magic.
    """

    rule: RecordRedaction | None
    body: bool
    bodies: bool
    whole: bool
    magic: bool

    def hides(self, one: ShownField) -> str | None:
        """What to say instead of the bytes."""
        if self.rule is not None and self._redacts(one, self.rule):
            named = one.property and not self.rule.hides_name(one.property)
            return f"{one.property}={REDACTED}" if named else REDACTED
        return "not shown" if one.name == "body" and not self.bodies else None

    def _redacts(self, one: ShownField, rule: RecordRedaction) -> bool:
        if not self.whole:
            return not (self.magic and one.name == "magic")
        if one.name in {"body", "body_crc"}:
            return self.body
        if one.name in _HOSTS:
            return "hosts" in rule.what
        if one.property is None:
            return False
        # bytes that are not a property may be the rest of one
        if not one.property:
            return bool(one.raw.strip(b"\x02"))
        return rule.hides_name(one.property) or rule.hides(one.property, one.value)

    def name(self, one: ShownField) -> str:
        """The field's name; that of a property can be a secret itself."""
        if self.rule is None or not one.property:
            return one.name
        return f"properties.{self.rule.name(one.property)}"


@dataclass
class FieldRows:
    """Rows of all fields; the record's bytes with hidden ones zeroed (`raw`)."""

    rows: list[Row] = field(default_factory=list)
    raw: bytes = b""


def field_rows(fields: Iterable[ShownField], rule: FieldRule, raw: bytes, start: int) -> FieldRows:
    """`fields` as rows. start: position of the record in its file."""
    shown = bytearray(raw)
    rows = []
    for one in fields:
        hidden = rule.hides(one)
        if hidden:
            at = one.position - start
            shown[at : at + len(one.raw)] = bytes(len(one.raw))
        rows.append(
            {
                "name": rule.name(one),
                "position": one.position,
                "length": len(one.raw),
                "hex": None if hidden else one.raw.hex(),
                "value": None if hidden else one.value,
                "meaning": hidden or one.meaning,
            }
        )
    return FieldRows(rows, bytes(shown))


def rule_of(record: OneRecord, redaction: Redaction) -> RecordRedaction | None:
    """What is redacted of a record, None for nothing; of a damaged one by what of it was reached."""
    if not redaction.what:
        return None
    hosts = {
        name: host_text(record.values[name].ip, record.values[name].port) if name in record.values else None
        for name in _HOSTS
    }
    properties = record.properties
    keys = split_keys(properties.get(KEYS, ""))
    uniq_key = properties.get(UNIQ_KEY)
    return redaction.record({"topic": record.topic, **hosts, "keys": keys, "uniq_key": uniq_key})


def field_rule(record: OneRecord, rule: RecordRedaction | None, *, bodies: bool) -> FieldRule:
    """The rule for the fields of one record."""
    magic = record.values.get("magic") in MESSAGE_MAGIC_CODES or record.place.what is What.BLANK
    return FieldRule(rule, rule is not None and _hides_body(record, rule), bodies, record.whole, magic)


def _hides_body(record: OneRecord, rule: RecordRedaction) -> bool:
    sys_flag = record.values.get("sys_flag", 0)
    try:
        plain = decompress(bytes(record.values.get("body", b"")), sys_flag)
    except BodyError:
        plain = None
    return rule.hides_body(sys_flag, plain)
