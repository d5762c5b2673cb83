"""`broker.get_message`: a run of units that is answered at once, against a look at each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rmqtool.broker.get_message import GetMessageStatus, PullLimits, Run, pull
from rmqtool.broker.traits import Traits, traits_of
from rmqtool.scan.units import UNIT
from rmqtool.store.releases import RELEASES

FILE = 1000


@dataclass(frozen=True)
class Log:
    """Files of 1,000 bytes between two offsets, the last one not full."""

    low: int
    high: int

    def extent(self, physical_offset: int) -> tuple[int, int]:
        base = physical_offset // FILE * FILE
        return (base, min(base + FILE, self.high)) if self.low <= physical_offset < self.high else (0, 0)

    def holds(self, physical_offset: int, size: int) -> bool:
        base, end = self.extent(physical_offset)
        return base < end and size >= 0 and physical_offset + size <= end

    def file_behind(self, physical_offset: int) -> int:
        return physical_offset + FILE - physical_offset % FILE


@dataclass(frozen=True)
class Queue:
    """A plain queue in one file."""

    traits: Traits
    log: Log
    places: list[tuple[int, int]]
    min_offset: int
    width: int = UNIT.itemsize

    @property
    def max_offset(self) -> int:
        return len(self.places)

    def slice_from(self, offset: int, most: int) -> tuple[int, Any] | None:
        units = np.zeros(len(self.places), UNIT)
        if self.places:
            units["physical_offset"], units["size"] = zip(*self.places, strict=True)
            units["tags_code"] = range(len(units))
        return offset, units[offset : offset + most]

    def plain_from(self, offset: int, most: int) -> bytes:
        found = self.slice_from(offset, most)
        return b"" if found is None else found[1].tobytes()

    def next_file_offset(self, offset: int) -> int:
        return offset + 300


@dataclass(frozen=True)
class Limits(PullLimits):
    hot_bytes: int = field(default=1 << 40)

    @property
    def hot(self) -> int:
        return self.hot_bytes


RELEASE = st.sampled_from(RELEASES)
ORDERLY = [(1000 + 100 * number, 100) for number in range(10)]
SIZES = st.sampled_from([0, -1, 1 << 30, 100])
ODD = st.tuples(st.sampled_from([0, 950, 1000, 1450, 1950]) | st.integers(-2, 3100), SIZES)


@st.composite
def places(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Records of 100 bytes behind each other, some of them elsewhere or of another size."""
    first = draw(st.sampled_from([900, 1000, 1500]))
    found = [(first + 100 * number, 100) for number in range(draw(st.sampled_from([9, 9, 5, 1, 0])))]
    for _ in range(draw(st.sampled_from([0, 1, 1, 2])) if found else 0):
        found[draw(st.integers(0, len(found) - 1))] = draw(ODD)
    return found


OFFSETS = st.sampled_from([0, 0, 0, 1, 1, 2, -1, 8, 9, 10])
COUNTS = st.sampled_from([32, 32, 3, 1, 0, -1])
BOUNDS = st.tuples(st.sampled_from([0, 1000]), st.sampled_from([3000, 3000, 2050, 1050]))
LIMIT = st.tuples(st.sampled_from([1, 250, 500, 10_000]), st.sampled_from([0, 1, 3, 32]))
LIMITS = st.just(Limits()) | st.builds(
    Limits,
    in_memory=LIMIT,
    on_disk=LIMIT,
    filtered=st.sampled_from([0, 60, 16_000]),
    hot_bytes=st.sampled_from([0, 700, 1 << 40]),
)


@given(places(), BOUNDS, OFFSETS, COUNTS, LIMITS, RELEASE, st.just(0) | st.just(1))
@settings(max_examples=500)
@example(ORDERLY, (1000, 2000), 0, 32, Limits(), RELEASES[-1], 0)
@example([(0, 100), (100, 100)], (0, 1500), 0, 2, Limits(), RELEASES[0], 0)
def test_a_run_is_what_a_look_at_each_gives(
    found: list[tuple[int, int]],
    bounds: tuple[int, int],
    offset: int,
    count: int,
    limits: Limits,
    release: str,
    low: int,
) -> None:
    queue = Queue(traits_of(release), Log(*bounds), found, low)
    at_once = pull(queue, offset, count, None, limits)
    each = pull(queue, offset, count, lambda *_: True, limits)
    assert list(at_once.delivered) == list(each.delivered)
    for name in ("status", "next_begin_offset", "min_offset", "max_offset", "skipped", "first_skipped"):
        assert getattr(at_once, name) == getattr(each, name)
    assert at_once.suggest_pulling_from_slave == each.suggest_pulling_from_slave


def test_orderly_records_are_one_run() -> None:
    queue = Queue(traits_of(RELEASES[-1]), Log(1000, 2000), ORDERLY, 0)
    found = pull(queue, 2, 5).delivered
    assert isinstance(found, Run)
    assert found.places == ORDERLY[2:7]
    assert found[0].queue_offset == 2
    assert found[0].tags_code == 2
    assert [one.queue_offset for one in found[1:]] == [3, 4, 5, 6]
    assert pull(queue, 2, 5).status is GetMessageStatus.FOUND
