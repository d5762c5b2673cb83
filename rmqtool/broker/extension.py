"""Extension files of one queue through a start, where a size that leads out of its data ends the load.

`ConsumeQueueExt#recover`, `#truncateByMaxAddress`, `CqExtUnit#readBySkip`, `#read`: measured with 4.9.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formats.consumequeue import EXT_ADDRESS_BASE, EXT_MAX_ADDRESS, EXT_MIN_SIZE, ExtHead, real_offset
from formats.primitives import dtype_of
from rmqtool.broker.load import RefusedError
from rmqtool.broker.queue_records import NO_CODE
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.store.access import OpenMode
    from rmqtool.store.bytes import ByteSource

    Ints = npt.NDArray[np.int64]

_STEP = (1 << 20) // UNIT.itemsize
_CHUNK = 1 << 20
_HEAD = dtype_of(ExtHead)


def recover_extension(files: MappedFiles, address: int | None, mode: OpenMode) -> None:
    """Walks all units, then cuts behind the one of the queue's last `address`. Raises `RefusedError`."""
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
            size = _read(source, place % files.size, found)
        if size > 0:
            files.truncate(place + size)


def delete_below(files: MappedFiles, address: int) -> None:
    """`#truncateByMinAddress`: files that end below the unit of the queue's first `address` go."""
    if address <= EXT_MAX_ADDRESS:
        gone = [one for one in files.files if one.base + files.size < real_offset(address)]
        for one in gone:
            files.delete(one.path)
        files.files = [one for one in files.files if one not in gone]


def count_cut(queue: Sequence[MappedFile], first: int, floor: int, files: MappedFiles, mode: OpenMode) -> int:
    """Entries from the byte `first` of a queue on whose unit the start took away, or will be another.

    What lies at or behind the end of the units is written over by those of the next messages. Entries that
    lead below `floor`, where the log begins, are of expired messages.
    """
    bases = np.array([one.base for one in files.files], np.int64)
    count = 0
    for one in queue:
        for number, units in _units(one, mode):
            reported = units[max((first - one.base) // UNIT.itemsize - number, 0) :]
            reported = reported[
                (reported["tags_code"] <= EXT_MAX_ADDRESS) & (reported["physical_offset"] >= floor)
            ]
            places = reported["tags_code"].astype(np.int64) - EXT_ADDRESS_BASE
            left = np.isin(places // files.size * files.size, bases) & (places < files.max_offset)
            count += int((~left).sum())
    return count


def codes_at(addresses: Ints, files: MappedFiles, mode: OpenMode) -> Ints:
    """What addresses resolve to on the disk, `NO_CODE` where no unit begins (`CqExtUnit#read`)."""
    places = addresses - EXT_ADDRESS_BASE
    found = np.full(len(places), NO_CODE)
    for number in np.unique(places // files.size).tolist():
        one = next((one for one in files.files if one.base == number * files.size), None)
        if one is None or one.file is None:
            continue
        with one.file.open(mode) as source:
            here = np.flatnonzero(places // files.size == number)
            here = here[places[here] - one.base + EXT_MIN_SIZE <= source.size]
            blocks = (places[here] - one.base) // _CHUNK
            for block in np.unique(blocks).tolist():
                which = here[blocks == block]
                window = source.window(block * _CHUNK, _CHUNK + EXT_MIN_SIZE)
                starts = places[which] - one.base - block * _CHUNK
                heads = np.ascontiguousarray(window[starts[:, None] + np.arange(_HEAD.itemsize)])
                fields = heads.view(_HEAD)[:, 0]
                found[which] = np.where(fields["size"] > 0, fields["tags_code"], NO_CODE)
    return found


def _units(one: MappedFile, mode: OpenMode) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Entries of a queue file in pieces, each with the number of its first one."""
    if one.file is None:
        return
    with one.file.open(mode) as source:
        for start in range(0, one.wrote // UNIT.itemsize, _STEP):
            raw = source.window(
                start * UNIT.itemsize, min(_STEP * UNIT.itemsize, one.wrote - start * UNIT.itemsize)
            )
            yield start, raw[: len(raw) // UNIT.itemsize * UNIT.itemsize].view(UNIT)


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


def _read(source: ByteSource, position: int, one: MappedFile) -> int:
    """The size that the unit at `position` states, 0 where none is read."""
    room = one.wrote - position
    size = _short(source, position) if room >= 2 else 0
    if size < 1:
        return 0
    if room < EXT_MIN_SIZE or room < EXT_MIN_SIZE + _short(source, position + EXT_MIN_SIZE - 2):
        raise _leads_out(one, position, " that the last extension address of its queue leads to")
    return size


def _short(source: ByteSource, position: int) -> int:
    return int.from_bytes(source.window(position, 2).tobytes(), "big", signed=True)


def _leads_out(one: MappedFile, position: int, which: str = "") -> RefusedError:
    return RefusedError("extension", f"the unit at {position}{which} leads out of the data", one.path)
