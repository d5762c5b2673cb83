"""Extension files of one queue through a start, where a size that leads out of its data ends the load.

`ConsumeQueueExt#recover`, `#truncateByMaxAddress`, `CqExtUnit#readBySkip`, `#read`: measured with 4.9.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.consumequeue import EXT_MAX_ADDRESS, EXT_MIN_SIZE, real_offset
from rmqtool.recovery.load import RefusedError
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.recovery.mapped import MappedFile, MappedFiles
    from rmqtool.store.access import OpenMode
    from rmqtool.store.bytes import ByteSource

    Ints = npt.NDArray[np.int64]

_STEP = (1 << 20) // UNIT.itemsize
_CHUNK = 1 << 20
_LOWEST = -(1 << 63)
"""the address of the first byte"""


def recover_extension(files: MappedFiles, address: int | None, mode: OpenMode) -> None:
    """Walks all units, then reads the one that the queue's last `address` leads to. Raises `RefusedError`."""
    end = 0
    for one in files.files:
        end = one.base + _walked(one, mode)
    files.truncate(end)
    if address is None:
        return
    place = real_offset(address)
    found = files.at(place, or_first=place == 0)
    if found is not None and found.file is not None:
        with found.file.open(mode) as source:
            _read(source, place % files.size, found)


def keeps_extension(files: Sequence[MappedFile], extension: MappedFiles, mode: OpenMode) -> bool:
    """Whether the queue files lead to whole units that a start leaves: addresses that ascend up to their end.

    `#truncateByMaxAddress` cuts behind the last address of the queue and the end of the units,
    `#truncateByMinAddress` in front of the first one that counts; in between nothing changes.
    """
    highest = -1
    for one in files:
        for codes in _codes(one, mode):
            places = codes[codes <= EXT_MAX_ADDRESS].astype(np.int64) - _LOWEST
            if not len(places):
                continue
            if places[0] < highest or (np.diff(places) < 0).any() or not _whole(places, extension, mode):
                return False
            highest = int(places[-1])
    return True


def _codes(one: MappedFile, mode: OpenMode) -> Iterator[Ints]:
    """Tags codes of a queue file, in pieces."""
    if one.file is None:
        return
    with one.file.open(mode) as source:
        for start in range(0, one.wrote // UNIT.itemsize, _STEP):
            raw = source.window(
                start * UNIT.itemsize, min(_STEP * UNIT.itemsize, one.wrote - start * UNIT.itemsize)
            )
            yield raw[: len(raw) // UNIT.itemsize * UNIT.itemsize].view(UNIT)["tags_code"]


def _whole(places: Ints, extension: MappedFiles, mode: OpenMode) -> bool:
    """Whether a unit begins at each of these places that ends within the data of its file."""
    numbers = places // extension.size
    for number in np.unique(numbers).tolist():
        one = extension.at(number * extension.size, or_first=False)
        if one is None or one.file is None or one.base != number * extension.size:
            return False
        at = places[numbers == number] - one.base
        if int(at[-1]) + EXT_MIN_SIZE > one.wrote:
            return False
        first = int(at[0])
        with one.file.open(mode) as source:
            window = source.window(first, int(at[-1]) + 2 - first)
        sizes = window[(at - first)[:, None] + np.arange(2)].view(">i2")[:, 0].astype(np.int64)
        if (sizes < EXT_MIN_SIZE).any() or (at + sizes > one.wrote).any():
            return False
    return True


def last_address(taken: Sequence[tuple[MappedFile, int]], mode: OpenMode) -> int | None:
    """The last tags code that is an extension address; `taken`: files with units that recovery took."""
    for one, count in reversed(taken):
        if one.file is None:
            continue
        with one.file.open(mode) as source:
            for end in range(count, 0, -_STEP):
                start = max(end - _STEP, 0)
                raw = source.window(start * UNIT.itemsize, (end - start) * UNIT.itemsize)
                codes = raw.view(UNIT)["tags_code"]
                found = np.flatnonzero(codes <= EXT_MAX_ADDRESS)
                if found.size:
                    return int(codes[found[-1]])
    return None


def _walked(one: MappedFile, mode: OpenMode) -> int:
    """Where the units of a file end."""
    if one.file is None:
        return 0
    with one.file.open(mode) as source:
        at, start, chunk = 0, 0, b""
        while True:
            if at + 2 > start + len(chunk):
                chunk, start = source.window(at, _CHUNK).tobytes(), at
            here = chunk[at - start : at - start + 2]
            size = int.from_bytes(here, "big", signed=True)
            if len(here) < 2 or at + size > source.size:
                raise _leads_out(one, at)
            if size <= 0:
                return at
            at += size


def _read(source: ByteSource, position: int, one: MappedFile) -> None:
    room = one.wrote - position
    if room < 2 or _short(source, position) < 1:
        return
    if room < EXT_MIN_SIZE or room < EXT_MIN_SIZE + _short(source, position + EXT_MIN_SIZE - 2):
        raise _leads_out(one, position, " that the last extension address of its queue leads to")


def _short(source: ByteSource, position: int) -> int:
    return int.from_bytes(source.window(position, 2).tobytes(), "big", signed=True)


def _leads_out(one: MappedFile, position: int, which: str = "") -> RefusedError:
    return RefusedError("extension", f"the unit at {position}{which} leads out of the data", one.path)
