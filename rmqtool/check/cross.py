"""Records against units, both ways: every record at its slot, every unit with its record.

Records are compared in columns while the log is read: the unit at a record's queue offset must hold its
offset, size and tags code. Only queue files with units that no record claimed are looked at unit by unit
afterwards, so memory depends on the number of files and on what is wrong, not on the number of messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.consumequeue import EXT_MAX_ADDRESS
from rmqtool.check.findings import finding
from rmqtool.check.further import FurtherCheck
from rmqtool.check.queue_files import place_of
from rmqtool.check.queue_numbers import QueueNumbers
from rmqtool.check.unplaced import Unplaced
from rmqtool.scan.fields import DispatchColumn, Stretch
from rmqtool.scan.partitions import PartitionColumns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.scan.extensions import Extensions
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.partitions import Placed

    Ints = npt.NDArray[np.int64]
    Queues = Mapping[tuple[str, int], QueueUnits]

CHUNK_ROWS = 1 << 18
"""records that are compared together: enough that the cost of a queue is small, 12 MiB of columns"""
_STRETCHES = 1 << 16
"""stretches that are compared together; NumPy asks for huge pages for much more, and to clear one for each
column takes longer than a log's few stretches need"""


class CrossCheck:
    """Fed with the record runs of a log in physical order; `unplaced` are then the records without a unit.

    queues, batches: of plain and of batch units; batch units have their records looked for by offset, as
    one stands for many slots. stretched: no queue has a file; what comes is stretches (`fields.Stretch`).
    """

    def __init__(
        self,
        queues: Queues,
        batches: Queues,
        extensions: Extensions,
        kernels: Kernels,
        *,
        stretched: bool = False,
    ) -> None:
        self.queues = queues
        self.batches = batches
        self._extensions = extensions
        self.kernels = kernels.dispatch
        self.stretched = stretched
        room, width = (_STRETCHES, len(Stretch)) if stretched else (CHUNK_ROWS, len(DispatchColumn))
        self._partitions = PartitionColumns(kernels, room, width)
        self.unplaced: dict[tuple[str, int], Unplaced] = {}
        self.further = FurtherCheck(queues)
        self.numbers = QueueNumbers()
        self.dispatched = -1
        """highest offset of a record that has its unit: dispatching went at least so far"""

    def take(self, placed: Placed) -> Iterator[Finding]:
        """A run of records as `Partitions.placed` has it, or `StretchedPartitions.placed`."""
        for _ in self._partitions.take_placed(placed):
            yield from self._compare()

    def close(self) -> Iterator[Finding]:
        """Compares what is left."""
        yield from self._compare()
        self.further.close()

    def _compare(self) -> Iterator[Finding]:
        columns = self._partitions.columns
        for key, chosen in self._partitions.groups():
            if self.stretched:
                self._without_queue(key, columns[Stretch.SLOT :, chosen])
                continue
            queue = self.queues.get(key)
            if queue is None or not queue.files:
                offsets, slots = columns[DispatchColumn.OFFSET, chosen], columns[DispatchColumn.SLOT, chosen]
                self._without_unit(key, queue, offsets, slots)
                continue
            right = self._agreeing(queue, chosen)
            if not right.all():
                yield from self._compare_queue(key, queue, columns[:, chosen[~right]])
        self._partitions.clear()

    def _agreeing(self, queue: QueueUnits, chosen: Ints) -> npt.NDArray[np.bool_]:
        """Which of these records have a unit that is right in every field."""
        columns = self._partitions.columns
        right, slots = np.zeros(len(chosen), bool), columns[DispatchColumn.SLOT, chosen]
        for number, low, high in queue.files_of(slots):
            first = queue.first_slot(number)
            raw = queue.part(number, low - first, high - first).view(np.uint8)
            count, highest = self.kernels.agree_units(raw, low, columns, chosen, right)
            if count == high - low:
                queue.claim(low, high)
            else:
                queue.claim_each(slots[right & (slots >= low) & (slots < high)])
            self.dispatched = max(self.dispatched, highest)
        return right

    def _compare_queue(self, key: tuple[str, int], queue: QueueUnits, columns: Ints) -> Iterator[Finding]:
        """Records whose unit differs in something, or is not there."""
        slots, offsets, sizes, codes = columns[DispatchColumn.SLOT : DispatchColumn.OWNER]
        unit_offsets, unit_sizes, unit_codes = queue.gather(slots)
        right = unit_offsets == offsets
        queue.claim_each(slots[right])
        self.dispatched = max(self.dispatched, int(offsets[right].max(initial=-1)))
        self._without_unit(key, queue, offsets[~right], slots[~right])
        for index in np.flatnonzero(right & (unit_sizes != sizes)):
            yield _unit_finding(
                "CQ-SIZE",
                queue,
                int(slots[index]),
                int(offsets[index]),
                int(sizes[index]),
                int(unit_sizes[index]),
            )
        differs = right & (unit_codes != codes)
        extended = differs & (unit_codes <= EXT_MAX_ADDRESS)
        if extended.any():
            lookup = self._extensions.of(*key)
            for index in np.flatnonzero(extended):
                found = lookup.tags_code(int(unit_codes[index])) if lookup else None
                if found is None:
                    yield _unit_finding(
                        "CQ-EXT", queue, int(slots[index]), int(offsets[index]), None, int(unit_codes[index])
                    )
                differs[index] = found is not None and found != codes[index]
                if found is not None:
                    unit_codes[index] = found
        for index in np.flatnonzero(differs):
            yield _unit_finding(
                "CQ-TAGS",
                queue,
                int(slots[index]),
                int(offsets[index]),
                int(codes[index]),
                int(unit_codes[index]),
            )

    def _without_unit(
        self, key: tuple[str, int], queue: QueueUnits | None, offsets: Ints, slots: Ints
    ) -> None:
        if queue is not None and queue.files and len(slots):
            there = ~queue.lost(slots)
            offsets, slots = offsets[there], slots[there]
        if not len(offsets):
            return
        batch = self.batches.get(key)
        holder = batch or queue
        if holder is None or not holder.files:
            self._without_queue(key, np.stack((slots, offsets, slots, offsets)))
            return
        # a unit at another slot is shifted, which is found with the units
        missing = ~holder.holds(offsets)
        offsets, slots = offsets[missing], slots[missing]
        if not len(offsets):
            return
        behind = slots >= (holder.ends()[1] if holder.batch else holder.next_slot)
        self._unplaced(key).behind.add(offsets[behind], slots[behind])
        self._unplaced(key).add_inside(offsets[~behind], slots[~behind])

    def _without_queue(self, key: tuple[str, int], stretches: Ints) -> None:
        """Records of a queue that has no file: rows of `Stretch` without the partition."""
        self.numbers.add(key, stretches)
        slots, offsets, last_slots, _ = stretches
        self._unplaced(key).behind.add(offsets, slots, int((last_slots - slots + 1).sum()))

    def _unplaced(self, key: tuple[str, int]) -> Unplaced:
        return self.unplaced.setdefault(key, Unplaced())


def _unit_finding(
    code: str, queue: QueueUnits, slot: int, offset: int, expected: int | None, found: int
) -> Finding:
    part = {"CQ-SIZE": "size", "CQ-TAGS": "tags_code", "CQ-EXT": "tags_code"}[code]
    path, position = place_of(queue, slot)
    return finding(
        code,
        path=path,
        position=position,
        length=queue.dtype.itemsize,
        physical_offset=offset,
        part=part,
        expected=expected,
        found=found,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=slot,
    )
