"""Events of a scan without the bytes that could not be read.

A scan sees zeros there (`store.patched`), so that it frames and finds everything around them as ever. What
touches them is then taken out of its events and reported by name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.events import End, Gap, Records, Tail, TailContent, Unreadable
from rmqtool.scan.fields import Field, Stop
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.scan.events import Event
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.patched import BadRange


class Readable:
    """Feed `readable` with every event of one source from position `start` on, in physical order."""

    def __init__(self, source: ByteSource, start: int = 0) -> None:
        self._source = source if isinstance(source, ZeroFilledSource) else None
        self._done = start
        """what lies before this position has been reported"""

    @property
    def whole(self) -> bool:
        """Whether every byte could be read so far."""
        return self._source is None or not self._source.unreadable

    def passed(self, position: int) -> None:
        """What lies before this position has been read."""
        self._done = max(self._done, position)

    def readable(self, event: Event) -> Iterator[Event]:
        """The event, or what is left of it, with the unreadable ranges up to its end.

        What was read before it could not be read any more is reported once, as what it was.
        """
        yield from self._readable_part(event)
        if isinstance(event, Records):
            last = event.rows[-1]
            self.passed(int(last[Field.POSITION] + last[Field.STORE_SIZE]))
        elif not isinstance(event, End):
            self.passed(event.position + event.length)

    def _readable_part(self, event: Event) -> Iterator[Event]:
        if self._source is None:
            yield event
        elif isinstance(event, End):
            self._source.notice_cut()
            yield from self._ranges(self._source.size)
            yield event
        elif not self._source.unreadable:
            yield event
        elif isinstance(event, Records):
            yield from self._records(event)
        elif isinstance(event, (Gap, Tail)):
            yield from self._rest(event)
        else:
            yield from self._ranges(event.position)
            yield event

    def _touching(self, start: int, end: int) -> list[BadRange]:
        return [] if self._source is None else self._source.unreadable_in(start, end)

    def _ranges(self, end: int) -> Iterator[Unreadable]:
        """Ranges that begin before `end` and were not reported yet."""
        for one in self._touching(self._done, end):
            start = max(one.start, self._done)
            self._done = one.end
            yield Unreadable(start, one.end - start, one.reason)

    def _records(self, run: Records) -> Iterator[Event]:
        rows = run.rows
        starts = rows[:, Field.POSITION]
        ends = starts + rows[:, Field.STORE_SIZE]
        lost = np.zeros(len(rows), bool)
        for bad in self._touching(int(starts[0]), int(ends[-1])):
            lost |= (starts < bad.end) & (ends > bad.start)
        for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(lost)) + 1):
            first, last = int(part[0]), int(part[-1])
            if lost[first]:
                yield from self._cut(int(starts[first]), int(ends[last]))
            else:
                yield from self._ranges(int(starts[first]))
                yield Records(rows[first : last + 1], run.window, run.origin)

    def _cut(self, start: int, end: int) -> Iterator[Event]:
        """Bytes `[start, end)`, some of them unreadable: those, and gaps around them."""
        at = start
        for bad in self._touching(start, end):
            if bad.start > at:
                yield Gap(at, bad.start - at, Stop.TORN, 0, 0)
            yield from self._ranges(min(bad.end, end))
            at = bad.end
        if at < end:
            yield Gap(at, end - at, Stop.TORN, 0, 0)

    def _rest(self, event: Gap | Tail) -> Iterator[Event]:
        """A gap or garbage next to unreadable bytes may be their work; other tails are what was read."""
        end = event.position + event.length
        if not self._touching(event.position, end):
            yield from self._ranges(event.position)
            yield event
        elif isinstance(event, Gap) or event.content is TailContent.GARBAGE:
            yield from self._cut(event.position, end)
        else:
            yield from self._tail(event, end)

    def _tail(self, tail: Tail, end: int) -> Iterator[Event]:
        """A tail around unreadable bytes, in which records may lie that nobody sees."""
        at = tail.position
        for bad in self._touching(at, end):
            if bad.start > at:
                yield replace(tail, position=at, length=bad.start - at)
                tail = replace(tail, records=0)
            yield from self._ranges(min(bad.end, end))
            at = bad.end
        if at < end:
            yield replace(tail, position=at, length=end - at)
