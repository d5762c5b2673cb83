"""The tags code of a record: hash or time of delivery."""

from __future__ import annotations

import pytest

from formats import tags_code as tc
from formats.errors import FormatError

STORED = 1700000000123


@pytest.mark.parametrize(
    ("topic", "properties", "expected"),
    [
        ("T", {}, 0),
        ("T", {"TAGS": ""}, 0),
        ("T", {"TAGS": "TagA"}, 2598919),
        ("T", {"TAGS": "payment"}, -786681338),
        ("T", {"TAGS": "TagA", "DELAY": "3"}, 2598919),
        ("T", {"TAGS": "TagA", "DELAY": "x"}, 2598919),
        ("SCHEDULE_TOPIC_XXXX", {"DELAY": "3", "TAGS": "TagA"}, 0x18BCFE58F8B),
        ("SCHEDULE_TOPIC_XXXX", {"DELAY": "1"}, STORED + 1000),
        ("SCHEDULE_TOPIC_XXXX", {"DELAY": "+18"}, STORED + 7_200_000),
        ("SCHEDULE_TOPIC_XXXX", {"DELAY": "99"}, STORED + 7_200_000),
        ("SCHEDULE_TOPIC_XXXX", {"DELAY": "0", "TAGS": "TagA"}, 2598919),
        ("SCHEDULE_TOPIC_XXXX", {"DELAY": "-1"}, 0),
        ("SCHEDULE_TOPIC_XXXX", {"TAGS": "TagA"}, 2598919),
    ],
)
def test_tags_code(topic: str, properties: dict[str, str], expected: int) -> None:
    assert tc.tags_code_of(topic, properties, STORED) == expected


@pytest.mark.parametrize("value", ["", "x", "1.0", " 1", "1_0", "2147483648", "-2147483649", "9" * 5000])
def test_delays_that_java_refuses(value: str) -> None:
    with pytest.raises(FormatError) as caught:
        tc.tags_code_of("SCHEDULE_TOPIC_XXXX", {"DELAY": value}, STORED)
    assert caught.value.path == "DELAY"


def test_default_levels() -> None:
    levels = tc.parse_delay_levels()
    assert [levels[n] for n in (1, 2, 3, 4, 5, 14, 15, 16, 17, 18)] == [
        1000, 5000, 10_000, 30_000, 60_000, 600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000
    ]  # fmt: skip
    assert len(levels) == 18


def test_other_levels() -> None:
    levels = tc.parse_delay_levels("2s 1d")
    assert levels == {1: 2000, 2: 86_400_000}
    assert tc.tags_code_of("SCHEDULE_TOPIC_XXXX", {"DELAY": "18"}, 0, levels) == 86_400_000
    assert tc.deliver_time(7, STORED, levels) == STORED + 1000


@pytest.mark.parametrize("text", ["", "1", "s", "1x", "1s  2s", "1s 2", "xs"])
def test_levels_that_are_none(text: str) -> None:
    with pytest.raises(FormatError):
        tc.parse_delay_levels(text)
