"""How text is drawn for people: colour or none, how wide, in which encoding; cells of fixed width."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from typing import IO, Any

from rich.cells import cell_len, set_cell_size
from rich.color import ColorSystem
from rich.style import Style

from rmqtool.output.text import is_terminal

_USUAL = 80, 24


@dataclass(frozen=True)
class TextStyle:
    """`width` is where lines must end; None in pipes, where nothing is cut so that grep finds it.

    height: lines of the terminal, None in pipes.
    """

    color: bool = False
    width: int | None = None
    encoding: str = "utf-8"
    height: int | None = None

    @classmethod
    def of_stdout(cls, *, color: bool) -> TextStyle:
        """What standard output can show."""
        width, height = terminal_size(sys.stdout) or (None, None)
        return cls(color, width, sys.stdout.encoding or "utf-8", height)

    def paint(self, text: str, style: str) -> str:
        """`text`, which is safe already, in a style of rich such as "bold cyan"; plain without colour."""
        if not (self.color and style and text):
            return text
        return _style(style).render(text, color_system=ColorSystem.STANDARD)

    def encode(self, text: str) -> bytes:
        """Bytes for the stream; what its encoding lacks is shown as an escape."""
        return text.encode(self.encoding, "backslashreplace")


@cache
def _style(name: str) -> Style:
    return Style.parse(name)


def terminal_size(stream: IO[Any] | None) -> tuple[int, int] | None:
    """Columns and lines of the terminal that `stream` is open on; COLUMNS and LINES count if they are set."""
    if stream is None or not is_terminal(stream):
        return None
    try:
        columns, lines = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns, lines = 0, 0
    return _given("COLUMNS") or columns or _USUAL[0], _given("LINES") or lines or _USUAL[1]


def _given(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 5 else 0


def cells(text: str) -> int:
    """How many terminal columns `text` takes (a Chinese character takes two)."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, width: int, *, right: bool = False) -> str:
    """`text` padded to `width` columns; a longer one stays as it is."""
    missing = width - cells(text)
    if missing <= 0:
        return text
    return " " * missing + text if right else text + " " * missing


def shrink(text: str, width: int) -> str:
    """`text` in at most `width` columns; a longer one loses its middle, as many names differ at the end."""
    if cells(text) <= width:
        return text
    head = width // 2
    tail = width - 1 - head
    first = set_cell_size(text, head).rstrip()
    last = set_cell_size(text[::-1], tail).rstrip()[::-1] if tail > 0 else ""
    return f"{first}…{last}"


def wrap(text: str, width: int | None, lead: str = "", rest: str | None = None) -> list[str]:
    """`text` in lines of at most `width` columns, broken between words; a longer word has a line of its own.

    lead: what stands before the first line; rest: before the others, by default as many blanks. Without a
    width it is one line.
    """
    rest = " " * cells(lead) if rest is None else rest
    lines: list[str] = []
    line, empty = lead, True
    for word in text.split(" "):
        if not empty and width is not None and cells(line) + 1 + cells(word) > width:
            lines.append(line)
            line, empty = rest, True
        line += word if empty else f" {word}"
        empty = False
    return [*lines, line]
