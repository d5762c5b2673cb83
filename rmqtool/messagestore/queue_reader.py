"""A consume queue as readers in the writer's process see it: state in memory, units from the files."""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.errors import StoreIOError
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

_OPEN = 256
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
                return os.pread(descriptor, length, position)
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


@dataclass(frozen=True, slots=True)
class QueueReader:
    """One queue, plain or batch; `broker.queue_view.QueueView` says what each member answers."""

    queue: ConsumeQueue | BatchConsumeQueue
    log: LogReader
    traits: Traits
    _files: UnitFiles

    @property
    def batch(self) -> bool:
        """Whether units are of 46 bytes."""
        return not isinstance(self.queue, ConsumeQueue)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Layout of a unit."""
        return BATCH_UNIT if self.batch else UNIT

    @property
    def width(self) -> int:
        """Bytes of a unit."""
        return self.dtype.itemsize

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
