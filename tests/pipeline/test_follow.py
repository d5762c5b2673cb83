"""Where a moving log may be read up to, and where reading begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqtool.api import open_store, scan
from rmqtool.errors import StoreIOError, UsageError
from rmqtool.pipeline.follow import parts_between, starting_offset
from rmqtool.pipeline.stream_options import parse_start, parse_stream_options
from rmqtool.scan.follower import LogFollower

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

SEGMENT = 32768


@pytest.fixture
def root(fresh_golden: Callable[[str], fixtures.Golden]) -> Path:
    return fresh_golden("v498-basic").path


def offsets(root: Path) -> list[tuple[int, int, int]]:
    """Offset, end and store time of every record."""
    columns = ("physical_offset", "store_size", "store_timestamp")
    rows = [row for batch in scan(open_store(root), columns=columns) for row in batch.to_pylist()]
    return [(row[columns[0]], row[columns[0]] + row[columns[1]], row[columns[2]]) for row in rows]


def test_the_end_is_behind_the_last_whole_record(root: Path) -> None:
    log = LogFollower(open_store(root))
    records = offsets(root)
    end = records[-1][1]
    assert log.whole_end(0) == log.whole_end(end) == end
    assert log.whole_end(records[-2][1]) == end
    with pytest.raises(StoreIOError, match="although it was read up to 999999999"):
        log.whole_end(999_999_999)


def test_a_record_that_is_half_written_waits(root: Path) -> None:
    log = LogFollower(open_store(root))
    (start, end, _), last = offsets(root)[-1], log.segments[-1]
    path = last.file.absolute
    whole = path.read_bytes()
    half = (start + end) // 2 - last.base
    path.write_bytes(whole[:half] + bytes(len(whole) - half))
    assert log.whole_end(last.base) == start
    # one whose body is not there yet, although its length is
    body = start + 88 - last.base
    path.write_bytes(whole[:body] + bytes(1) + whole[body + 1 :])
    assert log.whole_end(last.base) == start
    path.write_bytes(whole)
    assert log.whole_end(start) == end


def test_a_segment_without_data_is_no_end(root: Path) -> None:
    end = offsets(root)[-1][1]
    (root / "commitlog" / f"{4 * SEGMENT:020d}").write_bytes(bytes(SEGMENT))
    assert LogFollower(open_store(root)).whole_end(0) == end


def test_limits_end_behind_a_record(root: Path) -> None:
    log = LogFollower(open_store(root))
    records = offsets(root)
    end = records[-1][1]
    ends = {one[1] for one in records} | {one.end for one in log.segments}
    for most in (700, 5000, SEGMENT, 50_000, 10**9):
        at, steps = 0, 0
        while at < end:
            behind = log.end_within(at, end, most)
            assert behind > at
            assert behind in ends
            inside = [one for one in records if at <= one[0] < behind]
            assert len(inside) < 2 or inside[-1][1] - at <= most  # behind them there is but a filler
            at, steps = behind, steps + 1
        assert at == end
        assert steps == 1 or most < end


def test_starts(root: Path) -> None:
    log = LogFollower(open_store(root))
    records = offsets(root)
    end = records[-1][1]
    assert starting_offset(log, "earliest") == 0
    assert starting_offset(log, "latest") == end
    assert starting_offset(log, records[7][0]) == records[7][0]
    assert starting_offset(log, records[7][0] + 1) == records[8][0]
    assert starting_offset(log, end) == end
    with pytest.raises(UsageError, match=f"ends at {end}, before {end + 1}"):
        starting_offset(log, end + 1)
    times = [one[2] for one in records]
    for at in (times[0] - 1, times[len(times) // 2], times[-1]):
        first = next(one[0] for one in records if one[2] >= at)
        assert starting_offset(log, at, time=True) == first
    assert starting_offset(log, times[-1] + 1, time=True) == end


def test_what_is_gone_is_reported(root: Path) -> None:
    store = open_store(root)
    for number in (0, 2):
        (root / "commitlog" / f"{number * SEGMENT:020d}").unlink()
    log = LogFollower(store)
    log.look()
    assert log.missing(100, 4 * SEGMENT) == [(100, SEGMENT), (2 * SEGMENT, 3 * SEGMENT)]
    assert log.missing(SEGMENT, 2 * SEGMENT) == []
    assert log.missing(4 * SEGMENT, 5 * SEGMENT) == [(4 * SEGMENT, 5 * SEGMENT)]


def test_parts_add_up(root: Path) -> None:
    log = LogFollower(open_store(root))
    records = offsets(root)
    low, high = records[20][0], records[-5][0]
    for part_bytes in (0, 3000, 8192, 10**6):
        seen: list[int] = []
        for part, within in parts_between(log, low, high, part_bytes):
            piece = part.resolved(within)
            if piece is not None:
                seen += [
                    one for batch in scan(piece, columns=("physical_offset",))
                    for one in batch["physical_offset"].to_pylist()
                ]  # fmt: skip
        assert seen == [one[0] for one in records if low <= one[0] < high]


def test_options(root: Path) -> None:
    given = {"path": str(root), "start": "2026-11-21", "expired": "skip", "max_bytes_per_trigger": "5"}
    found = parse_stream_options(given)
    assert (found.start, found.start_is_time, found.expired, found.most) == (1795219200000, True, "skip", 5)
    assert parse_start("17") == (17, False)
    for name, value in (("start", "soon"), ("expired", "maybe"), ("max_bytes_per_trigger", "0")):
        with pytest.raises(UsageError, match=f"{name}:"):
            parse_stream_options({"path": str(root), name: value})
