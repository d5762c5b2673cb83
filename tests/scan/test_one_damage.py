"""One damage in a segment: nothing whole gets lost, and the gap is what was damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

import fixtures
from fixtures.builder import Damaged, flip_bit, overwrite, swap_blocks
from formats.commitlog import MESSAGE_MAGIC_CODE
from rmqtool.scan.events import Gap, Tail, TailContent
from rmqtool.scan.fields import CrcState, Field, Stop
from tests.scan.handmade import BASE, SEGMENT, damages, handmade, spans_of
from tests.scan.test_walk import segments
from tests.scan.tools import assert_tiles, check_property, messages, others, scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


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
