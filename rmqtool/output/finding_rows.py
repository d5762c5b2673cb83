"""Findings for people: on a terminal a block each, broken between words; in pipes a line each, for grep."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Any

from rmqtool.output.grid import ABSENT, Column
from rmqtool.output.rows import Rows
from rmqtool.output.text import safe
from rmqtool.output.text_style import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rmqtool.output.rows import Row, Summary
    from rmqtool.output.stream import ByteOut
    from rmqtool.output.text_style import TextStyle

COLUMNS = (
    Column("severity", style="yellow"),
    Column("code", style="bold"),
    Column("path"),
    Column("position", right=True),
    Column("physical_offset", "offset", right=True),
    Column("message"),
    Column("hint"),
)
CSV_COLUMNS = ("severity", "code", "path", "position", "length", "physical_offset", "message")
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_OF_FILE = re.compile(r"rmqtool dump of (the|a) file")
_PLACE = re.compile(r"\b(STORE|OFFSET|TOPIC)\b")


class FindingBlocks(Rows):
    """One block a finding: severity, code and place, what is wrong, and behind `→` what to do.

    stores: as they were named in the call; of several each row says its own.
    """

    def __init__(
        self,
        out: ByteOut,
        schema: str,
        text_style: TextStyle,
        closing: Callable[[Mapping[str, Any]], None],
        stores: Sequence[str],
    ) -> None:
        super().__init__(out, schema)
        self._text_style = text_style
        self._closing = closing
        self._stores = stores
        self._begun = False

    def _emit(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if self._begun:
                self._line("")
            self._begun = True
            severity, style = row["severity"], _STYLES.get(row["severity"], "")
            head = f"{severity:<7}  {row['code']}  "
            first, *more = wrap(safe(_place(row)), self._text_style.width, " " * len(head))
            self._line(self._text_style.paint(head, style) + first[len(head) :])
            for line in [*more, *wrap(safe(row["message"]), self._text_style.width, "    ")]:
                self._line(line)
            for line in (
                wrap(safe(hint_for(row, self._store_of(row))), self._text_style.width, "  → ")
                if row["hint"]
                else ()
            ):
                self._line(self._text_style.paint(line, "dim"))

    def _store_of(self, row: Row) -> str | None:
        return row.get("store") or (self._stores[0] if len(self._stores) == 1 else None)

    def _line(self, text: str) -> None:
        self.out.write(self._text_style.encode(text + "\n"))

    def _close(self, summary: Summary) -> None:
        if self._begun:
            self._line("")
        self.out.flush()
        self._closing(summary)


def hint_for(row: Row, store: str | None) -> str:
    """The hint of a finding with what its commands are about, so that they can be copied."""
    known: dict[str, str | None] = {
        "STORE": None if store is None else shlex.quote(store),
        "OFFSET": None if row["physical_offset"] is None else str(row["physical_offset"]),
        "TOPIC": None if row.get("topic") is None else shlex.quote(row["topic"]),
    }
    hint = str(row["hint"])
    if store is not None and row["path"] is not None:
        path = shlex.quote(os.path.join(store, row["path"]))
        hint = _OF_FILE.sub(lambda _: f"rmqtool dump {path}", hint)
    return _PLACE.sub(lambda found: known[found[0]] or found[0], hint)


def _place(row: Row) -> str:
    """Where it is: the file with the position in it, and the physical offset where that is another number."""
    path, position, offset = row["path"], row["position"], row["physical_offset"]
    store = f"{row['store']}: " if row.get("store") else ""
    at = "" if position is None else f" at {position}"
    if offset is None or (offset == position and path is not None and path.startswith("commitlog")):
        return f"{store}{path or ABSENT}{at}"
    return f"{store}{path or ABSENT}{at}, offset {offset}"
