"""Bytes to columns: zeros, copies of spans, places of properties."""

from __future__ import annotations

import numpy as np

from formats.consumequeue import Unit
from formats.primitives import offset_of, sizeof
from rmqtool.scan.fields import Spanned
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.intrinsics import be32, be64, copy, trailing_zeros, u64
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

HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)


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


@kernel()
def gather(buf, positions, lengths, offsets, out):
    """Copy spans of `buf` behind each other into `out`; negative lengths copy nothing.

    `offsets` (n+1, int32).
    """
    source = buf.ctypes.data
    target = out.ctypes.data
    total = 0
    offsets[0] = 0
    for i in range(positions.size):
        length = max(lengths[i], 0)
        copy(target + total, source + positions[i], length)
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


@kernel()
def message_ids(buf, positions, widths, offsets, out):
    """Upper-case hex of `widths[i]` bytes of `buf` and of an int64 each, behind each other in `out`."""
    at = 0
    for i in range(positions.size):
        for k in range(widths[i]):
            byte = buf[positions[i] + k]
            out[at] = HEX[byte >> 4]
            out[at + 1] = HEX[byte & 15]
            at += 2
        number = offsets[i]
        for shift in range(60, -1, -4):
            out[at] = HEX[(number >> shift) & 15]
            at += 1


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
