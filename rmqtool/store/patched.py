"""A file with unreadable parts: zeros in their place, and a list of the ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.errors import UnreadableError
from rmqtool.store.bytes import BLOCK
from rmqtool.store.wrapped import WrappedSource

if TYPE_CHECKING:
    from rmqtool.store.bytes import ByteSource, Window

_START, _END = attrgetter("start"), attrgetter("end")

CUT = "the file became shorter while it was read"


@dataclass(frozen=True, slots=True)
class BadRange:
    """Bytes `[start, end)` of a file that the medium did not give."""

    start: int
    end: int
    reason: str

    @property
    def length(self) -> int:
        """How many bytes."""
        return self.end - self.start


class ZeroFilledSource(WrappedSource):
    """A source whose windows are always whole: what cannot be read is zero and listed in `unreadable`.

    Bad blocks are found block by block (`bytes.BLOCK`), each asked for once. Bytes that were cut off since
    the file was listed with `size` bytes are unreadable too.
    """

    def __init__(self, source: ByteSource, size: int = 0) -> None:
        super().__init__(source)
        self._size = max(source.size, size)
        self.unreadable: list[BadRange] = []
        """so far, by position, none over another; neighbours with the same reason are one"""

    @property
    def size(self) -> int:
        """See `ByteSource.size`."""
        return self._size

    @property
    def zero_copy(self) -> bool:
        """See `ByteSource.zero_copy`: not for a file that was cut, whose windows must be filled up."""
        return self._source.zero_copy and self._source.size == self._size

    def next_data(self, offset: int) -> int | None:
        """See `ByteSource.next_data`; what was cut off is noticed here, where nobody reads it."""
        found = self._source.next_data(offset)
        if found is None:
            self.notice_cut()
        return found

    def unreadable_in(self, start: int, end: int) -> list[BadRange]:
        """Ranges known so far that touch `[start, end)`, by position."""
        ranges = self.unreadable
        low = bisect_right(ranges, start, key=_END)
        return ranges[low : bisect_left(ranges, end, low, key=_START)]

    def notice_cut(self) -> None:
        """Lists what the file has lost at its end, if it has."""
        now = self._source.size_now()
        if now < self._size:
            self._note(BadRange(now, self._size, CUT))

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`; it raises for negative arguments and refusals, not for bad blocks."""
        wanted = max(min(length, self._size - offset), 0)
        try:
            window = self._source.window(offset, wanted)
        except UnreadableError as error:
            return self._patched(offset, wanted, error)
        if window.size == wanted:
            return window
        self._note(BadRange(offset + window.size, self._size, CUT))
        return _frozen(np.concatenate([window, np.zeros(wanted - window.size, np.uint8)]))

    def _patched(self, offset: int, wanted: int, error: UnreadableError) -> Window:
        """Reads what lies between bad blocks."""
        buffer = np.zeros(wanted, np.uint8)
        at, end = offset, offset + wanted
        self._fill(buffer, offset, at, error.offset)
        while True:
            start = error.offset - error.offset % BLOCK
            at = min(start + BLOCK, self._size)
            self._note(BadRange(start, at, error.reason))
            try:
                # bad blocks come in runs: the next one is asked for alone, so that each fails once
                for stop in (min(at + BLOCK, end), end):
                    if at < stop:
                        self._fill(buffer, offset, at, stop)
                        at = stop
            except UnreadableError as following:
                self._fill(buffer, offset, at, following.offset)
                error = following
            else:
                return _frozen(buffer)

    def _fill(self, buffer: Window, origin: int, start: int, end: int) -> None:
        part = self._source.window(start, end - start)
        buffer[start - origin : start - origin + part.size] = part
        if part.size < end - start:
            self._note(BadRange(start + part.size, self._size, CUT))

    def _note(self, bad: BadRange) -> None:
        """Lists a range; what is listed already keeps its reason."""
        ranges, at = self.unreadable, bad.start
        low = bisect_left(ranges, bad.start, key=_END)
        high = bisect_right(ranges, bad.end, low, key=_START)
        parts: list[BadRange] = []
        for one in ranges[low:high]:
            if at < one.start:
                parts.append(BadRange(at, one.start, bad.reason))
            parts.append(one)
            at = one.end
        if at < bad.end:
            parts.append(BadRange(at, bad.end, bad.reason))
        joined: list[BadRange] = []
        for one in parts:
            if joined and joined[-1].end == one.start and joined[-1].reason == one.reason:
                joined[-1] = BadRange(joined[-1].start, one.end, one.reason)
            else:
                joined.append(one)
        ranges[low:high] = joined


def _frozen(buffer: Window) -> Window:
    buffer.flags.writeable = False
    return buffer
