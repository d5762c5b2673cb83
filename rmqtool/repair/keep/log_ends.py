"""Segments at both ends of the log whose records only a replica has.

That the log was longer tell files with their names, without records of their own, and behind its end, where
a broker makes files ahead, entries that lead there. A first segment after which no file is named has expired.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.repair.keep.frames import frames_by_unit
from rmqtool.repair.keep.model import Hole
from rmqtool.repair.keep.placing import PlacedSegment, holds_own_records

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rmqtool.repair.keep.placing import Placing
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import OpenMode
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store


def with_replicated_ends(
    store: Store, placing: Placing, donors: Sequence[Store], kernels: Kernels, mode: OpenMode
) -> Placing:
    """The log with these segments, up to the last one on each side that a file is named after."""
    named = placing.beyond
    if not donors or not named:
        return placing
    size, first, last = placing.size, placing.segments[0].base, placing.segments[-1].base
    held = {
        segment.base
        for donor in donors
        for segment in donor.segments
        if not first <= segment.base <= last and holds_own_records(segment.file, size, kernels, mode)
    }
    front = [_placed(one, size, named) for one in _reached(first, -size, held, named)]
    behind = [_placed(one, size, named) for one in _reached(last, size, held, named)]
    pointed = frames_by_unit(store, [Hole(one, one.base, one.end) for one in behind])
    behind = behind[: max(pointed, default=-1) + 1]
    files = {named.get(one.base) for one in (*front, *behind)}
    return replace(
        placing,
        segments=[*reversed(front), *placing.segments, *behind],
        strays=[one for one in placing.strays if one[0] not in files],
        ahead=None if placing.ahead in files else placing.ahead,
    )


def _reached(base: int, step: int, held: set[int], named: Collection[int]) -> list[int]:
    """Neighbours of the log that replicas hold, up to the last one that a file is named after."""
    found: list[int] = []
    while (base := base + step) in held:
        found.append(base)
    while found and found[-1] not in named:
        found.pop()
    return found


def _placed(base: int, size: int, named: Mapping[int, StoreFile | None]) -> PlacedSegment:
    file = named.get(base)
    path = f"commitlog/{base:020d}" if file is None else file.path
    below = file if file is not None and file.size else None
    return PlacedSegment(base, size, path, below, foreign=below is not None)
