"""What lies behind the last record: zeros, garbage, or the records of an earlier life."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog, overwrite, zero_block
from rmqtool.scan.events import Gap, Tail, TailContent
from rmqtool.scan.fields import OFF_STORE_TIMESTAMP, Stop
from tests.scan.handmade import BASE, MAGIC, SEGMENT, handmade, one_tail, spans_of
from tests.scan.tools import messages, others, scan

if TYPE_CHECKING:
    from types import ModuleType


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
