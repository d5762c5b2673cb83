"""A file as it would be after a plan: its bytes with others over them, never all in memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.store.files import StoreFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from rmqtool.repair.content import Content
    from rmqtool.store.access import OpenMode
    from rmqtool.store.bytes import ByteSource, Window


@dataclass(frozen=True, slots=True)
class Patch:
    """Bytes from `position` on."""

    position: int
    content: Content

    @property
    def end(self) -> int:
        """Behind the last byte."""
        return self.position + self.content.size


class PatchIndex:
    """Finds the patches over a range; made once for all that read a file."""

    def __init__(self, patches: tuple[Patch, ...]) -> None:
        places = [(one.position, one.end) for one in patches]
        self._patches = patches
        self.extents = _extents(places)
        self.starts = [start for start, _ in self.extents]
        self._order = sorted(range(len(patches)), key=lambda number: places[number][0])
        self._positions = [places[number][0] for number in self._order]
        ends = [places[number][1] for number in self._order]
        self._reach = [ends]
        """a tree: each level has the highest end of every two of the one before"""
        while len(ends) > 1:
            ends = [max(ends[at : at + 2]) for at in range(0, len(ends), 2)]
            self._reach.append(ends)

    def covers(self, start: int, end: int) -> bool:
        """Whether every byte of a range lies in some patch."""
        number = bisect_right(self.starts, start) - 1
        return number >= 0 and end <= self.extents[number][1]

    def over(self, start: int, end: int) -> Iterator[Patch]:
        """The patches that touch a range, in the order of making."""
        last = bisect_left(self._positions, end)
        for number in sorted(self._order[at] for at in self._behind(start, last)):
            yield self._patches[number]

    def _behind(self, start: int, last: int) -> Iterator[int]:
        """Which patches in front of the `last` one, by position, end behind `start`; one may lie over all."""
        nodes = [(len(self._reach) - 1, 0)] if last else []
        while nodes:
            level, at = nodes.pop()
            if at << level >= last or self._reach[level][at] <= start:
                continue
            if level == 0:
                yield at
                continue
            below = self._reach[level - 1]
            nodes += [(level - 1, child) for child in (2 * at, 2 * at + 1) if child < len(below)]


class OverlaySource:
    """A source (None: nothing but zeros) of `size` bytes with patches over it, the later ones on top.

    Where the source is shorter, zeros follow. Members as in `store.bytes.ByteSource`.
    """

    zero_copy = False

    def __init__(
        self, source: ByteSource | None, size: int, patches: tuple[Patch, ...] | PatchIndex, name: str
    ) -> None:
        self._source = source
        self.size = size
        self.name = name
        self._index = PatchIndex(patches) if isinstance(patches, tuple) else patches

    @property
    def window_bytes(self) -> int:
        """See `ByteSource.window_bytes`."""
        return 2 << 20

    def size_now(self) -> int:
        """See `ByteSource.size_now`."""
        return self.size

    def had_fault(self) -> bool:
        """See `ByteSource.had_fault`; windows are copies, made again where that shows zeros."""
        return False

    def next_data(self, offset: int) -> int | None:
        """See `ByteSource.next_data`."""
        below = None
        if self._source is not None and offset < self._source.size:
            below = self._source.next_data(offset)
        starts = self._index.starts
        number = bisect_right(starts, offset) - 1
        if number >= 0 and offset < self._index.extents[number][1]:
            return offset
        above = starts[number + 1] if number + 1 < len(starts) else None
        found = min((one for one in (below, above) if one is not None), default=None)
        return None if found is None or found >= self.size else found

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`."""
        if offset < 0 or length < 0:
            raise ValueError(f"negative window: offset {offset}, length {length}")
        wanted = max(min(length, self.size - offset), 0)
        buffer = np.zeros(wanted, np.uint8)
        self._copy_below(buffer, offset)
        for patch in self._index.over(offset, offset + wanted):
            start, end = max(patch.position, offset), min(patch.end, offset + wanted)
            piece = patch.content.read(start - patch.position, end - start)
            buffer[start - offset : end - offset] = np.frombuffer(piece, np.uint8)
        buffer.flags.writeable = False
        return buffer

    def _copy_below(self, buffer: Window, offset: int) -> None:
        source = self._source
        if source is None:
            return
        while True:
            below = source.window(offset, buffer.size)
            buffer[: below.size] = below
            if not source.had_fault():
                return

    def close(self) -> None:
        """Closes what lies below."""
        if self._source is not None:
            self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _extents(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges joined, empty ones left out."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(one for one in places if one[0] < one[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


@dataclass(frozen=True, slots=True)
class OverlayFile(StoreFile):
    """A file at a path of the store whose bytes are those of `below` (None: zeros) with patches over them."""

    below: StoreFile | None = None
    patches: tuple[Patch, ...] = field(default=())
    _index: PatchIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", PatchIndex(self.patches))

    def open(self, mode: OpenMode = "auto") -> ByteSource:
        """The bytes as they would be."""
        source = None if self.below is None or not self.below.size else self.below.open(mode)
        return OverlaySource(source, self.size, self._index, self.display_path)
