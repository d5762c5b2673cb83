"""How text is drawn for people: colour or none, how wide, in which encoding; cells of fixed width."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from functools import cache

from rich.cells import cell_len, set_cell_size
from rich.color import ColorSystem
from rich.style import Style

from rmqtool.output.text import is_terminal


@dataclass(frozen=True)
class Look:
    """`width` is where lines must end; None in pipes, where nothing is cut so that grep finds it."""

    color: bool = False
    width: int | None = None
    encoding: str = "utf-8"

    @classmethod
    def of_stdout(cls, *, color: bool) -> Look:
        """What standard output can show."""
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
        return cls(color, width, sys.stdout.encoding or "utf-8")

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


def cells(text: str) -> int:
    """How many terminal columns `text` takes (a Chinese character takes two)."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, width: int, *, right: bool = False) -> str:
    """`text` padded to `width` columns; a longer one stays as it is."""
    missing = width - cells(text)
    if missing <= 0:
        return text
    return " " * missing + text if right else text + " " * missing


def crop(text: str, width: int) -> str:
    """`text` cut to at most `width` columns, the cut shown by an ellipsis."""
    return text if cells(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"
