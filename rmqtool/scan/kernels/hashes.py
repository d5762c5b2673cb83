"""Index files: the hashes of all keys in a run of records, and the chains of items.

`hashes_python` is the twin with the same functions.
"""

from __future__ import annotations

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from formats.index import Item
from formats.primitives import offset_of, sizeof
from rmqtool.scan.fields import Field
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    KEYS_POSITION,
    SIEVE_FACTOR,
    TOPIC_LENGTH,
    TOPIC_POSITION,
    UNIQ_POSITION,
)
from rmqtool.scan.kernels.intrinsics import be32, be64, on_stack, prefetch_to_write, u8, u64

SYS_FLAG = int(Field.SYS_FLAG)
ROLLBACK = 12
ITEM = sizeof(Item)
OFFSET = offset_of(Item, "physical_offset")
TIME_DIFF = offset_of(Item, "time_diff")
PREV = offset_of(Item, "prev")
LOW = (1 << 32) - 1
AHEAD = 32
"""keys whose slots are on their way into the cache while one is looked at"""
CACHED = 64
"""topics seen last whose hash is kept"""

TOPIC, LENGTH_OF, BEGUN = range(3)
"""of each: address, length, hash up to its first key"""


P1 = np.uint64(31)
P2 = np.uint64(31**2)
P4 = np.uint64(31**4)
P8 = np.uint64(31**8)
HIGH = np.uint64(0x8080808080808080)
BYTES = np.uint64(0x00FF00FF00FF00FF)
SHORTS = np.uint64(0x0000FFFF0000FFFF)
WORD = np.uint64(0xFFFFFFFF)
NONE = np.uint64(0)
REPLACEMENT = np.uint64(0xFFFD)
FACTOR = np.uint64(SIEVE_FACTOR)
HASH = np.uint64(ord("#"))

topic_cache = on_stack(3 * CACHED)


@kernel()
def _decode(address, i, length):
    """(code point, bytes taken) of what is not ASCII, ill-formed input replaced as the JDK does."""
    a = np.int64(u8(address + i))
    left = length - i
    b = np.int64(u8(address + i + 1)) if left > 1 else 0
    c = np.int64(u8(address + i + 2)) if left > 2 else 0
    d = np.int64(u8(address + i + 3)) if left > 3 else 0
    if a < 0xC2 or a > 0xF4 or b & 0xC0 != 0x80:
        return 0xFFFD, 1
    if a < 0xE0:
        return (a & 0x1F) << 6 | (b & 0x3F), 2
    if a < 0xF0:
        if a == 0xE0 and b < 0xA0:
            return 0xFFFD, 1
        if c & 0xC0 != 0x80:
            return 0xFFFD, 2
        if a == 0xED and b > 0x9F:
            return 0xFFFD, 3
        return (a & 0x0F) << 12 | (b & 0x3F) << 6 | (c & 0x3F), 3
    if (a == 0xF0 and b < 0x90) or (a == 0xF4 and b > 0x8F):
        return 0xFFFD, 1
    if c & 0xC0 != 0x80:
        return 0xFFFD, 2
    if d & 0xC0 != 0x80:
        return 0xFFFD, 3
    return (a & 0x07) << 18 | (b & 0x3F) << 12 | (c & 0x3F) << 6 | (d & 0x3F), 4


@kernel()
def _extend_odd(h, address, length):
    i = 0
    while i < length:
        byte = u8(address + i)
        if byte < 0x80:
            h = h * P1 + byte
            i += 1
            continue
        code, taken = _decode(address, i, length)
        if code > 0xFFFF:
            h = h * P1 + np.uint64(0xD7C0 + (code >> 10))
            code = 0xDC00 + (code & 0x3FF)
        h = h * P1 + np.uint64(code)
        i += taken
    return h


@kernel(forceinline=True)
def extend(h, address, length):
    """`String#hashCode` of a string with hash `h` and these UTF-8 bytes behind it; the low 32 bits count."""
    i = 0
    while i + 8 <= length:
        word = u64(address + i)
        if word & HIGH != NONE:
            return _extend_odd(h, address + i, length - i)
        two = (word & BYTES) * P1 + ((word >> np.uint64(8)) & BYTES)
        four = (two & SHORTS) * P2 + ((two >> np.uint64(16)) & SHORTS)
        h = h * P8 + (four & WORD) * P4 + (four >> np.uint64(32))
        i += 8
    while i < length:
        byte = u8(address + i)
        if byte >= 0x80:
            return _extend_odd(h, address + i, length - i)
        h = h * P1 + byte
        i += 1
    return h


@kernel(forceinline=True)
def same(a, b, length):
    """Are the bytes at two addresses the same?"""
    i = 0
    while i + 8 <= length:
        if u64(a + i) != u64(b + i):
            return False
        i += 8
    while i < length:
        if u8(a + i) != u8(b + i):
            return False
        i += 1
    return True


@kernel(forceinline=True)
def folded(h):
    """`IndexFile#indexKeyHashMethod`: never negative, 0 for the one hash without a positive partner."""
    value = np.int64(h & WORD)
    if value >= 1 << 31:
        value = (1 << 32) - value
        if value == 1 << 31:
            return 0
    return value


@kernel()
def key_hashes(buf, origin, rows, start, hashes, owners):
    """Hashes of all keys that a broker puts into the index, record after record from row `start` on.

    A record's UNIQ_KEY comes first, then the elements of KEYS (`IndexService#buildIndex`); rolled back
    transactions have none. `owners` are row numbers. Returns (keys written, next row): a record that has more
    keys than there is room for is left to the next call.
    """
    base = buf.ctypes.data - origin
    known = carray(topic_cache(), (3, CACHED))
    for place in range(CACHED):
        known[LENGTH_OF, place] = -1
    count = 0
    for r in range(start, rows.shape[0]):
        if rows[r, SYS_FLAG] & ROLLBACK == ROLLBACK:
            continue
        uniq = rows[r, UNIQ_POSITION + 1]
        length = rows[r, KEYS_POSITION + 1]
        if uniq <= 0 and length <= 0:
            continue
        if count + 2 + max(length, 0) // 2 > hashes.size:
            return count, r
        topic = base + rows[r, TOPIC_POSITION]
        width = rows[r, TOPIC_LENGTH]
        place = (width + np.int64(u8(topic + width - 1)) * 5) % CACHED if width > 0 else 0
        if known[LENGTH_OF, place] != width or not same(known[TOPIC, place], topic, width):
            known[TOPIC, place] = topic
            known[LENGTH_OF, place] = width
            known[BEGUN, place] = np.int64(extend(NONE, topic, width) * P1 + HASH)
        prefix = np.uint64(known[BEGUN, place])
        if uniq > 0:
            hashes[count] = folded(extend(prefix, base + rows[r, UNIQ_POSITION], uniq))
            owners[count] = r
            count += 1
        if length > 0:
            keys = base + rows[r, KEYS_POSITION]
            first = 0
            for i in range(length + 1):
                if i == length or u8(keys + i) == 0x20:
                    if i > first:
                        hashes[count] = folded(extend(prefix, keys + first, i - first))
                        owners[count] = r
                        count += 1
                    first = i + 1
    return count, rows.shape[0]


@kernel()
def keyed(buf, origin, rows, found):
    """Which records have keys for the index (`key_hashes`): number of the first and the last, how many."""
    base = buf.ctypes.data - origin
    found[:] = 0
    for r in range(rows.shape[0]):
        if rows[r, SYS_FLAG] & ROLLBACK == ROLLBACK:
            continue
        has = rows[r, UNIQ_POSITION + 1] > 0
        keys = base + rows[r, KEYS_POSITION]
        i = 0
        while not has and i < rows[r, KEYS_POSITION + 1]:
            has = u8(keys + i) != 0x20
            i += 1
        if has:
            if found[2] == 0:
                found[0] = r
            found[1] = r
            found[2] += 1


@kernel(forceinline=True)
def _has_bit(bits, shift, address, length):
    """Does a sieve have the hash of the string of these UTF-8 bytes?"""
    place = (extend(NONE, address, length) & WORD) * FACTOR >> shift
    return bits[np.int64(place >> np.uint64(3))] >> np.uint8(place & np.uint64(7)) & 1 != 0


@kernel()
def first_in_sieve(buf, origin, rows, bits):
    """Number of the first record of which a key may be in a sieve, that of all records where none is.

    bits: as `scan.sieve` makes them, at least 8 and a power of 2. Records that were rolled back count, too.
    """
    base = buf.ctypes.data - origin
    shift = np.uint64(61)
    size = bits.size
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    for r in range(rows.shape[0]):
        uniq = rows[r, UNIQ_POSITION + 1]
        if uniq > 0 and _has_bit(bits, shift, base + rows[r, UNIQ_POSITION], uniq):
            return r
        length = rows[r, KEYS_POSITION + 1]
        keys = base + rows[r, KEYS_POSITION]
        first = 0
        for i in range(length + 1):
            if i == length or u8(keys + i) == 0x20:
                if i > first and _has_bit(bits, shift, keys + first, i - first):
                    return r
                first = i + 1
    return rows.shape[0]


@kernel()
def agree(buf, hashes, owners, offsets, times, begin, relative):
    """How many items of `buf`, from its first on, are these keys: hash, offset and time of the record.

    offsets, times: of the records that `owners` name. begin: timestamp of the file's header. relative: is
    the first item's time counted from it, too?
    """
    base = buf.ctypes.data
    for k in range(hashes.size):
        item = base + k * ITEM
        owner = owners[k]
        if be32(item) != hashes[k] or be64(item + OFFSET) != offsets[owner]:
            return k
        if k > 0 or relative:
            elapsed = times[owner] - begin
            seconds = be32(item + TIME_DIFF)
            low = seconds * 1000
            late = elapsed >= low + 1000
            if late or seconds < 0 or (elapsed < low and (seconds != 0 or elapsed >= 0)):
                return k
    return hashes.size


@kernel()
def _row_of(bad, count, number):
    """Row of an item among the first `count` of `bad`, which ascend by number; -1 where it has none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if bad[middle, 0] < number:
            low = middle + 1
        else:
            high = middle
    return low if low < count and bad[low, 0] == number else -1


@kernel(forceinline=True)
def slot_of(value, slots, inverse):
    """`value % slots` of numbers that are not negative, without a division."""
    slot = value - np.int64(value * inverse) * slots
    if slot < 0:
        return slot + slots
    if slot >= slots:
        return slot - slots
    return slot


@kernel()
def chain(buf, first, slots, state, bad, count):
    """Follow what `IndexFile#putKey` does: each item's `prev` must be the newest older one of its slot.

    buf: items from number `first` on. state (int64, one a slot, zero at the beginning): newest item so far,
    and above 32 bits how many there were; carried from call to call, as is `bad`, with rows of number,
    expected and found `prev`. Returns how many are bad, also those for which `bad` has no room.
    """
    base = buf.ctypes.data
    table = state.ctypes.data
    inverse = 1.0 / slots
    items = buf.size // ITEM if slots > 0 else 0
    for k in range(items):
        if k + AHEAD < items:
            prefetch_to_write(table + 8 * slot_of(be32(base + (k + AHEAD) * ITEM), slots, inverse))
        number = first + k
        value = be32(base + k * ITEM)
        prev = be32(base + k * ITEM + PREV)
        if value < 0:
            if count < bad.shape[0]:
                bad[count, 0] = number
                bad[count, 1] = -1
                bad[count, 2] = prev
            count += 1
            continue
        slot = slot_of(value, slots, inverse)
        here = state[slot]
        expected = here & LOW
        if prev != expected:
            known = False
            if prev < number:
                # the hash of `prev` may be wrong and its slot this one, or that of `expected`, not its
                rows = min(count, bad.shape[0])
                at = _row_of(bad, rows, prev)
                known = at >= 0 and bad[at, 2] < prev
                if not known:
                    at = _row_of(bad, rows, expected)
                    known = at >= 0 and bad[at, 2] < expected and bad[at, 1] == prev
            if not known:
                if count < bad.shape[0]:
                    bad[count, 0] = number
                    bad[count, 1] = expected
                    bad[count, 2] = prev
                count += 1
        state[slot] = ((here >> 32) + 1) << 32 | number
    return count


@kernel()
def compare_slots(buf, state, wrong, lengths):
    """Slots of the file, as far as `buf` has them, against the newest items that `chain` found.

    `wrong` gets the first slots that differ. Returns how many do, and how many slots have items. `lengths`
    gets how many slots have chains of each length, whatever `buf` has; its last place is for longer ones.
    """
    base = buf.ctypes.data
    held = buf.size // 4
    longest = lengths.size - 1
    count = 0
    used = 0
    for slot in range(state.size):
        here = state[slot]
        lengths[min(here >> 32, longest)] += 1
        if slot >= held:
            continue
        newest = here & LOW
        used += newest != 0
        if be32(base + 4 * slot) != newest:
            if count < wrong.size:
                wrong[count] = slot
            count += 1
    return count, used


@kernel()
def longest_chains(state, least, heads):
    """The first slots with chains of `least` items or more, as they stand in `state`; how many there are.

    It ends where `heads` is full.
    """
    bound = least << 32
    count = 0
    for slot in range(state.size):
        if state[slot] >= bound:
            if count == heads.size:
                return count
            heads[count] = state[slot]
            count += 1
    return count


@kernel()
def follow(buf, start, heads, hashes):
    """Hashes of the chains that begin with these items, one behind the other; how many there are.

    buf: the file, with item 0 at `start`. A chain ends where `prev` is not older.
    """
    base = buf.ctypes.data + start
    count = 0
    for head in heads:
        number = head
        while number > 0 and count < hashes.size and start + (number + 1) * ITEM <= buf.size:
            hashes[count] = be32(base + number * ITEM)
            count += 1
            prev = be32(base + number * ITEM + PREV)
            number = prev if prev < number else 0
    return count
