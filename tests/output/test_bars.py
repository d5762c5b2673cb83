"""Bars: a line each, whole labels, a value beside each, the terminal's width."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.output.bars import bars_of, drawn, most_columns
from rmqtool.output.bars_file import MOST, svg
from rmqtool.output.text_style import TextStyle, cells
from rmqtool.output.times import zone_of

HOUR = 3_600_000
UTC = zone_of("UTC")


@given(
    st.lists(st.tuples(st.text("abT_订%", min_size=1, max_size=60), st.integers(0, 1 << 62)), min_size=1),
    st.sampled_from([40, 80, 200]),
)
def test_every_bar_is_there_with_label_and_value(rows: list[tuple[str, int]], width: int) -> None:
    bars = bars_of([{"topic": name, "messages": value} for name, value in rows], "messages", UTC, 100)
    lines = list(drawn(bars, TextStyle(width=width)))[1:]
    text = "\n".join(lines)
    assert all(name in text and f"{value:,}" in text for name, value in rows)
    assert len(lines) in {len(rows), 2 * len(rows)}
    labels = {name for name, _ in rows}
    assert all(cells(line) <= width or line in labels for line in lines)


def test_bars_are_in_proportion() -> None:
    rows = [{"topic": f"T{value}", "messages": value} for value in (800, 400, 1, 0)]
    lines = list(drawn(bars_of(rows, "messages", UTC, 9), TextStyle(width=80)))[1:]
    full, half, one, none = (line.count("█") for line in lines)
    assert full == pytest.approx(2 * half, abs=1)
    assert (one, none) == (0, 0)
    assert "▏" in lines[2]
    assert not set("▏▎▍▌▋▊▉") & set(lines[3])
    ascii_only = list(drawn(bars_of(rows, "messages", UTC, 9), TextStyle(width=80, encoding="ascii")))
    assert all(line.isascii() for line in ascii_only)


@pytest.mark.parametrize("hours", [1, 2, 30, 500, 10**8])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_time_goes_on_where_nothing_was_stored(hours: int, width: int) -> None:
    rows = [{"hour_timestamp": HOUR * hour, "messages": hour % 7 + 1} for hour in {0, hours // 2, hours - 1}]
    text_style = TextStyle(width=width)
    bars = bars_of(rows, "messages", UTC, most_columns(text_style))
    assert sum(bars.values) == sum(row["messages"] for row in rows)
    assert len(bars.values) <= most_columns(text_style)
    assert bars.times is not None
    assert bars.times[1] - bars.times[0] >= HOUR * hours
    lines = list(drawn(bars, text_style))
    assert all(cells(line) <= width for line in lines)
    assert bars.names[0] in "\n".join(lines)


def test_a_picture_has_every_value() -> None:
    rows = [{"topic": "<T&>", "messages": 5}, {"topic": "U", "messages": 0}]
    root = ET.fromstring(svg(bars_of(rows, "messages", UTC, MOST)))
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["messages", "<T&>", "5", "U", "0"]
    hours = [{"hour_timestamp": HOUR * hour, "messages": hour} for hour in range(9)]
    drawn_hours = ET.fromstring(svg(bars_of(hours, "messages", UTC, MOST)))
    tall = [float(one.attrib["height"]) for one in drawn_hours.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert all(low < high for low, high in pairwise(tall))
