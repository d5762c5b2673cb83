"""Units that a queue ought to have and has not: zeros or blanks in it, and files that are not there.

No start puts them back, as dispatching only ever appends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formats.consumequeue import PRE_BLANK_SIZE
from rmqtool.broker.consume_queue import BYTES, ConsumeQueue
from rmqtool.broker.units import chunks

if TYPE_CHECKING:
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.store.access import OpenMode


@dataclass(frozen=True, slots=True)
class Holes:
    """count: slots without a message. first: the lowest of them, None without any."""

    count: int = 0
    first: int | None = None


def holes(queue: object, low: int, high: int, mode: OpenMode = "pread") -> Holes:
    """What is missing of the slots [low, high) of a plain queue, as far as it reaches after the start.

    low, high: slots that messages in the log have. Batch units are dense by themselves: none are missing.
    """
    if not isinstance(queue, ConsumeQueue) or not queue.files.files:
        return Holes()
    begin, end = max(low, queue.min_offset), min(high, queue.max_offset)
    at, count, first = begin, 0, None
    for one in queue.files.files:
        base = one.base // BYTES
        stop = min(base + one.wrote // BYTES, end)
        if stop <= at:
            continue
        before, at = at, max(at, base)
        found = at - before, before
        inside, place = _invalid(one, at - base, stop - base, mode)
        for number, slot in (found, (inside, base + place)):
            count += number
            first = slot if number and first is None else first
        at = stop
    return Holes(count, first)


def _invalid(one: MappedFile, begin: int, end: int, mode: OpenMode) -> tuple[int, int]:
    """How many of the units [begin, end) of a file are zero or blank, and the number of the first."""
    count, first = 0, 0
    for chunk in chunks(one, mode, end, 0, begin):
        wrong = (chunk.sizes <= 0) | ((chunk.offsets == 0) & (chunk.sizes == PRE_BLANK_SIZE))
        if wrong.any():
            first = first if count else chunk.first + int(np.argmax(wrong))
            count += int(wrong.sum())
    return count, first
