"""Records on their way to their consume queues, and units by themselves. `dispatch_python` is the twin."""

from __future__ import annotations

import numpy as np

from formats.consumequeue import PRE_BLANK_SIZE, Unit
from formats.primitives import offset_of, sizeof
from rmqtool.scan.fields import DispatchColumn, Field, QueueKeyColumn, Stretch
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    CRC_BAD,
    CRC_STATE,
    ISSUE_ODD,
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

PARTITION = int(DispatchColumn.PARTITION)
SLOT = int(DispatchColumn.SLOT)
OFFSET = int(DispatchColumn.OFFSET)
LENGTH = int(DispatchColumn.SIZE)
TAGS = int(DispatchColumn.CODE)
OWNER = int(DispatchColumn.OWNER)
TIME = int(DispatchColumn.TIME)
LAST_SLOT = int(Stretch.LAST_SLOT)
LAST_OFFSET = int(Stretch.LAST_OFFSET)

QUEUE = int(QueueKeyColumn.QUEUE_ID)
NAME = int(QueueKeyColumn.NAME)
NAME_LENGTH = int(QueueKeyColumn.NAME_LENGTH)
HASH = int(QueueKeyColumn.HASH)

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
def rehash(partitions, count, table):
    """Fill an empty table of partitions, whose size is a power of two."""
    mask = table.size - 1
    for partition in range(count):
        place = partitions[partition, HASH] & mask
        while table[place] != 0:
            place = (place + 1) & mask
        table[place] = partition + 1


@kernel()
def _partition_of(topic, length, queue_id, partitions, names, table, counts):
    """The partition of a topic and queue number, a new one if there is room for it; else -1."""
    h = _mixed(topic, length, queue_id)
    arena = names.ctypes.data
    mask = table.size - 1
    at = h & mask
    while table[at] != 0:
        other = np.int64(table[at] - 1)
        if (
            partitions[other, HASH] == h
            and partitions[other, QUEUE] == queue_id
            and partitions[other, NAME_LENGTH] == length
            and same(arena + partitions[other, NAME], topic, length)
        ):
            return other
        at = (at + 1) & mask
    partition = counts[0]
    if partition == partitions.shape[0] or partition * 2 >= table.size or counts[1] + length > names.size:
        return np.int64(-1)
    partitions[partition, QUEUE] = queue_id
    partitions[partition, NAME] = counts[1]
    partitions[partition, NAME_LENGTH] = length
    partitions[partition, HASH] = h
    for i in range(length):
        names[counts[1] + i] = u8(topic + i)
    counts[0] += 1
    counts[1] += length
    table[at] = partition + 1
    return partition


@kernel()
def place(buf, origin, rows, start, segment_base, known, counts, columns):
    """Columns (`fields.DispatchColumn`) of the records from row `start` on that want a unit.

    known: partitions, names, table. A partition (`fields.QueueKeyColumn`) is a topic and queue number; a new
    one goes to `partitions`, its topic to `names`. counts: partitions, bytes of names, filled columns;
    carried from call to call. Returns the next row, which is in front of the last where one of the arrays has
    no more room.
    """
    partitions, names, table = known
    base = buf.ctypes.data - origin
    filled = counts[2]
    for r in range(start, rows.shape[0]):
        row = rows[r]
        kind = (row[SYS_FLAG] >> 2) & 3
        if kind in (PREPARED, ROLLBACK) or row[ISSUES] & ISSUE_TOPIC_UTF8:
            continue
        topic = base + row[TOPIC_POSITION]
        length = row[TOPIC_LENGTH]
        queue_id = row[QUEUE_ID]
        partition = np.int64(-1)
        if filled < columns.shape[1]:
            partition = _partition_of(topic, length, queue_id, partitions, names, table, counts)
        if partition < 0:
            counts[2] = filled
            return r
        columns[PARTITION, filled] = partition
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
def stretch(buf, origin, rows, start, segment_base, known, counts, columns):
    """As `place`, but one column (`fields.Stretch`) for records of a partition with neighbouring offsets.

    newest (last of `known`, one a partition): where in `columns` its last stretch lies, if that is of it.
    """
    partitions, names, table, newest = known
    base = buf.ctypes.data - origin
    filled = counts[2]
    for r in range(start, rows.shape[0]):
        row = rows[r]
        kind = (row[SYS_FLAG] >> 2) & 3
        if kind in (PREPARED, ROLLBACK) or row[ISSUES] & ISSUE_TOPIC_UTF8:
            continue
        partition = np.int64(-1)
        if filled < columns.shape[1]:
            topic = base + row[TOPIC_POSITION]
            partition = _partition_of(
                topic, row[TOPIC_LENGTH], row[QUEUE_ID], partitions, names, table, counts
            )
        if partition < 0:
            counts[2] = filled
            return r
        slot = row[QUEUE_OFFSET]
        at = newest[partition]
        known_partition = at < filled and columns[PARTITION, at] == partition
        if not known_partition or slot <= columns[LAST_SLOT, at] or slot - columns[LAST_SLOT, at] != 1:
            at = filled
            filled += 1
            newest[partition] = at
            columns[PARTITION, at] = partition
            columns[SLOT, at] = slot
            columns[OFFSET, at] = segment_base + row[POSITION]
        columns[LAST_SLOT, at] = slot
        columns[LAST_OFFSET, at] = segment_base + row[POSITION]
    counts[2] = filled
    return rows.shape[0]


@kernel()
def outline(rows, most):
    """How many rows have something to tell, and whether their store timestamps are as they should be.

    They are not where one is 0 or less, or further from the one before than `most` (ms).
    """
    odd = 0
    even = True
    before = rows[0, STORE_TIMESTAMP] if rows.shape[0] else 0
    for r in range(rows.shape[0]):
        odd += rows[r, ISSUES] & ISSUE_ODD != 0 or rows[r, CRC_STATE] == CRC_BAD
        time = rows[r, STORE_TIMESTAMP]
        even &= time > 0 and -most <= time - before <= most
        before = time
    return odd, even


@kernel()
def by_partition(columns, count, starts, order):
    """Places of the first `count` columns by partition, in log order within each; `starts` of partitions."""
    starts[:] = 0
    for k in range(count):
        starts[columns[PARTITION, k] + 1] += 1
    for partition in range(1, starts.size):
        starts[partition] += starts[partition - 1]
    for k in range(count):
        partition = columns[PARTITION, k]
        order[starts[partition]] = k
        starts[partition] += 1
    # each start has become that of the next partition
    for partition in range(starts.size - 1, 0, -1):
        starts[partition] = starts[partition - 1]
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
