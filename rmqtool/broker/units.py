"""Units of a queue file: what lies on disk, and over it what the start appends.

Appended units are not kept one by one. Recovery only asks of a unit whether its offset lies between the log's
first byte and the end of recovery, which is true of every record that lies where it says; only others, and
each unit whose end may be asked for, are kept as they are.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
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

_FIRST_READ = 4096
"""bytes read first of a file: most queues are short"""
_LARGEST_READ = 1 << 20


@dataclass(slots=True)
class Overlay:
    """Units `[low, high)` of a file, by number in the file, that the start appended.

    exact: (number, offset, size) arrays of those that are kept, later ones over earlier ones.
    """

    low: int
    high: int
    exact: list[tuple[Ints, Ints, Ints]] = field(default_factory=list)

    def add(self, first: int, count: int) -> None:
        """Units were appended at `first`."""
        self.low = min(self.low, first)
        self.high = first + count

    def keep(self, numbers: Ints, offsets: Ints, sizes: Ints) -> None:
        """These units are not ordinary, or are the last known."""
        if len(numbers):
            self.exact.append((numbers, offsets, sizes))

    def cut(self, end: int) -> None:
        """Units from `end` on are no longer data."""
        self.low, self.high = min(self.low, end), min(self.high, end)
        kept = [(numbers < end, numbers, offsets, sizes) for numbers, offsets, sizes in self.exact]
        self.exact = [(n[m], o[m], s[m]) for m, n, o, s in kept if m.any()]

    def lay(self, first: int, offsets: Ints, sizes: Ints, ordinary: int) -> None:
        """Puts the appended units over columns that begin at unit `first`.

        `ordinary` stands for an offset that is not kept.
        """
        count = len(offsets)
        low, high = max(self.low - first, 0), min(self.high - first, count)
        if low < high:
            offsets[low:high], sizes[low:high] = ordinary, 1
        for numbers, kept, lengths in self.exact:
            here = (numbers >= first) & (numbers < first + count)
            places = numbers[here] - first
            offsets[places], sizes[places] = kept[here], lengths[here]

    def end_of(self, number: int) -> int | None:
        """Physical end of an appended unit, None when it was not kept."""
        for numbers, offsets, sizes in reversed(self.exact):
            hits = np.flatnonzero(numbers == number)
            if hits.size:
                return int(offsets[hits[-1]] + sizes[hits[-1]])
        return None


@dataclass(frozen=True, slots=True)
class Prefix:
    """Valid units at the beginning of a queue file on disk. last: the last of them."""

    count: int
    last: Any


def valid_prefix(one: MappedFile, dtype: np.dtype[Any], mode: OpenMode, whole: int) -> Prefix:
    """Units up to the first that recovery does not take (`#recover`); `whole`: units in a file."""
    if one.file is None:
        return Prefix(0, None)
    unit = dtype.itemsize
    with one.file.open(mode) as source:
        at, step, last = 0, _FIRST_READ // unit, None
        while at < whole:
            take = min(step, whole - at)
            units = source.window(at * unit, take * unit)
            units = units[: len(units) // unit * unit].view(dtype)
            wrong = np.flatnonzero(~valid_units(units))
            good = int(wrong[0]) if wrong.size else len(units)
            if good:
                last, at = units[good - 1].copy(), at + good
            if good < take:
                break
            step = min(step * 8, _LARGEST_READ // unit)
        return Prefix(at, last)


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
            if one.overlay is not None:
                one.overlay.lay(at, offsets, sizes, ordinary)
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
