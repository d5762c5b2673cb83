"""The commit log as readers in the writer's process see it: mapped, up to what was written."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from formats.commitlog import HEADERS, MESSAGE_MAGIC_CODES, is_v6
from formats.primitives import offset_of
from rmqtool.broker.get_message import Run
from rmqtool.errors import VanishedError
from rmqtool.messagestore.held_files import HeldFiles, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rmqtool.broker.get_message import Delivered
    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.store.bytes import ByteSource, Window

    Data = TypeVar("Data", bytes, Window)
    Made = TypeVar("Made")

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

    Windows stay good as long as they are referenced, whatever becomes of their segment, but for zeros in the
    place of what another process cuts: `copy`, `copies` and `retried` never give those.
    """

    def __init__(self, at: Callable[[str], str], log: MappedFiles) -> None:
        self._log, self._held = log, HeldFiles(at, _MAPPED)

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
        file = self._log.at(base)
        return self._log.path_of(base) if file is None else file.path

    def _file(self, physical_offset: int) -> MappedFile | None:
        return self._log.at(physical_offset) if physical_offset >= 0 else None

    def holds(self, physical_offset: int, size: int) -> bool:
        """Whether `CommitLog#getMessage` would return that many bytes: all of them in one file."""
        file = self._file(physical_offset)
        return file is not None and size >= 0 and physical_offset - file.base + size <= file.wrote

    def extent(self, physical_offset: int) -> tuple[int, int]:
        """Where the data of the file around a place begins and ends; twice 0 without one."""
        file = self._log.at(physical_offset) if physical_offset >= 0 else None
        if file is None:
            return 0, 0
        base = file.base
        return base, base + file.wrote

    def file_behind(self, physical_offset: int) -> int:
        """Physical offset of the next file's first byte (`CommitLog#rollNextFile`)."""
        return physical_offset + self._log.size - physical_offset % self._log.size

    def read(self, physical_offset: int, size: int) -> Window:
        """Bytes of one file, nothing copied; fewer where it has not so many.

        Raises `UnreadableError` or `StoreIOError`, also where another process has cut the file.
        """
        found = self._asked(self._held.window, physical_offset, size)
        return np.empty(0, np.uint8) if found is None else found

    def copy(self, physical_offset: int, size: int) -> bytes:
        """The bytes of `read`. Raises as that."""
        return self._asked(self._held.copy, physical_offset, size) or b""

    def _asked(self, read: Callable[[str, int, int], Data], physical_offset: int, size: int) -> Data | None:
        file = self._file(physical_offset)
        if file is None:
            return None
        position = physical_offset - file.base
        try:
            found = read(file.path, position, size)
        except VanishedError:
            if self._file(physical_offset) is file:
                raise
            return None  # it has expired meanwhile
        if len(found) < size and len(found) < file.wrote - position:
            raise cut(file.path)
        return found

    def retried(self, work: Callable[[], Made], places: Iterable[int] | None = None) -> Made:
        """See `HeldFiles.retried`; `places` are physical offsets in the segments that `work` reads."""
        if places is None:
            return self._held.retried(work)
        files = map(self._file, places)
        return self._held.retried(work, {one.path for one in files if one is not None})

    def without_fault(self, work: Callable[[], object], physical_offset: int) -> None:
        """Does what cannot be repeated with windows of one segment. Raises as `read` if one showed zeros."""
        file = self._file(physical_offset)
        if file is not None and not self._held.without_fault(work, file.path):
            raise cut(file.path)

    def copies(self, delivered: Sequence[Delivered]) -> list[bytes]:
        """The bytes of `records`. Raises as `read`."""
        places = (delivered.base,) if isinstance(delivered, Run) else [one[1] for one in delivered]
        return self.retried(lambda: list(map(bytes, self.records(delivered))), places)

    def records(self, delivered: Sequence[Delivered]) -> list[memoryview]:
        """The records that are there as a whole, nothing copied. Raises as `read`."""
        if not isinstance(delivered, Run):
            return self._each([one[1:3] for one in delivered])
        offsets, sizes = delivered.offsets, delivered.sizes
        base, window = self._around(offsets[0], sizes[0])
        if base != delivered.base or delivered.end - base > len(window):
            return self._each(delivered.places)
        data = window.data
        return [data[(at := one - base) : at + size] for one, size in zip(offsets, sizes)]  # noqa: B905

    def _each(self, places: Iterable[tuple[int, int]]) -> list[memoryview]:
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
            else:
                self.read(at, size)  # which tells why, but for a file that has expired
        return found

    def data_around(self, physical_offset: int, size: int) -> tuple[int, memoryview]:
        """Where the file begins that has some bytes, and its data; they alone where it is not mapped.

        Raises as `read`.
        """
        begin, window = self._around(physical_offset, size)
        return begin, window[: max(self.extent(physical_offset)[1] - begin, 0)].data

    def _around(self, physical_offset: int, size: int) -> tuple[int, Window]:
        """As `data_around`, with what lies behind the data."""
        return self.whole(physical_offset) or (physical_offset, self.read(physical_offset, size))

    def whole(self, physical_offset: int) -> tuple[int, Window] | None:
        """Where the file begins that has a place, and all its bytes; None where they would be copied for it.

        Raises as `read`.
        """
        file = self._log.at(physical_offset) if physical_offset >= 0 else None
        try:
            window = None if file is None else self._held.mapped(file.path)
        except VanishedError:
            return None
        return None if file is None or window is None else (file.base, window)

    def record(self, physical_offset: int) -> bytes | None:
        """The bytes of the record that begins there, None where none begins that is whole.

        Raises as `read`.
        """
        return self.retried(lambda: RecordCursor(self).record(physical_offset), (physical_offset,))

    def store_timestamp(self, physical_offset: int, size: int) -> int:
        """Store time of a record (ms), -1 where a broker says so too (`CommitLog#pickupStoreTimestamp`)."""
        if physical_offset < self.low or physical_offset + size > self.high:
            return -1
        head = self.copy(physical_offset, _STORE_TIME[True] + 8)
        if len(head) < _STORE_TIME[True] + 8:
            return -1
        at = _STORE_TIME[is_v6(int.from_bytes(head[_SYS_FLAG : _SYS_FLAG + 4], "big"))[0]]
        return int.from_bytes(head[at : at + 8], "big", signed=True)

    def source(self, path: str) -> ByteSource | None:
        """See `HeldFiles.source`; None as well for a segment that is gone."""
        try:
            return self._held.source(path)
        except VanishedError:
            return None

    def release(self, path: str) -> None:
        """Lets go of a segment that is gone; windows of it stay good."""
        self._held.release(path)

    def close(self) -> None:
        """Lets go of all segments; windows stay good."""
        self._held.close()


class RecordCursor:
    """Looks at one record after the other, for work that is `retried`: the segment used last is at hand."""

    def __init__(self, log: LogReader) -> None:
        self._log, self._begin, self._data = log, 0, memoryview(b"")

    def record(self, physical_offset: int) -> bytes | None:
        """See `LogReader.record`."""
        at = physical_offset - self._begin
        if not 0 <= at <= len(self._data) - _HEAD.size:
            self._begin, self._data = self._log.data_around(physical_offset, _MOST)
            at = physical_offset - self._begin
            if len(self._data) - at < _HEAD.size:
                return None
        size, magic = _HEAD.unpack_from(self._data, at)
        if magic not in MESSAGE_MAGIC_CODES or size < _HEAD.size:
            return None
        if at + size <= len(self._data):
            return bytes(self._data[at : at + size])
        # it goes on behind what is at hand, or was written since
        return self._log.copy(physical_offset, size) if self._log.holds(physical_offset, size) else None
