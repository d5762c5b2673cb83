"""Units and index items written as the broker writes them. `building_python` is the twin.

`ConsumeQueue#putMessagePositionInfo`, `IndexFile#putKey`.
"""

from __future__ import annotations

import numpy as np

from formats.commitlog import SysFlag
from formats.index import Item
from formats.primitives import offset_of, sizeof
from formats.properties import INNER_MULTI_QUEUE_OFFSET, INNER_PREFIX, PROPERTY_SEPARATOR
from rmqtool.scan.fields import AppendState, Field, IndexHeaderState
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    CRC_BAD,
    POSITION,
    PROPERTIES_LENGTH,
    PROPERTIES_POSITION,
    STORE_TIMESTAMP,
    STORED_OFFSET,
    SYS_FLAG,
)
from rmqtool.scan.kernels.dispatch import CODE, LENGTH, OFFSET, SIZE, SLOT, TAGS, UNIT
from rmqtool.scan.kernels.hashes import AHEAD, slot_of
from rmqtool.scan.kernels.intrinsics import equal64, prefetch_to_write, put32, put64, trailing_zeros, u8

CRC_STATE = int(Field.CRC_STATE)

NEXT = int(AppendState.NEXT)
KNOWN = int(AppendState.KNOWN)
DOUBLED = int(AppendState.DOUBLED)
MISPLACED = int(AppendState.MISPLACED)
SKIPPED = int(AppendState.SKIPPED)
REPEATED = int(AppendState.REPEATED)

BEGIN_TIME = int(IndexHeaderState.BEGIN_TIMESTAMP)
END_TIME = int(IndexHeaderState.END_TIMESTAMP)
BEGIN_OFFSET = int(IndexHeaderState.BEGIN_PHYSICAL_OFFSET)
END_OFFSET = int(IndexHeaderState.END_PHYSICAL_OFFSET)
USED_SLOTS = int(IndexHeaderState.HASH_SLOT_COUNT)
COUNT = int(IndexHeaderState.INDEX_COUNT)
EVERY_PUT = int(IndexHeaderState.EVERY_PUT)

ITEM = sizeof(Item)
ITEM_OFFSET = offset_of(Item, "physical_offset")
ITEM_TIME = offset_of(Item, "time_diff")
ITEM_PREV = offset_of(Item, "prev")
MOST_SECONDS = (1 << 31) - 1
LIST = np.frombuffer(INNER_MULTI_QUEUE_OFFSET.encode(), np.uint8)
INNER = np.frombuffer(INNER_PREFIX.encode(), np.uint8)
INNER_BATCH = int(SysFlag.INNER_BATCH)
SEPARATOR = np.uint8(PROPERTY_SEPARATOR)
ONE = np.uint64(1)
NONE = np.uint64(0)
UNSIGNED_UNIT = np.uint64(UNIT)


@kernel(forceinline=True)
def _place(slot):
    """The byte of a slot, which overflows as in Java; signed products must not."""
    return np.int64(np.uint64(slot) * UNSIGNED_UNIT)


@kernel()
def append_units(columns, chosen, start, lost, state, out, taken):
    """Units of one queue, from place `start` of `chosen` on, one behind the other into `out`.

    columns: `fields.DispatchColumn`. chosen: places in them, in log order. lost: stop at a record whose
    slot lies beyond the next one, by so many slots at most; else it gets the next one, as the broker does
    it. state: `fields.AppendState`. Places in bytes and ends of records overflow as in Java.
    taken: the places of those that have a unit now. Returns (next place of `chosen`, units written).
    """
    base = out.ctypes.data
    following = state[NEXT]
    known = state[KNOWN]
    count = 0
    repeated = 0
    at = start
    while at < chosen.size:
        k = chosen[at]
        offset = columns[OFFSET, k]
        size = columns[LENGTH, k]
        slot = columns[SLOT, k]
        end = np.int64(np.uint64(offset) + np.uint64(size))
        if end <= known:
            state[SKIPPED] += 1
            at += 1
            continue
        if slot != 0 and _place(slot) < _place(following):
            state[DOUBLED] += 1
            repeated = 1
            at += 1
            continue
        if slot != following:
            if 0 < np.int64(np.uint64(slot) - np.uint64(following)) <= lost:
                break
            state[MISPLACED] += 1
        unit = base + count * UNIT
        put64(unit, offset)
        put32(unit + SIZE, size)
        put64(unit + CODE, columns[TAGS, k])
        taken[count] = k
        count += 1
        following += 1
        known = end
        repeated = 0
        at += 1
    state[NEXT] = following
    state[KNOWN] = known
    state[REPEATED] = repeated
    return at, count


@kernel()
def put_keys(keys, records, start, room, state, slots, out):
    """Index items of the keys from `start` on, into `out`, up to the key for which the file has no room.

    keys: hashes and the numbers of their records. records: physical offsets and store timestamps. room: items
    of a file, the unused first included. state: `fields.IndexHeaderState`. slots: newest item of each slot,
    int32; what is not an item that the header counts is none. Returns the next key.
    """
    hashes, owners = keys
    offsets, times = records
    base = out.ctypes.data
    begin = state[BEGIN_TIME]
    count = state[COUNT]
    inverse = 1.0 / slots.size
    table = slots.ctypes.data
    new_slots = 0
    k = start
    while k < hashes.size and count < room and slots.size > 0:
        if k + AHEAD < hashes.size:
            prefetch_to_write(table + 4 * slot_of(np.int64(hashes[k + AHEAD]), slots.size, inverse))
        value = np.int64(hashes[k])
        slot = slot_of(value, slots.size, inverse)
        owner = owners[k]
        time = times[owner]
        seconds = np.int64(0)
        if begin > 0 and time > begin:
            seconds = min((time - begin) // 1000, MOST_SECONDS)
        newest = np.int64(slots[slot])
        if newest < 0 or newest > count:
            newest = np.int64(0)
        item = base + (k - start) * ITEM
        put32(item, value)
        put64(item + ITEM_OFFSET, offsets[owner])
        put32(item + ITEM_TIME, seconds)
        put32(item + ITEM_PREV, newest)
        slots[slot] = count
        if count <= 1:
            state[BEGIN_OFFSET] = offsets[owner]
            state[BEGIN_TIME] = time
            begin = time
        new_slots += newest == 0 or state[EVERY_PUT] != 0
        count += 1
        k += 1
    if k > start:
        owner = owners[k - 1]
        state[END_OFFSET] = offsets[owner]
        state[END_TIME] = times[owner]
    state[COUNT] = count
    state[USED_SLOTS] += new_slots
    return k


@kernel()
def places_and_times(rows, base, offsets, times):
    """Physical offset and store timestamp of each row; base: offset of the segment's first byte.

    Returns how many records state another offset, and how many have a body that fails its CRC.
    """
    elsewhere = 0
    bad = 0
    for r in range(rows.shape[0]):
        offset = base + rows[r, POSITION]
        offsets[r] = offset
        times[r] = rows[r, STORE_TIMESTAMP]
        elsewhere += rows[r, STORED_OFFSET] != offset
        bad += rows[r, CRC_STATE] == CRC_BAD
    return elsewhere, bad


@kernel(forceinline=True)
def _begins_with(address, length, name):
    i = 0
    while i < min(name.size, length) and u8(address + i) == name[i]:
        i += 1
    return i == name.size


@kernel(forceinline=True)
def _has_property(buf, origin, row, name):
    """Whether a record has a property whose name begins so."""
    at = buf.ctypes.data - origin + row[PROPERTIES_POSITION]
    behind = buf.ctypes.data + buf.size
    length = row[PROPERTIES_LENGTH]
    follows = ONE  # bit 0: the first byte of this block begins a name
    for i in range(0, length, 64):
        if behind - at - i >= 64:
            begin = (equal64(at + i, SEPARATOR) << ONE | follows) & equal64(at + i, name[0])
            follows = np.uint64(u8(at + i + 63) == SEPARATOR)
        else:
            begin = NONE
            for k in range(min(64, length - i)):
                byte = u8(at + i + k)
                begin |= np.uint64(follows != NONE and byte == name[0]) << np.uint64(k)
                follows = np.uint64(byte == SEPARATOR)
        while begin != NONE:
            place = i + np.int64(trailing_zeros(begin))
            if _begins_with(at + place, length - place, name):
                return True
            begin &= begin - ONE
    return False


@kernel()
def feeds_further_queues(buf, origin, rows):
    """Whether some record has a property whose name begins with INNER_MULTI_QUEUE_OFFSET."""
    for r in range(rows.shape[0]):  # noqa: SIM110 - numba has no generators
        if _has_property(buf, origin, rows[r], LIST):
            return True
    return False


@kernel()
def are_single(buf, origin, rows):
    """Whether each record is one message of one queue: no inner batch, nothing that names further places."""
    for r in range(rows.shape[0]):
        if rows[r, SYS_FLAG] & INNER_BATCH != 0 or _has_property(buf, origin, rows[r], INNER):
            return False
    return True
