"""The commit log as readers in the writer's process see it: mapped, up to what was written."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import HEADERS, MESSAGE_MAGIC_CODES, is_v6
from formats.primitives import offset_of
from rmqtool.broker.java import file_name
from rmqtool.errors import VanishedError
from rmqtool.messagestore.held_files import open_held

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.store.bytes import ByteSource, Window
    from rmqtool.store.writing import Folder

_HEAD = Struct(">ii")
"""size and magic of a record"""
_MOST = 4096
"""bytes that most records have, read at once"""
_MAPPED = 64
"""segments that stay mapped, those used last"""
_SYS_FLAG = offset_of(HEADERS[False, False], "sys_flag")
_STORE_TIME = {v6: offset_of(HEADERS[v6, False], "store_timestamp") for v6 in (False, True)}


class LogReader:
    """What `broker.get_message` asks of a log, of one that grows.

    Windows stay good as long as they are referenced, whatever becomes of their segment.
    """

    def __init__(self, root: Folder, log: MappedFiles) -> None:
        self._root, self._log = root, log
        self._sources: OrderedDict[int, ByteSource] = OrderedDict()
        self._guard = threading.Lock()

    @property
    def low(self) -> int:
        """Lowest physical offset (`CommitLog#getMinOffset`), -1 without files."""
        return self._log.min_offset

    @property
    def high(self) -> int:
        """Physical offset behind the last record (`CommitLog#getMaxOffset`)."""
        return self._log.max_offset

    @property
    def segment_size(self) -> int:
        """Bytes of a segment."""
        return self._log.size

    def path_of(self, base: int) -> str:
        """The segment that begins at `base`, below the store."""
        return f"{self._log.directory}/{file_name(base)}"

    def _file(self, physical_offset: int) -> MappedFile | None:
        return self._log.at(physical_offset) if physical_offset >= 0 else None

    def holds(self, physical_offset: int, size: int) -> bool:
        """Whether `CommitLog#getMessage` would return that many bytes: all of them in one file."""
        file = self._file(physical_offset)
        return file is not None and size >= 0 and physical_offset - file.base + size <= file.wrote

    def extent(self, physical_offset: int) -> tuple[int, int]:
        """Where the data of the file around a place begins and ends; twice 0 without one."""
        file = self._file(physical_offset)
        return (0, 0) if file is None else (file.base, file.base + file.wrote)

    def file_behind(self, physical_offset: int) -> int:
        """Physical offset of the next file's first byte (`CommitLog#rollNextFile`)."""
        return physical_offset + self._log.size - physical_offset % self._log.size

    def read(self, physical_offset: int, size: int) -> Window:
        """Bytes of one file, nothing copied; fewer where it has not so many.

        Raises `UnreadableError` or `StoreIOError`.
        """
        file = self._file(physical_offset)
        if file is None:
            return np.empty(0, np.uint8)
        try:
            with self._guard:  # so that nobody closes it meanwhile
                return self._source(file).window(physical_offset - file.base, size)
        except VanishedError:
            if self._file(physical_offset) is file:
                raise
            return np.empty(0, np.uint8)  # it has expired meanwhile

    def records(self, places: Iterable[tuple[int, int]]) -> list[memoryview]:
        """Those bytes (physical offset, size) that are there as a whole, nothing copied. Raises as `read`."""
        found: list[memoryview] = []
        begin = end = 0
        data = memoryview(b"")
        for at, size in places:
            if not begin <= at < end:
                begin, window = self._around(at, size)
                data, end = window.data, begin + len(window)
            one = data[at - begin : at - begin + size]
            if len(one) == size:
                found.append(one)
        return found

    def _around(self, physical_offset: int, size: int) -> tuple[int, Window]:
        """The file that has some bytes, or they alone where it is not mapped, and where that begins."""
        file = self._file(physical_offset)
        if file is not None:
            with suppress(VanishedError), self._guard:
                source = self._source(file)
                if source.zero_copy:
                    return file.base, source.window(0, source.size)
        return physical_offset, self.read(physical_offset, size)

    def record(self, physical_offset: int) -> bytes | None:
        """The bytes of the record that begins there, None where none begins that is whole.

        Raises as `read`.
        """
        window = self.read(physical_offset, _MOST)
        if len(window) < _HEAD.size:
            return None
        size, magic = _HEAD.unpack_from(window.data)
        if magic not in MESSAGE_MAGIC_CODES or size < _HEAD.size or not self.holds(physical_offset, size):
            return None
        return bytes(window[:size] if size <= len(window) else self.read(physical_offset, size))

    def store_timestamp(self, physical_offset: int, size: int) -> int:
        """Store time of a record (ms), -1 where a broker says so too (`CommitLog#pickupStoreTimestamp`)."""
        if physical_offset < self.low or physical_offset + size > self.high:
            return -1
        head = self.read(physical_offset, _STORE_TIME[True] + 8).tobytes()
        if len(head) < _STORE_TIME[True] + 8:
            return -1
        at = _STORE_TIME[is_v6(int.from_bytes(head[_SYS_FLAG : _SYS_FLAG + 4], "big"))[0]]
        return int.from_bytes(head[at : at + 8], "big", signed=True)

    def _source(self, file: MappedFile) -> ByteSource:
        """With the guard held."""
        found = self._sources.get(file.base)
        if found is None:
            found = open_held(f"{self._root.here}/{file.path}", name=file.path)
            self._sources[file.base] = found
            while len(self._sources) > _MAPPED:
                self._sources.popitem(last=False)[1].close()
        else:
            self._sources.move_to_end(file.base)
        return found

    def release(self, base: int) -> None:
        """Lets go of a segment that is gone; windows of it stay good."""
        with self._guard:
            source = self._sources.pop(base, None)
        if source is not None:
            source.close()

    def close(self) -> None:
        """Lets go of all segments; windows stay good."""
        with self._guard:
            for source in self._sources.values():
                source.close()
            self._sources.clear()
