"""Well-formed records side by side, made when their bytes are asked for."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.repair.mend.overlay import chunks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class Tile:
    """`length` bytes for the physical offset `start`, given by `make`."""

    start: int
    length: int
    make: Callable[[], bytes] = field(repr=False)


class Tiles:
    """Tiles without a gap between them, as content of a change."""

    def __init__(self, tiles: list[Tile]) -> None:
        self._tiles = tiles
        self._starts = [tile.start for tile in tiles]
        self._last: tuple[int, bytes] = (-1, b"")
        self.start = tiles[0].start
        self.size = tiles[-1].start + tiles[-1].length - tiles[0].start

    def read(self, position: int, length: int) -> bytes:
        """See `Readable.read`."""
        place, end = self.start + position, self.start + position + length
        number = bisect_right(self._starts, place) - 1
        pieces = []
        while place < end:
            tile = self._tiles[number]
            data = self._bytes_of(number)
            pieces.append(data[place - tile.start : end - tile.start])
            place = tile.start + tile.length
            number += 1
        return b"".join(pieces)

    def _bytes_of(self, number: int) -> bytes:
        if self._last[0] != number:
            data = self._tiles[number].make()
            if len(data) != self._tiles[number].length:
                raise AssertionError(f"{len(data)} bytes for a place of {self._tiles[number].length}")
            self._last = number, data
        return self._last[1]

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `Content.chunks`."""
        return chunks_of(self)
