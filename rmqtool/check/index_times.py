"""Times of index items, and of the header, against the store times of the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.index import FIRST_ITEM

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.index_keys import Keys
    from rmqtool.check.index_reading import IndexFile
    from rmqtool.check.index_stream import Items

    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]
    Bools = npt.NDArray[np.bool_]

_KEPT = 10_000
_LAST_SECOND = (1 << 31) - 1


def item_times(pieces: Sequence[Items], owners: Ints, keys: Keys, on: Bools) -> Iterator[Finding]:
    """The seconds in each item and the times in the header against the store time of the record."""
    begin = 0
    for piece in pieces:
        chosen = slice(begin, begin + len(piece))
        begin += len(piece)
        header = piece.index.header
        if header is None or header.begin_timestamp <= 0:
            continue
        times = keys.times[owners[chosen]]
        valid = on[chosen].copy()
        yield from header_times(piece.index, piece.first, keys, owners[chosen], valid)
        if piece.first == FIRST_ITEM:
            # counted from the end of the file before, which may be gone
            valid[0] = False
        seconds = np.clip((times - header.begin_timestamp) // 1000, 0, _LAST_SECOND)
        wrong = np.flatnonzero(valid & (seconds != piece.time_diffs))
        for k in wrong[:_KEPT].tolist():
            yield piece.index.item(
                "IDX-TIME",
                piece.first + k,
                physical_offset=int(keys.offsets[owners[chosen]][k]),
                part="time_diff",
                expected=int(seconds[k]),
                found=int(piece.time_diffs[k]),
            )


def header_times(
    index: IndexFile, first: int, keys: Keys, owners: Ints | Int32s, valid: Bools | None
) -> Iterator[Finding]:
    """The header's times against the first and the last record, if these items are among those."""
    header = index.header
    if header is None or index.lost_header or index.cut:
        return
    ends = {
        "begin_timestamp": (FIRST_ITEM, header.begin_timestamp),
        "end_timestamp": (index.count - 1, header.end_timestamp),
    }
    for part, (number, said) in ends.items():
        k = number - first
        if index.moving and part == "end_timestamp":
            continue
        if not 0 <= k < len(owners) or (valid is not None and not valid[k]):
            continue
        offset, expected = int(keys.offsets[owners[k]]), int(keys.times[owners[k]])
        if expected != said:
            yield index.head("IDX-HEADER", part, physical_offset=offset, expected=expected, found=said)
