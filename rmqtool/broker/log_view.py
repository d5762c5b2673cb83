"""The commit log as the read path of a broker sees it: its range, and records read by offset and size."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import HEADERS, MESSAGE_MAGIC_CODE_V2, MESSAGE_MAGIC_CODES, SysFlag, is_v6
from formats.java import java_utf8_encode
from formats.primitives import offset_of, sizeof
from rmqtool.errors import VanishedError
from rmqtool.scan.log_end import end_of_records
from rmqtool.store.bytes import MemorySource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    import numpy.typing as npt

    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.segments import Segment, SegmentSet

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]
    Flags = npt.NDArray[np.bool_]

_SYS_FLAG = offset_of(HEADERS[False, False], "sys_flag")
_STORE_TIME = {v6: offset_of(HEADERS[v6, False], "store_timestamp") for v6 in (False, True)}
_LARGEST_HEADER = sizeof(HEADERS[True, True])
_QUEUE_ID = offset_of(HEADERS[False, False], "queue_id")
_QUEUE_OFFSET = offset_of(HEADERS[False, False], "queue_offset")
_FIXED, _LONGER = sizeof(HEADERS[False, False]), sizeof(HEADERS[True, False]) - sizeof(HEADERS[False, False])
"""bytes up to and including the body length, and how many more an IPv6 address takes"""
_AT_ONCE = 1 << 20
_HEAD = 8
"""bytes of the two fields that every record begins with: size and magic"""
_MAGIC = np.array(sorted(MESSAGE_MAGIC_CODES), np.int32)


def _begin(window: Bytes, positions: Ints, sizes: Ints) -> tuple[Ints, Ints, Flags]:
    """Magic and flags of the records at these places of a window, and which begin there with that size."""
    begin = _number(window, positions, ">i4", 2)
    sound = (begin[:, 0] == sizes) & np.isin(begin[:, 1], _MAGIC)
    return begin[:, 1], _number(window, positions + _SYS_FLAG, ">i4")[:, 0], sound


def _number(window: Bytes, positions: Ints, kind: str, count: int = 1) -> Ints:
    width = np.dtype(kind).itemsize * count
    found: Ints = window[positions[:, None] + np.arange(width)].view(kind).astype(np.int64)
    return found


def _timestamps(window: Bytes, positions: Ints, sizes: Ints) -> Ints:
    """Store times of the records at these places of a window, -1 where none of that size begins."""
    _, flags, sound = _begin(window, positions, sizes)
    v6 = (flags & int(SysFlag.BORNHOST_V6)) != 0
    places = positions + np.where(v6, _STORE_TIME[True], _STORE_TIME[False])
    return np.where(sound, _number(window, places, ">i8")[:, 0], -1)


def _of_queue(window: Bytes, positions: Ints, sizes: Ints, queue_id: int) -> tuple[Flags, Ints, Ints]:
    """Which records name a queue of this number, where their topics' lengths stand, and in how many bytes."""
    magic, flags, sound = _begin(window, positions, sizes)
    sound &= _number(window, positions + _QUEUE_ID, ">i4")[:, 0] == queue_id
    longer = ((flags & int(SysFlag.BORNHOST_V6)) != 0).astype(np.int64)
    longer += (flags & int(SysFlag.STOREHOST_V6)) != 0
    fixed = _FIXED + _LONGER * longer
    body = np.maximum(_number(window, positions + fixed - 4, ">i4")[:, 0], 0)
    return sound, positions + fixed + body, np.where(magic == MESSAGE_MAGIC_CODE_V2, 2, 1)


def _is_text(window: Bytes, at: Ints, wide: Ints, text: bytes) -> Flags:
    """Whether this text with its length in front of it stands at these places."""
    length = np.where(wide == 2, window[at].astype(np.int64) << 8, 0) + window[at + wide - 1]
    same: Flags = length == len(text)
    found = window[(at + wide)[same, None] + np.arange(len(text))]
    same[same] = (found == np.frombuffer(text, np.uint8)).all(axis=1)
    return same


@dataclass
class LogView:
    """What a broker that has this log serves. A context manager; files are opened once.

    expired: segments that were gone when they were to be opened, as they go beside a writer; they have no
    bytes, so that no record is found in them.
    """

    segments: SegmentSet
    expired: list[Segment] = field(default_factory=list)
    _open: ExitStack = field(default_factory=ExitStack)
    _sources: dict[Segment, ByteSource] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    @cached_property
    def low(self) -> int:
        """Lowest physical offset (`CommitLog#getMinOffset`), -1 without files."""
        return self.segments.first_offset

    @cached_property
    def high(self) -> int:
        """Physical offset behind the last record of the last segment with data; 0 without any."""
        last = self.segments.last_with_data()
        if last is None:
            return 0
        return last.base + (end_of_records(last) or last.size)

    def holds(self, physical_offset: int, size: int) -> bool:
        """Whether `CommitLog#getMessage` would return that many bytes: all of them in one file."""
        found = self.segments.locate(physical_offset)
        return found is not None and 0 <= size <= min(found[0].end, self.high) - physical_offset

    def extent(self, physical_offset: int) -> tuple[int, int]:
        """Where the data of the segment around a place begins and ends; twice 0 without one."""
        found = self.segments.locate(physical_offset)
        return (0, 0) if found is None else (found[0].base, min(found[0].end, self.high))

    def read(self, physical_offset: int, size: int) -> bytes:
        """The bytes that `CommitLog#getMessage` returns for these, whatever they are; b"" where none lie."""
        found = self.segments.locate(physical_offset)
        return b"" if found is None else self._source(found[0]).window(found[1], size).tobytes()

    def have_expired(self, offsets: Ints) -> Flags:
        """Which of these places lie in segments that are `expired`, as far as that is known by now."""
        gone = np.zeros(len(offsets), np.bool_)
        for one in self.expired:
            gone |= (offsets >= one.base) & (offsets < one.end)
        return gone

    def is_record(self, physical_offset: int, size: int) -> bool:
        """Whether a record of that size begins there, by its first two fields."""
        times = self.store_timestamps(np.array([physical_offset], np.int64), np.array([size], np.int64))
        return bool(times[0] >= 0)

    def file_behind(self, physical_offset: int) -> int:
        """Base of the next file (`CommitLog#rollNextFile`), by the size of the files that there are."""
        size = max(self.segments[0].size, 1) if len(self.segments) else 1
        return physical_offset + size - physical_offset % size

    def store_timestamp(self, physical_offset: int, size: int) -> int:
        """Store time of a record (ms), -1 where a broker says so too (`CommitLog#pickupStoreTimestamp`)."""
        found = self.segments.locate(physical_offset)
        if physical_offset < self.low or physical_offset + size > self.high or found is None:
            return -1
        head = self._source(found[0]).window(found[1], _LARGEST_HEADER).tobytes()
        if len(head) < _LARGEST_HEADER:
            return -1
        flag = int.from_bytes(head[_SYS_FLAG : _SYS_FLAG + 4], "big", signed=True)
        at = offset_of(HEADERS[is_v6(flag)], "store_timestamp")
        return int.from_bytes(head[at : at + 8], "big", signed=True)

    def store_timestamps(self, offsets: Ints, sizes: Ints) -> Ints:
        """Store times of many records, read in the order given; -1 also where no record of that size begins.

        A broker takes whatever bytes stand there (`store_timestamp`).
        """
        times = np.full(len(offsets), -1, np.int64)
        for which, window, places in self._windows(offsets, sizes):
            times[which] = _timestamps(window, places, sizes[which])
        return times

    def of_queue(
        self, offsets: Ints, sizes: Ints, topic: str, queue_id: int, slots: Ints | None = None
    ) -> Flags:
        """Which of these units' records name the queue as their own, False where none of that size begins.

        slots: the queue offsets that they must name, too.
        """
        name = java_utf8_encode(topic)
        found = np.zeros(len(offsets), np.bool_)
        for which, window, places in self._windows(offsets, sizes):
            sound, at, wide = _of_queue(window, places, sizes[which], queue_id)
            if slots is not None:
                sound &= _number(window, places + _QUEUE_OFFSET, ">i8")[:, 0] == slots[which]
            there = at + wide + len(name) <= len(window)
            near = np.flatnonzero(sound & there)
            found[which[near]] = _is_text(window, at[near], wide[near], name)
            for one in np.flatnonzero(sound & ~there).tolist():
                length = int(wide[one])
                raw = self.read(int(offsets[which[one]] + at[one] - places[one]), length + len(name))
                found[which[one]] = raw == len(name).to_bytes(length, "big") + name
        return found

    def _windows(self, offsets: Ints, sizes: Ints) -> Iterator[tuple[Ints, Bytes, Ints]]:
        """Places in `offsets`, a window that has the heads of these records, and where in it they begin.

        Records behind the ends of the log or of their segment are left out.
        """
        inside = (offsets >= self.low) & (offsets <= self.high - sizes)
        for segment in self._around(offsets[inside]):
            here = np.flatnonzero(
                inside & (offsets >= segment.base) & (offsets <= segment.end - _LARGEST_HEADER)
            )
            source, at = self._source(segment) if here.size else None, 0
            while source is not None and source.size and at < len(here):
                part = here[at : at + _AT_ONCE]
                positions = offsets[part] - segment.base
                first = int(positions[0])
                window = source.window(first, source.window_bytes)
                if len(window) < _LARGEST_HEADER:  # cut since it was listed
                    at += 1
                    continue
                last = first + len(window) - _LARGEST_HEADER
                outside = np.flatnonzero((positions > last) | (positions < first))
                count = max(int(outside[0]), 1) if outside.size else len(part)
                yield part[:count], window, positions[:count] - first
                at += count

    def _around(self, offsets: Ints) -> Iterator[Segment]:
        """Segments that may have one of these places."""
        if offsets.size:
            starts, ends = self._bounds
            for number in np.flatnonzero((starts <= offsets.max()) & (ends > offsets.min())).tolist():
                yield self.segments[number]

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        bounds = np.array([(one.base, one.end) for one in self.segments], np.int64).reshape(-1, 2)
        return bounds[:, 0], bounds[:, 1]

    def _source(self, segment: Segment) -> ByteSource:
        if segment not in self._sources:
            try:
                self._sources[segment] = self._open.enter_context(segment.open())
            except VanishedError:
                self.expired.append(segment)
                self._sources[segment] = MemorySource(b"", segment.file.display_path)
        return self._sources[segment]
