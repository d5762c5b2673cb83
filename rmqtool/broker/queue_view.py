"""A consume queue as a broker serves it: its files, where its valid units end, its first and last offset.

Only the broker's own reading rules are here; whether the units tell the truth is `check`'s question.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from formats.consumequeue import PRE_BLANK_SIZE
from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.consume_queue import ConsumeQueue, NegativePositionError
from rmqtool.broker.mapped_files import MappedFile, MappedFiles
from rmqtool.scan.units import BATCH_UNIT, UNIT, valid_units
from rmqtool.store.holes import data_places
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    import numpy.typing as npt

    from rmqtool.broker.log_view import LogView
    from rmqtool.broker.offset_by_time import TimedFile, TimedQueue
    from rmqtool.broker.traits import Traits
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Queue

    AnyQueue = ConsumeQueue | BatchConsumeQueue
    Units = npt.NDArray[Any]

_EMPTY = np.empty(0, np.uint8)
_TOGETHER = 1 << 16
"""units that are looked at together"""


@dataclass(slots=True)
class ViewedFile:
    """One queue file. base: offset of its first byte in the queue. written: bytes up to the read position."""

    source: ByteSource
    base: int
    written: int


class UnitColumn(Sequence[int]):
    """One field of the units of a file, each read when it is asked for."""

    def __init__(self, view: TimedQueue, file: TimedFile, name: str) -> None:
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
    traits: Traits
    files: list[ViewedFile] = field(default_factory=list)
    hidden: tuple[int, int, int] | None = None
    """where a unit that is none ends the queue although others follow: file, byte in it, how many follow"""
    begins_at: int | None = None
    """physical offset of the message with which the first file begins; None where the queue begins inside of
    that file: `ConsumeQueue#fillPreBlank`"""
    _open: ExitStack = field(default_factory=ExitStack)
    _sources: dict[StoreFile, ByteSource] = field(default_factory=dict)
    _queue: AnyQueue = field(init=False)

    def __enter__(self) -> Self:
        self._sources = {file: self._open.enter_context(file.open("pread")) for file in self.queue.files}
        if self.queue.files and not self.batch:
            first = self._sources[self.queue.files[0]].window(0, self.width)
            if len(first) == self.width and int(first.view(UNIT)["size"][0]) not in (0, PRE_BLANK_SIZE):
                self.begins_at = int(first.view(UNIT)["physical_offset"][0])
        self._queue = self._loaded()
        self._recover()
        self.files = [
            ViewedFile(self._sources[one.file], one.base, one.wrote)
            for one in self._queue.files.files
            if one.file is not None
        ]
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

    def modified(self) -> list[int]:
        """Modification times (ms) of the files."""
        return [file.mtime_ns // 1_000_000 for file in self.queue.files[: len(self.files)]]

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

    @property
    def max_offset(self) -> int:
        """Queue offset of the next message (`ConsumeQueue#getMaxOffsetInQueue`); 0 without files."""
        return self._queue.max_offset

    @property
    def min_logic_offset(self) -> int:
        """`minLogicOffset` after load: bytes in a plain queue, a queue offset in a batch queue."""
        queue = self._queue
        return queue.min_logical if isinstance(queue, ConsumeQueue) else queue.min_offset

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message that is served."""
        return self._queue.min_offset

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

    def plain_from(self, offset: int, most: int) -> bytes:
        """Bytes of the units of `slice_from`; none of a batch queue."""
        found = None if self.batch else self.slice_from(offset, most)
        return b"" if found is None else found[1].tobytes()

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

    def _loaded(self) -> AnyQueue:
        """The queue as `ConsumeQueue#load` has it: every file full, as far as it goes.

        A file that is longer than the names of all allow is taken as far as they do.
        """
        sizes = {file.mapped_size for file in self.queue.files} - {0}
        bases = [file.base_offset or 0 for file in self.queue.files]
        fit = [size for size in sizes if not any(base % size for base in bases)]
        size = max(fit or sizes, default=self.width)
        files = MappedFiles(max(size, self.width), self.path)
        for file in self.queue.files:
            full = min(file.mapped_size, files.size) // self.width * self.width
            files.files.append(MappedFile(file.base_offset or 0, full, file.path, file))
        if self.batch:
            return BatchConsumeQueue(*self.name, files, "pread")
        return ConsumeQueue(*self.name, files, "pread", max(self.log.low, 0))

    def _recover(self) -> None:
        """The first unit that is not valid ends the queue, and what the log does not have is cut."""
        queue = self._queue
        queue.recover()
        self._note_hidden()
        if self._leads_behind_log():
            queue.truncate(self.log.high)
        try:
            if self.traits.min_offset_by_search:
                queue.search_min(self.log.low)
            else:
                queue.correct_min(self.log.low)
        except NegativePositionError:
            pass  # the broker does not start; the minimum stays where it was

    def _note_hidden(self) -> None:
        """Finds filled units behind the one that ends the queue, in its file and in those that follow."""
        if not self._queue.recovered:
            return
        one, count = self._queue.recovered[-1]
        index = next(number for number, file in enumerate(self.queue.files) if file is one.file)
        begin, found = count * self.width, 0
        for file in self.queue.files[index:]:
            source, length = self._sources[file], file.mapped_size // self.width * self.width
            for start in data_places(source, begin, length, _TOGETHER * self.width):
                end = min(start + _TOGETHER * self.width, length)
                units = source.window(start, end - start).view(self.dtype)
                found += int(np.count_nonzero(valid_units(units)))
            begin = 0
        self.hidden = (index, count * self.width, found) if found else None

    def _leads_behind_log(self) -> bool:
        """Whether recovery has something to cut (`#truncateDirtyLogicFiles`)."""
        last = self._queue.files.files[-1] if self._queue.files.files else None
        if last is None or last.file is None:
            return False
        viewed = ViewedFile(self._sources[last.file], last.base, last.wrote)
        return self.first_at(viewed, self.log.high) is not None
