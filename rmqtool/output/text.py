"""Text that is safe to show: data never moves the cursor, changes colours, hides or reorders what is near."""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import IO, Any

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def safe(text: str) -> str:
    r"""`text` with everything escaped that a terminal would not simply draw.

    Controls (C0, C1, DEL), bidirectional and zero-width formatting, lone surrogates, private and unassigned
    code points, line and paragraph separators become `\x1b`, `\u202e`, `\U000e0001`. Other spaces than
    U+0020 stay, because U+3000 is ordinary in Chinese text.
    """
    if text.isprintable():
        return text
    return text.translate(_SHOWN)


class _Shown(dict[int, str]):
    """What `safe` makes of a code point, found out once for each: a body may have millions of the same."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = char.isprintable() or unicodedata.category(char) == "Zs"
        self[code] = shown = char if plain else _escape(char)
        return shown


_SHOWN = _Shown()


def _escape(char: str) -> str:
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def color_enabled(mode: str, stream: IO[Any] | None) -> bool:
    """Whether `stream` gets colour. `mode`: always, never, auto (a terminal, no NO_COLOR, TERM not dumb)."""
    if mode != "auto":
        return mode == "always"
    if os.environ.get("NO_COLOR") or is_dumb():
        return False
    return is_terminal(stream)


def is_terminal(stream: IO[Any] | None) -> bool:
    """Whether `stream` is open on a terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def is_dumb() -> bool:
    """Whether the terminal has neither colours nor a cursor that moves: TERM says "dumb"."""
    return os.environ.get("TERM") == "dumb"
