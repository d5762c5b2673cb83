"""Records that say another place: a renamed segment, copied blocks, records in a body."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.builder import HandmadeLog, overwrite
from formats.commitlog import encode_message
from rmqtool.scan.events import Gap
from rmqtool.scan.fields import Field
from tests.scan.handmade import BASE, SEGMENT, handmade, spans_of
from tests.scan.tools import assert_tiles, messages, others, scan

if TYPE_CHECKING:
    from types import ModuleType


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
