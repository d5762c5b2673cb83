"""Bytes of a log as its segments should lie, by physical offset."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from rmqtool.repair.keep.overlay import OverlaySource
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from rmqtool.repair.keep.placing import PlacedSegment
    from rmqtool.store.access import OpenMode

LARGEST_READ = 64 << 20
"""bytes of one record that are looked at; brokers take 4 MiB by default"""


class LogBytes:
    """Reads inside of one segment at a time; zeros where no file has bytes. A context manager."""

    def __init__(self, segments: Sequence[PlacedSegment], mode: OpenMode) -> None:
        self._slabs, self._mode = segments, mode
        self._bases = [placed.base for placed in segments]
        self._open: dict[int, OverlaySource] = {}

    def read(self, place: int, length: int) -> bytes:
        """The bytes from a physical offset on, up to `LARGEST_READ` and the end of its segment."""
        placed = self._slabs[bisect_right(self._bases, place) - 1]
        source = self._open.get(placed.base)
        if source is None:
            self.close()
            below = None if placed.file is None else ZeroFilledSource(placed.file.open(self._mode))
            source = OverlaySource(below, placed.size, placed.given, placed.path)
            self._open[placed.base] = source
        return source.window(place - placed.base, min(length, LARGEST_READ)).tobytes()

    def close(self) -> None:
        """Closes the segment read last."""
        for source in self._open.values():
            source.close()
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
