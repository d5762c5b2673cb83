"""Sums as bars in the terminal: one line each; of hours and days a plot over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqtool.output.text import safe
from rmqtool.output.text_style import cells, fit, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rmqtool.output.text_style import TextStyle
    from rmqtool.output.times import Zone

_NAMES = ("topic", "queue_id", "tags", "host", "kind", "path", "group")
_STEPS = {"hour_timestamp": 3_600_000, "day_timestamp": 86_400_000}
_WIDTH = 100
_HEIGHT = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_RISING = " ▁▂▃▄▅▆▇█"
_SHORTEST = 10
"""columns that bars have at least; a name that leaves less has a line of its own"""


@dataclass(frozen=True)
class Bars:
    """What is drawn: `title`, and a value for each name.

    times: of a plot over time, where the first bar begins, the last one ends, and how long each is, ms.
    """

    title: str
    names: tuple[str, ...]
    values: tuple[int, ...]
    times: tuple[int, int, int] | None = None


def bars_of(rows: Sequence[Mapping[str, Any]], value: str, zone: Zone, most: int) -> Bars:
    """Bars of `value`; of hours or days one for each, also those without messages, at most `most`."""
    title = value.replace("_", " ")
    for key, step in _STEPS.items():
        if rows and key in rows[0]:
            return _over_time(rows, value, title, key, step, zone, most)
    names = tuple(" ".join(safe(str(row[key])) for key in _NAMES if key in row) for row in rows)
    return Bars(title, names, tuple(row[value] for row in rows))


def _over_time(
    rows: Sequence[Mapping[str, Any]], value: str, title: str, key: str, step: int, zone: Zone, most: int
) -> Bars:
    first = min(row[key] for row in rows)
    count = (max(row[key] for row in rows) - first) // step + 1
    together = -(-count // most)
    sums = [0] * -(-count // together)
    for row in rows:
        sums[(row[key] - first) // step // together] += row[value]
    width = step * together
    names = tuple(zone.moment(first + place * width) for place in range(len(sums)))
    unit = "hour" if step == _STEPS["hour_timestamp"] else "day"
    title = f"{title} per {unit}" if together == 1 else f"{title} per {together} {unit}s"
    return Bars(
        f"{title}, times in {zone.name}", names, tuple(sums), (first, first + width * len(sums), width)
    )


def drawn(bars: Bars, text_style: TextStyle) -> Iterator[str]:
    """Lines for a terminal; none is longer than it is wide, unless a name is."""
    yield from wrap(bars.title, text_style.width)
    if bars.times is not None:
        yield from _columns(bars, text_style)
        return
    width = text_style.width or _WIDTH
    numbers = [f"{value:,}" for value in bars.values]
    right = max(map(cells, numbers), default=0)
    left = max((cells(name) for name in bars.names), default=0)
    own_line = left + right + 2 + _SHORTEST > width
    room = width - right - 1 - (2 if own_line else left + 1)
    largest = max(bars.values, default=0)
    for name, value, number in zip(bars.names, bars.values, numbers, strict=True):
        bar = fit(_bar(value, largest, room, text_style), room)
        if own_line:
            yield text_style.paint(name, "cyan")
        lead = "  " if own_line else f"{text_style.paint(fit(name, left), 'cyan')} "
        yield f"{lead}{bar} {fit(number, right, right=True)}"


def most_columns(text_style: TextStyle) -> int:
    """Bars of a plot over time that there is room for."""
    return max((text_style.width or _WIDTH) - 14, _SHORTEST)


def _bar(value: int, largest: int, room: int, text_style: TextStyle) -> str:
    """Exact to an eighth of a column; a value that is not zero is seen."""
    eighths = max(value * room * 8 // largest, 1) if value > 0 else 0
    if not _draws_blocks(text_style):
        return "#" * -(-eighths // 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _columns(bars: Bars, text_style: TextStyle) -> Iterator[str]:
    """A column for each value, a scale at the left, and where the time begins and ends."""
    largest = max(bars.values, default=0)
    each = max(most_columns(text_style) // max(len(bars.values), 1), 1)
    each = min(each, 6)
    for row in range(_HEIGHT, 0, -1):
        scale = f"{largest:,}" if row == _HEIGHT else ""
        line = ""
        for value in bars.values:
            eighths = max(value * _HEIGHT * 8 // largest, 1) if value > 0 else 0
            part = min(max(eighths - (row - 1) * 8, 0), 8)
            mark = _RISING[part] if _draws_blocks(text_style) else "#" if part else " "
            line += mark * max(each - 1, 1) + " " * (each > 1)
        yield f"{fit(scale, 12, right=True)} |{line.rstrip()}"
    room = each * len(bars.values)
    first, last = bars.names[0], bars.names[-1]
    yield f"{fit('0', 12, right=True)} +{'-' * room}"
    yield " " * 14 + (f"{fit(first, room - cells(last))}{last}" if room > 2 * cells(last) else first)
    if room <= 2 * cells(last) and len(bars.names) > 1:
        yield " " * 14 + f"to {last}"


def _draws_blocks(text_style: TextStyle) -> bool:
    return text_style.encode("█") == "█".encode()
