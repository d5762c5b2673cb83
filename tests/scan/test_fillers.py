"""How a segment is closed: by a filler, without one, or by what only looks like one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog, overwrite
from formats.commitlog import Blank
from rmqtool.scan.events import Blank as BlankEvent
from rmqtool.scan.events import End, Gap, Tail, TailContent
from rmqtool.scan.fields import Stop
from tests.scan.handmade import BASE, SEGMENT, handmade, one_tail, spans_of
from tests.scan.tools import messages, others, scan

if TYPE_CHECKING:
    from types import ModuleType


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("fill", [0, 1])
def test_less_than_a_filler_at_the_end(kernels: ModuleType, size: int, fill: int) -> None:
    log, whole = handmade([10], rolled=False)
    end = log.end_offset - BASE
    data = whole[:end] + bytes([fill]) * size
    tail = one_tail(scan(data, kernels, BASE))
    assert (tail.length, tail.content) == (size, TailContent.GARBAGE if fill else TailContent.ZERO)
    assert (tail.reason, tail.expected, tail.found) == (Stop.SHORT, 8, size)


def test_a_filler_of_an_earlier_life(kernels: ModuleType) -> None:
    """The old log was rolled; the new one ends before the old filler."""
    before, whole = handmade([60] * 8, rolled=True)
    log = HandmadeLog(segment_size=SEGMENT, first_offset=BASE)
    log.put("TopicTest", b"n", store_timestamp=FIRST_TIME + 100_000)
    end = log.end_offset - BASE
    blank = before.blanks[0].physical_offset - BASE
    data = (bytes(log.segments[BASE]) + bytes(blank - end) + whole[blank:])[:SEGMENT]
    assert one_tail(scan(data, kernels, BASE)).content is TailContent.STALE


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
