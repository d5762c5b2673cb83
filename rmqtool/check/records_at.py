"""The records that entries lead to, by physical offset: one by one, or many, neighbours read together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formats.properties import decode
from rmqtool.errors import RmqtoolError
from rmqtool.scan.fields import ROW_WIDTH, Check, Field
from rmqtool.scan.one import RecordReader
from rmqtool.scan.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.check.queue_files import OpenFiles
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.bytes import Window
    from rmqtool.store.segments import Segment, SegmentSet

    Ints = npt.NDArray[np.int64]

_AT_ONCE = 1 << 14
"""records that are looked for together"""
_APART = 4 << 10
"""bytes between two records, at most, that are read with them"""
_MOST = 1 << 20
"""bytes that are read together"""
_COLUMNS = [
    *(Field.POSITION, Field.TOPIC_POSITION, Field.TOPIC_LENGTH, Field.QUEUE_ID, Field.QUEUE_OFFSET),
    *(Field.STORE_SIZE, Field.SYS_FLAG, Field.PROPERTIES_POSITION, Field.PROPERTIES_LENGTH),
    Field.STORE_TIMESTAMP,
]


@dataclass(frozen=True, slots=True)
class Found:
    """The record that begins at an offset."""

    path: str
    position: int
    topic: str
    queue_id: int
    queue_offset: int
    size: int
    transaction: int
    raw_properties: bytes
    store_timestamp: int

    @property
    def properties(self) -> dict[str, str]:
        """As brokers read them."""
        return decode(self.raw_properties)


class RecordsAt:
    """Records by physical offset."""

    def __init__(self, segments: SegmentSet, files: OpenFiles) -> None:
        self._segments = segments
        self._files = files
        self._reader = RecordReader(Check.FRAME)

    def get(self, offset: int) -> Found | None:
        """The record that begins there; None when none does. Raises `UnreadableError`, `StoreIOError`."""
        there = self._reader.at(self._segments, offset, lambda segment: self._files.get(segment.file))
        if there is None or there.row is None:
            return None
        return _found(there.segment, there.window, there.position, [there.row[one] for one in _COLUMNS])

    def each(self, offsets: Ints, sizes: Ints, kernels: Kernels) -> Iterator[Found | RmqtoolError | None]:
        """As `get` for each of many offsets, with what that raises in its place.

        sizes: bytes that their records are said to have.
        """
        for at in range(0, len(offsets), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            near = self._near(offsets[part], sizes[part], kernels)
            for offset in offsets[part].tolist():
                found = near.get(offset)
                try:
                    yield self.get(offset) if found is None else found
                except RmqtoolError as error:
                    yield error

    def _near(self, offsets: Ints, sizes: Ints, kernels: Kernels) -> dict[int, Found]:
        """Those that are where they should be, by offset: of neighbours, none of which is read by itself."""
        offsets, first = np.unique(offsets, return_index=True)
        ends = offsets + sizes[first].clip(1, _MOST)
        found: dict[int, Found] = {}
        for part in pieces(offsets, ends, _APART, _MOST):
            if part.stop - part.start > 1:
                found |= self._between(offsets[part], int(ends[part.stop - 1]), kernels)
        return found

    def _between(self, offsets: Ints, end: int, kernels: Kernels) -> dict[int, Found]:
        """Those of the segments from the first of these offsets up to `end`."""
        found: dict[int, Found] = {}
        while len(offsets):
            place = self._segments.locate(int(offsets[0]))
            if place is None:
                break
            segment, position = place
            inside = int(np.searchsorted(offsets, segment.end))
            length = min(end, segment.end) - int(offsets[0])
            try:
                source = self._files.get(segment.file)
                window = source.window(position, length)
            except RmqtoolError:  # which reading it alone says
                break
            rows = np.empty((inside, ROW_WIDTH), np.int64)
            places, checks = offsets[:inside] - offsets[0], int(Check.FRAME)
            count = kernels.records_at(window, places, position, source.size, segment.base, checks, rows)
            at = rows[:count, Field.POSITION] + segment.base
            own = (rows[:count, Field.STORED_PHYSICAL_OFFSET] == at).tolist()
            for offset, is_own, row in zip(at.tolist(), own, rows[:count, _COLUMNS].tolist(), strict=True):
                if is_own or len(self._segments.locate_all(offset)) == 1:
                    found[offset] = _found(segment, window, position, row)
            offsets = offsets[inside:]
        return found


def _found(segment: Segment, window: Window, origin: int, row: list[int]) -> Found:
    """row: `_COLUMNS`, with positions in the segment. origin: that of the window's first byte."""
    position, topic, length, queue_id, queue_offset, size, flags, properties, count, time = row
    text, raw = (
        window[start - origin : start - origin + max(bytes_, 0)].tobytes()
        for start, bytes_ in ((topic, length), (properties, count))
    )
    path, name = segment.file.display_path, text.decode("utf-8", "replace")
    return Found(path, position, name, queue_id, queue_offset, size, flags >> 2 & 3, raw, time)
