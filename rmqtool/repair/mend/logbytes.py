"""Bytes of a log as its segments should lie, by physical offset."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from rmqtool.repair.mend.overlay import OverlaySource
from rmqtool.store.patched import PatchedSource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from rmqtool.repair.mend.placing import Slab
    from rmqtool.store.access import OpenMode

LARGEST_READ = 64 << 20
"""bytes of one record that are looked at; brokers take 4 MiB by default"""


class LogBytes:
    """Reads inside of one segment at a time; zeros where no file has bytes. A context manager."""

    def __init__(self, slabs: Sequence[Slab], mode: OpenMode) -> None:
        self._slabs, self._mode = slabs, mode
        self._bases = [slab.base for slab in slabs]
        self._open: dict[int, OverlaySource] = {}

    def read(self, place: int, length: int) -> bytes:
        """The bytes from a physical offset on, up to `LARGEST_READ` and the end of its segment."""
        slab = self._slabs[bisect_right(self._bases, place) - 1]
        source = self._open.get(slab.base)
        if source is None:
            self.close()
            below = None if slab.file is None else PatchedSource(slab.file.open(self._mode))
            source = OverlaySource(below, slab.size, slab.given, slab.path)
            self._open[slab.base] = source
        return source.window(place - slab.base, min(length, LARGEST_READ)).tobytes()

    def close(self) -> None:
        """Closes the segment read last."""
        for source in self._open.values():
            source.close()
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
