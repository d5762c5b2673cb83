"""Through the entries of a replayable file."""

from __future__ import annotations

from rmqtool.scan.kernels.checksum import crc32_at
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    ACCEPTED,
    BODY_LENGTH,
    CHECK_TEXT,
    CRC_ABSENT,
    CRC_STATE,
    ENTRY_BAD_CRC,
    ENTRY_BAD_LENGTH,
    ENTRY_CUT,
    ENTRY_HEAD,
    ENTRY_MARKER,
    ENTRY_NEED_MORE,
    ENTRY_NO_RECORD,
    ENTRY_ROWS_FULL,
    LARGEST_RECORD,
    STORE_SIZE,
)
from rmqtool.scan.kernels.intrinsics import be32
from rmqtool.scan.kernels.record import contents, frame
from rmqtool.scan.kernels.text import finish_odd


@kernel()
def walk_entries(buf, start, origin, file_size, checks, rows, status):
    """Read entries from window position `start` on, one row each, until one is not right or `rows` is full.

    `status` gets the number of rows, the position in the *file* of the next entry, why it stopped there
    (`fields.EntryStop`), and two numbers: bytes wanted for `NEED_MORE`, the length for `BAD_LENGTH` and
    `NO_RECORD`, stored and computed CRC for `BAD_CRC`.
    """
    base = buf.ctypes.data
    end = buf.size
    at = start
    count = 0
    stop = ENTRY_ROWS_FULL
    expected = 0
    found = 0
    odd = False
    while count < rows.shape[0]:
        file_left = file_size - origin - at
        if file_left < ENTRY_HEAD:
            stop, expected, found = ENTRY_CUT, ENTRY_HEAD, file_left
            break
        if end - at < ENTRY_HEAD:
            stop, expected, found = ENTRY_NEED_MORE, ENTRY_HEAD, end - at
            break
        length = be32(base + at)
        if length == 0:
            stop = ENTRY_MARKER
            break
        if length < 0 or length > LARGEST_RECORD:
            stop, expected, found = ENTRY_BAD_LENGTH, LARGEST_RECORD, length
            break
        whole = ENTRY_HEAD + length
        if file_left < whole:
            stop, expected, found = ENTRY_CUT, whole, file_left
            break
        if end - at < whole:
            stop, expected, found = ENTRY_NEED_MORE, whole, end - at
            break
        stored = be32(base + at + 4) & 0xFFFFFFFF
        computed = crc32_at(base + at + ENTRY_HEAD, length)
        if stored != computed:
            stop, expected, found = ENTRY_BAD_CRC, stored, computed
            break
        row = rows[count]
        behind = at + whole
        kept, _, _ = frame(base, at + ENTRY_HEAD, behind, origin, origin + behind, row)
        if kept != ACCEPTED or row[STORE_SIZE] != length:
            stop, expected, found = ENTRY_NO_RECORD, length, length
            break
        if checks != 0:
            odd |= contents(base, end, origin, checks, row)
        elif row[BODY_LENGTH] <= 0:
            row[CRC_STATE] = CRC_ABSENT
        at = behind
        count += 1
    if odd:
        finish_odd(base, end, origin, CHECK_TEXT, rows, count)
    status[0] = count
    status[1] = origin + at
    status[2] = stop
    status[3] = expected
    status[4] = found
