"""Items of a run that are at no record, and the records that may claim them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.index_stream import Items

    Int32s = npt.NDArray[np.int32]
    Bools = npt.NDArray[np.bool_]


class UnmatchedItems:
    """Items of a run that are at no record, by hash; a record that lacks a key may claim one."""

    def __init__(self, pieces: Sequence[Items], hashes: Int32s, places: Bools) -> None:
        self._pieces = pieces
        self.hashes = hashes
        self.places = places
        self._by_hash: dict[int, list[int]] | None = None

    def __bool__(self) -> bool:
        return bool(self.places.any())

    def item(self, place: int) -> tuple[Items, int]:
        """Piece and item number of a place in the joined columns."""
        for piece in self._pieces:
            if place < len(piece):
                return piece, piece.first + place
            place -= len(piece)
        raise IndexError(place)

    def claim(self, wanted: list[int], offset: int) -> Generator[Finding, None, bool]:
        """Items whose hash is one of these keys: their offset is wrong. Answers whether all were found."""
        if self._by_hash is None:
            self._by_hash = {}
            for place in np.flatnonzero(self.places).tolist():
                self._by_hash.setdefault(int(self.hashes[place]), []).append(place)
        complete = True
        for value in wanted:
            places = self._by_hash.get(value)
            if not places:
                complete = False
                continue
            place = places.pop(0)
            self.places[place] = False
            piece, number = self.item(place)
            yield piece.index.item(
                "IDX-OFFSET",
                number,
                physical_offset=offset,
                part="physical_offset",
                expected=offset,
                found=int(piece.offsets[number - piece.first]),
            )
        return complete
