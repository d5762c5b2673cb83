"""Records of the log that lie at another place of it than they state, where no intact one is.

Misdirected writes leave them: sectors that were meant for another place, or were read from one. Copies of
whole segments are found by `placing.place_segments`.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from formats.commitlog import MESSAGE_MAGIC_CODES
from rmqtool.repair.keep.donor import DonorPart
from rmqtool.repair.keep.headers import SMALLEST_RECORD
from rmqtool.repair.keep.model import UNUSED
from rmqtool.scan.fields import OFF_MAGIC, OFF_PHYSICAL_OFFSET, OFF_STORE_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.repair.keep.logbytes import LogBytes
    from rmqtool.repair.keep.model import Hole

_MAGICS = tuple(magic.to_bytes(4, "big", signed=True) for magic in MESSAGE_MAGIC_CODES)
_START = attrgetter("start")
_STEP = 4 << 20
_HEAD = OFF_STORE_TIMESTAMP + 8
"""bytes of a record that tell its size, where it belongs and when it was stored"""


def misdirected(holes: Sequence[Hole], log: LogBytes) -> Iterator[DonorPart]:
    """Parts of the log's own files with what may be records of these holes; bodies are not checked.

    holes: by start. Neighbours that are equally far from their places are one part; parts do not overlap.
    """
    for hole in holes:
        if hole.placed.file is None or hole.reasons == {UNUSED}:
            continue
        base, start, end = 0, 0, 0
        for at, stated, size in (*_misplaced(hole, holes, log), (hole.end, 0, 0)):
            moved = stated - (at - hole.placed.base)
            if start < end and (moved != base or at == hole.end):
                yield DonorPart(hole.placed.file, base, start, min(end, base + at - hole.placed.base))
                start = end
            if start == end:
                base, start = moved, stated
            end = stated + size


def _misplaced(hole: Hole, holes: Sequence[Hole], log: LogBytes) -> Iterator[tuple[int, int, int]]:
    """What looks like records of other holes: where it lies, the physical offset and size that it states.

    The store times of intact records around a hole bound those of what it held.
    """
    for begin in range(hole.start, hole.end, _STEP):
        window = log.read(begin, min(_STEP + _HEAD, hole.end - begin))
        for at in sorted(chain.from_iterable(_found(window, magic) for magic in _MAGICS)):
            if not 0 <= at < _STEP or at + _HEAD > len(window):
                continue
            size, stated, stored = (
                int.from_bytes(window[at + field : at + field + width], "big", signed=True)
                for field, width in ((0, 4), (OFF_PHYSICAL_OFFSET, 8), (OFF_STORE_TIMESTAMP, 8))
            )
            there = holes[bisect_right(holes, stated, key=_START) - 1]
            inside = there.start <= stated and SMALLEST_RECORD <= size <= there.end - stated
            in_time = there.timestamp <= stored <= (stored if there.behind is None else there.behind)
            if inside and in_time and stated != begin + at:
                yield begin + at, stated, size


def _found(window: bytes, magic: bytes) -> Iterator[int]:
    """Where the records of a magic would begin."""
    at = window.find(magic)
    while at >= 0:
        yield at - OFF_MAGIC
        at = window.find(magic, at + 1)
