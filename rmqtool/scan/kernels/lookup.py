"""Records by key, along the chains of mapped index files, where nothing needs more than a look."""

from __future__ import annotations

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from formats.index import Item
from formats.primitives import offset_of, sizeof
from rmqtool.scan.fields import ROW_WIDTH, FoundColumn, IndexColumn, LookupRequest, SegmentColumn
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    ACCEPTED,
    CHECK_TEXT,
    KEYS_POSITION,
    STORE_SIZE,
    STORE_TIMESTAMP,
    TOPIC_LENGTH,
    TOPIC_POSITION,
    UNIQ_POSITION,
)
from rmqtool.scan.kernels.hashes import HASH, NONE, P1, extend, folded, same
from rmqtool.scan.kernels.intrinsics import be32, be64, on_stack, prefetch_to_read, u8, u32, u64
from rmqtool.scan.kernels.record import contents, frame
from rmqtool.scan.kernels.text import finish_odd

FILES = int(LookupRequest.FILES)
FILE_COUNT = int(LookupRequest.FILE_COUNT)
ALL_FILES = int(LookupRequest.ALL_FILES)
SLOTS = int(LookupRequest.SLOTS)
SEGMENTS = int(LookupRequest.SEGMENTS)
SEGMENT_COUNT = int(LookupRequest.SEGMENT_COUNT)
FIRST_SEGMENT = int(LookupRequest.FIRST_SEGMENT)
SEGMENT_SIZE = int(LookupRequest.SEGMENT_SIZE)
ROOM = int(LookupRequest.ROOM)
STEPS = int(LookupRequest.STEPS)
WRITTEN = int(LookupRequest.WRITTEN)
HIGH = int(LookupRequest.HIGH)
BEGIN = int(LookupRequest.BEGIN)
END = int(LookupRequest.END)
LIMIT = int(LookupRequest.LIMIT)
ENDED = int(LookupRequest.ENDED)
MISSING = int(LookupRequest.MISSING)
KEYS = int(LookupRequest.KEYS)
ENDS = len(LookupRequest)
NUMBER = 8
FILE_WIDTH, SEGMENT_WIDTH, FOUND_WIDTH = len(IndexColumn), len(SegmentColumn), len(FoundColumn)
ITEM = sizeof(Item)
OFFSET = offset_of(Item, "physical_offset")
PREV = offset_of(Item, "prev")
SLOT = 4
NO, YES, UNSURE = 0, 1, -1
STAGES, APART = 3, 8
"""steps by which a key is brought into the cache while others are looked up; keys between two of them"""
LINE, FIRST_LINES, MOST_AHEAD = 64, 6, 2048

row_on_stack = on_stack(ROW_WIDTH)


@kernel(forceinline=True)
def _at(table, width, row, column):
    """A number of a table by its address."""
    return np.int64(u64(table + (row * width + column) * NUMBER))


@kernel(forceinline=True)
def _newest(asked, file, value):
    """Number of the newest item on the chain of a hash."""
    slots = _at(asked[FILES], FILE_WIDTH, file, 0) + SLOT * (value % asked[SLOTS])
    if _at(asked[FILES], FILE_WIDTH, file, 1):
        return np.int64(np.int32(u32(slots)))
    return be32(slots)


@kernel(forceinline=True)
def _has_key(base, row, key, length):
    """Whether a record has a key, as `UNIQ_KEY` or an element of `KEYS`, byte by byte."""
    if row[UNIQ_POSITION + 1] == length and same(base + row[UNIQ_POSITION], key, length):
        return True
    keys = base + row[KEYS_POSITION]
    whole = row[KEYS_POSITION + 1]
    first = 0
    for i in range(max(whole, 0) + 1):
        if i >= whole or u8(keys + i) == 0x20:
            if i - first == length and same(keys + first, key, length):
                return True
            first = i + 1
    return False


@kernel()
def _look(asked, offset, topic, topic_length, key, length, into):
    """Whether the record that begins at an offset has the key and was stored in time.

    UNSURE where that takes more than this: no record, another text of the same meaning, bytes that are not at
    hand, or were cut off. into: place in `asked` of the row that gets it.
    """
    number = offset // asked[SEGMENT_SIZE] - asked[FIRST_SEGMENT]
    if offset < 0 or number < 0:
        return NO  # it has expired
    if number >= asked[SEGMENT_COUNT] or offset >= asked[HIGH]:
        asked[MISSING] = number
        return UNSURE
    base = _at(asked[SEGMENTS], SEGMENT_WIDTH, number, 0)
    size = _at(asked[SEGMENTS], SEGMENT_WIDTH, number, 1)
    if size <= 0:
        asked[MISSING] = number
        return UNSURE
    at = offset - base
    end = min(size, asked[HIGH] - base)
    if at < 0 or at >= end:
        return UNSURE
    data = _at(asked[SEGMENTS], SEGMENT_WIDTH, number, 2)
    rows = carray(row_on_stack(), (1, ROW_WIDTH))
    row = rows[0]
    stop, _, _ = frame(data, at, end, 0, asked[SEGMENT_SIZE], row)
    if stop != ACCEPTED or u8(data + at + row[STORE_SIZE] - 1) == 0:
        return UNSURE  # the latter: where another process has cut the file lie zeros
    odd = contents(data, end, 0, CHECK_TEXT, row)
    if odd:
        finish_odd(data, end, 0, CHECK_TEXT, rows, 1)
    mine = row[TOPIC_LENGTH] == topic_length and same(data + row[TOPIC_POSITION], topic, topic_length)
    if mine and _has_key(data, row, key, length):
        if row[STORE_TIMESTAMP] < asked[BEGIN] or row[STORE_TIMESTAMP] > asked[END]:
            return NO
        asked[into] = number
        asked[into + 1] = at
        asked[into + 2] = at + row[STORE_SIZE]
        if asked[KEYS] > 1:  # it is copied when all have been found
            for line in range(FIRST_LINES * LINE, min(row[STORE_SIZE], MOST_AHEAD), LINE):
                prefetch_to_read(data + at + line)
        return YES
    return UNSURE if odd else NO


@kernel(forceinline=True)
def _goes_on(items, newest, room):
    """Whether a file has an item behind the newest of a chain: then nobody has cut what the chain is in.

    Where a file is cut all that lies behind is zeros, and the items of a chain lie in front of its newest.
    """
    following = max(newest, 0) + 1
    if following >= room:
        return False
    item = items + following * ITEM
    return be32(item) != 0 or be64(item + OFFSET) != 0


@kernel(forceinline=True)
def _find(asked, value, topic, topic_length, key, length, into, until):
    """Records with a key, the newest first, into rows from one place of `asked` to another.

    Returns how many, or UNSURE.
    """
    if length <= 0:
        return UNSURE
    count = 0
    before = np.int64(-1)
    steps = asked[STEPS]
    for file in range(asked[FILE_COUNT]):
        items = _at(asked[FILES], FILE_WIDTH, file, 2)
        behind = _at(asked[FILES], FILE_WIDTH, file, 3)
        newest = number = _newest(asked, file, value)
        if file == 0 and number >= asked[WRITTEN]:
            return UNSURE
        while 0 < number < behind:
            steps -= 1
            if steps < 0:
                return UNSURE
            item = items + number * ITEM
            if be32(item) == value:
                offset = be64(item + OFFSET)
                if offset != before:
                    before = offset
                    if into >= until:
                        return UNSURE
                    verdict = _look(asked, offset, topic, topic_length, key, length, into)
                    if verdict == UNSURE:
                        return UNSURE
                    count += verdict
                    into += verdict * FOUND_WIDTH
                    if count >= asked[LIMIT]:
                        return count
            behind, number = number, be32(item + PREV)
        if not _goes_on(items, newest, _at(asked[FILES], FILE_WIDTH, file, 3)):
            asked[ENDED] = max(asked[ENDED], file + 1)
    return count if asked[ALL_FILES] else UNSURE


@kernel(forceinline=True)
def _fetch(asked, stage, value):
    """Brings what a key will need first into the cache: its slot, then the newest item, then the record."""
    if asked[FILE_COUNT] < 1:
        return
    if stage == 0:
        slots = _at(asked[FILES], FILE_WIDTH, 0, 0)
        prefetch_to_read(slots + SLOT * (value % asked[SLOTS]))
        return
    number = _newest(asked, 0, value)
    if number <= 0 or number >= min(_at(asked[FILES], FILE_WIDTH, 0, 3), asked[WRITTEN]):
        return
    item = _at(asked[FILES], FILE_WIDTH, 0, 2) + number * ITEM
    if stage == 1:
        prefetch_to_read(item)
        return
    offset = be64(item + OFFSET)
    number = offset // asked[SEGMENT_SIZE] - asked[FIRST_SEGMENT]
    if offset < 0 or number < 0 or number >= asked[SEGMENT_COUNT]:
        return
    data = _at(asked[SEGMENTS], SEGMENT_WIDTH, number, 2)
    at = offset - _at(asked[SEGMENTS], SEGMENT_WIDTH, number, 0)
    for line in range(FIRST_LINES):  # what is not mapped is not fetched, and no error
        prefetch_to_read(data + at + line * LINE)


@kernel()
def look_up(asked):
    """Looks keys up: for each the number of records found, the newest first, or -1 where it is not sure.

    asked: see `fields.LookupRequest`. Only files and segments of the tables are read. Returns the rows used,
    -1 for a question that does not fit into `asked`.
    """
    keys = asked[KEYS]
    room = asked[ROOM]
    counts = ENDS + keys + 1
    rows = counts + keys
    text = rows + room * FOUND_WIDTH
    asked[ENDED] = 0
    asked[MISSING] = -1
    if keys < 0 or room < 0 or keys > asked.size or room > asked.size or text > asked.size:
        return -1
    if asked[SLOTS] <= 0 or asked[SEGMENT_SIZE] <= 0:
        return -1
    length = (asked.size - text) * NUMBER
    last = 0
    for k in range(keys + 1):
        if asked[ENDS + k] < last or asked[ENDS + k] > length:
            return -1
        last = asked[ENDS + k]
    base = asked.ctypes.data
    words = base + text * NUMBER
    topic_length = asked[ENDS]
    prefix = extend(NONE, words, topic_length) * P1 + HASH
    into = rows
    ahead = STAGES * APART if keys > 1 else 0
    for k in range(-ahead, keys):
        for stage in range(STAGES if ahead else 0):
            one = k + (STAGES - stage) * APART
            if 0 <= one < keys:
                if stage == 0:
                    key = words + asked[ENDS + one]
                    hashed = folded(extend(prefix, key, asked[ENDS + one + 1] - asked[ENDS + one]))
                    asked[counts + one] = hashed
                _fetch(asked, stage, asked[counts + one])
        if k < 0:
            continue
        key = words + asked[ENDS + k]
        size = asked[ENDS + k + 1] - asked[ENDS + k]
        value = asked[counts + k] if ahead else folded(extend(prefix, key, size))
        count = _find(asked, value, words, topic_length, key, size, into, text)
        asked[counts + k] = count
        into += max(count, 0) * FOUND_WIDTH
    return (into - rows) // FOUND_WIDTH
