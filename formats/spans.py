"""Where the fields of one value lie, as its schema says while it parses; also of a value that breaks off."""

from __future__ import annotations

from io import BytesIO
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import construct as cs

from formats.errors import FormatError
from formats.primitives import Parsed, Schema

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from formats.primitives import AnyConstruct, Container

    _Subconstruct = cs.Subconstruct[Parsed, Parsed, Parsed, Parsed]
else:
    _Subconstruct = cs.Subconstruct


class Span(NamedTuple):
    """Bytes `[start, end)` of a field, counted from the first byte of the value, and what they parse to."""

    name: str
    start: int
    end: int
    value: Parsed


class _Noted(_Subconstruct):
    """Writes down where the wrapped field began and ended."""

    def __init__(self, name: str, subcon: AnyConstruct, notes: list[Span]) -> None:
        super().__init__(subcon)
        self._label = name
        self._notes = notes

    def _parse(self, stream: IO[bytes], context: Container, path: str) -> Parsed:
        start = stream.tell()
        nested: Any = self.subcon
        value = nested._parsereport(stream, context, path)  # noqa: SLF001 - how construct nests
        self._notes.append(Span(self._label, start, stream.tell(), value))
        return value


def spans(schema: AnyConstruct, data: Buffer) -> tuple[list[Span], FormatError | None]:
    """The named fields of a `Struct` in order, and what is wrong with the value.

    With an error the list ends with the last field that could be read. FormatError is raised only for a
    schema that has no fields.
    """
    struct = schema.subcon if isinstance(schema, Schema) else schema
    if not isinstance(struct, cs.Struct):
        raise FormatError("has no fields")
    fields: list[Any] = struct.subcons
    notes: list[Span] = []
    members = [
        member.name / _Noted(member.name, member.subcon, notes) if member.name else member
        for member in fields
    ]
    try:
        Schema(cs.Struct(*members)).parse_stream(BytesIO(bytes(data)))
    except FormatError as error:
        return notes, error
    return notes, None
