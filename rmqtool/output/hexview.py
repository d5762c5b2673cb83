"""Bytes with their meaning beside them: every field of a record on its own line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.output.text import safe
from rmqtool.output.text_style import cells, fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.output.text_style import TextStyle

SHORT = 8
"""a field of at most so many bytes has them on the line of its name"""
WIDE = 16
_TONES = ("green", "magenta", "blue", "yellow")
_HEX_SHORT = 3 * SHORT - 1
_HEX_WIDE = 3 * WIDE - 1
_NAME = 18
_BEFORE_NAME = 10 + 2 + _HEX_SHORT + 2
_LINE = 80
_INDENT = 12
"""a meaning that finds no room behind the name begins here, on lines of its own"""


@dataclass(frozen=True)
class HexField:
    """`length` bytes from `start` (counted from the first byte shown), their name and what they mean.

    hidden: the bytes themselves are not shown.
    """

    start: int
    length: int
    name: str
    meaning: str = ""
    hidden: bool = False


def hex_lines(
    data: bytes, fields: Iterable[HexField], text_style: TextStyle, *, base: int = 0, most: int | None = 256
) -> Iterator[str]:
    """Lines of at most 80 columns: offset, bytes, name, meaning.

    `base` is the offset that the first byte is shown with. Of a longer field than `most` bytes the rest is
    counted, not shown. Bytes that no field claims, also behind the last, appear as "unclaimed".
    """
    for number, field in enumerate(_gapless(len(data), fields)):
        yield from _field_lines(data, field, text_style, _TONES[number % len(_TONES)], base, most)


def plain_hex_lines(data: bytes, text_style: TextStyle, *, base: int = 0) -> Iterator[str]:
    """A plain dump, 16 bytes a line with the printable ASCII beside them."""
    for start in range(0, len(data), WIDE):
        yield _wide_line(data[start : start + WIDE], base + start, text_style, "")


def _gapless(size: int, fields: Iterable[HexField]) -> Iterator[HexField]:
    end = 0
    for field in sorted(fields, key=lambda item: item.start):
        if field.start > end:
            yield HexField(end, field.start - end, "unclaimed")
        yield field
        end = max(end, field.start + field.length)
    if end < size:
        yield HexField(end, size - end, "unclaimed")


def _field_lines(
    data: bytes, field: HexField, text_style: TextStyle, tone: str, base: int, most: int | None
) -> Iterator[str]:
    piece = data[field.start : field.start + field.length]
    short = len(piece) <= SHORT
    digits = " ".join(["--"] * len(piece)) if field.hidden else piece.hex(" ")
    shown = digits if short else f"{len(piece):,} bytes"
    name = text_style.paint(fit(safe(field.name), _NAME), "bold")
    offset = _offset(base + field.start, text_style)
    bytes_column = text_style.paint(fit(shown, _HEX_SHORT), tone)
    meaning = safe(field.meaning)
    taken = _BEFORE_NAME + max(_NAME, cells(safe(field.name))) + 2
    if not meaning or taken + cells(meaning) <= _LINE:
        yield f"{offset}  {bytes_column}  {name}  {meaning}".rstrip()
    else:
        yield f"{offset}  {bytes_column}  {name}".rstrip()
        for at in range(0, len(meaning), _LINE - _INDENT):
            yield " " * _INDENT + meaning[at : at + _LINE - _INDENT]
    if short or field.hidden:
        return
    bound = len(piece) if most is None else min(most, len(piece))
    for start in range(0, bound, WIDE):
        yield _wide_line(
            piece[start : min(start + WIDE, bound)], base + field.start + start, text_style, tone
        )
    if bound < len(piece):
        yield f"{' ' * 10}  … {len(piece) - bound:,} more bytes"


def _wide_line(piece: bytes, offset: int, text_style: TextStyle, tone: str) -> str:
    drawn = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)
    return f"{_offset(offset, text_style)}  {text_style.paint(fit(piece.hex(' '), _HEX_WIDE), tone)}  {drawn}"


def _offset(offset: int, text_style: TextStyle) -> str:
    return text_style.paint(f"0x{offset:08x}", "dim")
