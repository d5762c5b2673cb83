"""Segments made by hand, and one damage anywhere in them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fixtures.builder import Damaged, HandmadeLog, cut, flip_bit, overwrite, swap_blocks, zero_block
from formats.commitlog import MESSAGE_MAGIC_CODE
from rmqtool.scan.events import Tail
from tests.scan.tools import others

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
    """Where each record begins in the segment at `base`, and its length."""
    return [(record.physical_offset - base, len(record.data)) for record in log.records]


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


def one_tail(events: list[Any]) -> Tail:
    """The tail, which is all that there is beside records, and with which the scan ends."""
    (tail,) = others(events)
    assert isinstance(tail, Tail)
    assert events[-1].position == tail.position
    return tail
