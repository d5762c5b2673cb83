"""Rows of records in doubt, however the log was cut into what reads it."""

from __future__ import annotations

from typing import Any

import pytest

from rmqtool.store.coverage import coverage
from rmqtool.store.doubts import Doubt, doubtful

GAP = {"path": "a", "position": 70, "physical_offset": 70, "length": 5, "reason": "damage"}


def row(position: int, length: int, records: int, cause: Doubt, path: str = "a") -> dict[str, Any]:
    place = {"path": path, "position": position, "physical_offset": position, "length": length}
    return place | {"reason": "damage", **doubtful(records, cause)}


@pytest.mark.parametrize("cause", list(Doubt))
def test_runs_of_a_file_and_cause_are_one_row(cause: Doubt) -> None:
    other = next(one for one in Doubt if one is not cause)
    rows = [row(10, 20, 1, cause), row(30, 9, 1, other), GAP, row(80, 10, 3, cause), row(5, 5, 2, cause, "b")]
    assert coverage(rows)["not_covered"] == [
        row(10, 80, 4, cause), row(30, 9, 1, other), GAP, row(5, 5, 2, cause, "b")
    ]  # fmt: skip
    assert coverage(coverage(rows)["not_covered"]) == coverage(rows)


def test_of_several_stores() -> None:
    rows = [row(0, 9, 1, Doubt.BODY) | {"store": name} for name in "xyx"]
    assert [one["store"] for one in coverage(rows)["not_covered"]] == ["x", "y"]


def test_whatever_words_the_system_has_stay() -> None:
    rows: list[dict[str, Any]] = [
        GAP | {"error": text} for text in ("3", "2 records torn", "", "٣ records", "2 bodies fail their CRC")
    ]
    assert coverage(rows)["not_covered"] == rows
