"""Bytes to columns: zeros, copies of spans, places of properties."""

from __future__ import annotations

import numpy as np

from formats.consumequeue import Unit
from formats.primitives import offset_of, sizeof
from rmqtool.scan.fields import Spanned
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.intrinsics import (
    be32,
    be64,
    copy,
    copy32,
    prefetch_to_read,
    put16,
    put64,
    trailing_zeros,
    u8,
    u64,
)
from rmqtool.scan.kernels.text import NONE, ONE, masks

UNITS = int(Spanned.UNITS)
COUNT = int(Spanned.COUNT)
SEGMENT_SIZE = int(Spanned.SEGMENT_SIZE)
BASE = int(Spanned.BASE)
LOWEST = int(Spanned.LOWEST)
BEHIND = int(Spanned.BEHIND)
LEAST = int(Spanned.LEAST)
TOTAL = int(Spanned.TOTAL)
SPANS = len(Spanned)
UNIT = sizeof(Unit)
SIZE = offset_of(Unit, "size")
FAR = 1 << 62
"""physical offset where no log ends, up to which ends are counted"""

AHEAD, MOST_AHEAD, LINE = 8, 1024, 64
"""spans ahead of which bytes are brought into the cache, how many of one, and by how many"""
SHORT = 32
"""bytes of a text that is copied without a call"""
HALVES = np.uint64(0x0000FFFF0000FFFF)
QUARTERS = np.uint64(0x00FF00FF00FF00FF)
NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
EACH = np.uint64(0x0101010101010101)


@kernel()
def first_nonzero(buf, start):
    """Index of the first byte that is not zero at or after `start`; `buf.size` when there is none."""
    base = buf.ctypes.data
    end = buf.size
    i = start
    while end - i >= 64:
        word = NONE
        for k in range(0, 64, 8):
            word |= u64(base + i + k)
        if word != NONE:
            break
        i += 64
    while i < end:
        if buf[i] != 0:
            return i
        i += 1
    return end


@kernel(forceinline=True)
def fetch(place, length):
    """Begins to bring a span into the cache; what may not be read is left."""
    for line in range(0, min(length, MOST_AHEAD), LINE):
        prefetch_to_read(place + line)


@kernel(forceinline=True)
def _fetch(base, positions, i, length):
    """The same of a later span."""
    fetch(base + positions[min(i + AHEAD, positions.size - 1)], length)


@kernel(forceinline=True)
def copy_text(target, source, length, end, behind):
    """Copies bytes; `end` and `behind`: where there is no more room, and nothing more to read.

    A short text is copied with what follows it, which needs no call; the next one then takes its place.
    """
    if 0 < length <= SHORT and end - target >= SHORT and behind - source >= SHORT:
        copy32(target, source)
    else:
        copy(target, source, length)


@kernel()
def gather(buf, positions, lengths, offsets, out):
    """Copy spans of `buf` behind each other into `out`; negative lengths copy nothing.

    `offsets` (n+1, int32).
    """
    source = buf.ctypes.data
    behind = source + buf.size
    target = out.ctypes.data
    end = target + out.size
    total = 0
    offsets[0] = 0
    for i in range(positions.size):
        length = max(lengths[i], 0)
        _fetch(source, positions, i, length)
        copy_text(target + total, source + positions[i], length, end, behind)
        total += length
        offsets[i + 1] = total
    return total


@kernel()
def span_units(asked):
    """Where the records of neighbouring units lie, see `fields.Spanned`.

    Returns how many, or -1 if `asked` has no room for them.
    """
    count = asked[COUNT]
    if count < 1 or asked[SEGMENT_SIZE] < 1 or count > (asked.size - SPANS) // 2:
        return -1
    unit = asked[UNITS]
    first = be64(unit)
    base = first - first % asked[SEGMENT_SIZE]
    lowest, behind, total = first, first, 0
    least = be32(unit + SIZE)
    for k in range(count):
        offset = be64(unit)
        size = be32(unit + SIZE)
        end = min(offset, FAR) + size
        lowest = min(lowest, offset)
        behind = max(behind, end)
        least = min(least, size)
        total += size
        asked[SPANS + 2 * k] = offset - base
        asked[SPANS + 2 * k + 1] = end - base
        unit += UNIT
    asked[BASE] = base
    asked[LOWEST] = lowest
    asked[BEHIND] = behind
    asked[LEAST] = least
    asked[TOTAL] = total
    return count


@kernel(forceinline=True)
def _hex(number):
    """Upper-case hex of the low 32 bits: eight digits, the highest in the highest byte."""
    digits = np.uint64(number & 0xFFFFFFFF)
    digits = (digits | digits << np.uint64(16)) & HALVES
    digits = (digits | digits << np.uint64(8)) & QUARTERS
    digits = (digits | digits << np.uint64(4)) & NIBBLES
    letters = ((digits + EACH * np.uint64(6)) >> np.uint64(4)) & EACH
    return np.int64(digits + EACH * np.uint64(ord("0")) + letters * np.uint64(ord("A") - ord("9") - 1))


@kernel()
def property_texts(buf, spans, name_ends, names, value_ends, values):
    """Copies names and values, by rows of `property_spans`, behind each other. Returns the bytes of both.

    name_ends, value_ends (n+1, int32): where they begin, and the last ends.
    """
    source = buf.ctypes.data
    behind = source + buf.size
    name, value = names.ctypes.data, values.ctypes.data
    names_end, values_end = name + names.size, value + values.size
    name_ends[0] = 0
    value_ends[0] = 0
    first, second = np.int64(0), np.int64(0)
    for i in range(spans.shape[0]):
        copy_text(name + first, source + spans[i, 0], spans[i, 1], names_end, behind)
        copy_text(value + second, source + spans[i, 2], spans[i, 3], values_end, behind)
        first += spans[i, 1]
        second += spans[i, 3]
        name_ends[i + 1] = first
        value_ends[i + 1] = second
    return first, second


@kernel()
def message_ids(buf, positions, widths, offsets, out):
    """Upper-case hex of `widths[i]` bytes of `buf` and of an int64 each, behind each other in `out`."""
    source = buf.ctypes.data
    to = out.ctypes.data
    for i in range(positions.size):
        _fetch(source, positions, i, 1)
        place = source + positions[i]
        whole = widths[i] & ~3
        for k in range(0, whole, 4):
            put64(to, _hex(be32(place + k)))
            to += 8
        for k in range(whole, widths[i]):
            byte = u8(place + k)
            put16(to, _hex(np.int64(byte)) & 0xFFFF)
            to += 2
        put64(to, _hex(offsets[i] >> 32))
        put64(to + 8, _hex(offsets[i]))
        to += 16


@kernel()
def _put_span(buf, spans, first, total, start, separator, end):
    name_length = separator - start
    for k in range(first, total):
        if spans[k, 1] == name_length:
            same = True
            for b in range(name_length):
                if buf[spans[k, 0] + b] != buf[start + b]:
                    same = False
                    break
            if same:
                spans[k, 2] = separator + 1
                spans[k, 3] = end - separator - 1
                return total
    spans[total, 0] = start
    spans[total, 1] = name_length
    spans[total, 2] = separator + 1
    spans[total, 3] = end - separator - 1
    return total + 1


@kernel()
def property_spans(buf, positions, lengths, spans, counts, empty):
    """Places of all pairs that Java keeps.

    Rows of `spans` are name position, name length, value position, value length.
    `counts[i]` is the number of pairs of record i after the last of several equal names has won; the place of
    a name is where it came first, as in Java's map. `empty[i]` is set where nothing lies in front of a
    separator. Returns the number of spans.
    """
    base = buf.ctypes.data
    total = 0
    for r in range(positions.size):
        at = positions[r]
        length = max(lengths[r], 0)
        _fetch(base, positions, r, length)
        first = total
        start = at
        separator = -1
        empty[r] = False
        for block in range(0, length, 64):
            ones, twos, _, _ = masks(base + at, block, length, buf.size - at)
            marks = ones | twos
            while marks != NONE:
                bit = marks & (~marks + ONE)
                marks ^= bit
                i = at + block + np.int64(trailing_zeros(bit))
                if ones & bit != NONE:
                    if separator < 0:
                        separator = i
                    continue
                if separator > start and separator + 1 < i:
                    total = _put_span(buf, spans, first, total, start, separator, i)
                elif i == start:
                    empty[r] = True
                start = i + 1
                separator = -1
        end = at + length
        if separator > start and separator + 1 < end:
            total = _put_span(buf, spans, first, total, start, separator, end)
        counts[r] = total - first
    return total
