"""Any bytes at all: each is reported once, the same through all windows, in time that grows with them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

import fixtures
from fixtures.builder import FIRST_TIME, zero_block
from formats.commitlog import Blank, encode_message
from rmqtool.scan.events import End, Gap, Tail, TailContent
from rmqtool.scan.fields import Field, Stop
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import open_source
from rmqtool.store.bytes import MemorySource, PreadSource
from rmqtool.store.mapped import MappedSource
from rmqtool.store.throttle import RateLimit, ThrottledSource
from tests.scan.handmade import BASE, MAGIC, SEGMENT, damages, handmade, spans_of
from tests.scan.test_kernels import SOUP
from tests.scan.test_walk import segments
from tests.scan.tools import SmallWindows, assert_tiles, check_property, messages, others, scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType


def test_any_bytes_are_told_once(kernels: ModuleType, effort: int) -> None:
    def prop(data: bytes, active: bool, keep_stale: bool, previous: int | None) -> None:
        events = scan(data, kernels, active=active, keep_stale=keep_stale, previous_timestamp=previous)
        assert_tiles(events, len(data))

    previous = st.none() | st.just(FIRST_TIME + 500)
    check_property(prop, SOUP, st.booleans(), st.booleans(), previous, examples=150 * effort)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 90, 91, 4096])
@pytest.mark.parametrize("fill", [0, 0xFF])
def test_files_of_odd_sizes(kernels: ModuleType, size: int, fill: int) -> None:
    data = bytes([fill]) * size
    events = scan(data, kernels)
    assert_tiles(events, size)
    assert messages(events) == []
    content = TailContent.ZERO if fill == 0 else TailContent.GARBAGE
    assert [event.content for event in others(events)] == ([content] if size else [])
    events = scan(data, kernels, active=False)
    assert_tiles(events, size)
    assert [type(event) for event in others(events)] == ([Gap] if size else [])


@pytest.mark.parametrize("size", [4, 7, 8, 90, 91])
def test_the_first_bytes_of_a_record(kernels: ModuleType, size: int) -> None:
    data = encode_message("T", b"body")[:size]
    (tail, end) = scan(data, kernels)
    assert (tail.position, tail.length, tail.content) == (0, size, TailContent.GARBAGE)
    assert end.reason == (Stop.SHORT if size < 8 else Stop.EXCEEDS_FILE)


def same(event: Any) -> Any:
    """What must not depend on windows: all but the words for a frame that a window cut."""
    framed = {Stop.SIZE_MISMATCH, Stop.BAD_TOPIC_LENGTH, Stop.BAD_PROPERTIES_LENGTH}
    if isinstance(event, (Gap, Tail, End)) and event.reason in framed:
        return type(event), event.position, getattr(event, "length", None)
    return event


@pytest.mark.share
@pytest.mark.parametrize("window", [16, 200, 300, 1000, 5000])
def test_windows_make_no_difference(kernels: ModuleType, effort: int, window: int) -> None:
    def prop(data: st.DataObject) -> None:
        sizes = data.draw(st.lists(st.integers(0, 900), min_size=1, max_size=8), label="bodies")
        _log, whole = handmade(sizes, rolled=data.draw(st.booleans(), label="closed"))
        damaged = data.draw(damages(whole, SEGMENT), label="damage").data
        active = data.draw(st.booleans(), label="active")
        expected = scan(damaged, kernels, BASE, active=active)
        found = scan(SmallWindows(damaged, window), kernels, BASE, active=active)
        assert [same(event) for event in found] == [same(event) for event in expected]

    check_property(prop, st.data(), examples=50 * effort)


def test_windows_make_no_difference_to_any_bytes(kernels: ModuleType, effort: int) -> None:
    def prop(data: bytes, window: int, active: bool) -> None:
        expected = scan(data, kernels, active=active)
        found = scan(SmallWindows(data, window), kernels, active=active)
        assert [same(event) for event in found] == [same(event) for event in expected]

    check_property(prop, SOUP, st.integers(1, 300), st.booleans(), examples=100 * effort)


def test_windows_make_no_difference_to_reasons(kernels: ModuleType) -> None:
    """A total size larger than all fields can fill, the topic length negative as well."""
    record = bytearray(encode_message("TopicTest", b"x" * 50))
    record[88 + 50] = 0xFF
    record[0:4] = (80_000).to_bytes(4, "big")
    data = bytes(record) + bytes(90_000)
    assert scan(SmallWindows(data, 300), kernels) == scan(data, kernels)


@pytest.mark.share
@pytest.mark.parametrize("step", [1, 9, 60, 500])
def test_steps_of_a_search_make_no_difference(kernels: ModuleType, effort: int, step: int) -> None:
    def prop(data: bytes, active: bool) -> None:
        expected = scan(data, kernels, active=active)
        found = scan(data, kernels, active=active, step=step)
        assert [same(event) for event in found] == [same(e) for e in expected]

    check_property(prop, SOUP, st.booleans(), examples=50 * effort)


def test_holes_are_skipped_and_nothing_with_them(kernels: ModuleType, tmp_path: Path) -> None:
    """Records and junk before, between and behind holes, each beginning with zeros on a page border."""
    page = 1 << 16
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        for number, at in enumerate([0, 8 * page, 8 * page + 300, 20 * page]):
            file.seek(at)
            file.write(encode_message("T", b"b" * 90, physical_offset=BASE + at, store_timestamp=5 + number))
        file.truncate(64 * page)
    expected = scan(path.read_bytes(), kernels, BASE)
    assert [at for at, _ in messages(expected)] == [0, 8 * page, 8 * page + 300, 20 * page]
    for mode in ("map", "pread"):
        with open_source(path, mode) as source:
            assert scan(source, kernels, BASE) == expected


def test_a_record_that_begins_with_the_last_bytes_of_a_hole(kernels: ModuleType, tmp_path: Path) -> None:
    """Its size begins with zeros, and a file system need not have stored those."""
    border = 1 << 17
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(encode_message("T", b"first", physical_offset=BASE))
        start = border - 2
        record = encode_message("T", b"b" * 90, physical_offset=BASE + start, store_timestamp=1)
        assert record[:2] == b"\0\0"
        file.seek(border)
        file.write(record[2:])
        file.truncate(border * 2)
    for mode in ("map", "pread"):
        with open_source(path, mode) as source:
            assert [at for at, _ in messages(scan(source, kernels, BASE))] == [0, start]


def test_all_sources_give_the_same(
    golden: Callable[[str], fixtures.Golden], kernels: ModuleType, tmp_path: Path
) -> None:
    base, whole = segments(golden("v533-edge"))[0]
    damaged = zero_block(whole, len(whole) // 3, 700).data
    path = tmp_path / f"{base:020d}"
    path.write_bytes(damaged)
    expected = scan(damaged, kernels, base, active=False)
    assert len(messages(expected)) > 5
    with open_source(path, "map") as mapped, open_source(path, "pread") as pread:
        assert isinstance(mapped, MappedSource)
        assert isinstance(pread, PreadSource)
        assert scan(mapped, kernels, base, active=False) == expected
        assert scan(pread, kernels, base, active=False) == expected
        pread.window_bytes = 777
        assert scan(pread, kernels, base, active=False) == expected
        pread.window_bytes = 333
        throttled = ThrottledSource(pread, RateLimit(1 << 40))
        assert scan(throttled, kernels, base, active=False) == expected


def test_runs_of_records_are_bounded(kernels: ModuleType) -> None:
    from rmqtool.scan.events import Records
    from rmqtool.scan.segment import SegmentScan
    from rmqtool.store.bytes import MemorySource

    log, whole = handmade([3] * 15, rolled=False)
    runs = [
        [int(row[Field.POSITION]) for row in event.rows]
        for event in SegmentScan(MemorySource(whole), BASE, batch_rows=4, kernels=kernels)
        if isinstance(event, Records)
    ]
    assert [len(run) for run in runs] == [4, 4, 4, 3]
    assert [at for run in runs for at in run] == [at for at, _ in spans_of(log)]


def test_a_sparse_segment_is_not_read_through(kernels: ModuleType, tmp_path: Path) -> None:
    log, whole = handmade([30] * 6, rolled=False)
    path = tmp_path / f"{BASE:020d}"
    size = 1 << 28  # in memory, where what is mapped of a hole stays
    with path.open("wb") as file:
        file.write(whole)
        file.truncate(size)
    for junk in (b"", b"junk", encode_message("T", b"old", physical_offset=3)):
        with path.open("r+b") as file:
            file.seek(size // 2)
            file.write(junk)
        for mode in ("map", "pread"):
            began = time.process_time()
            with open_source(path, mode) as source:
                events = scan(source, kernels, BASE)
            assert messages(events) == spans_of(log)
            assert_tiles(events, size)
            assert time.process_time() - began < 10
            (tail,) = others(events, Tail)
            contents = {b"": TailContent.ZERO, b"junk": TailContent.GARBAGE}
            assert tail.content is contents.get(junk, TailContent.STALE)


def seconds(data: bytes, kernels: ModuleType, **options: Any) -> float:
    best = 1e9
    for _ in range(2):
        began = time.thread_time()
        assert_tiles(scan(data, kernels, BASE, **options), len(data))
        best = min(best, time.thread_time() - began)
    return best


def foreign(count: int) -> bytes:
    """Whole records, each with another foreign offset, no two of them in one row."""
    return b"".join(
        encode_message("T", b"b" * 20, physical_offset=(number * 7919) << 20) + b"?"
        for number in range(count)
    )


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "magics": lambda n: MAGIC * (n * 30),
    "headers cut short": lambda n: (encode_message("T", b"b" * 40)[:60] + b"?") * (n * 2),
    "sizes that reach to the end": lambda n: b"".join(
        (120 * (n - at)).to_bytes(4, "big") + MAGIC + b"\1" * 112 for at in range(n)
    ),
    "foreign records in no row": lambda n: b"?" + foreign(n),
    "foreign records in a row": lambda n: b"?" + foreign(n).replace(b"?", b""),
    "records of one shift with damage between": lambda n: b"".join(
        encode_message("T", b"b" * 20, physical_offset=BASE + (1 << 30) + at * 115)[:114].ljust(115, b"?")
        for at in range(n)
    ),
    "fillers": lambda n: bytes(Blank.build({"total_size": 9})) * (15 * n),
}


def test_an_earlier_life_is_looked_for_once_and_not_behind_each_gap(kernels: ModuleType) -> None:
    data = HOSTILE["records of one shift with damage between"](500)
    seconds(data[:1000], kernels)
    assert seconds(data, kernels, active=True) < 7 * seconds(data, kernels, active=False)


class Lowest(MemorySource):
    """Knows the first byte that was asked for."""

    zero_copy, lowest = False, 1 << 62

    def window(self, offset: int, length: int) -> Any:
        self.lowest = min(self.lowest, offset)
        return super().window(offset, length)


def test_how_old_the_records_in_front_are_takes_no_long_way_back(kernels: ModuleType) -> None:
    """Every search for the end of a log began so: with a hole behind each record it cost MiBs of them."""
    size, count = 200, 5000
    data = bytearray()
    for number in range(count):
        at, left = BASE + len(data), size - 92
        one = encode_message("T", b"b" * left, physical_offset=at, store_timestamp=FIRST_TIME + number)
        data += bytes(size) if number % 2 else one.ljust(size, b"?")
    source, start = Lowest(data), (count - 100) * size
    events = SegmentScan(source, BASE, start=start, kernels=kernels, active=True)
    assert sum(isinstance(one, Gap) for one in events) > 40
    assert source.lowest > start - (1 << 18)


@pytest.mark.share
@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("active", [True, False])
def test_time_grows_with_the_size(kernels: ModuleType, what: str, active: bool) -> None:
    small, large = (HOSTILE[what](count) for count in (250, 2000))
    seconds(small[:1000], kernels, active=active)
    ratio = len(large) / len(small)
    assert 7 < ratio < 9
    assert seconds(large, kernels, active=active) < 4 * ratio * (
        seconds(small, kernels, active=active) + 0.002
    )
