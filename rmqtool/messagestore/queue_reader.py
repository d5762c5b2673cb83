"""A consume queue as readers in the writer's process see it: state in memory, units from the files."""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.broker.queue_view import UnitColumn
from rmqtool.errors import StoreIOError
from rmqtool.messagestore.held_files import cut
from rmqtool.scan.units import BATCH_UNIT, UNIT
from rmqtool.store.writing import open_regular

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.broker.traits import Traits
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.store.writing import Folder

    Units = npt.NDArray[Any]

_OPEN = 128
"""queue files that stay open, those used last"""


class UnitFiles:
    """Reads units with `pread`; what is asked for was written before."""

    def __init__(self, root: Folder) -> None:
        self._root = root
        self._open: OrderedDict[str, int] = OrderedDict()
        self._guard = threading.Lock()

    def read(self, path: str, position: int, length: int) -> bytes:
        """Bytes of a file. Raises `StoreIOError`."""
        with self._guard:  # so that nobody closes it meanwhile
            try:
                descriptor = self._open.get(path)
                if descriptor is None:
                    descriptor = self._open[path] = open_regular(f"{self._root.here}/{path}")
                    while len(self._open) > _OPEN:
                        os.close(self._open.popitem(last=False)[1])
                else:
                    self._open.move_to_end(path)
                found = os.pread(descriptor, length, position)
            except OSError as error:
                raise StoreIOError(f"{path}: {error.strerror}") from error
        if len(found) < length:
            raise cut(path)
        return found

    def modified(self, path: str) -> int:
        """Modification time of a file (ms). Raises `StoreIOError`."""
        try:
            return os.stat(f"{self._root.here}/{path}", follow_symlinks=False).st_mtime_ns // 1_000_000
        except OSError as error:
            raise StoreIOError(f"{path}: {error.strerror}") from error

    def forget(self, path: str) -> None:
        """A file is gone."""
        with self._guard:
            descriptor = self._open.pop(path, None)
            if descriptor is not None:
                os.close(descriptor)

    def close(self) -> None:
        """Lets go of all files."""
        with self._guard:
            for descriptor in self._open.values():
                os.close(descriptor)
            self._open.clear()


class TimedFile(NamedTuple):
    """A queue file as it is at one moment, see `broker.offset_by_time.TimedFile`."""

    base: int
    written: int
    path: str


class QueueReader:
    """One queue, plain or batch; `broker.queue_view.QueueView` says what each member answers.

    batch: whether units are of 46 bytes. dtype, width: layout of a unit, and its bytes.
    """

    def __init__(
        self, queue: ConsumeQueue | BatchConsumeQueue, log: LogReader, traits: Traits, files: UnitFiles
    ) -> None:
        self.queue, self.log, self.traits, self._files = queue, log, traits, files
        self.batch = not isinstance(queue, ConsumeQueue)
        self.dtype = BATCH_UNIT if self.batch else UNIT
        self.width = self.dtype.itemsize

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message that is served."""
        return self.queue.min_offset

    @property
    def max_offset(self) -> int:
        """Queue offset of the next message."""
        return self.queue.max_offset

    def units(self, file: MappedFile, start: int, count: int) -> Units:
        """Units of a file from one number on, never behind what was written."""
        width = self.width
        count = min(count, file.wrote // width - start)
        if count <= 0:
            return np.empty(0, self.dtype)
        return np.frombuffer(self._files.read(file.path, start * width, count * width), self.dtype)

    def plain_from(self, offset: int, most: int) -> bytes:
        """Bytes of the units of `slice_from`; none of a batch queue."""
        at = offset * self.width
        file = None if self.batch else self.queue.files.at(at)
        if file is None:
            return b""
        at -= file.base
        count = min(most, (file.wrote - at) // self.width)
        return self._files.read(file.path, at, count * self.width) if count > 0 else b""

    def slice_from(self, offset: int, most: int) -> tuple[int, Units] | None:
        """Up to `most` units of one file from a queue offset on, and the offset of the first of them."""
        if isinstance(self.queue, ConsumeQueue):
            at = offset * self.width
            file = self.queue.files.at(at) if at >= self.queue.min_logical else None
            if file is None or at >= file.base + file.wrote:
                return None
            return offset, self.units(file, (at - file.base) // self.width, most)
        return self._batch_slice(offset, most)

    def _batch_slice(self, offset: int, most: int) -> tuple[int, Units] | None:
        if offset >= self.max_offset:
            return None
        for file in reversed(self.queue.files.files):
            bases = self.units(file, 0, file.wrote)["base_offset"]
            if len(bases) and bases[0] <= offset:
                index = bisect_right(bases, offset) - 1
                return int(bases[index]), self.units(file, index, most)
        return None

    def next_file_offset(self, offset: int) -> int:
        """Queue offset at which the next file begins (`ConsumeQueue#rollNextFile`)."""
        per_file = max(self.queue.files.size // self.width, 1)
        return offset + per_file - offset % per_file


class TimedReader:
    """A queue as the search for an offset by time asks for it (`broker.offset_by_time.TimedQueue`).

    Files and their ends are those of the moment at which it is made.
    """

    def __init__(self, reader: QueueReader, files: UnitFiles) -> None:
        queue = reader.queue
        self._files = files
        self.log, self.traits, self.batch = reader.log, reader.traits, reader.batch
        self.width, self._dtype = reader.width, reader.dtype
        self.min_offset, self.max_offset = reader.min_offset, reader.max_offset
        self.min_logic_offset = queue.min_logical if isinstance(queue, ConsumeQueue) else queue.min_offset
        self.files = [TimedFile(one.base, one.wrote, one.path) for one in queue.files.files]

    def units(self, file: TimedFile, start: int = 0, end: int | None = None) -> Units:
        """See `TimedQueue.units`."""
        stop = file.written if end is None else min(end, file.written)
        raw = self._files.read(file.path, start, max(stop - start, 0)) if start >= 0 else b""
        return np.frombuffer(raw[: len(raw) // self.width * self.width], self._dtype)

    def unit(self, file: TimedFile, number: int, name: str) -> int:
        """See `TimedQueue.unit`."""
        units = self.units(file, number * self.width, (number + 1) * self.width)
        return int(units[name][0]) if len(units) else 0

    def column(self, file: TimedFile, name: str) -> UnitColumn:
        """See `TimedQueue.column`."""
        return UnitColumn(self, file, name)

    def modified(self) -> list[int]:
        """See `TimedQueue.modified`."""
        return [self._files.modified(one.path) for one in self.files]
