"""From record to record, and from damage to the next record."""

from __future__ import annotations

from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    ACCEPTED,
    BLANK,
    BODY_LENGTH,
    CHECK_CONTENT,
    CHECK_CRC,
    CHECK_TEXT,
    CRC_ABSENT,
    CRC_BAD,
    CRC_STATE,
    END,
    ISSUE_OFFSET,
    ISSUE_TOPIC_CHARACTERS,
    ISSUE_TOPIC_UTF8,
    ISSUES,
    MIN_BLANK,
    NEED_MORE,
    ROWS_FULL,
    STORE_SIZE,
    STORED_OFFSET,
)
from rmqtool.scan.kernels.intrinsics import prefetch_to_read
from rmqtool.scan.kernels.record import contents, frame, remarks
from rmqtool.scan.kernels.text import finish_odd

AHEAD, MOST_AHEAD, LINE = 2, 2048, 64
"""records ahead whose bytes are brought into the cache, how many of one, and by how many"""

FAR = 4096
"""bytes ahead where a walk does so that does not read bodies"""


@kernel(forceinline=True)
def _checked(base, at, end, origin, segment_base, checks, row):
    """What is asked of a record beside its frame. True if `finish_odd` has to look at the row."""
    odd = False
    if row[STORED_OFFSET] != segment_base + origin + at:
        row[ISSUES] = ISSUE_OFFSET
    if checks != 0:
        odd = contents(base, end, origin, checks, row)
        if checks & CHECK_CONTENT:
            row[ISSUES] |= remarks(base, origin, row)
    elif row[BODY_LENGTH] <= 0:
        row[CRC_STATE] = CRC_ABSENT
    return odd


@kernel()
def walk(buf, start, origin, file_size, segment_base, checks, rows, status):
    """Read records from window position `start` on, one row each, until one is not right or `rows` is full.

    `status` gets the number of rows, the *segment* position of the next byte, the stop, and what was expected
    and found there.
    """
    base = buf.ctypes.data
    end = buf.size
    at = start
    count = 0
    stop = ROWS_FULL
    expected = 0
    found = 0
    odd = False
    limit = rows.shape[0]
    while count < limit:
        row = rows[count]
        stop, expected, found = frame(base, at, end, origin, file_size, row)
        if stop != ACCEPTED:
            break
        size = row[STORE_SIZE]
        if not checks & CHECK_CRC:  # which reads all bytes, so that the processor fetches them by itself
            for line in range(0, size, LINE):
                prefetch_to_read(base + at + FAR + line)
        odd |= _checked(base, at, end, origin, segment_base, checks, row)
        at += size
        count += 1
    if odd:
        finish_odd(base, end, origin, checks, rows, count)
    if stop == ACCEPTED:
        stop = ROWS_FULL
    status[0] = count
    status[1] = origin + at
    status[2] = stop
    status[3] = expected
    status[4] = found


@kernel()
def records_at(buf, positions, origin, file_size, segment_base, checks, rows):
    """The records that begin at window positions, one row each of those that are right; returns how many.

    `rows` has room for all.
    """
    base = buf.ctypes.data
    end = buf.size
    count = 0
    odd = False
    last = min(positions.size, rows.shape[0]) - 1
    size = 0
    for number in range(last + 1):
        at = positions[number]
        if at < 0 or at >= end:
            continue
        # as many bytes as the last record had
        following = base + positions[min(number + AHEAD, last)]
        for line in range(0, min(size, MOST_AHEAD), LINE):
            prefetch_to_read(following + line)
        row = rows[count]
        stop, _, _ = frame(base, at, end, origin, file_size, row)
        if stop != ACCEPTED:
            continue
        odd |= _checked(base, at, end, origin, segment_base, checks, row)
        size = row[STORE_SIZE]
        count += 1
    if odd:
        finish_odd(base, end, origin, checks, rows, count)
    return count


@kernel()
def find_record(buf, start, origin, file_size, segment_base, shift, any_offset, rows, status):
    """The first place at or after `start` with a whole right record, or a blank up to the file end.

    A record counts when its frame, body CRC and topic are right and its stored physical offset is `shift`
    bytes away from its place (any distance with `any_offset`). Uses `rows[0]` as scratch. `status`: 1 found
    or 0, the segment position, and as stop ROWS_FULL (record), BLANK, END (nothing) or NEED_MORE (a candidate
    is cut by the window).
    """
    base = buf.ctypes.data
    end = buf.size
    row = rows[0]
    at = start
    status[0] = 0
    status[2] = END
    while at + MIN_BLANK <= end:
        # the second magic byte is the rarest of the four in text and in zeros: skip blocks without one
        if end - at >= 72:
            seen = 0
            for k in range(64):
                byte = buf[at + 4 + k]
                seen += (byte == 0xDA) | (byte == 0xCB)
            if seen == 0:
                at += 64
                continue
        stop_at = min(at + 64, end - MIN_BLANK + 1)
        while at < stop_at:
            first = buf[at + 4]
            if first == 0xDA or first == 0xCB:
                stop, expected, found = frame(base, at, end, origin, file_size, row)
                if stop == NEED_MORE:
                    status[1] = origin + at
                    status[2] = NEED_MORE
                    status[3] = expected
                    return
                if stop == BLANK and expected == found:
                    status[0] = 1
                    status[1] = origin + at
                    status[2] = BLANK
                    return
                if stop == ACCEPTED and (
                    any_offset or row[STORED_OFFSET] - segment_base - origin - at == shift
                ):
                    if contents(base, end, origin, CHECK_CRC | CHECK_TEXT, row):
                        finish_odd(base, end, origin, CHECK_TEXT, rows, 1)
                    # a record at its own place needs no more proof than its CRC
                    wrong = any_offset and row[ISSUES] & (ISSUE_TOPIC_UTF8 | ISSUE_TOPIC_CHARACTERS)
                    if row[CRC_STATE] != CRC_BAD and not wrong:
                        status[0] = 1
                        status[1] = origin + at
                        status[2] = ROWS_FULL
                        return
            at += 1
    status[1] = origin + at
