"""The index as recovery goes on with it: `IndexService#buildIndex`, `IndexFile#putKey`.

Unlike a rebuild this begins behind files that stay, the last of which may have room. Keys are put one by
one: a recovery dispatches the records of some segments, not of a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from formats.index import FIRST_ITEM, Header, file_size, item_position, slot_position
from rmqtool.scan.index import ITEM, SLOT, read_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from rmqtool.store.files import StoreFile

    Ints = npt.NDArray[np.int64]

_SECOND_MS = 1000
_LATEST = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Geometry:
    """Slots of an index file, and its items with item 0."""

    slots: int
    items: int

    @property
    def size(self) -> int:
        """Bytes of a file."""
        return file_size(self.slots, self.items)


@dataclass(frozen=True, slots=True)
class FileEnd:
    """Where a file ends: the next one begins with it. Times in ms, offsets in bytes of the log."""

    timestamp: int
    physical_offset: int


class IndexFile:
    """One file in memory: what lies on disk, and what is put over it. path: relative to the store root."""

    def __init__(self, path: str, geometry: Geometry, file: StoreFile | None = None) -> None:
        self.path, self._geometry, self.file = path, geometry, file
        self._begin, self.end = FileEnd(0, 0), FileEnd(0, 0)
        self._used, self._count = 0, FIRST_ITEM
        self._slots: npt.NDArray[np.int32] = np.zeros(geometry.slots, np.int32)
        self._changed: list[int] = []
        self._items: list[tuple[int, int, int, int]] = []
        if file is not None:
            self._load(file)
        self._first = self._count

    def _load(self, file: StoreFile) -> None:
        with file.open("pread") as source:
            found = read_header(source)
            raw = source.window(slot_position(0), self._geometry.slots * SLOT.itemsize)
        if found is not None:
            self._begin = FileEnd(found.begin_timestamp, found.begin_physical_offset)
            self.end = FileEnd(found.end_timestamp, found.end_physical_offset)
            self._used, self._count = found.hash_slot_count, max(found.index_count, FIRST_ITEM)
        slots = raw[: len(raw) // SLOT.itemsize * SLOT.itemsize].view(SLOT)
        self._slots[: len(slots)] = slots

    @property
    def full(self) -> bool:
        """`#isWriteFull`."""
        return self._count >= self._geometry.items

    @property
    def touched(self) -> bool:
        """Something was put, or it is new."""
        return bool(self._items) or self.file is None

    def begin_behind(self, end: FileEnd) -> None:
        """A new file takes over where the one before ended (`IndexFile#<init>`)."""
        self._begin = self.end = FileEnd(max(end.timestamp, 0), max(end.physical_offset, 0))

    def put(self, key: int, offset: int, timestamp: int) -> None:
        """One key of a record; the file has room."""
        count, slot = self._count, key % self._geometry.slots
        prev = int(self._slots[slot])
        if prev <= 0 or prev > count:
            prev = 0
        begin = self._begin.timestamp
        seconds = int((timestamp - begin) / _SECOND_MS) if begin > 0 else 0
        self._items.append((key, offset, max(min(seconds, _LATEST), 0), prev))
        self._slots[slot] = count
        self._changed.append(slot)
        self.end = FileEnd(timestamp, offset)
        if count <= FIRST_ITEM:
            self._begin = self.end
        self._used += prev == 0
        self._count = count + 1

    def parts(self) -> list[tuple[int, bytes]]:
        """Position and bytes of header, changed slots and new items."""
        head = Header.build(
            {
                "begin_timestamp": self._begin.timestamp,
                "end_timestamp": self.end.timestamp,
                "begin_physical_offset": self._begin.physical_offset,
                "end_physical_offset": self.end.physical_offset,
                "hash_slot_count": self._used,
                # written with the first key only
                "index_count": 0 if self._count == FIRST_ITEM else self._count,
            }
        )
        if not self._items:
            return [(0, head)]
        low, high = min(self._changed), max(self._changed) + 1
        items = np.array(self._items, dtype=[(name, "i8") for name in ITEM.names or ()]).astype(ITEM)
        return [
            (0, head),
            (slot_position(low), self._slots[low:high].astype(SLOT).tobytes()),
            (item_position(self._first, self._geometry.slots), items.tobytes()),
        ]


def index_after(
    kept: Sequence[StoreFile],
    geometry: Geometry,
    records: tuple[Ints, Ints],
    keys: tuple[Ints, Ints],
) -> list[IndexFile]:
    """The files that dispatching these records changes or makes, in order.

    kept: files that stay, in name order. records: offsets and store times (ms). keys: hash and record number.
    New files are called by the store time of the record for which they are made.
    """
    last = IndexFile(kept[-1].path, geometry, kept[-1]) if kept else None
    found = [last] if last is not None else []
    offsets, times = records
    by_record = {
        owner: [key for key, _ in pairs] for owner, pairs in groupby(_pairs(keys), key=lambda one: one[1])
    }
    for number, (offset, timestamp) in enumerate(zip(offsets.tolist(), times.tolist(), strict=True)):
        if last is None or last.full:
            last = _next(last, geometry, timestamp)
            found.append(last)
        if offset < last.end.physical_offset:
            continue
        for key in by_record.get(number, ()):
            if last.full:
                last = _next(last, geometry, timestamp)
                found.append(last)
            last.put(key, offset, timestamp)
    return [one for one in found if one.touched]


def _pairs(keys: tuple[Ints, Ints]) -> Iterable[tuple[int, int]]:
    return zip(keys[0].tolist(), keys[1].tolist(), strict=True)


def _next(last: IndexFile | None, geometry: Geometry, timestamp: int) -> IndexFile:
    name = _name(timestamp)
    before = last.path.rpartition("/")[2] if last is not None else ""
    while name <= before:
        timestamp += 1
        name = max(_name(timestamp), _following(before))
    made = IndexFile(f"index/{name}", geometry)
    if last is not None:
        made.begin_behind(last.end)
    return made


def _name(timestamp: int) -> str:
    """`UtilAll#timeMillisToHumanString`, in UTC."""
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=max(timestamp, 0))
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def _following(name: str) -> str:
    """The next greater name of the same length."""
    return str(int(name) + 1).zfill(len(name)) if name.isdecimal() else name
