"""Reading a file by the data in it: what the file system knows to be a hole costs nothing.

A file of a stranger may be a TiB long and hold a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.bytes import ByteSource, Window

STEP = 1 << 23
"""bytes that are looked at together"""
TAIL_STEP = 1 << 18
"""of what is most often all hole, but for a page"""
_BLOCK = 4096
_NEAR = 512
"""bytes that are looked at one by one"""


def data_windows(source: ByteSource, start: int, end: int, step: int = STEP) -> Iterator[tuple[int, Window]]:
    """Windows of `step` bytes from `start` on, the last one shorter, without those that are holes."""
    for at in data_places(source, start, end, step):
        yield at, source.window(at, min(step, end - at))


def data_places(source: ByteSource, start: int, end: int, step: int, lead: int = 0) -> Iterator[int]:
    """Where the windows of `data_windows` begin. lead: zeros in front of data that belong to it."""
    at = start
    while at < end:
        data = source.next_data(at)
        if data is None or data >= end:
            return
        at += max(data - lead - at, 0) // step * step
        yield at
        at += step


def last_nonzero(source: ByteSource) -> int:
    """Position of the last byte that is not zero, -1 when there is none."""
    end = min(last_hole(source) + _BLOCK, source.size)
    while end > 0:
        start = max(end - STEP, 0)
        data = source.next_data(start)
        last = last_in(source.window(start, end - start if data is not None and data < end else 0))
        if last >= 0:
            return start + last
        end = start
    return -1


def last_in(window: Window) -> int:
    """Place of the last byte of a window that is not zero, -1 when there is none.

    By the largest byte of ever larger stretches from the end, then of halves: the places of all such bytes,
    or each byte as a truth value, would take many times as long.
    """
    high, step = len(window), _NEAR
    while high > 0 and not window[max(high - step, 0) : high].max():
        high, step = max(high - step, 0), 2 * step
    low = max(high - step, 0)
    while high - low > _NEAR:
        middle = (low + high) // 2
        low, high = (middle, high) if window[middle:high].max() else (low, middle)
    return low + int(np.flatnonzero(window[low:high])[-1]) if high else -1


def is_zero(source: ByteSource, start: int) -> bool:
    """Whether nothing but zeros lies from `start` on."""
    windows = data_windows(source, start, source.size, TAIL_STEP)
    return all(last_in(window) < 0 for _, window in windows)


def hole_before(source: ByteSource, end: int) -> int:
    """Where the hole that reaches up to `end` begins, to some KiB; `end` when data lies in front of it."""

    def empty(start: int) -> bool:
        data = source.next_data(start)
        return data is None or data >= end

    start, step = end, _BLOCK
    while start > 0 and empty(max(start - step, 0)):
        start, step = max(start - step, 0), 2 * step
    while step > _BLOCK:
        step //= 2
        if start >= step and empty(start - step):
            start -= step
    return start


def last_hole(source: ByteSource) -> int:
    """Where a hole up to the end of the file begins, to some KiB; the file's size when there is none."""
    low, high = 0, source.size
    while high - low > _BLOCK:
        middle = source.size - 1 if high == source.size and not low else (low + high) // 2
        if source.next_data(middle) is None:
            high = middle
        else:
            low = middle
    return high
