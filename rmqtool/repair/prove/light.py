"""Light queues in the proof: what consumers know of their entries is the place, whatever records state.

So a plan may move no entry of a file that a broker wrote for the queue. Brokers append entries in the order
of the log (`ConsumeQueue#putMessagePositionInfo`): a file is another queue's where two neighbouring entries
pass over a whole record that states a queue offset between theirs. It is a copy of another file of the queue
where the result has its entries, and the store lost them. In a file in which `verify` finds damage, only
entries that lead to intact records which state just this place count.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.check.queue_files import OpenFiles, QueueUnits
from rmqtool.check.records_at import Found, RecordsAt
from rmqtool.check.unmatched_units import expected_slot
from rmqtool.errors import RmqtoolError
from rmqtool.repair.prove.records import record_at
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.scan.units import UNIT
from rmqtool.store.holes import STEP, data_windows
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import file_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import numpy.typing as npt

    from rmqtool.repair.plan import Edit
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import Access
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]

_MOST = 10_000
"""records that are looked at to learn whose a file is; where these do not tell, it is the queue's"""
_WITHOUT_ENTRY = (1, 3)
"""types of transaction, prepared and rolled back: they state an offset and get no entry"""


def changed_light_files(
    store: Store, after: Store, edits: Iterable[Edit], skipping: Collection[tuple[str, int]] = ()
) -> Iterator[tuple[StoreFile, StoreFile | None]]:
    """Files of light queues that a plan changes, as they are and as they would be.

    skipping: further queues whose records state more than the places of their entries.

    A broker begins files at multiples of their size, so one under another name is held against the file of
    that size in which its name lies: its entries count from there.
    """
    size = store.sizes[FileKind.CONSUMEQUEUE].value
    for path in dict.fromkeys(edit.change.path for edit in edits):
        file = store.file(path)
        if file is None or file.kind is not FileKind.CONSUMEQUEUE or not file.regular:
            continue
        if (file.topic or "").startswith(LMQ_PREFIX) or (file.topic, file.queue_id) in skipping:
            now, base = after.file(path), file.base_offset
            if now is None and base is not None and size and base % size:
                now = after.file(f"{path.rpartition('/')[0]}/{file_name(base - base % size)}")
            yield file, now


@dataclass
class LightOrder:
    """The entries of light queues of a store and of its repaired view `result`, by the order of the log.

    last: physical offset of the result's last record.
    """

    source: Store
    result: Store
    access: Access
    last: int
    kernels: Kernels
    _looked: int = 0

    def moves(self, file: StoreFile, now: StoreFile | None) -> bool:
        """Whether the result has one of the file's entries otherwise that leads into the log.

        No entry of a file counts that is not the queue's own.
        """
        return self._differs(file, now) and not self.is_foreign(file)

    def loses(self, file: StoreFile, now: StoreFile | None) -> bool:
        """Whether the result lacks an entry of a damaged file that is right by itself.

        It leads to an intact record, which the result has too, and stands where that record states.
        """
        with closing(OpenFiles(self.access)) as files:
            queue = _queue_of(self.source, file, files)
            if queue is None:
                return False
            begin, records = queue.first_slot(_number(queue, file)), RecordsAt(self.source.segments, files)
            for at, was, then in _pairs(file, now):
                same = (was["physical_offset"] == then["physical_offset"]) & (was["size"] == then["size"])
                places = np.flatnonzero(self._leads(was) & ~same)
                slots, (offsets, sizes) = begin + at // UNIT.itemsize + places, _leads_to(was[places])
                there = records.each(offsets, sizes, self.kernels)
                entries = zip(slots.tolist(), offsets.tolist(), sizes.tolist(), there, strict=True)
                for slot, offset, size, record in entries:
                    if self._states(queue, record) == slot and self._is_intact(offset, size):
                        return True
        return False

    def _is_intact(self, offset: int, size: int) -> bool:
        """Whether an intact record of the source of that size lies there, which the result has."""
        try:
            was, now = (
                record_at(one, offset, self.kernels, self.access) for one in (self.source, self.result)
            )
        except RmqtoolError:
            return False  # what cannot be read proves nothing
        return was is not None and was == now and was.size == size

    def _differs(self, file: StoreFile, now: StoreFile | None) -> bool:
        for _, was, then in _pairs(file, now):
            same = was["physical_offset"] == then["physical_offset"]
            resized = same & (was["size"] != then["size"]) & self._leads(was)
            if (self._leads(was) & ~same).any() or not self._put_right(then[resized]):
                return True
        return False

    def _put_right(self, units: npt.NDArray[np.void]) -> bool:
        """Whether entries whose size alone was changed have that of the result's records."""
        offsets, sizes = _leads_to(units)
        with closing(OpenFiles(self.access)) as files:
            found = RecordsAt(self.result.segments, files).each(offsets, sizes, self.kernels)
            return all(
                isinstance(one, Found) and one.size == size
                for one, size in zip(found, sizes.tolist(), strict=True)
            )

    def _leads(self, units: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
        """Which of these units lead into the log, up to its last record."""
        offsets = units["physical_offset"]
        return (offsets >= self.source.segments.first_offset) & (offsets <= self.last) & (units["size"] > 0)

    def is_foreign(self, file: StoreFile) -> bool:
        """Whether it is a copy, or two neighbouring entries pass over a whole record between them."""
        with closing(OpenFiles(self.access)) as files, closing(OpenFiles(self.access)) as files_after:
            own, repaired = _queue_of(self.source, file, files), _queue_of(self.result, file, files_after)
            if own is None or repaired is None:
                return False
            records, self._looked = RecordsAt(self.source.segments, files), 0
            try:
                if self._is_copy(own, repaired, file):
                    return True
                there = self._offsets(repaired)
                return any(
                    self._skipped(own, before, behind, there, records)
                    for before, behind in self._neighbours(own, file)
                )
            except RmqtoolError:
                return False  # what cannot be read proves nothing

    def _is_copy(self, own: QueueUnits, repaired: QueueUnits, file: StoreFile) -> bool:
        """Whether the result has its entries at the same places of another file, where the store has none."""
        number = _number(own, file)
        begin = own.first_slot(number)
        begins = np.array([repaired.first_slot(k) for k in range(len(repaired.files))], np.int64)
        shifts, any_leads = begins[begins != begin] - begin, False
        for first, units in own.parts(number):
            places = np.flatnonzero(self._leads(units))
            if not len(places) or not len(shifts):
                continue
            any_leads = True
            offsets = units["physical_offset"][places].astype(np.int64)
            slots = begin + first + places
            shifts = shifts[repaired.gather(slots[0] + shifts)[0] == offsets[0]]
            shifts = shifts[[self._has_now(own, repaired, slots + by, offsets) for by in shifts.tolist()]]
        return any_leads and len(shifts) > 0

    @staticmethod
    def _has_now(own: QueueUnits, repaired: QueueUnits, slots: Ints, offsets: Ints) -> bool:
        """Whether the result has entries that the store has not."""
        return bool((own.gather(slots)[0] < 0).all() and (repaired.gather(slots)[0] == offsets).all())

    def _neighbours(self, queue: QueueUnits, file: StoreFile) -> Iterator[tuple[int, int]]:
        """Physical offsets of neighbouring units, ascending; -1 in front of the queue's first one."""
        number = _number(queue, file)
        slot = queue.first_slot(number)
        left = -1 if slot == 0 else None
        if slot > 0 and (found := int(queue.gather(np.array([slot - 1], np.int64))[0][0])) >= 0:
            left = found
        behind = 0
        for first, units in queue.parts(number):
            if first != behind:
                left = None
            behind = first + len(units)
            offsets = units["physical_offset"].astype(np.int64)
            good = self._leads(units)
            if left is not None and good[0] and offsets[0] > left:
                yield left, int(offsets[0])
            for k in np.flatnonzero(good[1:] & good[:-1] & (offsets[1:] > offsets[:-1])).tolist():
                yield int(offsets[k]), int(offsets[k + 1])
            left = int(offsets[-1]) if good[-1] else None

    def _offsets(self, queue: QueueUnits) -> Ints:
        """Physical offsets of all entries that lead into the log, ascending."""
        parts = [
            units["physical_offset"][self._leads(units)].astype(np.int64)
            for number in range(len(queue.files))
            for _, units in queue.parts(number)
        ]
        return np.unique(np.concatenate([np.empty(0, np.int64), *parts]))

    def _skipped(self, queue: QueueUnits, before: int, behind: int, there: Ints, records: RecordsAt) -> bool:
        """Whether a whole record between two physical offsets states a queue offset between theirs.

        there: physical offsets of records that have an entry in the result.
        """
        between = there[np.searchsorted(there, before, "right") : np.searchsorted(there, behind, "left")]
        if not len(between) or self._looked >= _MOST:
            return False
        low = -1 if before < 0 else self._stated(queue, before, records)
        high = self._stated(queue, behind, records)
        if low is None or high is None or high <= low + 1:
            return False
        for offset in between.tolist():
            if self._looked >= _MOST:
                return False
            slot = self._stated(queue, offset, records)
            if slot is not None and low < slot < high:
                return True
        return False

    def _stated(self, queue: QueueUnits, offset: int, records: RecordsAt) -> int | None:
        """The place that the record at a physical offset of the source states in the queue, if it has one."""
        self._looked += 1
        return self._states(queue, records.get(offset))

    @staticmethod
    def _states(queue: QueueUnits, record: Found | RmqtoolError | None) -> int | None:
        """The place that a record states in the queue, if it has one; what cannot be read states none."""
        if not isinstance(record, Found) or record.transaction in _WITHOUT_ENTRY:
            return None
        return expected_slot(queue, record)


def _leads_to(units: npt.NDArray[np.void]) -> tuple[Ints, Ints]:
    """Physical offsets and sizes."""
    return units["physical_offset"].astype(np.int64), units["size"].astype(np.int64)


def _pairs(
    file: StoreFile, now: StoreFile | None
) -> Iterator[tuple[int, npt.NDArray[np.void], npt.NDArray[np.void]]]:
    """Positions, and the entries from there on of a file as it is and as it would be; zeros without one."""
    with file.open("pread") as before, ExitStack() as stack:
        after = stack.enter_context(now.open("pread")) if now is not None else None
        for at, window in data_windows(before, 0, _whole_units(file.size), _whole_units(STEP)):
            was = window.view(UNIT)
            then = np.zeros(len(was), UNIT)
            if after is not None:
                raw = after.window(at, window.size)
                kept = raw[: _whole_units(raw.size)].view(UNIT)
                then[: len(kept)] = kept
            yield at, was, then


def _queue_of(store: Store, file: StoreFile, files: OpenFiles) -> QueueUnits | None:
    """The queue of a file."""
    key = file.topic, file.queue_id
    queues = store.queues(FileKind.CONSUMEQUEUE)
    return next((QueueUnits(one, files) for one in queues if (one.topic, one.queue_id) == key), None)


def _number(queue: QueueUnits, file: StoreFile) -> int:
    return next(k for k, one in enumerate(queue.files) if one.display_path == file.display_path)


def _whole_units(size: int) -> int:
    """Bytes of the whole units in `size` bytes."""
    return size // UNIT.itemsize * UNIT.itemsize
