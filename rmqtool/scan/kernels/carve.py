"""Records wherever they lie, at any byte. `carve_python` is the twin."""

from __future__ import annotations

import numpy as np

from formats.commitlog import BLANK_MAGIC_CODE as MAGIC_BLANK
from formats.commitlog import MESSAGE_MAGIC_CODE as MAGIC_V1
from formats.commitlog import MESSAGE_MAGIC_CODE_V2 as MAGIC_V2
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    ACCEPTED,
    CHECK_CRC,
    CHECK_TEXT,
    CRC_BAD,
    CRC_OK,
    CRC_STATE,
    END,
    ISSUE_TOPIC_CHARACTERS,
    ISSUE_TOPIC_NUL,
    ISSUE_TOPIC_UTF8,
    ISSUES,
    MIN_BLANK,
    NEED_MORE,
    OFF_PHYSICAL_OFFSET,
    OFF_SYS_FLAG,
    ROWS_FULL,
    STORE_SIZE,
    STORED_OFFSET,
    TOPIC_POSITION,
)
from rmqtool.scan.kernels.intrinsics import be32, be64, u64
from rmqtool.scan.kernels.record import contents, frame
from rmqtool.scan.kernels.text import finish_odd

LEADS = np.uint64(0xDADADADADADADADA)
"""first byte of both record magics, eight times; rare in text and in zeros"""
LOWS = np.uint64(0x0101010101010101)
HIGHS = np.uint64(0x8080808080808080)
NONE = np.uint64(0)


@kernel(forceinline=True)
def _candidate(base, at, end):
    """The next place with a record's magic, else the first where not a whole blank fits before `end`."""
    while at + MIN_BLANK <= end:
        if end - at >= 72:
            hit = NONE
            for k in range(4, 68, 8):
                word = u64(base + at + k) ^ LEADS
                hit |= (word - LOWS) & ~word
            if hit & HIGHS == NONE:
                at += 64
                continue
        for place in range(at, min(at + 64, end - MIN_BLANK + 1)):
            magic = be32(base + place + 4)
            if magic == MAGIC_V1 or magic == MAGIC_V2:  # noqa: SIM109 - compiled
                return place
        at = min(at + 64, end - MIN_BLANK + 1)
    return at


@kernel()
def carve(buf, start, border, origin, file_size, longest, follows, rows, status):
    """Every valid record that begins in window positions `[start, border)`, one row each.

    A record is valid with a right frame of at most `longest` bytes, a right body CRC, a stored physical
    offset that is not negative, and a topic that is a legal name or, with a body, whose CRC proves the
    record, any text without zero bytes. The topic of one that continues the record in front of it
    (`follows`: the offset that is expected of one at `start`, or -1) may hold any bytes. What lies inside a
    valid record is not looked at, unless no record follows it: no CRC covers topic and properties, so a
    record that was cut there may have taken the front of the next one for its end. `status`: rows, file
    position to go on at, stop (ROWS_FULL; NEED_MORE: a candidate is cut by the window; END: `border`), bytes
    wanted for NEED_MORE, and the new `follows`.
    """
    base = buf.ctypes.data
    end = buf.size
    reach = min(end, border + MIN_BLANK - 1)
    at = start
    count = 0
    stop = END
    wanted = 0
    while at < border and at + MIN_BLANK <= end:
        magic = be32(base + at + 4)
        if magic != MAGIC_V1 and magic != MAGIC_V2:
            follows = -1
            at = _candidate(base, at + 1, reach)
            continue
        if count == rows.shape[0]:
            stop = ROWS_FULL
            break
        row = rows[count]
        found, need, _ = frame(base, at, end, origin, file_size, row)
        if found == NEED_MORE and need <= longest and not _negative(base, at, end):
            stop = NEED_MORE
            wanted = need
            break
        if found == ACCEPTED and row[STORE_SIZE] <= longest and row[STORED_OFFSET] >= 0:
            if contents(base, end, origin, CHECK_CRC | CHECK_TEXT, row):
                finish_odd(base, end, origin, CHECK_TEXT, rows[count : count + 1], 1)
            odd = row[ISSUES] & (ISSUE_TOPIC_UTF8 | ISSUE_TOPIC_CHARACTERS)
            torn = row[ISSUES] & (ISSUE_TOPIC_UTF8 | ISSUE_TOPIC_NUL)
            proven = row[CRC_STATE] == CRC_OK and torn == 0
            if row[CRC_STATE] != CRC_BAD and (odd == 0 or proven or row[STORED_OFFSET] == follows):
                behind = at + row[STORE_SIZE]
                if behind + MIN_BLANK > end and origin + behind + MIN_BLANK <= file_size:
                    stop = NEED_MORE
                    wanted = row[STORE_SIZE] + MIN_BLANK
                    break
                follows = row[STORED_OFFSET] + row[STORE_SIZE]
                count += 1
                at = behind
                if behind + MIN_BLANK <= end:
                    magic = be32(base + behind + 4)
                    if magic != MAGIC_V1 and magic != MAGIC_V2 and magic != MAGIC_BLANK:
                        inside = row[TOPIC_POSITION] - origin
                        place = _candidate(base, inside, behind + MIN_BLANK - 1)
                        if place < behind:
                            at, follows = place, -1
                continue
        follows = -1
        at += 1
    status[0] = count
    status[1] = origin + at
    status[2] = stop
    status[3] = wanted
    status[4] = follows


@kernel(forceinline=True)
def _negative(base, at, end):
    """Whether what the window shows of a candidate rules it out before the rest of it is fetched."""
    return end - at >= OFF_SYS_FLAG and (be64(base + at + OFF_PHYSICAL_OFFSET) < 0 or be32(base + at) <= 0)
