"""Whole records that a plan changes: which of them lie, by what else the store says.

The CRC covers the body alone, so a record may be whole and name a wrong topic, queue or queue offset. Its own
unit vouches for it; another unit that points at it, another intact record at its queue offset, or neighbours
in its queue that lie on the other side of it in the log, speak against it. So does a queue that misses it
where it lies, if it is alone in its own, and no several of it that the plan changes are in order. Where
nothing does, it is intact. Of queues without plain files (batch queues, those in RocksDB) the records
themselves tell where a queue offset lies; units of batch queues vouch for their records as others do, and
speak against them where their neighbours agree: they state their queue offsets themselves, and may be what
is wrong.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import SysFlag
from rmqtool.errors import RmqtoolError
from rmqtool.repair.keep.headers import SMALLEST_RECORD
from rmqtool.repair.keep.rocksdb import has_rocksdb_queues
from rmqtool.repair.prove.places import LogPlaces
from rmqtool.repair.prove.records import Record, record_at
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.scan.units import BATCH_UNIT, UNIT
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import Access
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Slot = tuple[str, int, int]

_PART = 1 << 20
_STEPS = (*range(1, 64), *(1 << power for power in range(6, 40)))
"""how far from a place the next intact record of its queue is looked for, in queue offsets"""
_SEVERAL = 3
_TYPE = int(SysFlag.TRANSACTION_MASK)
_WITHOUT_UNIT = (int(SysFlag.PREPARED), int(SysFlag.ROLLBACK))
"""`CommitLogDispatcherBuildConsumeQueue#dispatch` passes over them"""


@dataclass(frozen=True)
class Evidence:
    """About `changed`, whole records of the source that the result does not have as they were."""

    source: Store
    result: Store
    changed: Sequence[Record]
    kernels: Kernels
    access: Access

    def intact(self) -> Iterator[Record]:
        """Those that the plan should have left alone."""
        for one in self.changed:
            slot = _slot(one)
            units = self._pointing.get(one.physical_offset, ())
            if one.sys_flag & _TYPE in _WITHOUT_UNIT and (
                (one.queue_offset and slot not in units) or self._only_type(one)
            ):
                continue  # no release gives a record without a unit a queue offset
            if self._keeps_entries(one, units):
                continue
            if slot in units or not (units or self._contradicted(one) or self._put_right(one)):
                yield one

    def _keeps_entries(self, one: Record, units: Sequence[Slot]) -> bool:
        """It has other lists of further queues now, and every entry that it had leads to it still.

        But for those of a copied queue directory, which is gone.
        """
        left = [
            unit
            for unit in units
            if unit[0].startswith(LMQ_PREFIX) or self._queues.get(unit[:2], ([], []))[1]
        ]
        return (
            any(unit != _slot(one) for unit in left)
            and record_at(self.result, one.physical_offset, self.kernels, self.access) == one
            and all(self._unit(unit) == one.physical_offset for unit in left)
        )

    def _contradicted(self, one: Record) -> bool:
        """By intact records of its queue: at its offset, or beside it and on the wrong side in the log."""
        at = self._neighbour(one, 0)
        before, behind = self._neighbour(one, -1), self._neighbour(one, 1)
        return (
            at is not None
            or (before is not None and before > one.physical_offset)
            or (behind is not None and behind < one.physical_offset)
            or self._far_ahead(one)
            or self._far_behind(one)
        )

    def _far_ahead(self, one: Record) -> bool:
        """Whether intact records of its queue with lower queue offsets, more than one, lie behind it."""
        if self._unfiled(one.topic) and (one.topic, one.queue_id) not in self._queues:
            return self._places.lower_behind(*_slot(one), one.physical_offset) > 1
        steps = (step for step in (-one.queue_offset, *(at - one.queue_offset for at in _STEPS)) if step < 0)
        return _are_several(place for place in self._neighbours(one, steps) if place > one.physical_offset)

    def _far_behind(self, one: Record) -> bool:
        """Whether intact records of its queue with higher queue offsets, more than one, lie in front of it.

        Its own place may have expired.
        """
        return _are_several(place for place in self._neighbours(one, _STEPS) if place < one.physical_offset)

    def _neighbours(self, one: Record, steps: Iterable[int]) -> Iterator[int]:
        return (place for step in steps if (place := self._neighbour(one, step)) is not None)

    def _only_type(self, one: Record) -> bool:
        """It has a place in its queue now, and nothing but its type of transaction said that it has none."""
        if self._unit(_slot(one)) != one.physical_offset:
            return False
        now = record_at(self.result, one.physical_offset, self.kernels, self.access)
        return now is not None and replace(now, sys_flag=one.sys_flag) == one

    def _put_right(self, one: Record) -> bool:
        """Alone in its queue, and the result has its body where a queue missed it, in one part otherwise.

        So it has in the same queue where the log in front never had room for as many messages as it states.
        """
        reach = _STEPS[:63] if one.topic in self._batches else (1,)  # a batch takes several queue offsets
        if (one.topic, one.queue_id) in self._in_order or any(
            self._neighbour(one, way * step) is not None for step in reach for way in (-1, 1)
        ):
            return False
        now = record_at(self.result, one.physical_offset, self.kernels, self.access)
        if now is None or (now.size, now.body) != (one.size, one.body):
            return False
        same_queue = (now.topic, now.queue_id) == (one.topic, one.queue_id)
        too_many = one.queue_offset > one.physical_offset // SMALLEST_RECORD
        return (same_queue and too_many) or self._missed(one, now)

    def _missed(self, one: Record, now: Record) -> bool:
        """Whether intact records around a place tell that it is the record's, and not the one that it states.

        They lie on both sides of it, or on one and nothing takes the place that the record states.
        """
        parts = zip(_slot(one), _slot(now), strict=True)
        if (other := sum(was != then for was, then in parts)) != 1:
            return not other
        before, behind = (self._nearest(now, way) for way in (-1, 1))
        if (before is not None and before > now.physical_offset) or (
            behind is not None and behind < now.physical_offset
        ):
            return False
        if before is None or behind is None:
            return before is not behind and self._unit(_slot(one)) is None
        return True

    def _nearest(self, one: Record, way: int) -> int | None:
        """Physical offset of an intact record of its queue on one side, the nearest or one not far away."""
        for step in _STEPS:
            if way * step + one.queue_offset < 0:
                return self._neighbour(one, -one.queue_offset) if one.queue_offset else None
            if (found := self._neighbour(one, way * step)) is not None:
                return found
        return None

    def _neighbour(self, one: Record, step: int) -> int | None:
        """Physical offset of another intact record of the source that has this place in the queue."""
        slot = one.topic, one.queue_id, one.queue_offset + step
        place = self._unit(slot)
        if place is None or place == one.physical_offset or place in self._suspects:
            return None
        found = record_at(self.source, place, self.kernels, self.access)
        if found is None or _slot(found) != slot:
            return None
        return place

    @cached_property
    def _in_order(self) -> frozenset[tuple[str, int]]:
        """Queues in which several records get other queue offsets, though theirs are as they lie in the log.

        They vouch for each other where no unit does: damage to each by itself leaves no order.
        """
        found: dict[tuple[str, int], list[Record]] = {}
        for one in sorted(self.changed, key=lambda one: one.physical_offset):
            found.setdefault((one.topic, one.queue_id), []).append(one)
        several = (records for records in found.values() if len(records) >= _SEVERAL)
        stay = {key for records in several if (key := self._stays(records)) is not None}
        return frozenset(stay)

    def _stays(self, records: Sequence[Record]) -> tuple[str, int] | None:
        """The queue of these, if all are in it still and stated ascending queue offsets."""
        key = records[0].topic, records[0].queue_id
        if not all(low.queue_offset < high.queue_offset for low, high in pairwise(records)):
            return None
        now = (record_at(self.result, one.physical_offset, self.kernels, self.access) for one in records)
        return key if all(one is not None and (one.topic, one.queue_id) == key for one in now) else None

    @cached_property
    def _suspects(self) -> frozenset[int]:
        return frozenset(one.physical_offset for one in self.changed)

    @cached_property
    def _queues(self) -> dict[tuple[str, int], tuple[list[int], list[StoreFile]]]:
        """Files of the result's queues by the base in their names."""
        return {
            (one.topic, one.queue_id): ([file.base_offset or 0 for file in one.files], list(one.files))
            for one in self.result.queues(FileKind.CONSUMEQUEUE)
            if one.topic is not None and one.queue_id is not None
        }

    def _unit(self, slot: Slot) -> int | None:
        """Where the unit of the result at this place points, or its record lies."""
        topic, queue_id, offset = slot
        if self._unfiled(topic) and (topic, queue_id) not in self._queues:
            return self._places.at(topic, queue_id, offset)
        bases, files = self._queues.get((topic, queue_id), ([], []))
        number = bisect_right(bases, offset * UNIT.itemsize) - 1
        if offset < 0 or number < 0:
            return None
        position = offset * UNIT.itemsize - bases[number]
        if position + UNIT.itemsize > files[number].size:
            return None
        with files[number].open("pread") as source:
            unit = np.frombuffer(source.window(position, UNIT.itemsize).tobytes(), UNIT)[0]
        return int(unit["physical_offset"]) if unit["size"] > 0 else None

    def _unfiled(self, topic: str) -> bool:
        """Whether no plain file tells of the queues of a topic, or of one that a flipped bit made of it."""
        return self._in_database or any(len(topic) == len(one) for one in self._batches)

    @cached_property
    def _in_database(self) -> bool:
        return has_rocksdb_queues(self.source)

    @cached_property
    def _batches(self) -> frozenset[str]:
        return frozenset(
            one.topic for one in self.result.queues(FileKind.BATCHCONSUMEQUEUE) if one.topic is not None
        )

    @cached_property
    def _places(self) -> LogPlaces:
        """Of the result: queues that the changed records state, and those that they are in now."""
        keys = {(one.topic, one.queue_id) for one in self.changed}
        for one in self.changed:
            now = record_at(self.result, one.physical_offset, self.kernels, self.access)
            keys |= {(now.topic, now.queue_id)} if now is not None else set()
        return LogPlaces(self.result.segments, keys, self.kernels, self.access)

    @cached_property
    def _pointing(self) -> dict[int, list[Slot]]:
        """Units of the source that point at changed records with their size, by physical offset."""
        changed = {one.physical_offset: one for one in self.changed}
        wanted = np.array(sorted(changed), np.int64)
        found: dict[int, list[Slot]] = {}
        kinds = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
        for queue in (one for kind in kinds for one in self.source.queues(kind)):
            for file in queue.files:
                if queue.topic is None or queue.queue_id is None or file.base_offset is None:
                    continue
                for slot, place, size, sure in _units_at(file, wanted):
                    key, one = (queue.topic, queue.queue_id, slot), changed[place]
                    if size == one.size and (sure or key == _slot(one)):
                        found.setdefault(place, []).append(key)
        return found


def _are_several(places: Iterator[int]) -> bool:
    return len(list(islice(places, 2))) > 1


def _slot(one: Record) -> Slot:
    return one.topic, one.queue_id, one.queue_offset


def _units_at(file: StoreFile, wanted: np.ndarray) -> Iterator[tuple[int, int, int, bool]]:
    """(slot, physical offset, size, whether the slot is sure) of units that point at one of the offsets.

    The slot of a unit that states it is sure where it continues that of a unit beside it.
    """
    layout = BATCH_UNIT if file.kind is FileKind.BATCHCONSUMEQUEUE else UNIT
    step = _PART // layout.itemsize * layout.itemsize
    try:
        with file.open("pread") as source:
            for start in range(0, file.size, step):
                raw = source.window(start, min(step, file.size - start)).tobytes()
                units = np.frombuffer(raw[: len(raw) // layout.itemsize * layout.itemsize], layout)
                first, sure = ((file.base_offset or 0) + start) // layout.itemsize, np.ones(len(units), bool)
                slots = first + np.arange(len(units))
                if layout is BATCH_UNIT:
                    slots = units["base_offset"].astype(np.int64)
                    follows = slots[1:] == slots[:-1] + units["batch_size"][:-1]
                    sure = np.append(follows, False) | np.append(False, follows)
                for number in np.flatnonzero(np.isin(units["physical_offset"], wanted)).tolist():
                    unit = units[number]
                    place, size = int(unit["physical_offset"]), int(unit["size"])
                    yield int(slots[number]), place, size, bool(sure[number])
    except RmqtoolError:
        return  # what cannot be read vouches for nothing; verify tells of it
