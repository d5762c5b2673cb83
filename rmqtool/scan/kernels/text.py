"""Topics and properties: characters, syntax, UTF-8, and where TAGS, KEYS and UNIQ_KEY lie."""

from __future__ import annotations

import numpy as np

from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    CHECK_CONTENT,
    ISSUE_PROPERTIES_SYNTAX,
    ISSUE_PROPERTIES_UTF8,
    ISSUE_SEPARATOR,
    ISSUE_TOPIC_CHARACTERS,
    ISSUE_TOPIC_NUL,
    ISSUE_TOPIC_UTF8,
    ISSUES,
    KEYS_POSITION,
    ODD,
    PROPERTIES_LENGTH,
    PROPERTIES_POSITION,
    PROPERTY_COUNT,
    TAGS_POSITION,
    TOPIC_LENGTH,
    TOPIC_POSITION,
    UNIQ_POSITION,
)
from rmqtool.scan.kernels.intrinsics import (
    equal64,
    high64,
    illegal32,
    illegal64,
    popcount,
    trailing_zeros,
    u8,
    u32,
    u64,
)
from rmqtool.scan.legal import POP_RETRY_PREFIX, POP_RETRY_SEPARATOR, REVIVE_PREFIX, TOPIC_BYTES

_TAGS = np.uint64(int.from_bytes(b"TAGS", "little"))
_KEYS = np.uint64(int.from_bytes(b"KEYS", "little"))
_UNIQ_KEY = np.uint64(int.from_bytes(b"UNIQ_KEY", "little"))
_POP_RETRY = np.frombuffer(POP_RETRY_PREFIX, dtype=np.uint8)
_SEPARATOR = POP_RETRY_SEPARATOR[0]
_REVIVE = np.frombuffer(REVIVE_PREFIX, dtype=np.uint8)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
NONE = np.uint64(0)


@kernel()
def utf8_ok(address, length):
    """Would Java decode it without U+FFFD?"""
    i = 0
    while i < length:
        a = u8(address + i)
        if a < 0x80:
            i += 1
            continue
        if a < 0xC2 or a > 0xF4:
            return False
        n = 1 if a < 0xE0 else (2 if a < 0xF0 else 3)
        if i + n >= length:
            return False
        b = u8(address + i + 1)
        low, high = 0x80, 0xBF
        if a == 0xE0:
            low = 0xA0
        elif a == 0xED:
            high = 0x9F
        elif a == 0xF0:
            low = 0x90
        elif a == 0xF4:
            high = 0x8F
        if b < low or b > high:
            return False
        for k in range(2, n + 1):
            c = u8(address + i + k)
            if c < 0x80 or c > 0xBF:
                return False
        i += n + 1
    return True


@kernel()
def _issues_of(address, length):
    """Of a topic with a character that topics do not have."""
    for i in range(length):
        if u8(address + i) == 0:
            return ISSUE_TOPIC_CHARACTERS | ISSUE_TOPIC_NUL
    return ISSUE_TOPIC_CHARACTERS


@kernel(forceinline=True)
def topic_issues(address, length, room):
    """Issues of a topic except ill-formed UTF-8; `room` bytes may be read from `address` on."""
    if length == 0:
        return ISSUE_TOPIC_CHARACTERS
    if length <= 32 <= room:
        if illegal32(address) & ((ONE << np.uint64(length)) - ONE) == NONE:
            return 0
        return _issues_of(address, length)
    illegal = NONE
    for i in range(0, length, 64):
        left = length - i
        keep = ALL if left >= 64 else (ONE << np.uint64(left)) - ONE
        if room - i >= 64:
            illegal |= illegal64(address + i) & keep
        else:
            for k in range(min(64, left)):
                illegal |= np.uint64(not TOPIC_BYTES[u8(address + i + k)])
    return 0 if illegal == NONE else _issues_of(address, length)


@kernel()
def begins(address, length, prefix):
    """Does a longer text at `address` begin with these bytes?"""
    same = length > len(prefix)
    for i in range(len(prefix) if same else 0):
        same &= u8(address + i) == prefix[i]
    return same


@kernel()
def made_by_broker(address, length):
    """`legal.made_by_broker` of well-formed UTF-8."""
    if begins(address, length, _REVIVE):
        for i in range(len(_REVIVE), length):
            byte = u8(address + i)
            if byte < 0x20 or byte == 0x7F:
                return False
        return True
    if not begins(address, length, _POP_RETRY):
        return False
    separator = 0
    for i in range(len(_POP_RETRY), length):
        byte = u8(address + i)
        if byte == _SEPARATOR:
            if separator:
                return False
            separator = i
        elif not TOPIC_BYTES[byte]:
            return False
    return len(_POP_RETRY) < separator < length - 1


@kernel(forceinline=True)
def masks(address, i, length, room):
    """Bit masks of up to 64 bytes from `i` on, none behind `length`: 0x01, 0x02, 0x00, not ASCII."""
    if room - i >= 64:
        ones = equal64(address + i, np.uint8(1))
        twos = equal64(address + i, np.uint8(2))
        zeros = equal64(address + i, np.uint8(0))
        high = high64(address + i)
    else:
        ones = twos = zeros = high = NONE
        for k in range(min(64, length - i)):
            byte = u8(address + i + k)
            bit = ONE << np.uint64(k)
            if byte == 1:
                ones |= bit
            elif byte == 2:
                twos |= bit
            elif byte == 0:
                zeros |= bit
            elif byte >= 0x80:
                high |= bit
    left = length - i
    keep = ALL if left >= 64 else (ONE << np.uint64(left)) - ONE
    return ones & keep, twos & keep, zeros & keep, high & keep


@kernel(forceinline=True)
def pair(address, start, separator, end, position, row):
    """Close the segment [start, end): 1 for a pair that Java keeps, 0 for nothing, -1 for a dropped one."""
    value = separator + 1
    if separator <= start or value >= end:
        return -1 if end > start else 0
    name_length = separator - start
    if name_length == 4:
        name = u32(address + start)
        if name == _TAGS:
            row[TAGS_POSITION] = position + value
            row[TAGS_POSITION + 1] = end - value
        elif name == _KEYS:
            row[KEYS_POSITION] = position + value
            row[KEYS_POSITION + 1] = end - value
    elif name_length == 8 and u64(address + start) == _UNIQ_KEY:
        row[UNIQ_POSITION] = position + value
        row[UNIQ_POSITION + 1] = end - value
    return 1


@kernel(forceinline=True)
def note(address, place, i, bit, twos, length, position, row):
    """Write where the value behind the separator at block `i`, bit `bit` lies."""
    value = i + np.int64(trailing_zeros(bit)) + 1
    behind = twos & ~(bit | (bit - ONE))
    if behind != NONE:
        end = i + np.int64(trailing_zeros(behind))
    else:
        end = min(max(value, i + 64), length)
        while end < length and u8(address + end) != 2:
            end += 1
    row[place] = position + value
    row[place + 1] = end - value


@kernel(forceinline=True)
def scan_clean_properties(address, length, room, position, row):
    """The ordinary string, ASCII and all pairs whole: (is it one?, pairs, does it hold a NUL?).

    Separators must alternate. Adding the bit behind every 0x01 to the mask of plain bytes makes a carry run
    to the next separator; the string is clean when those places are exactly the 0x02.
    """
    bad = NONE
    seen_zero = NONE
    count = NONE
    is_open = NONE
    last_ones = NONE
    last_twos = ONE << np.uint64(63)
    for i in range(0, length, 64):
        ones, twos, zeros, high = masks(address, i, length, room)
        seen_zero |= zeros
        bad |= high
        left = min(length - i, 64)
        keep = ALL if left == 64 else (ONE << np.uint64(left)) - ONE
        plain = ~(ones | twos) & keep
        carried = plain + ((ones << ONE) | is_open)
        landed = carried & ~plain
        bad |= (landed & keep) ^ twos
        bad |= ones & ((twos << ONE) | (last_twos >> np.uint64(63)))
        bad |= twos & ((ones << ONE) | (last_ones >> np.uint64(63)))
        if left == 64:
            is_open = (ones >> np.uint64(63)) | np.uint64(carried < plain)
        else:
            is_open = (landed >> np.uint64(left)) & ONE
        count += popcount(twos)
        four = ones & ((twos << np.uint64(5)) | (last_twos >> np.uint64(59)))
        while four != NONE:
            bit = four & (~four + ONE)
            four ^= bit
            name = u32(address + i + np.int64(trailing_zeros(bit)) - 4)
            if name == _TAGS or name == _KEYS:  # noqa: SIM109 - two compares, no tuple
                place = TAGS_POSITION if name == _TAGS else KEYS_POSITION
                note(address, place, i, bit, twos, length, position, row)
        eight = ones & ((twos << np.uint64(9)) | (last_twos >> np.uint64(55)))
        while eight != NONE:
            bit = eight & (~eight + ONE)
            eight ^= bit
            if u64(address + i + np.int64(trailing_zeros(bit)) - 8) == _UNIQ_KEY:
                note(address, UNIQ_POSITION, i, bit, twos, length, position, row)
        if left == 64:
            last_ones = ones
            last_twos = twos
        else:
            last_ones = ones << np.uint64(64 - left)
            last_twos = twos << np.uint64(64 - left)
    # releases differ in whether they write the last separator
    ends_well = (last_ones if is_open else ~last_twos) >> np.uint64(63) == NONE
    return bad == NONE and ends_well, np.int64(count + is_open), seen_zero != NONE


@kernel()
def scan_odd_properties(address, length, room, position, row):
    """Pairs, and was something dropped? Segment by segment (`MessageDecoder#string2messageProperties`)."""
    count = 0
    dropped = False
    start = 0
    separator = -1
    for i in range(0, length, 64):
        ones, twos, _, _ = masks(address, i, length, room)
        while twos != NONE:
            bit = twos & (~twos + ONE)
            end = i + np.int64(trailing_zeros(twos))
            before = ones & (bit - ONE)
            if separator < 0 and before != NONE:
                separator = i + np.int64(trailing_zeros(before))
            kept = pair(address, start, separator, end, position, row)
            count += kept == 1
            dropped |= kept == -1
            start = end + 1
            separator = -1
            twos ^= bit
            ones &= ~(bit - ONE)
        if separator < 0 and ones != NONE:
            separator = i + np.int64(trailing_zeros(ones))
    kept = pair(address, start, separator, length, position, row)
    return count + (kept == 1), dropped or kept == -1


@kernel()
def finish_odd(base, end, origin, checks, rows, count):
    """Text that is not plain ASCII in whole pairs.

    After the hot loop: a call inside it would cost every record.
    """
    for k in range(count):
        row = rows[k]
        if row[ISSUES] & ISSUE_TOPIC_CHARACTERS:
            topic = base + row[TOPIC_POSITION] - origin
            if not utf8_ok(topic, row[TOPIC_LENGTH]):
                row[ISSUES] |= ISSUE_TOPIC_UTF8
            elif made_by_broker(topic, row[TOPIC_LENGTH]):
                row[ISSUES] &= ~ISSUE_TOPIC_CHARACTERS
        if row[PROPERTY_COUNT] == ODD:
            at = row[PROPERTIES_POSITION]
            length = row[PROPERTIES_LENGTH]
            place = base + at - origin
            row[TAGS_POSITION + 1] = -1
            row[KEYS_POSITION + 1] = -1
            row[UNIQ_POSITION + 1] = -1
            pairs, dropped = scan_odd_properties(place, length, end - (at - origin), at, row)
            row[PROPERTY_COUNT] = pairs
            if dropped:
                row[ISSUES] |= ISSUE_PROPERTIES_SYNTAX
            if not utf8_ok(place, length):
                row[ISSUES] |= ISSUE_PROPERTIES_UTF8
            if checks & CHECK_CONTENT:
                tags = base + row[TAGS_POSITION] - origin
                for i in range(row[TAGS_POSITION + 1]):
                    if u8(tags + i) == 1:
                        row[ISSUES] |= ISSUE_SEPARATOR
                        break
