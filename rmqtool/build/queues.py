"""Files of consume queues, record columns in, units out.

`ConsumeQueue#putMessagePositionInfo`, `BatchConsumeQueue#putBatchMessagePositionInfo`.
A queue takes columns (`scan.fields.Column`) and the places in them that are its own, in the order of the log;
where they come from (one thread, or a job for each segment) does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from formats.consumequeue import COMPACTED_OFFSET, PRE_BLANK
from rmqtool.broker.extension_files import ExtensionFiles
from rmqtool.scan.fields import Column, Queue
from rmqtool.scan.units import BATCH_UNIT, UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.build.files import DerivedFiles
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]

_BLANKS = 1 << 16
"""blank units that are written together"""


@dataclass(frozen=True)
class QueueTold:
    """What was built of one queue, see `PlainQueue` and `BatchQueue`."""

    directory: str
    topic: str
    queue_id: int
    first: int | None
    next_slot: int
    units: int
    filled: int
    misplaced: int
    doubled: int

    @classmethod
    def of(cls, queue: PlainQueue | BatchQueue) -> QueueTold:
        """Of a queue as it is now."""
        return cls(**{one.name: getattr(queue, one.name) for one in fields(cls)})


def file_path(directory: str, topic: str, queue_id: int, base: int) -> str:
    """Path of the file of a queue that begins at byte `base`, relative to the store."""
    return f"{directory}/{topic}/{queue_id}/{base:020d}"


class PlainQueue:
    """A queue of 20-byte units. `first` is its first slot, None as long as it has no unit."""

    directory = "consumequeue"

    def __init__(
        self, topic: str, queue_id: int, rules: FileRules, files: DerivedFiles, kernels: Kernels
    ) -> None:
        self.topic, self.queue_id = topic, queue_id
        self._rules = rules
        self._files = files
        self._kernels = kernels.building
        self._extension = (
            ExtensionFiles(topic, queue_id, rules.extension_size, files) if rules.extends else None
        )
        self._state = np.zeros(len(Queue), np.int64)
        self._state[Queue.KNOWN] = -1
        self.first: int | None = None
        self.units = 0
        """units of messages"""
        self.filled = 0
        """blank units between messages, for slots whose records could not be read"""

    @property
    def next_slot(self) -> int:
        """The slot behind the last unit."""
        return int(self._state[Queue.NEXT])

    @property
    def doubled(self) -> int:
        """Records that got no unit because their slot was taken."""
        return int(self._state[Queue.DOUBLED])

    @property
    def misplaced(self) -> int:
        """Units at another slot than that of their record."""
        return int(self._state[Queue.MISPLACED])

    def append(self, columns: Ints, chosen: Ints, lost: int = 0, own: Ints | None = None) -> None:
        """Units for the `chosen` columns.

        lost: how many records may be missing from the log in front of these; so many slots at most are
        left to them as blank units. A record further beyond the next slot gets the next slot, as the broker
        does it. own: places of `chosen` whose record names this queue as its own, where others
        came by multi-dispatch, which never uses extension files.
        """
        if self._extension is not None and len(chosen):
            columns = _extended(self._extension, columns, chosen if own is None else own)
        at = 0
        if self.first is None:
            at = self._begin(columns[Column.SLOT, chosen])
        out = np.empty(len(chosen) * UNIT.itemsize, np.uint8)
        taken = np.empty(len(chosen), np.int64)
        while at < len(chosen):
            at, count = self._kernels.append_units(columns, chosen, at, lost, self._state, out, taken)
            if count:
                self._write(
                    self.next_slot - count, out[: count * UNIT.itemsize], columns[Column.TIME, taken[:count]]
                )
                self.units += count
            if at < len(chosen):
                self._fill(int(columns[Column.SLOT, chosen[at]]))
        self._open_next(columns[:, chosen])

    def _open_next(self, columns: Ints) -> None:
        """A broker makes the file behind a full one before it finds that a record's slot is taken."""
        if self.units and self.next_slot % self._rules.units == 0:
            repeats = (columns[Column.SLOT] != 0) & (columns[Column.SLOT] < self.next_slot)
            unknown = columns[Column.OFFSET] + columns[Column.SIZE] > self._state[Queue.KNOWN]
            if (repeats & unknown).any():
                base = self.next_slot // self._rules.units * self._rules.consume_queue_size
                path = file_path(self.directory, self.topic, self.queue_id, base)
                self._files.write(path, self._rules.consume_queue_size, 0, b"")

    def _begin(self, slots: Ints) -> int:
        """The first unit: blanks in front of it fill its file (`#fillPreBlank`). Its place in `slots`."""
        sound = np.flatnonzero(slots >= 0)
        start = int(sound[0]) if sound.size else len(slots)
        self._state[Queue.DOUBLED] += start
        if start < len(slots):
            first = int(slots[start])
            self.first = self._state[Queue.NEXT] = first
            self._blanks(first - first % self._rules.units, first)
        return start

    def _fill(self, slot: int) -> None:
        """Blank units up to a slot."""
        self._blanks(self.next_slot, slot)
        self.filled += slot - self.next_slot
        self._state[Queue.NEXT] = slot

    def _blanks(self, start: int, end: int) -> None:
        for slot in range(start, end, _BLANKS):
            count = min(end - slot, _BLANKS)
            self._write(slot, np.frombuffer(PRE_BLANK * count, np.uint8), np.empty(0, np.int64))

    def _write(self, slot: int, data: npt.NDArray[np.uint8], times: Ints) -> None:
        whole, size = self._rules.units, self._rules.consume_queue_size
        done, count = 0, len(data) // UNIT.itemsize
        while done < count:
            file, place = divmod(slot + done, whole)
            end = done + min(count - done, whole - place)
            path = file_path(self.directory, self.topic, self.queue_id, file * size)
            part = data[done * UNIT.itemsize : end * UNIT.itemsize]
            time = int(times[end - 1]) if len(times) else None
            self._files.write(path, size, place * UNIT.itemsize, part, time)
            done = end


def _extended(extension: ExtensionFiles, columns: Ints, places: Ints) -> Ints:
    """Columns in which the tags codes at these places are addresses of extension units."""
    columns = columns.copy()
    columns[Column.CODE, places] = extension.put(columns[Column.CODE, places], columns[Column.TIME, places])
    return columns


class BatchQueue:
    """A queue of 46-byte units, one for each record that comes, one behind the other from byte 0 on."""

    directory = "batchconsumequeue"

    def __init__(self, topic: str, queue_id: int, rules: FileRules, files: DerivedFiles) -> None:
        self.topic, self.queue_id = topic, queue_id
        self._rules = rules
        self._files = files
        self._known = -1
        self.first: int | None = None
        self.next_slot = 0
        """queue offset behind the last message"""
        self.units = self.doubled = self.misplaced = self.filled = 0

    def append(self, columns: Ints, chosen: Ints, counts: Ints) -> None:
        """Units for the `chosen` columns, whose slots are those of the first message in each.

        counts: messages in each of them (by column). One that does not lie behind the last gets none.
        """
        offsets = columns[Column.OFFSET, chosen]
        before = np.maximum.accumulate(np.concatenate(([self._known], offsets)))[:-1]
        sound = (columns[Column.SLOT, chosen] >= 0) & (counts[chosen] >= 0)
        taken = chosen[(offsets > before) & sound]
        self.doubled += len(chosen) - len(taken)
        if not len(taken):
            return
        self._write(self._units(columns, taken, counts[taken]), columns[Column.TIME, taken])
        self._known = int(columns[Column.OFFSET, taken[-1]])
        if self.first is None:
            self.first = int(columns[Column.SLOT, taken[0]])
        self.next_slot = int(columns[Column.SLOT, taken[-1]] + counts[taken[-1]])

    def _units(self, columns: Ints, taken: Ints, counts: Ints) -> npt.NDArray[Any]:
        units = np.zeros(len(taken), BATCH_UNIT)
        units["physical_offset"] = columns[Column.OFFSET, taken]
        units["size"] = columns[Column.SIZE, taken]
        units["tags_code"] = columns[Column.CODE, taken]
        units["store_timestamp"] = columns[Column.TIME, taken]
        units["base_offset"] = columns[Column.SLOT, taken]
        units["batch_size"] = counts
        units["compacted_offset"] = COMPACTED_OFFSET
        return units

    def _write(self, units: npt.NDArray[Any], times: Ints) -> None:
        whole, size = self._rules.batch_units, self._rules.batch_queue_size
        done = 0
        while done < len(units):
            file, place = divmod(self.units, whole)
            end = done + min(len(units) - done, whole - place)
            path = file_path(self.directory, self.topic, self.queue_id, file * size)
            position = place * BATCH_UNIT.itemsize
            self._files.write(path, size, position, units[done:end].tobytes(), int(times[end - 1]))
            self.units += end - done
            done = end


class QueueSink(Protocol):
    """Takes the columns of queues in the order of the log."""

    def plain(self, key: Key, columns: Ints, chosen: Ints, lost: int, own: Ints | None = None) -> None:
        """See `PlainQueue.append`."""

    def batches(self, key: Key, columns: Ints, chosen: Ints, counts: Ints) -> None:
        """See `BatchQueue.append`."""
