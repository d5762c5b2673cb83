"""A consume queue as a broker serves it: its files, where its valid units end, its first and last offset.

Only the broker's own reading rules are here; whether the units tell the truth is `check`'s question.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from formats.consumequeue import PRE_BLANK_SIZE
from rmqtool.query.queue_min import batch_minimum, minimum_4, minimum_5
from rmqtool.scan.units import BATCH_UNIT, UNIT, valid_units
from rmqtool.store.holes import data_places
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    import numpy.typing as npt

    from rmqtool.query.log_view import LogView
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.layout import Queue

    Units = npt.NDArray[Any]

_EMPTY = np.empty(0, np.uint8)
_TOGETHER = 1 << 16
"""units that are looked at together"""
RECOVERED_FILES = 3
"""files that `ConsumeQueue#recover` reads; older ones are taken as full"""


@dataclass(slots=True)
class ViewedFile:
    """One queue file. base: offset of its first byte in the queue. written: bytes up to the read position."""

    source: ByteSource
    base: int
    written: int


class UnitColumn(Sequence[int]):
    """One field of the units of a file, each read when it is asked for."""

    def __init__(self, view: QueueView, file: ViewedFile, name: str) -> None:
        self._view = view
        self._file = file
        self._name = name

    def __len__(self) -> int:
        return self._file.written // self._view.width

    @overload
    def __getitem__(self, number: int) -> int: ...

    @overload
    def __getitem__(self, number: slice) -> list[int]: ...

    def __getitem__(self, number: int | slice) -> int | list[int]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        return self._view.unit(self._file, range(len(self))[number], self._name)


@dataclass
class QueueView:
    """Files of one plain or batch queue after `ConsumeQueue#load` and `#recover`.

    A context manager: the files stay open while it is in use. Offsets of bytes count over the whole queue, as
    the broker's mapped file queue does.
    """

    queue: Queue
    log: LogView
    five: bool
    """rules of 5.x instead of 4.x"""
    files: list[ViewedFile] = field(default_factory=list)
    hidden: tuple[int, int, int] | None = None
    """where a unit that is none ends the queue although others follow: file, byte in it, how many follow"""
    begins_at: int | None = None
    """physical offset of the message with which the first file begins; None where the queue begins inside of
    that file: `ConsumeQueue#fillPreBlank`"""
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.files = [
            ViewedFile(
                self._open.enter_context(file.open("pread")),
                file.base_offset or 0,
                file.mapped_size // self.width * self.width,
            )
            for file in self.queue.files
        ]
        if self.files and not self.batch:
            first = self.units(self.files[0], 0, self.width)
            if len(first) and int(first[0]["size"]) not in (0, PRE_BLANK_SIZE):
                self.begins_at = int(first[0]["physical_offset"])
        self._recover()
        self._cut_behind_log()
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    @property
    def batch(self) -> bool:
        """Whether units are of 46 bytes."""
        return self.queue.kind is FileKind.BATCHCONSUMEQUEUE

    @property
    def name(self) -> tuple[str, int]:
        """Topic and number."""
        return self.queue.topic or "", self.queue.queue_id or 0

    @property
    def path(self) -> str:
        """Directory of the queue below the store."""
        return escape_name(f"{self.queue.kind}/{self.queue.topic}/{self.queue.queue_id}")

    @property
    def dtype(self) -> np.dtype[Any]:
        """Layout of a unit."""
        return BATCH_UNIT if self.batch else UNIT

    @property
    def width(self) -> int:
        """Bytes of a unit."""
        return self.dtype.itemsize

    def units(self, file: ViewedFile, start: int = 0, end: int | None = None) -> Units:
        """Units of a file between two positions (bytes), never behind its read position.

        Fewer where the file was cut since it was opened.
        """
        stop = file.written if end is None else min(end, file.written)
        window = file.source.window(start, max(stop - start, 0)) if start >= 0 else _EMPTY
        return window[: len(window) // self.width * self.width].view(self.dtype)

    def parts(self, file: ViewedFile, *, backwards: bool = False) -> Iterator[tuple[int, int, Units | None]]:
        """Units of a file, some at once: number of the first, number behind the last, and the units.

        None for a hole in the file, which is units of zeros.
        """
        found: list[tuple[int, int, bool]] = []
        at, step = 0, _TOGETHER * self.width
        for start in data_places(file.source, 0, file.written, step):
            end = min(start + step, file.written)
            found += [(at, start, False), (start, end, True)]
            at = end
        found.append((at, file.written, False))
        for start, end, filled in reversed(found) if backwards else found:
            if start < end:
                units = self.units(file, start, end) if filled else None
                yield start // self.width, end // self.width, units

    def unit(self, file: ViewedFile, number: int, name: str) -> int:
        """One field of one unit of a file, 0 where the file was cut since it was opened."""
        units = self.units(file, number * self.width, (number + 1) * self.width)
        return int(units[name][0]) if len(units) else 0

    def column(self, file: ViewedFile, name: str) -> UnitColumn:
        """One field of all units of a file, for who looks at few of them."""
        return UnitColumn(self, file, name)

    def first_at(self, file: ViewedFile, floor: int) -> int | None:
        """Number in a file of the first unit that leads to `floor` or behind it, None where none does."""
        for first, _, units in self.parts(file):
            if units is None:
                if floor <= 0:
                    return first
                continue
            found = np.flatnonzero(units["physical_offset"] >= floor)
            if found.size:
                return first + int(found[0])
        return None

    @cached_property
    def max_offset(self) -> int:
        """Queue offset of the next message (`ConsumeQueue#getMaxOffsetInQueue`); 0 without files."""
        if not self.batch:
            last = self.files[-1] if self.files else None
            return 0 if last is None else (last.base + last.written) // self.width
        for file in reversed(self.files):
            units = self.units(file, file.written - self.width)
            if len(units):
                return int(units[-1]["base_offset"]) + int(units[-1]["batch_size"])
        return 0

    @cached_property
    def min_logic_offset(self) -> int:
        """`minLogicOffset` after load: bytes in a plain queue, a queue offset in a batch queue."""
        if self.batch:
            return batch_minimum(self, self.log.low)
        return (minimum_5 if self.five else minimum_4)(self, self.log.low)

    @cached_property
    def min_offset(self) -> int:
        """Queue offset of the first message that is served."""
        return self.min_logic_offset if self.batch else self.min_logic_offset // self.width

    def slice_from(self, offset: int, most: int) -> tuple[int, Units] | None:
        """Up to `most` units of one file from a queue offset on, and the queue offset of the first of them.

        In a batch queue the first is the unit that contains the offset. None where the broker finds nothing
        (`ConsumeQueue#getIndexBuffer`, `BatchConsumeQueue#getBatchMsgIndexBuffer`).
        """
        if self.batch:
            return self._batch_slice(offset, most)
        at = offset * self.width
        if at < self.min_logic_offset:
            return None
        for file in self.files:
            if file.base <= at < file.base + file.written:
                return offset, self.units(file, at - file.base, at - file.base + most * self.width)
        return None

    def next_file_offset(self, offset: int) -> int:
        """Queue offset at which the next file begins (`ConsumeQueue#rollNextFile`)."""
        per_file = max(self.files[0].source.size // self.width, 1) if self.files else 1
        return offset + per_file - offset % per_file

    def _batch_slice(self, offset: int, most: int) -> tuple[int, Units] | None:
        if offset >= self.max_offset:
            return None
        for file in reversed(self.files):
            offsets = self.column(file, "base_offset")
            if len(offsets) and offsets[0] <= offset:
                index = bisect_right(offsets, offset) - 1
                units = self.units(file, index * self.width, (index + most) * self.width)
                return offsets[index], units
        return None

    def _recover(self) -> None:
        """`ConsumeQueue#recover`: the first unit that is not valid ends the queue."""
        for index in range(max(len(self.files) - RECOVERED_FILES, 0), len(self.files)):
            file = self.files[index]
            end = self._end_of_valid(file)
            if end < file.written:
                behind = self._filled_behind(index, end)
                file.written = end
                self.hidden = (index, file.written, behind) if behind else None
                del self.files[index + 1 :]
                return

    def _end_of_valid(self, file: ViewedFile) -> int:
        """Byte at which the first unit of a file that is not valid begins."""
        for start in range(0, file.written, _TOGETHER * self.width):
            bad = np.flatnonzero(~valid_units(self.units(file, start, start + _TOGETHER * self.width)))
            if bad.size:
                return start + int(bad[0]) * self.width
        return file.written

    def _filled_behind(self, index: int, end: int) -> int:
        """Units behind one that is none, in its file and in those that follow."""
        found = 0
        for file in self.files[index:]:
            for start in data_places(file.source, end, file.written, _TOGETHER * self.width):
                units = self.units(file, start, start + _TOGETHER * self.width)
                found += int(np.count_nonzero(valid_units(units)))
            end = 0
        return found

    def _cut_behind_log(self) -> None:
        """Units of records that the log does not have: recovery cuts them (`#truncateDirtyLogicFiles`)."""
        while self.files:
            last = self.files[-1]
            behind = self.first_at(last, self.log.high)
            if behind is None:
                return
            last.written = behind * self.width
            if last.written or len(self.files) == 1:
                return
            self.files.pop()


def slots_of(first: int, units: Units) -> Sequence[int]:
    """Queue offset of each unit of a slice."""
    if units.dtype == BATCH_UNIT:
        offsets: list[int] = units["base_offset"].tolist()
        return offsets
    return range(first, first + len(units))
