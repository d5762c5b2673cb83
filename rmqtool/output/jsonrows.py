"""NDJSON (one object a line, the summary last) and JSON (one document, streamed)."""

from __future__ import annotations

import json
import re
from copy import copy
from itertools import islice, repeat
from math import isfinite
from operator import is_
from typing import TYPE_CHECKING, Any

import orjson

from rmqtool.output.int64 import as_strings, column_as_strings
from rmqtool.output.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rmqtool.output.rows import Row, Summary
    from rmqtool.output.stream import ByteOut

_CHUNK = 128
"""rows that are encoded before they go to the stream together"""


def encode(value: Any) -> bytes:
    r"""`value` as compact JSON that every reader takes.

    Lone surrogates of a file name become their escapes as text (`\udcff`), numbers that are not JSON null;
    controls and what changes the direction of text are escaped.
    """
    try:
        return _escaped(orjson.dumps(value))
    except orjson.JSONEncodeError:
        # integers of more than 64 bits too, which orjson refuses and JSON has
        shown = _encodable(value)
        made = json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return _escaped(made.encode())


_MOVING = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]")
"""DEL, C1 controls, marks, overrides and isolates of direction, line and paragraph separators, in UTF-8"""


def _escaped(made: bytes) -> bytes:
    """JSON without what a terminal obeys or draws elsewhere: it may stand raw in strings, and need not."""
    if made.isascii() and b"\x7f" not in made:
        return made
    return _MOVING.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), made)


def _encodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_encodable(name): _encodable(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encodable(item) for item in value]
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return None if isinstance(value, float) and not isfinite(value) else value


def write_document(out: ByteOut, document: Mapping[str, Any], *, int64_as_string: bool = False) -> None:
    """One object and a line feed. A value that is an iterable, and no list, is an array that streams."""
    lead = b"{"
    for name, value in document.items():
        out.write(lead + encode(name) + b":")
        lead = b","
        if value is None or isinstance(value, (str, int, float, dict, list, tuple)):
            out.write(encode(as_strings({name: value})[name] if int64_as_string else value))
            continue
        between = b"["
        rows = iter(value)
        while some := list(islice(rows, _CHUNK)):
            made = [encode(as_strings(row) if int64_as_string else row) for row in some]
            out.write(between + b",".join(made))
            between = b","
        out.write(b"[]" if between == b"[" else b"]")
    out.write(b"}\n")
    out.flush()


def _repeated(column: Iterable[Any]) -> tuple[Any] | None:
    """The value of every row, as a tuple of one; None where rows differ or cannot be looked at."""
    if isinstance(column, repeat):
        return (next(copy(column), None),)
    if not isinstance(column, list) or not column or column[0] is not column[-1]:
        return None
    first = column[0]
    return (first,) if all(map(is_, column, repeat(first))) else None


def _lines(
    names: Sequence[str], columns: Sequence[Iterable[Any]], omit_null: Collection[str]
) -> Iterator[bytes]:
    """Each row as JSON. One dict serves all rows, and only what differs between them is set again.

    The first list is always gone through, however equal its values are: it says how many rows there are.
    """
    counter = next(
        (name for name, column in zip(names, columns, strict=True) if isinstance(column, list)), None
    )
    row: Row = {}
    varying: dict[str, Iterable[Any]] = {}
    sparse: set[str] = set()
    for name, column in zip(names, columns, strict=True):
        same = None if counter in {None, name} else _repeated(column)
        if same is None:
            row[name] = None
            varying[name] = column
            if name in omit_null:
                varying[name] = known = list(column)
                if any(map(is_, known, repeat(None))):
                    sparse.add(name)
        elif same[0] is not None or name not in omit_null:
            row[name] = same[0]
    if not varying:
        # every column repeats itself, as in a batch of one row
        count = next((len(column) for column in columns if isinstance(column, list)), 0)
        yield from repeat(encode(row), count)
        return
    for values in zip(*varying.values(), strict=False):
        row.update(zip(varying, values, strict=False))
        if sparse:
            yield encode(
                {name: value for name, value in row.items() if value is not None or name not in sparse}
            )
        else:
            yield encode(row)


class NdjsonRows(Rows):
    """One object a line; the last line has type "summary"."""

    def __init__(self, out: ByteOut, schema: str, *, int64_as_string: bool = False) -> None:
        super().__init__(out, schema)
        self._strings = int64_as_string

    def write_rows(self, rows: Iterable[Row]) -> None:
        """Takes rows one by one."""
        super().write_rows(map(as_strings, rows) if self._strings else rows)

    def write_columns(
        self, names: Sequence[str], columns: Sequence[Iterable[Any]], *, omit_null: Collection[str] = ()
    ) -> None:
        """Takes many rows as columns; see `Rows.write_columns`."""
        if self._strings:
            columns = [column_as_strings(name, column) for name, column in zip(names, columns, strict=True)]
        self._write_all(_lines(names, columns, omit_null))

    def _emit(self, rows: Iterable[Row]) -> None:
        self._write_all(map(encode, rows))

    def _write_all(self, lines: Iterator[bytes]) -> None:
        while some := list(islice(lines, _CHUNK)):
            self._write_lines(some)

    def _write_lines(self, lines: list[bytes]) -> None:
        if len(lines) == 1:  # it may be one of many megabytes: no copy of it
            self.out.write(lines[0])
            self.out.write(b"\n")
        else:
            self.out.write(b"\n".join([*lines, b""]))

    def _close(self, summary: Summary) -> None:
        self._emit([self._last({"type": "summary", **summary})])

    def _last(self, summary: Summary) -> Summary:
        return as_strings(summary) if self._strings else summary


class JsonRows(NdjsonRows):
    """One document `{"schema", "rows": […], "summary": {…}}`, written as the rows come."""

    def __init__(self, out: ByteOut, schema: str, *, int64_as_string: bool = False) -> None:
        super().__init__(out, schema, int64_as_string=int64_as_string)
        self._lead = b'{"schema":' + encode(schema) + b',"rows":[\n'
        """what goes in front of the next row"""

    def _write_lines(self, lines: list[bytes]) -> None:
        self.out.write(self._lead)
        self.out.write(lines[0] if len(lines) == 1 else b",\n".join(lines))
        self._lead = b",\n"

    def _close(self, summary: Summary) -> None:
        if self._lead != b",\n":
            self.out.write(self._lead)
        self.out.write(b'\n],"summary":' + encode(self._last(summary)) + b"}\n")
