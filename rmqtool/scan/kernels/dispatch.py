"""Records on their way to their consume queues, and units by themselves. `dispatch_python` is the twin."""

from __future__ import annotations

import numpy as np

from formats.consumequeue import PRE_BLANK_SIZE, Unit
from formats.primitives import offset_of, sizeof
from rmqtool.scan.fields import Column, Field, Lane
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    ISSUE_TOPIC_UTF8,
    ISSUES,
    POSITION,
    QUEUE_ID,
    QUEUE_OFFSET,
    STORE_SIZE,
    STORE_TIMESTAMP,
    SYS_FLAG,
    TAGS_POSITION,
    TOPIC_LENGTH,
    TOPIC_POSITION,
)
from rmqtool.scan.kernels.hashes import extend, same
from rmqtool.scan.kernels.intrinsics import be32, be64, u8, u64

UNIT = sizeof(Unit)
SIZE = offset_of(Unit, "size")
CODE = offset_of(Unit, "tags_code")
PRE_BLANK = PRE_BLANK_SIZE
TAGS_LENGTH = int(Field.TAGS_LENGTH)

LANE = int(Column.LANE)
SLOT = int(Column.SLOT)
OFFSET = int(Column.OFFSET)
LENGTH = int(Column.SIZE)
TAGS = int(Column.CODE)
OWNER = int(Column.OWNER)
TIME = int(Column.TIME)

QUEUE = int(Lane.QUEUE_ID)
NAME = int(Lane.NAME)
NAME_LENGTH = int(Lane.NAME_LENGTH)
HASH = int(Lane.HASH)

PREPARED = 1
ROLLBACK = 3
MIX = np.uint64(0x9E3779B97F4A7C15)
NONE = np.uint64(0)
SHIFT = np.uint64(29)


@kernel()
def _mixed(address, length, queue_id):
    h = np.uint64(queue_id) * MIX
    i = 0
    while i + 8 <= length:
        h = (h ^ u64(address + i)) * MIX
        h ^= h >> SHIFT
        i += 8
    while i < length:
        h = (h ^ u8(address + i)) * MIX
        h ^= h >> SHIFT
        i += 1
    return np.int64(h ^ (h >> SHIFT))


@kernel()
def rehash(lanes, count, table):
    """Fill an empty table of lanes, whose size is a power of two."""
    mask = table.size - 1
    for lane in range(count):
        place = lanes[lane, HASH] & mask
        while table[place] != 0:
            place = (place + 1) & mask
        table[place] = lane + 1


@kernel()
def place(buf, origin, rows, start, segment_base, known, counts, columns):
    """Columns (`fields.Column`) of the records from row `start` on that want a unit.

    known: lanes, names, table. A lane (`fields.Lane`) is a topic and queue number; a new one goes to
    `lanes`, its topic to `names`. counts: lanes, bytes of names, filled columns; carried from call to call.
    Returns the next row, which is in front of the last where one of the arrays has no more room.
    """
    lanes, names, table = known
    base = buf.ctypes.data - origin
    arena = names.ctypes.data
    mask = table.size - 1
    filled = counts[2]
    for r in range(start, rows.shape[0]):
        row = rows[r]
        kind = (row[SYS_FLAG] >> 2) & 3
        if kind in (PREPARED, ROLLBACK) or row[ISSUES] & ISSUE_TOPIC_UTF8:
            continue
        topic = base + row[TOPIC_POSITION]
        length = row[TOPIC_LENGTH]
        queue_id = row[QUEUE_ID]
        h = _mixed(topic, length, queue_id)
        at = h & mask
        lane = -1
        while table[at] != 0:
            other = table[at] - 1
            if (
                lanes[other, HASH] == h
                and lanes[other, QUEUE] == queue_id
                and lanes[other, NAME_LENGTH] == length
                and same(arena + lanes[other, NAME], topic, length)
            ):
                lane = other
                break
            at = (at + 1) & mask
        full = lane < 0 and (
            counts[0] == lanes.shape[0] or counts[0] * 2 >= table.size or counts[1] + length > names.size
        )
        if full or filled == columns.shape[1]:
            counts[2] = filled
            return r
        if lane < 0:
            lane = counts[0]
            lanes[lane, QUEUE] = queue_id
            lanes[lane, NAME] = counts[1]
            lanes[lane, NAME_LENGTH] = length
            lanes[lane, HASH] = h
            for i in range(length):
                names[counts[1] + i] = u8(topic + i)
            counts[0] += 1
            counts[1] += length
            table[at] = lane + 1
        columns[LANE, filled] = lane
        columns[SLOT, filled] = row[QUEUE_OFFSET]
        columns[OFFSET, filled] = segment_base + row[POSITION]
        columns[LENGTH, filled] = row[STORE_SIZE]
        code = np.int64(0)
        if row[TAGS_LENGTH] > 0:
            tags = extend(NONE, base + row[TAGS_POSITION], row[TAGS_LENGTH])
            code = np.int64(np.int32(np.uint32(tags & np.uint64(0xFFFFFFFF))))
        columns[TAGS, filled] = code
        columns[OWNER, filled] = r
        columns[TIME, filled] = row[STORE_TIMESTAMP]
        filled += 1
    counts[2] = filled
    return rows.shape[0]


@kernel()
def by_lane(columns, count, starts, order):
    """Places of the first `count` columns, lane after lane, in log order within each; `starts` of lanes."""
    starts[:] = 0
    for k in range(count):
        starts[columns[LANE, k] + 1] += 1
    for lane in range(1, starts.size):
        starts[lane] += starts[lane - 1]
    for k in range(count):
        lane = columns[LANE, k]
        order[starts[lane]] = k
        starts[lane] += 1
    # each start has become that of the next lane
    for lane in range(starts.size - 1, 0, -1):
        starts[lane] = starts[lane - 1]
    starts[0] = 0


@kernel()
def agree_units(units, first_slot, columns, chosen, right):
    """Marks those of the `chosen` columns that the unit at their slot agrees with in every field.

    units: bytes from the unit of `first_slot` on. Returns how many agree, and their highest offset or -1.
    """
    base = units.ctypes.data
    held = units.size // UNIT
    count = 0
    highest = np.int64(-1)
    for i in range(chosen.size):
        k = chosen[i]
        number = columns[SLOT, k] - first_slot
        if number < 0 or number >= held:
            continue
        unit = base + number * UNIT
        offset = columns[OFFSET, k]
        if (
            be64(unit) == offset
            and be32(unit + SIZE) == columns[LENGTH, k]
            and be64(unit + CODE) == columns[TAGS, k]
        ):
            right[i] = True
            count += 1
            highest = max(highest, offset)
    return count, highest


@kernel()
def ascending_units(units, highest):
    """The last offset if all are units of messages, in ascending order above `highest`; else -1."""
    base = units.ctypes.data
    for k in range(units.size // UNIT):
        offset = be64(base + k * UNIT)
        size = be32(base + k * UNIT + SIZE)
        if offset <= highest or offset < 0 or size <= 0:
            return -1
        if offset == 0 and size == PRE_BLANK and be64(base + k * UNIT + CODE) == 0:
            return -1
        highest = offset
    return highest
