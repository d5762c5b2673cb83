"""What `rmqtool show` found, as one document of plain values, with what was to be hidden left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.output.messages import MessageShape

Row = dict[str, Any]

REDACTED = "redacted"
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


@dataclass
class FieldRows:
    """Rows of all fields, and the record's bytes with hidden ones zeroed (`raw`)."""

    rows: list[Row] = field(default_factory=list)
    raw: bytes = b""


def field_rows(
    fields: Iterable[ShownField], shape: MessageShape, raw: bytes, start: int, *, bodies: bool
) -> FieldRows:
    """`fields` as rows. start: position of the record in its file. bodies: False hides the body's bytes."""
    shown = bytearray(raw)
    rows = []
    for one in fields:
        hidden = _hidden(one, shape, bodies=bodies)
        if hidden:
            at = one.position - start
            shown[at : at + len(one.raw)] = bytes(len(one.raw))
        rows.append(
            {
                "name": one.name,
                "position": one.position,
                "length": len(one.raw),
                "hex": None if hidden else one.raw.hex(),
                "value": None if hidden else one.value,
                "meaning": hidden or one.meaning,
            }
        )
    return FieldRows(rows, bytes(shown))


def _hidden(one: ShownField, shape: MessageShape, *, bodies: bool) -> str | None:
    if one.name == "body" and "body" in shape.redacted:
        return REDACTED
    if one.name == "body" and not bodies:
        return "not shown"
    if one.name in _HOSTS and "hosts" in shape.redacted:
        return REDACTED
    if one.property is None:
        return None
    return REDACTED if "properties" in shape.redacted or one.property in shape.hidden_properties else None
