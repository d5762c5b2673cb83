"""Segments at both ends of the log whose records only a replica has, and where the log was longer.

That it was tell files with their names, without records of their own, and entries that lead there. Where no
file has the name of a first segment it has expired.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.repair.keep.frames import frames_by_unit
from rmqtool.repair.keep.model import Hole
from rmqtool.repair.keep.placing import PlacedSegment, holds_own_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.repair.keep.placing import Placing
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import OpenMode
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store


def with_replicated_ends(
    store: Store, placing: Placing, donors: Sequence[Store], kernels: Kernels, mode: OpenMode
) -> Placing:
    """The log with these segments, up to the last one on each side that a file is named after."""
    named = {file.base_offset: file for file, _ in placing.strays}
    if placing.ahead is not None:
        named[placing.ahead.base_offset] = placing.ahead
    if not donors or not named or not placing.segments:
        return placing
    size, first, last = placing.size, placing.segments[0].base, placing.segments[-1].base
    held = {
        segment.base
        for donor in donors
        for segment in donor.segments
        if not first <= segment.base <= last and holds_own_records(segment.file, size, kernels, mode)
    }
    found: list[PlacedSegment] = []
    for base, step in ((first, -size), (last, size)):
        reached = list(_reached(base, step, held))
        while reached and reached[-1] not in named:
            reached.pop()
        found += [_placed(one, size, named.get(one)) for one in reached]
    pointed = frames_by_unit(store, [Hole(one, one.base, one.end) for one in found])
    further = [found[number] for number in pointed]
    low = min([first, *(one.base for one in further)])
    high = max([last, *(one.base for one in further)])
    taken = [one for one in found if low <= one.base <= high]
    files = {named[one.base] for one in taken if one.base in named}
    return replace(
        placing,
        segments=sorted([*placing.segments, *taken], key=lambda one: one.base),
        strays=[one for one in placing.strays if one[0] not in files],
        ahead=None if placing.ahead in files else placing.ahead,
    )


def _reached(base: int, step: int, held: set[int]) -> Iterator[int]:
    while (base := base + step) in held:
        yield base


def _placed(base: int, size: int, file: StoreFile | None) -> PlacedSegment:
    path = f"commitlog/{base:020d}" if file is None else file.path
    return PlacedSegment(base, size, path, file if file is not None and file.size else None)
