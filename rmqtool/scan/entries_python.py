"""The plain-Python twin of `kernels.entries`."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from formats.replay import ENTRY_HEAD_SIZE
from rmqtool.scan.fields import LARGEST_RECORD, EntryStop, Field
from rmqtool.scan.record_python import ACCEPTED, Verdict, contents, frame, i32

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]


def walk_entries(
    buf: Bytes, start: int, origin: int, file_size: int, checks: int, rows: Ints, status: Ints
) -> None:
    """See `kernels.walk_entries`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    at = start
    count = 0
    verdict: Verdict = (EntryStop.ROWS_FULL, 0, 0)
    while count < rows.shape[0]:
        verdict = _entry(data, at, file_size - origin - at)
        if verdict[0] != ACCEPTED:
            break
        length = verdict[1]
        row, end = rows[count], at + ENTRY_HEAD_SIZE + length
        kept = frame(data[:end], at + ENTRY_HEAD_SIZE, origin, origin + end, row)
        if kept[0] != ACCEPTED or row[Field.STORE_SIZE] != length:
            verdict = EntryStop.NO_RECORD, length, length
            break
        contents(data, origin, checks, row)
        at = end
        count += 1
        verdict = (EntryStop.ROWS_FULL, 0, 0)
    status[:5] = (count, origin + at, *verdict)


def _entry(data: memoryview, at: int, file_left: int) -> Verdict:
    """(accepted, length of the record, same) of an entry, or why it is none."""
    left = len(data) - at
    if min(file_left, left) < ENTRY_HEAD_SIZE:
        cut = file_left < ENTRY_HEAD_SIZE
        stop = EntryStop.CUT if cut else EntryStop.NEED_MORE
        return stop, ENTRY_HEAD_SIZE, file_left if cut else left
    length = i32(data, at)
    if length == 0:
        return EntryStop.MARKER, 0, 0
    if not 0 < length <= LARGEST_RECORD:
        return EntryStop.BAD_LENGTH, LARGEST_RECORD, length
    whole = ENTRY_HEAD_SIZE + length
    if file_left < whole:
        return EntryStop.CUT, whole, file_left
    if left < whole:
        return EntryStop.NEED_MORE, whole, left
    stored, computed = i32(data, at + 4) & 0xFFFFFFFF, zlib.crc32(data[at + ENTRY_HEAD_SIZE : at + whole])
    return (ACCEPTED, length, length) if stored == computed else (EntryStop.BAD_CRC, stored, computed)
