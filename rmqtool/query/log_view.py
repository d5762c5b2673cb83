"""The commit log as the read path of a broker sees it: its range, and records read by offset and size."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import HEADERS, MESSAGE_MAGIC_CODES, SysFlag, is_v6
from formats.primitives import offset_of, sizeof
from rmqtool.query.log_end import end_of_records

if TYPE_CHECKING:
    from typing import Self

    import numpy.typing as npt

    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.segments import Segment, SegmentSet

    Ints = npt.NDArray[np.int64]

_SYS_FLAG = offset_of(HEADERS[False, False], "sys_flag")
_STORE_TIME = {v6: offset_of(HEADERS[v6, False], "store_timestamp") for v6 in (False, True)}
_LARGEST_HEADER = sizeof(HEADERS[True, True])
_AT_ONCE = 1 << 20
_HEAD = 8
"""bytes of the two fields that every record begins with: size and magic"""
_MAGIC = np.array(sorted(MESSAGE_MAGIC_CODES), np.int32)


def _timestamps(window: npt.NDArray[np.uint8], positions: Ints, sizes: Ints) -> Ints:
    """Store times of the records at these places of a window, -1 where none of that size begins."""
    begin = window[positions[:, None] + np.arange(_HEAD)].view(">i4")
    sound = (begin[:, 0] == sizes) & np.isin(begin[:, 1], _MAGIC)
    flags = window[positions[:, None] + np.arange(_SYS_FLAG, _SYS_FLAG + 4)].view(">i4")[:, 0]
    v6 = (flags & int(SysFlag.BORNHOST_V6)) != 0
    places = positions + np.where(v6, _STORE_TIME[True], _STORE_TIME[False])
    times = window[places[:, None] + np.arange(8)].view(">i8")[:, 0]
    return np.where(sound, times, -1).astype(np.int64)


@dataclass
class LogView:
    """What a broker that has this log serves. A context manager; files are opened once."""

    segments: SegmentSet
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
        return found is not None and physical_offset + size <= min(found[0].end, self.high)

    def read(self, physical_offset: int, size: int) -> bytes:
        """The bytes that `CommitLog#getMessage` returns for these, whatever they are; b"" where none lie."""
        found = self.segments.locate(physical_offset)
        return b"" if found is None else self._source(found[0]).window(found[1], size).tobytes()

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
        inside = (offsets >= self.low) & (offsets <= self.high - sizes)
        for segment in self.segments:
            here = np.flatnonzero(
                inside & (offsets >= segment.base) & (offsets <= segment.end - _LARGEST_HEADER)
            )
            for start in range(0, len(here), _AT_ONCE):
                part = here[start : start + _AT_ONCE]
                times[part] = self._times_in(segment, offsets[part] - segment.base, sizes[part])
        return times

    def _times_in(self, segment: Segment, positions: Ints, sizes: Ints) -> Ints:
        """Store times of records at these positions; windows are as large as the source likes them."""
        source = self._source(segment)
        found = np.empty(len(positions), np.int64)
        at = 0
        while at < len(positions):
            first = int(positions[at])
            window = source.window(first, source.window_bytes)
            last = first + len(window) - _LARGEST_HEADER
            end = at
            ahead = positions[at:]
            outside = np.flatnonzero((ahead > last) | (ahead < first))
            end = len(positions) if not outside.size else at + max(int(outside[0]), 1)
            found[at:end] = _timestamps(window, positions[at:end] - first, sizes[at:end])
            at = end
        return found

    def _source(self, segment: Segment) -> ByteSource:
        if segment not in self._sources:
            self._sources[segment] = self._open.enter_context(segment.open())
        return self._sources[segment]
