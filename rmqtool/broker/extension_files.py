"""Extension files of one queue, whose new units carry no bit map: `ConsumeQueueExt#put`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.consumequeue import EXT_END_MARKER, EXT_MIN_SIZE, ExtHead, ext_address
from formats.primitives import dtype_of
from rmqtool.store.names import file_name

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.broker.files import FileWriter

    Ints = npt.NDArray[np.int64]

_HEAD = dtype_of(ExtHead)
_BLANK = 4
"""bytes that stay free at the end of a file (`ConsumeQueueExt`, END_BLANK_DATA_LENGTH)"""


def extension_units(size: int) -> int:
    """Units without bit maps that a file of `size` bytes takes."""
    return max(size - _BLANK, 0) // EXT_MIN_SIZE


class ExtensionFiles:
    """size: bytes of a file, which takes one unit at least. end: byte of the queue behind its last unit."""

    def __init__(self, topic: str, queue_id: int, size: int, files: FileWriter, end: int = 0) -> None:
        self._directory = f"consumequeue_ext/{topic}/{queue_id}"
        self._files = files
        self._size = size
        self._base, self._position = end - end % size, end % size

    def put(self, codes: Ints, times: Ints) -> Ints:
        """Adds a unit for each tags code and store timestamp; the addresses that stand for the codes."""
        units = np.zeros(len(codes), _HEAD)
        units["size"] = EXT_MIN_SIZE
        units["tags_code"] = codes
        units["msg_store_time"] = times
        addresses = np.empty(len(codes), np.int64)
        done = 0
        while done < len(codes):
            room = extension_units(self._size - self._position)
            if not room:
                # only the unit that has no room any more makes the broker close the file before
                self._write(EXT_END_MARKER, None)
                self._base, self._position = self._base + self._size, 0
                continue
            part = slice(done, done + min(len(codes) - done, room))
            count = part.stop - done
            places = self._base + self._position + np.arange(count, dtype=np.int64) * EXT_MIN_SIZE
            addresses[part] = places + ext_address(0)
            self._write(units[part].tobytes(), int(times[part.stop - 1]))
            self._position += count * EXT_MIN_SIZE
            done = part.stop
        return addresses

    def _write(self, data: bytes, time: int | None) -> None:
        path = f"{self._directory}/{file_name(self._base)}"
        self._files.write(path, self._size, self._position, data, time)
