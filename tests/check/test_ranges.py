"""Ranges in and over each other: the innermost is found, and an outer one behind an inner one."""

from __future__ import annotations

import numpy as np
import pytest

from rmqtool.check.causes import Causes
from rmqtool.check.findings import finding
from rmqtool.check.ranges import Range, Ranges


def ranges(*given: tuple[int, int, str]) -> Ranges:
    made = Ranges()
    for one in given:
        made.add(*one)
    return made


def test_a_range_goes_on_behind_one_that_lies_in_it() -> None:
    made = ranges((100, 200, "outer"), (120, 130, "inner"))
    found = [made.at(offset) for offset in (99, 100, 125, 130, 199, 200)]
    assert [one and one.code for one in found] == [None, "outer", "inner", "outer", "outer", None]


def slow(given: list[Range], start: int, end: int) -> Range | None:
    return max((one for one in given if one.start < end and one.end > start), default=None)


@pytest.mark.parametrize("seed", range(20))
def test_as_a_walk_over_all_of_them(seed: int) -> None:
    random = np.random.default_rng(seed)
    made, given = Ranges(), []
    for number in range(120):
        start = int(random.integers(0, 300))
        given.append(Range(start, start + int(random.integers(1, 150)), str(number)))
        made.add(*given[-1])
        low = int(random.integers(-10, 460))
        high = low + int(random.integers(1, 20))
        assert made.over(low, high) == slow(given, low, high)
    offsets = np.arange(-5, 460)
    found = [None if at < 0 else made[at] for at in made.find(offsets).tolist()]
    assert found == [slow(given, offset, offset + 1) for offset in offsets.tolist()]


def test_a_hundred_thousand_in_one() -> None:
    made = ranges((0, 1 << 40, "outer"))
    for number in range(100_000):
        made.add(number * 100, number * 100 + 50, "inner")
        assert made.at(number * 100 + 70) == Range(0, 1 << 40, "outer")
    assert set(made.find(np.arange(70, 10_000_000, 100)).tolist()) == {1}


def test_a_range_that_explains_nothing_hides_none_around_it() -> None:
    """A record whose properties cannot be read, within a range without a record, and units within others."""
    causes = Causes()
    log, queue = "commitlog/0", {"path": "consumequeue/T/0/0", "topic": "T", "queue_id": 0}
    passed = [
        finding("CL-MAGIC", path=log, position=100, physical_offset=100, length=900),
        finding("CL-PROPERTIES", path=log, position=300, physical_offset=300, length=200),
        finding("CQ-DANGLING", **queue, position=20, physical_offset=300, length=20, queue_offset=1),
        finding("CQ-SIZE", **queue, position=40, length=400, queue_offset=2),
        finding("CQ-SHIFT", **queue, position=60, length=100, queue_offset=3),
        finding("CQ-SHIFT", **queue, position=80, length=20, queue_offset=4),
    ]
    reported = [one.caused_by for one in causes.with_causes(passed)]
    assert reported == [None, None, "CL-MAGIC", None, "CQ-SIZE", "CQ-SIZE"]


def test_a_range_behind_every_offset() -> None:
    """The name of a file may be so large that what is in it lies beyond a long."""
    ranges = Ranges()
    ranges.add(10, 20, "CL-MAGIC")
    ranges.add(2**63 + 5, 2**63 + 9, "CL-MAGIC")
    assert ranges.find(np.array([15, 30, 2**63 - 1])).tolist() == [0, -1, -1]
