"""Units of a queue file: what lies on disk, and over it what a start appends."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.scan.units import UNIT, valid_units

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.store.access import OpenMode
    from rmqtool.store.bytes import ByteSource

    Ints = npt.NDArray[np.int64]

RECOVERED_FILES = 3
"""files that `ConsumeQueue#recover` reads; older ones are taken as full"""
_FIRST_READ = 4096
"""bytes read first of a file: most queues are short"""
_LARGEST_READ = 1 << 23


@dataclass(frozen=True, slots=True)
class Prefix:
    """Valid units at the beginning of a queue file on disk.

    last: the last of them. highest: the greatest physical offset, None where that was not looked at.
    """

    count: int
    last: Any
    highest: int | None = None


def recovered_prefixes(
    files: list[MappedFile], dtype: np.dtype[Any], mode: OpenMode, whole: int
) -> list[tuple[MappedFile, Prefix]]:
    """What `#recover` takes: of the last three files, up to the first that is not full.

    See `valid_prefix`; the highest offset is that of the last file.
    """
    found = []
    for one in files[max(len(files) - RECOVERED_FILES, 0) :]:
        prefix = valid_prefix(one, dtype, mode, whole, highest=one is files[-1])
        found.append((one, prefix))
        if prefix.count < one.wrote // dtype.itemsize:
            break
    return found


def recovered_bytes(files: list[MappedFile]) -> int:
    """How much of the disk `recovered_prefixes` may read."""
    return sum(one.file.disk_bytes for one in files[-RECOVERED_FILES:] if one.file is not None)


def valid_prefix(
    one: MappedFile, dtype: np.dtype[Any], mode: OpenMode, whole: int, *, highest: bool = False
) -> Prefix:
    """Units up to the first that recovery does not take (`#recover`).

    whole: units in a file. highest: look at that, too.
    """
    if one.file is None:
        return Prefix(0, None)
    unit = dtype.itemsize
    top = -1 if highest else None
    with one.file.open(mode) as source:
        at, step, last = 0, _FIRST_READ // unit, None
        while at < whole:
            take = min(step, whole - at)
            raw = source.window(at * unit, take * unit)
            units: npt.NDArray[Any] = raw[: len(raw) // unit * unit].view(dtype)
            wrong = np.flatnonzero(~valid_units(units))
            good = int(wrong[0]) if wrong.size else len(units)
            if good:
                last, at = units[good - 1].copy(), at + good
                top = None if top is None else max(top, int(units["physical_offset"][:good].max()))
            if good < take:
                break
            step = min(step * 8, _LARGEST_READ // unit)
        return Prefix(at, last, top)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some units of a file in order: number of the first, offsets and sizes (int64)."""

    first: int
    offsets: Ints
    sizes: Ints


def chunks(one: MappedFile, mode: OpenMode, end: int, ordinary: int, start: int = 0) -> Iterator[Chunk]:
    """Plain units `[start, end)` of a file, from the front, in pieces that grow."""
    step, at = _FIRST_READ // UNIT.itemsize, start
    with ExitStack() as stack:
        source = stack.enter_context(one.file.open(mode)) if one.file is not None else None
        while at < end:
            take = min(step, end - at)
            offsets, sizes = _from_disk(source, at, take)
            if one.appended is not None:
                one.appended.lay(at, offsets, sizes, ordinary)
            yield Chunk(at, offsets, sizes)
            at += take
            step = min(step * 8, _LARGEST_READ // UNIT.itemsize)


def _from_disk(source: ByteSource | None, at: int, take: int) -> tuple[Ints, Ints]:
    offsets, sizes = np.zeros(take, np.int64), np.zeros(take, np.int64)
    if source is not None:
        raw = source.window(at * UNIT.itemsize, take * UNIT.itemsize)
        units = raw[: len(raw) // UNIT.itemsize * UNIT.itemsize].view(UNIT)
        offsets[: len(units)], sizes[: len(units)] = units["physical_offset"], units["size"]
    return offsets, sizes
