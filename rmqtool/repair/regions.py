"""Which bytes of a file a plan changes, and keeping them as they were."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.repair.copying import copy_range
from rmqtool.repair.plan import Action
from rmqtool.store.writing import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.repair.disk import Disk
    from rmqtool.repair.plan import Change


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes from `position` on: `before` of them in the file as it was, `after` in the changed file.

    One of the two is 0 where the file was cut or grew; else they are equal.
    """

    position: int
    before: int
    after: int

    @property
    def end(self) -> int:
        """End of the bytes as they were."""
        return self.position + self.before


def regions_of(changes: Iterable[Change], size: int) -> tuple[Region, ...]:
    """Regions of one file that had `size` bytes, by position; neighbours and repetitions are one."""
    final, ranges = size, []
    for change in changes:
        if change.action is Action.RESIZE and change.size is not None:
            final = change.size
        elif change.action is Action.WRITE:
            start = change.position or 0
            ranges.append((start, start + (change.length or 0)))
    border = min(size, final)
    merged: list[list[int]] = []
    for start, end in sorted(ranges):
        stop = min(end, border)
        if start >= stop:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], stop)
        else:
            merged.append([start, stop])
    found = [Region(start, end - start, end - start) for start, end in merged]
    if final != size:
        found.append(Region(border, size - border, final - border))
    return tuple(found)


def edits_by_file(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """Changes that stay inside files (WRITE, RESIZE), by path."""
    found: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        if change.action in {Action.WRITE, Action.RESIZE}:
            found[change.path].append(change)
    return dict(found)


def set_aside(changes: Iterable[Change]) -> list[tuple[str, Region]]:
    """Paths and regions that are only copied."""
    return [
        (one.path, Region(one.position or 0, one.length or 0, one.length or 0))
        for one in changes
        if one.action is Action.SET_ASIDE
    ]


def save_region(disk: Disk, location: str, region: Region, target: str) -> None:
    """Writes the bytes that a file has in a region into the new file `target`, synced."""
    source = open_regular(location)
    try:
        descriptor = disk.create(target)
        try:
            disk.truncate(descriptor, region.before, target)
            whole = (region.position, 0, region.before)
            copy_range(disk, source, descriptor, whole, target, fresh=True)
            disk.sync(descriptor, target)
        finally:
            os.close(descriptor)
    finally:
        os.close(source)


def make_parents(disk: Disk, path: str, top: str = os.sep, mode: int = 0o700) -> None:
    """Makes the directories between `top`, which exists, and `path`."""
    parent = os.path.dirname(path)
    if parent != top and not os.path.isdir(parent):
        make_parents(disk, parent, top, mode)
        disk.make_directory(parent, mode)
