"""Segments at both ends of the log without a record at its place, which a replica or their file still has.

That the log was longer tell files with their names, without records of their own, and behind its end, where
a broker makes files ahead, entries that lead there. A first segment after which no file is named has expired.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.repair.keep.donor import Donor, Donors
from rmqtool.repair.keep.frames import frames_by_unit
from rmqtool.repair.keep.logbytes import LogBytes
from rmqtool.repair.keep.misdirected import misdirected
from rmqtool.repair.keep.model import Hole
from rmqtool.repair.keep.placing import MOST_MISSING, PlacedSegment, holds_own_records
from rmqtool.repair.places import new_segments_in
from rmqtool.store.names import file_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.repair.keep.placing import Placing
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import OpenMode
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

_WITH_DATA = ("no-records", "copied-segment", "wrong-name")
"""reasons of `Placing.strays` that hold something"""


def with_ends(
    store: Store, placing: Placing, donors: Sequence[Store], kernels: Kernels, mode: OpenMode
) -> Placing:
    """The log with these segments, up to the last one on each side that a file is named after."""
    named = placing.beyond
    if not named:
        return placing
    size, first, last = placing.size, placing.segments[0].base, placing.segments[-1].base
    directory = new_segments_in(store)
    held: dict[int, list[StoreFile]] = {}
    for donor in donors:
        for segment in donor.segments:
            held.setdefault(segment.base, []).append(segment.file)

    with_data = {file for file, why in placing.strays if why in _WITH_DATA}
    own = {
        base
        for base, file in named.items()
        if file in with_data
        and _holds_misdirected(store, _placed(base, size, file, directory), kernels, mode)
    }

    def reached(base: int, step: int) -> list[PlacedSegment]:
        """Neighbours of the log, to the last that has records in its own file; then those of donors."""
        found: list[int] = []
        far = max((abs(one - base) for one in own if 0 < (one - base) // step <= MOST_MISSING), default=0)
        for one in range(base + step, max(named) + 1 if step > 0 else min(named) - 1, step):
            there = (holds_own_records(file, size, kernels, mode) for file in held.get(one, ()))
            if abs(one - base) > far and not any(there):
                break
            found.append(one)
        while found and found[-1] not in named:
            found.pop()
        return [_placed(one, size, named.get(one), directory) for one in found]

    front, behind = reached(first, -size), reached(last, size)
    pointed = frames_by_unit(store, [Hole(one, one.base, one.end) for one in behind])
    while behind and len(behind) - 1 not in pointed and behind[-1].base not in own:
        behind.pop()
    files = {named.get(one.base) for one in (*front, *behind)}
    return replace(
        placing,
        segments=[*reversed(front), *placing.segments, *behind],
        strays=[one for one in placing.strays if one[0] not in files],
        ahead=None if placing.ahead in files else placing.ahead,
    )


def _placed(base: int, size: int, file: StoreFile | None, directory: str) -> PlacedSegment:
    path = file.path if file is not None and file.base_offset == base else f"{directory}/{file_name(base)}"
    below = file if file is not None and file.size else None
    return PlacedSegment(base, size, path, below, foreign=below is not None)


def _holds_misdirected(store: Store, placed: PlacedSegment, kernels: Kernels, mode: OpenMode) -> bool:
    """Whether whole records lie elsewhere in the file of a segment that state places of this segment."""
    hole = Hole(placed, placed.base, placed.end)
    with LogBytes([placed], mode) as log:
        donors = [Donor(None, misdirected(store, [hole], log))]
        return bool(Donors(donors, kernels, mode).donated_ranges([hole], log))
