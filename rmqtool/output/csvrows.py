"""CSV by RFC 4180: a header line, fixed columns; None is an empty cell, the empty string is `""`.

It is for spreadsheets and `cut`: a row is a line, controls in text are escaped as in tables. NDJSON has the
exact text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rmqtool.output.jsonrows import encode
from rmqtool.output.rows import Rows
from rmqtool.output.text import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rmqtool.output.rows import Row, Summary
    from rmqtool.output.stream import ByteOut

_LONG = 1 << 20
"""characters of a line that is not put together before it is written"""

_FORMULA = re.compile(r"[ \u3000]*[=+\-@\t\r＝＋－＠]")  # noqa: RUF001 - full-width signs begin formulas too
"""text that spreadsheets take for a formula, or would when blanks in front are trimmed"""

_QUOTE_NEEDED = re.compile(r'[",]|^\s|\s$|^$')


class CsvRows(Rows):
    """Rows with the given columns; keys that are not columns are left out, lists and objects are JSON.

    CSV has no place for the summary: it goes to `closing`. header: False where it has been written before.
    spreadsheet: text that a spreadsheet would take for a formula gets an apostrophe in front.
    """

    def __init__(
        self,
        out: ByteOut,
        schema: str,
        columns: Sequence[str],
        closing: Callable[[Mapping[str, Any]], None],
        *,
        header: bool = True,
        spreadsheet: bool = False,
    ) -> None:
        super().__init__(out, schema)
        self._columns = tuple(columns)
        self._closing = closing
        self._header_due = header
        self._spreadsheet = spreadsheet

    def _emit(self, rows: Iterable[Row]) -> None:
        self._header()
        for row in rows:
            self._line([self._cell(row.get(name)) for name in self._columns])

    def _close(self, summary: Summary) -> None:
        self._header()
        self.out.flush()
        self._closing(summary)

    def _header(self) -> None:
        if self._header_due:
            self._header_due = False
            self._line([self._cell(name) for name in self._columns])

    def _line(self, cells: list[str]) -> None:
        # Not the csv module: before Python 3.12 it cannot tell None from "".
        if sum(map(len, cells)) < _LONG:
            self.out.write((",".join(cells) + "\r\n").encode("utf-8"))
            return
        for number, cell in enumerate(cells):
            self.out.write(b"," if number else b"")
            self.out.write(cell.encode("utf-8"))
        self.out.write(b"\r\n")

    def _cell(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            text = safe(value)
            if self._spreadsheet and _FORMULA.match(value):
                text = "'" + text
        elif isinstance(value, (list, dict)):
            text = safe(encode(value).decode("utf-8"))
        else:
            return str(value)
        return '"' + text.replace('"', '""') + '"' if _QUOTE_NEEDED.search(text) else text
