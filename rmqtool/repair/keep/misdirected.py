"""Records of the log that lie at another place of it than they state, where no intact one is.

Misdirected writes leave them: sectors that were meant for another place, or were read from one. Copies of
whole segments are found by `placing.place_segments`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from rmqtool.repair.keep.donor import DonorPart
from rmqtool.repair.keep.frames import BLANK, frames_by_unit, heads_in
from rmqtool.repair.keep.headers import SMALLEST_RECORD
from rmqtool.repair.keep.model import UNUSED
from rmqtool.scan.fields import OFF_MAGIC, OFF_PHYSICAL_OFFSET, OFF_STORE_TIMESTAMP, OFF_TOTAL_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rmqtool.repair.keep.logbytes import LogBytes
    from rmqtool.repair.keep.model import Frame, Hole
    from rmqtool.store.layout import Store

_START = attrgetter("start")
_LEAST = OFF_STORE_TIMESTAMP + 8
"""bytes of a record that tell its size, where it belongs and when it was stored"""


@dataclass(frozen=True, slots=True)
class _Found:
    """A part. alone: it is one record. fills: that is all of the hole in which it lies."""

    part: DonorPart
    alone: bool
    fills: bool


def misdirected(store: Store, holes: Sequence[Hole], log: LogBytes) -> list[DonorPart]:
    """Parts of the log's own files with what may be records of these holes; bodies are not checked.

    holes: by start. Neighbours that are equally far from their places are one part; parts do not overlap.
    """
    found = [one for hole in holes for one in _parts(hole, holes, log)]
    pointed = frames_by_unit(store, holes) if any(one.alone for one in found) else {}
    return [one.part for one in found if not one.alone or _belongs_there(one, holes, pointed)]


def _parts(hole: Hole, holes: Sequence[Hole], log: LogBytes) -> Iterator[_Found]:
    """What is found in one hole, in order."""
    if hole.placed.file is None or hole.reasons == {UNUSED}:
        return
    base, first, end, count = 0, 0, 0, 0
    for at, stated, size in (*_misplaced(hole, holes, log), (hole.end, 0, 0)):
        moved = stated - (at - hole.placed.base)
        if count and (moved != base or at == hole.end):
            last = min(end, at)
            start, stop = (base + place - hole.placed.base for place in (first, last))
            fills = (first, last) == (hole.start, hole.end)
            yield _Found(DonorPart(hole.placed.file, base, start, stop), count == 1, fills)
            count = 0
        if not count:
            base, first = moved, at
        count, end = count + 1, at + size


def _belongs_there(one: _Found, holes: Sequence[Hole], pointed: Mapping[int, Sequence[Frame]]) -> bool:
    """Whether a single record lies elsewhere than it belongs, and not at its place under a wrong offset.

    Units of the store's queues tell, those that point at each hole by its number. Where none points near, it
    begins or ends with the hole that it states.
    """
    start, end = one.part.start, one.part.end
    number = bisect_right(holes, start, key=_START) - 1
    frames, hole = pointed.get(number, ()), holes[number]
    low, high = (bisect_left(frames, place, key=_START) for place in (start, end))
    near = [(frame.start, frame.end) for frame in frames[max(low - 1, 0) : high] if frame.end > start]
    return (start, end) in near or (not near and not one.fills and (start == hole.start or end == hole.end))


def _misplaced(hole: Hole, holes: Sequence[Hole], log: LogBytes) -> Iterator[tuple[int, int, int]]:
    """What looks like records of other holes: where it lies, the physical offset and size that it states.

    The store times of intact records around a hole bound those of what it held. The blank behind a record
    counts where it is as far from the end of the segment as that is from its place.
    """
    behind = -1, -1
    for magic, place, head in heads_in(hole, log):
        if magic == BLANK:
            size = int.from_bytes(head[:OFF_MAGIC], "big", signed=True)
            if behind == (place, hole.placed.end - size):
                yield place, hole.placed.end - size, size
        if magic == BLANK or len(head) < _LEAST:
            continue
        size, stated, stored = (
            int.from_bytes(head[at : at + width], "big", signed=True)
            for at, width in ((OFF_TOTAL_SIZE, 4), (OFF_PHYSICAL_OFFSET, 8), (OFF_STORE_TIMESTAMP, 8))
        )
        there = holes[bisect_right(holes, stated, key=_START) - 1]
        inside = there.start <= stated and SMALLEST_RECORD <= size <= there.end - stated
        in_time = there.timestamp <= stored and (there.behind is None or stored <= there.behind)
        if inside and in_time and stated != place:
            behind = place + size, stated + size
            yield place, stated, size
