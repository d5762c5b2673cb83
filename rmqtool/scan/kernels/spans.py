"""Bytes to columns: zeros, copies of spans, places of properties."""

from __future__ import annotations

import numpy as np

from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.intrinsics import u64

NONE = np.uint64(0)


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
    total = 0
    offsets[0] = 0
    for i in range(positions.size):
        at = positions[i]
        for k in range(lengths[i]):
            out[total + k] = buf[at + k]
        total += max(lengths[i], 0)
        offsets[i + 1] = total
    return total


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
def property_spans(buf, positions, lengths, spans, counts):
    """Places of all pairs that Java keeps.

    Rows of `spans` are name position, name length, value position, value length.
    `counts[i]` is the number of pairs of record i after the last of several equal names has won; the place of
    a name is where it came first, as in Java's map. Returns the number of spans.
    """
    total = 0
    for r in range(positions.size):
        at = positions[r]
        end = at + max(lengths[r], 0)
        first = total
        start = at
        separator = -1
        i = at
        while i <= end:
            byte = buf[i] if i < end else np.uint8(2)
            if byte == 1:
                if separator < 0:
                    separator = i
            elif byte == 2:
                if separator > start and separator + 1 < i:
                    total = _put_span(buf, spans, first, total, start, separator, i)
                start = i + 1
                separator = -1
            i += 1
        counts[r] = total - first
    return total
