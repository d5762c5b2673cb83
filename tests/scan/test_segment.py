"""A segment from its first byte to its last: each thing is reported once, nothing whole gets lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

import fixtures
from fixtures.builder import (
    FIRST_TIME,
    Damaged,
    HandmadeLog,
    cut,
    flip_bit,
    overwrite,
    swap_blocks,
    zero_block,
)
from formats.commitlog import MESSAGE_MAGIC_CODE, Blank, encode_message
from rmqtool.scan.events import Blank as BlankEvent
from rmqtool.scan.events import End, Gap, Tail, TailContent
from rmqtool.scan.fields import OFF_STORE_TIMESTAMP, CrcState, Field, Stop
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import open_source
from rmqtool.store.bytes import MemorySource, PreadSource
from rmqtool.store.mapped import MappedSource
from rmqtool.store.throttle import RateLimit, ThrottledSource
from tests.scan.test_kernels import SOUP
from tests.scan.test_walk import segments
from tests.scan.tools import SmallWindows, assert_tiles, check_property, messages, others, scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

SEGMENT = 4096
BASE = 40960
MAGIC = MESSAGE_MAGIC_CODE.to_bytes(4, "big", signed=True)


def handmade(sizes: list[int], *, rolled: bool, base: int = BASE) -> tuple[HandmadeLog, bytes]:
    """One segment with bodies of these sizes; closed by a filler, or with a tail of zeros."""
    log = HandmadeLog(segment_size=SEGMENT, first_offset=base)
    for number, size in enumerate(sizes):
        if len(log.segments.get(base, b"")) + size + 200 > SEGMENT:
            break
        body = bytes((number * 31 + at * 7 + 1) & 0xFF for at in range(size))
        log.put("TopicTest", body, {"UNIQ_KEY": f"ID{number}", "TAGS": "A"}, queue_id=number % 4)
    if rolled:
        log.roll()
    return log, log.files()[base]


def spans_of(log: HandmadeLog, base: int = BASE) -> list[tuple[int, int]]:
    return [(record.physical_offset - base, len(record.data)) for record in log.records]


# ---- anything at all -----------------------------------------------------------------------------


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


# ---- one damage ----------------------------------------------------------------------------------


@st.composite
def damages(draw: st.DrawFn, data: bytes, size: int) -> Damaged:
    """One damage somewhere in the first `size` bytes."""
    start = draw(st.integers(0, size - 1))
    kind = draw(st.sampled_from(["flip", "zero", "cut", "swap", "overwrite", "copy"]))
    if kind == "flip":
        return flip_bit(data, start, draw(st.integers(0, 7)))
    if kind == "zero":
        return zero_block(data, start, draw(st.integers(1, 600)))
    if kind == "cut":
        return cut(data, start)
    if kind == "overwrite":
        return overwrite(data, start, draw(st.binary(min_size=1, max_size=300)))
    if kind == "copy":
        origin, length = draw(st.integers(0, size - 1)), draw(st.integers(1, 800))
        return overwrite(data, start, data[origin : origin + length])
    length = draw(st.integers(1, max(size // 3, 1)))
    first = draw(st.integers(0, max(size - 2 * length, 0)))
    if first + 2 * length > size:
        return flip_bit(data, start, 0)
    second = draw(st.integers(first + length, size - length))
    return swap_blocks(data, first, second, length)


def assert_nothing_lost(events: list[Any], records: list[tuple[int, int]], damaged: Damaged) -> None:
    """Every record that no damage touches is a message; of two damages the second may leave stale ones."""
    found = set(messages(events))
    intact = [span for span in records if not damaged.touches(span[0], span[0] + span[1])]
    missing = [span for span in intact if span not in found]
    stale = [tail for tail in others(events, Tail) if tail.content is TailContent.STALE]
    if missing and len(damaged.ranges) > 1:
        assert stale
        assert all(stale[0].position <= at for at, _ in missing)
        assert stale[0].records >= len(missing)
    else:
        assert missing == []


@pytest.mark.parametrize("rolled", [False, True], ids=["active", "closed"])
def test_one_damage_loses_nothing_else(kernels: ModuleType, effort: int, rolled: bool) -> None:
    def prop(data: st.DataObject) -> None:
        sizes = data.draw(st.lists(st.integers(0, 500), min_size=2, max_size=10), label="bodies")
        log, whole = handmade(sizes, rolled=rolled)
        used = SEGMENT if rolled else log.end_offset - BASE
        damaged = data.draw(damages(whole, used), label="damage")
        events = scan(damaged.data, kernels, BASE, active=not rolled)
        assert_tiles(events, len(damaged.data))
        assert_nothing_lost(events, spans_of(log), damaged)

    check_property(prop, st.data(), examples=200 * effort)


@pytest.mark.parametrize("name", ["v498-basic", "v533-v2", "v533-compressed", "v498-ipv6", "b533-full"])
def test_one_damage_in_a_real_segment(
    golden: Callable[[str], fixtures.Golden], kernels: ModuleType, effort: int, name: str
) -> None:
    base, whole = segments(golden(name))[0]
    records = messages(scan(whole, kernels, base))
    used = records[-1][0] + records[-1][1]
    assert len(records) > 10

    def prop(data: st.DataObject) -> None:
        damaged = data.draw(damages(whole, used), label="damage")
        events = scan(damaged.data, kernels, base, active=False)
        assert_tiles(events, len(damaged.data))
        assert_nothing_lost(events, records, damaged)

    check_property(prop, st.data(), examples=15 * effort)


@pytest.mark.parametrize("batch_rows", [2, 3, 57, 1000])
def test_a_longer_header_from_elsewhere_hides_no_record(
    golden: Callable[[str], fixtures.Golden], kernels: ModuleType, batch_rows: int
) -> None:
    """The record at 17,112 gets the header of a longer one, which covers the front of the next."""
    base, whole = segments(golden("b533-full"))[0]
    records = messages(scan(whole, kernels, base))
    damaged = swap_blocks(whole, 847, 16_983, 247)
    events = scan(damaged.data, kernels, base, active=False, batch_rows=batch_rows)
    assert_tiles(events, len(damaged.data))
    assert (17_388, 276) in messages(events)
    assert_nothing_lost(events, records, damaged)


def test_every_bit_of_a_frame(kernels: ModuleType) -> None:
    """One bit of the middle record at a time: its neighbours stay, itself is lost, bad, or the same."""
    log, whole = handmade([5, 40, 7], rolled=False)
    first, middle, last = spans_of(log)
    topic_length = 88 + 40
    checked = [*range(8), *range(84, 88), topic_length, *range(topic_length + 10, topic_length + 12)]
    for offset in range(middle[1]):
        for bit in range(8):
            damaged = flip_bit(whole, middle[0] + offset, bit)
            events = scan(damaged.data, kernels, BASE)
            assert_tiles(events, SEGMENT)
            found = messages(events)
            assert first in found
            assert last in found
            gaps = others(events, Gap)
            if offset in checked:
                assert [(gap.position, gap.length) for gap in gaps] == [middle]
            elif offset == 39 and bit in {4, 5}:
                assert gaps, "another width of hosts"
            else:
                assert found == [first, middle, last]
                row = next(row for event in events if isinstance(event, list) for row in event[1:2])
                is_body = 88 <= offset < topic_length or 8 <= offset < 12
                assert (row[Field.CRC_STATE] == CrcState.BAD) == is_body


def test_the_gap_is_the_damaged_record(kernels: ModuleType) -> None:
    log, whole = handmade([30] * 6, rolled=False)
    spans = spans_of(log)
    damaged = overwrite(whole, spans[2][0] + 4, b"XXXX")
    events = scan(damaged.data, kernels, BASE)
    (gap,) = others(events, Gap)
    assert (gap.position, gap.length) == spans[2]
    assert (gap.reason, gap.expected) == (Stop.BAD_MAGIC, MESSAGE_MAGIC_CODE)
    assert gap.found == int.from_bytes(b"XXXX", "big")
    assert messages(events) == spans[:2] + spans[3:]


# ---- windows -------------------------------------------------------------------------------------


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


# ---- what lies behind the last record ------------------------------------------------------------


def one_tail(events: list[Any]) -> Tail:
    (tail,) = others(events)
    assert isinstance(tail, Tail)
    assert events[-1].position == tail.position
    return tail


def test_a_tail_of_zeros(kernels: ModuleType) -> None:
    log, whole = handmade([10, 20], rolled=False)
    tail = one_tail(scan(whole, kernels, BASE))
    end = log.end_offset - BASE
    assert (tail.position, tail.length, tail.content) == (end, SEGMENT - end, TailContent.ZERO)
    assert (tail.reason, tail.records) == (Stop.ZERO, 0)


@pytest.mark.parametrize("at", [0, 1, 8, 500])
@pytest.mark.parametrize("junk", [b"\1", b"\xff" * 9, MAGIC, b"junk" * 50])
def test_a_tail_of_garbage(kernels: ModuleType, at: int, junk: bytes) -> None:
    log, whole = handmade([10, 20], rolled=False)
    end = log.end_offset - BASE
    tail = one_tail(scan(overwrite(whole, end + at, junk).data, kernels, BASE))
    assert (tail.position, tail.length, tail.content) == (end, SEGMENT - end, TailContent.GARBAGE)


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("fill", [0, 1])
def test_less_than_a_filler_at_the_end(kernels: ModuleType, size: int, fill: int) -> None:
    log, whole = handmade([10], rolled=False)
    end = log.end_offset - BASE
    data = whole[:end] + bytes([fill]) * size
    tail = one_tail(scan(data, kernels, BASE))
    assert (tail.length, tail.content) == (size, TailContent.GARBAGE if fill else TailContent.ZERO)
    assert (tail.reason, tail.expected, tail.found) == (Stop.SHORT, 8, size)


def rewritten(kept: int, fresh: list[int], old: int = 12) -> tuple[bytes, HandmadeLog, int]:
    """A log that was truncated behind `kept` records and written on, over what lay there; where it ends."""
    before, whole = handmade([60] * old, rolled=False)
    log = HandmadeLog(segment_size=SEGMENT, first_offset=BASE)
    for record in before.records[:kept]:
        log.put_raw(record.data)
    for number, size in enumerate(fresh):
        then = FIRST_TIME + 100_000 + number
        log.put("TopicTest", b"n" * size, store_timestamp=then, born_timestamp=then - 1)
    end = log.end_offset - BASE
    data = bytes(log.segments[BASE]) + whole[end:]
    return data, log, len([one for one in before.records if one.physical_offset - BASE >= end])


@pytest.mark.parametrize("fresh", [[1], [60], [100], [7, 200, 9]])
def test_a_stale_tail(kernels: ModuleType, fresh: list[int]) -> None:
    data, log, behind = rewritten(3, fresh)
    events = scan(data, kernels, BASE)
    tail = one_tail(events)
    assert messages(events) == spans_of(log)
    assert (tail.position, tail.content, tail.records) == (log.end_offset - BASE, TailContent.STALE, behind)
    kept = scan(data, kernels, BASE, keep_stale=True)
    assert len(messages(kept)) == len(log.records) + behind
    assert others(kept, Gap)[0].position == log.end_offset - BASE


def test_a_tail_is_stale_only_behind_newer_records(kernels: ModuleType) -> None:
    """Newer records behind bytes that are none were damaged, not left over."""
    log, whole = handmade([60] * 8, rolled=False)
    damaged = zero_block(whole, spans_of(log)[3][0], 100)
    events = scan(damaged.data, kernels, BASE)
    assert [type(event) for event in others(events)] == [Gap, Tail]
    assert others(events, Tail)[0].content is TailContent.ZERO
    assert len(messages(events)) == 7


def times_at(data: bytes, spans: list[tuple[int, int]], **store: int) -> bytes:
    """With these store times, by the number of the record."""
    for number, then in store.items():
        at = spans[int(number[1:])][0] + OFF_STORE_TIMESTAMP
        data = overwrite(data, at, then.to_bytes(8, "big")).data
    return data


@pytest.mark.parametrize("header", ["size", "magic", "place", "all"])
@pytest.mark.parametrize(
    "lies", [{"r2": FIRST_TIME + 70}, {"r4": FIRST_TIME - 9}, {"r2": FIRST_TIME + (1 << 40), "r5": 0}]
)
def test_a_false_store_time_hides_no_record(kernels: ModuleType, header: str, lies: dict[str, int]) -> None:
    """48518: beside a damaged record it made the rest of the last segment look like an earlier life."""
    log, whole = handmade([60] * 8, rolled=False)
    spans = spans_of(log)
    start = spans[3][0]
    damages = {
        "size": [(start, b"\0\0\0\7")],
        "magic": [(start + 4, b"\0\0\0\7")],
        "place": [(start + 28, b"\7" * 8), (start + 4, b"\7")],
        "all": [(start, b"\7" * 91)],
    }
    data = times_at(whole, spans, **lies)
    for at, junk in damages[header]:
        data = overwrite(data, at, junk).data
    assert messages(scan(data, kernels, BASE)) == spans[:3] + spans[4:]


@pytest.mark.parametrize("lies", [{"r5": FIRST_TIME}, {"r5": 1 << 62}])
def test_a_stale_tail_behind_a_false_store_time(kernels: ModuleType, lies: dict[str, int]) -> None:
    data, log, behind = rewritten(3, [7, 200, 9])
    data = times_at(data, spans_of(log), **lies)
    tail = one_tail(scan(data, kernels, BASE))
    assert (tail.content, tail.records) == (TailContent.STALE, behind)


@pytest.mark.parametrize("start", [1, 3])
def test_a_scan_from_the_middle_looks_back_for_what_is_stale(kernels: ModuleType, start: int) -> None:
    """What stands in front of where it begins says so, as it does to a scan of the whole segment."""
    log, whole = handmade([60] * 8, rolled=False)
    spans = spans_of(log)
    false = times_at(whole, spans, r3=FIRST_TIME + (1 << 40))
    false = overwrite(false, spans[4][0], b"\7" * 91).data
    assert messages(scan(false, kernels, BASE, start=spans[start][0])) == spans[start:4] + spans[5:]
    data, log, _ = rewritten(3, [7, 200, 9])
    fresh = spans_of(log)
    (tail,) = others(scan(data, kernels, BASE, start=fresh[-1][0]))
    assert tail.content is TailContent.STALE


def test_records_of_another_place_do_not_make_those_of_this_one_stale(kernels: ModuleType) -> None:
    """61251: a copy of a later segment that was cut lies over the front of this one."""
    log, whole = handmade([60] * 8, rolled=False)
    later = HandmadeLog(segment_size=SEGMENT, first_offset=BASE + SEGMENT)
    for number in range(3):
        then = FIRST_TIME + 100_000 + number
        later.put("TopicTest", b"n" * 60, store_timestamp=then, born_timestamp=then - 1)
    front = bytes(later.segments[BASE + SEGMENT]) + bytes(9)
    found = messages(scan(front + whole[len(front) :], kernels, BASE))
    assert found[3:] == [one for one in spans_of(log) if one[0] >= len(front)]


def test_stale_by_what_the_segment_before_says(kernels: ModuleType) -> None:
    """Nothing of this life has been written to the segment yet."""
    _, whole = handmade([60] * 4, rolled=False)
    data = b"\0\0\0\1" + whole[4:]
    newer = FIRST_TIME + 10**6
    tail = one_tail(scan(data, kernels, BASE, previous_timestamp=newer))
    assert (tail.content, tail.records) == (TailContent.STALE, 3)
    events = scan(data, kernels, BASE, previous_timestamp=FIRST_TIME - 1)
    assert len(messages(events)) == 3


def test_a_filler_of_an_earlier_life(kernels: ModuleType) -> None:
    """The old log was rolled; the new one ends before the old filler."""
    before, whole = handmade([60] * 8, rolled=True)
    log = HandmadeLog(segment_size=SEGMENT, first_offset=BASE)
    log.put("TopicTest", b"n", store_timestamp=FIRST_TIME + 100_000)
    end = log.end_offset - BASE
    blank = before.blanks[0].physical_offset - BASE
    data = (bytes(log.segments[BASE]) + bytes(blank - end) + whole[blank:])[:SEGMENT]
    assert one_tail(scan(data, kernels, BASE)).content is TailContent.STALE


# ---- fillers -------------------------------------------------------------------------------------


def test_a_filler_closes_the_segment(kernels: ModuleType) -> None:
    log, whole = handmade([10, 20], rolled=True)
    events = scan(whole, kernels, BASE, active=False)
    end = log.records[-1].end - BASE
    assert others(events) == [BlankEvent(end, SEGMENT - end, SEGMENT - end)]
    assert events[-1] == End(end, Stop.BLANK, SEGMENT - end, SEGMENT - end)
    rubbish = overwrite(whole, end + 8, b"?" * SEGMENT).data
    assert scan(rubbish, kernels, BASE, active=False) == events


@pytest.mark.parametrize("length", [0, 7, 8, 100, 0x7FFFFFFF, -5])
@pytest.mark.parametrize("active", [True, False])
def test_only_the_magic_of_a_filler_counts(kernels: ModuleType, length: int, active: bool) -> None:
    log, whole = handmade([10, 20], rolled=True)
    end = log.records[-1].end - BASE
    data = overwrite(whole, end, length.to_bytes(4, "big", signed=True)).data
    events = scan(data, kernels, BASE, active=active)
    assert others(events) == [BlankEvent(end, SEGMENT - end, length)]


def test_records_behind_a_filler_in_the_middle(kernels: ModuleType) -> None:
    """The magic of a record became that of a filler: what follows is not given up."""
    log, whole = handmade([10, 20, 30, 40], rolled=False)
    spans = spans_of(log)
    data = overwrite(whole, spans[1][0], Blank.build({"total_size": 77})).data
    events = scan(data, kernels, BASE)
    assert messages(events) == [spans[0], *spans[2:]]
    (gap,) = others(events, Gap)
    assert (gap.position, gap.length, gap.reason, gap.found) == (*spans[1], Stop.BLANK_LENGTH, 77)


def test_a_filler_over_the_last_record_in_front_of_an_earlier_life(kernels: ModuleType) -> None:
    """720199: it was taken for the end of the segment, and the record under it was not missed."""
    _, before = handmade([60] * 8, rolled=False)
    log = HandmadeLog(segment_size=SEGMENT, first_offset=BASE)
    for number in range(3):
        log.put("TopicTest", b"n" * 40, store_timestamp=FIRST_TIME + 100_000 + number)
    spans, end = spans_of(log), log.end_offset - BASE
    data = bytes(log.segments[BASE])[:end] + before[end:]
    data = overwrite(data, spans[2][0], Blank.build({"total_size": spans[2][1]})).data
    events = scan(data, kernels, BASE, false_blanks=True)
    assert messages(events) == spans[:2]
    (gap,) = others(events, Gap)
    assert (gap.position, gap.length, gap.reason) == (*spans[2], Stop.BLANK_LENGTH)
    (tail,) = others(events, Tail)
    assert tail.content is TailContent.STALE


def test_a_closed_segment_without_filler(kernels: ModuleType) -> None:
    log, whole = handmade([10, 20], rolled=False)
    events = scan(whole, kernels, BASE, active=False)
    end = log.end_offset - BASE
    (gap,) = others(events)
    assert (type(gap), gap.position, gap.length, gap.reason) == (Gap, end, SEGMENT - end, Stop.ZERO)


def test_a_segment_full_to_the_last_byte(kernels: ModuleType) -> None:
    log, whole = handmade([10, 20], rolled=False)
    data = whole[: log.end_offset - BASE]
    events = scan(data, kernels, BASE, active=False)
    assert others(events) == []
    assert events[-1] == End(len(data), Stop.END, 8, 0)


# ---- renamed, copied, embedded -------------------------------------------------------------------


@pytest.mark.parametrize("rolled", [False, True], ids=["active", "closed"])
@pytest.mark.parametrize("broken", range(6))
def test_a_renamed_segment_with_one_damaged_record(kernels: ModuleType, broken: int, rolled: bool) -> None:
    """All stored offsets are off by the same: the damaged record is lost, whichever it is, and no other."""
    log, whole = handmade([30] * 6, rolled=rolled)
    spans = spans_of(log)
    data = overwrite(whole, spans[broken][0] + 4, b"XXXX").data
    events = scan(data, kernels, BASE + 123 * SEGMENT, active=not rolled)
    assert messages(events) == spans[:broken] + spans[broken + 1 :]
    assert_tiles(events, SEGMENT)


def test_copies_of_records_in_a_body(kernels: ModuleType) -> None:
    """A message may carry whole records: they are its body, and stay so when it is damaged."""
    inner = encode_message("Inner", b"copied", physical_offset=5)
    log = HandmadeLog(segment_size=SEGMENT, first_offset=BASE)
    for body in (b"one", inner + b"rest", inner, b"four"):
        log.put("TopicTest", body)
    spans = spans_of(log)
    whole = log.files()[BASE]
    assert messages(scan(whole, kernels, BASE)) == spans
    for broken in (1, 2):
        data = overwrite(whole, spans[broken][0] + 4, b"XXXX").data
        events = scan(data, kernels, BASE)
        assert messages(events) == spans[:broken] + spans[broken + 1 :]
        assert [(gap.position, gap.length) for gap in others(events, Gap)] == [spans[broken]]


@pytest.mark.parametrize("rolled", [False, True], ids=["active", "closed"])
def test_a_copy_in_the_body_of_the_last_record(kernels: ModuleType, rolled: bool) -> None:
    inner = encode_message("Inner", b"copied", physical_offset=5)
    log = HandmadeLog(segment_size=SEGMENT, first_offset=BASE)
    for body in (b"one", b"two", b"[" + inner + b"]"):
        log.put("TopicTest", body)
    if rolled:
        log.roll()
    spans = spans_of(log)
    data = overwrite(log.files()[BASE], spans[2][0] + 4, b"XXXX").data
    assert messages(scan(data, kernels, BASE, active=not rolled)) == spans[:2]


def test_a_record_with_a_foreign_offset_is_taken_in_sequence(kernels: ModuleType) -> None:
    """The broker looks at no physical offset when it walks: neither does this, but it says so."""
    log = HandmadeLog(segment_size=SEGMENT, first_offset=BASE)
    log.put("TopicTest", b"one")
    log.put("TopicTest", b"two", physical_offset=7)
    log.put("TopicTest", b"three")
    events = scan(log.files()[BASE], kernels, BASE)
    assert messages(events) == spans_of(log)
    assert [bool(row[Field.ISSUES]) for row in events[0]] == [False, True, False]


@pytest.mark.parametrize("stored", [-(1 << 63), -1, 0, (1 << 63) - 1])
def test_absurd_offsets(kernels: ModuleType, stored: int) -> None:
    """Distances between stored offsets and places do not fit in 64 bits: no matter."""
    log = HandmadeLog(segment_size=SEGMENT, first_offset=BASE)
    for number in range(6):
        log.put("TopicTest", b"x" * 9, **({"physical_offset": stored} if number in {1, 4} else {}))
    spans = spans_of(log)
    data = overwrite(log.files()[BASE], spans[2][0] + 4, b"XXXX").data
    for base in (BASE, 1 << 62):
        found = messages(scan(data, kernels, base))
        assert found[:2] == spans[:2]
        if base == BASE:
            assert found == spans[:2] + spans[3:]


def test_damage_behind_a_copied_block(kernels: ModuleType) -> None:
    """The last record before the damage has a foreign offset; those behind have their own."""
    log, whole = handmade([30] * 10, rolled=True)
    spans = spans_of(log)
    size = spans[0][1]
    moved = overwrite(whole, spans[3][0], whole[spans[7][0] : spans[7][0] + size] + b"XXXXXXXX")
    events = scan(moved.data, kernels, BASE, active=False)
    assert messages(events) == spans[:4] + spans[5:]


def test_records_at_their_own_place_between_parts_of_a_copied_segment(kernels: ModuleType) -> None:
    """Pages of a recycled file that were never written, in front of what was written and behind it."""
    log, whole = handmade([30] * 20, rolled=True)
    _, old = handmade([30] * 20, rolled=True, base=BASE - 2 * SEGMENT)
    spans = spans_of(log)
    data = old[: spans[5][0] + 7] + bytes(spans[1][0] - 7) + whole[spans[6][0] : spans[12][0]]
    data += old[spans[12][0] :]
    events = scan(data, kernels, BASE, active=False)
    assert messages(events) == spans[:5] + spans[6:]
    assert_tiles(events, SEGMENT)


# ---- size and time -------------------------------------------------------------------------------


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
