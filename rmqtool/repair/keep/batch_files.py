"""Batch consume queues brought in step with the log: dense 46-byte units, found by search and not by place.

`BatchConsumeQueue`. The first unit of a queue lies at the begin of a file, of whichever number: brokers
delete the first files of a queue as they expire, and the others keep their names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.build.queues import file_path
from rmqtool.repair.content import Inline
from rmqtool.repair.keep.queue_files import (
    by_base,
    filled_up,
    odd_files,
    put,
    removed,
    spans,
    units_of,
)
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.repair.plan_words import differ
from rmqtool.scan.units import BATCH_UNIT, valid_units
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.build.files import DerivedFiles
    from rmqtool.build.queues import BuiltQueue
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Units = npt.NDArray[Any]
    Key = tuple[str, int]


@dataclass(frozen=True)
class BatchRepair:
    """Compares what was built from the repaired log with what lies there.

    size: bytes of a file. first_offset: of the log. built: queues that records were found for. left: queues
    that are not touched.
    """

    store: Store
    files: DerivedFiles
    size: int
    first_offset: int
    built: dict[Key, BuiltQueue]
    left: frozenset[Key]

    def edits(self) -> Iterator[Edit]:
        """Changes to all batch queues, by topic and number."""
        there = {
            (one.topic, one.queue_id): one
            for one in self.store.queues(FileKind.BATCHCONSUMEQUEUE)
            if one.topic is not None and one.queue_id is not None
        }
        made = {key: queue for key, queue in self.built.items() if queue.directory == "batchconsumequeue"}
        for key in sorted({*made, *there}):
            queue = there.get(key)
            if key in self.left and queue is not None and queue.files:
                continue
            files = by_base(queue, self.size) if queue is not None else {}
            yield from odd_files(queue, files)
            units = made[key].units if key in made else 0
            yield from _One(self, key, files, _Built(self, key, units)).edits()

    @property
    def whole(self) -> int:
        """Units of a file."""
        return self.size // BATCH_UNIT.itemsize


@dataclass(frozen=True)
class _Built:
    """The units of one queue as they were built, in files from byte 0 on."""

    repair: BatchRepair
    key: Key
    count: int

    def file(self, number: int) -> str:
        return file_path("batchconsumequeue", *self.key, number * self.repair.size)

    def units(self, start: int, count: int) -> Units:
        """Units [start, start + count), fewer at the end."""
        whole, parts = self.repair.whole, [np.zeros(0, BATCH_UNIT)]
        count = max(min(count, self.count - start), 0)
        while count:
            number, place = divmod(start, whole)
            part = min(count, whole - place)
            path = self.repair.files.place(self.file(number))
            parts.append(np.fromfile(path, BATCH_UNIT, part, offset=place * BATCH_UNIT.itemsize))
            start, count = start + part, count - part
        return np.concatenate(parts)

    def time(self, start: int, count: int) -> int | None:
        """Store time of the last of these units."""
        last = min(start + count, self.count) - 1
        return int(self.units(last, 1)["store_timestamp"][0]) if start <= last else None

    def find(self, offset: int) -> int | None:
        """The place of the unit of the record at a physical offset."""
        whole = self.repair.whole
        for start in range(0, self.count, whole):
            offsets = self.units(start, whole)["physical_offset"].astype(np.int64)
            if offsets[-1] >= offset:
                at = int(np.searchsorted(offsets, offset))
                return start + at if offsets[at] == offset else None
        return None


@dataclass
class _One:
    """One queue. Units are counted from byte 0 of its files on."""

    repair: BatchRepair
    key: Key
    files: dict[int, StoreFile]
    built: _Built
    expired: list[Units] = field(default_factory=list)
    """units of records in front of the log, which stay"""

    def edits(self) -> Iterator[Edit]:
        """What differs; files that hold nothing of the log go."""
        whole, size = self.repair.whole, self.repair.size
        self._find_expired()
        older = sum(len(one) for one in self.expired)
        start = self._start(older)
        end = start + older + self.built.count
        for number in range(start // whole, -(-end // whole)):
            yield from self._file(number, start, older)
        for base, file in self.files.items():
            if not start // whole <= base // size < -(-end // whole):
                yield removed(file, "points at nothing that is in the log")

    def _find_expired(self) -> None:
        follows: int | None = None
        for base, file in self.files.items():
            if file.size != self.repair.size or (follows is not None and base != follows):
                return
            follows = base + self.repair.size
            units = units_of(file, BATCH_UNIT, self.repair.size)
            good = valid_units(units) & (units["physical_offset"] < self.repair.first_offset)
            count = len(units) if good.all() else int(np.argmin(good))
            self.expired.append(units[:count])
            if count < self.repair.whole:
                return

    def _start(self, older: int) -> int:
        """Where the queue begins: as it lies there, as far as that can be known."""
        if not self.files:
            return 0
        low = next(iter(self.files)) // self.repair.size * self.repair.whole
        if older:
            return low
        for base, file in self.files.items():
            units = units_of(file, BATCH_UNIT, self.repair.size)
            for number in np.flatnonzero(valid_units(units))[:1].tolist():
                place = self.built.find(int(units["physical_offset"][number]))
                if place is not None:
                    start: int = base // self.repair.size * self.repair.whole + number - place
                    if start >= 0 and start % self.repair.whole == 0:
                        return start
        return low

    def _file(self, number: int, start: int, older: int) -> Iterator[Edit]:
        repair, base = self.repair, number * self.repair.size
        first = number * repair.whole - start
        behind = min(max(older - first, 0), repair.whole)
        kept = np.concatenate([np.zeros(0, BATCH_UNIT), *self.expired])[first : first + behind]
        from_log = max(first - older, 0)
        units = self.built.units(from_log, repair.whole - behind)
        wanted = np.concatenate([kept, units]).astype(BATCH_UNIT)  # joined ones have native byte order
        there = self.files.get(base)
        path = file_path("batchconsumequeue", *self.key, base)
        if there is None or there.size != repair.size:
            time = self.built.time(from_log, repair.whole - behind)
            yield put(path, repair.size, wanted, None, time, there)
            return
        held = units_of(there, BATCH_UNIT, repair.size)
        count = max(len(wanted), len(held))
        wanted, held = filled_up(wanted, count), filled_up(held, count)
        for span in spans(_compared(wanted) != _compared(held)):
            data = wanted[span[0] : span[-1] + 1]
            slot = int(data["base_offset"][0])
            change = Change(
                action=Action.WRITE,
                path=there.display_path,
                position=int(span[0]) * BATCH_UNIT.itemsize,
                length=data.nbytes,
                why="batchconsumequeue",
                message=differ(len(span), slot),
                facts={
                    "topic": self.key[0],
                    "queue_id": self.key[1],
                    "queue_offset": slot,
                    "units": len(span),
                },
            )
            yield Edit(change, Inline(data.tobytes()))


def _compared(units: Units) -> Units:
    """Without what compaction alone writes."""
    same = units.copy()
    same["compacted_offset"][same["size"] > 0] = 0
    return same
