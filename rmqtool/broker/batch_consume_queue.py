"""One batch consume queue through a start (`BatchConsumeQueue`): dense units that each cover a batch.

Batches are few, so what the start appends is kept whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formats.consumequeue import COMPACTED_OFFSET
from rmqtool.broker.java import wrap64
from rmqtool.broker.queue_state import QueueState
from rmqtool.scan.units import BATCH_UNIT, data_end, valid_units

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.broker.queue_records import QueueRecords
    from rmqtool.broker.units import Prefix
    from rmqtool.store.access import OpenMode

    Units = npt.NDArray[Any]

BYTES = BATCH_UNIT.itemsize
_TOGETHER = 1 << 14
"""units that are read together"""


class BatchConsumeQueue(QueueState):
    """As `ConsumeQueue`, for 46-byte units; max_physical is the *start* of the last record known.

    keep_units: what is appended can be asked for afterwards.
    """

    directory = "batchconsumequeue"

    def __init__(
        self, topic: str, queue_id: int, files: MappedFiles, mode: OpenMode, *, keep_units: bool = True
    ) -> None:
        super().__init__(topic, queue_id, files, mode, BATCH_UNIT)
        self.min_offset = -1
        self.max_offset = 0
        self._keep_units = keep_units
        self._fresh: dict[MappedFile, Units] = {}
        self._written: dict[MappedFile, npt.NDArray[np.bool_]] = {}

    def destroy(self) -> None:
        """The log has no files."""
        self.files.destroy()
        self.max_physical, self.min_offset, self.max_offset = -1, 0, 0

    def recover(self, found: list[tuple[MappedFile, Prefix]] | None = None) -> None:
        """`#recover`. found: see `read`."""
        if not self.files.files:
            return
        end = 0
        for one, prefix in self.read() if found is None else found:
            end = one.base + prefix.count * BYTES
            self.recovered.append((one, prefix.count))
            if prefix.count:
                self.max_physical = int(prefix.last["physical_offset"])
        self.files.truncate(end)
        self._revise()
        self.recovered_max = self.max_offset

    def truncate(self, offset: int) -> None:
        """`#truncateDirtyLogicFiles`: the first unit of the last file is taken unless it lies too far."""
        self.max_physical = offset - 1
        while self.files.files:
            last = self.files.files[-1]
            count = self._below(last, offset)
            if count == 0:
                self.files.delete_last()
                continue
            last.wrote = count * BYTES
            self.max_physical = int(self._part(last, count - 1, count)["physical_offset"][0])
            break
        self._revise()

    def _below(self, one: MappedFile, offset: int) -> int:
        """How many units from the first on, which is taken whatever its size, point below `offset`."""
        for start in range(0, self._whole, _TOGETHER):
            units = self._part(one, start, min(start + _TOGETHER, self._whole))
            good = units["physical_offset"] < offset
            good[1 if start == 0 else 0 :] &= valid_units(units)[1 if start == 0 else 0 :]
            wrong = np.flatnonzero(~good)
            if wrong.size:
                return start + int(wrong[0])
        return self._whole

    def content_of(self, one: MappedFile) -> bytes:
        """Bytes of a file once the start is through."""
        return self._whole_file(one).tobytes().ljust(self.files.size, b"\0")

    def written_to(self, one: MappedFile) -> npt.NDArray[np.intp]:
        """Numbers of the units that the start wrote to a file, those too that truncation took away again."""
        return np.flatnonzero(self._written.get(one, np.zeros(0, np.bool_)))

    def append(self, run: QueueRecords, lost: int = 0) -> None:
        """`#putBatchMessagePositionInfo` for each record that lies behind the last one known.

        lost: see `ConsumeQueue.append`; units lie densely, whatever is missing.
        """
        del lost
        offsets, bases, counts = run.offsets, run.bases, run.messages
        sound = np.flatnonzero((bases >= 0) & (counts >= 0))
        before = np.maximum.accumulate(np.concatenate(([self.max_physical], offsets[sound])))[:-1]
        fresh = sound[offsets[sound] > before]
        self.skipped += len(run) - len(fresh)
        if not len(fresh):
            return
        units, times = _encoded(run, fresh), run.times[fresh]
        done = 0
        while done < len(fresh):
            file = self.files.last_for(self.files.max_offset)
            number = file.wrote // BYTES
            part = units[done : done + (self.files.size - file.wrote) // BYTES]
            if not len(part):  # a file that is named after no whole unit: no broker makes another one
                fresh = fresh[:done]
                break
            if self._keep_units:
                whole = self._whole_file(file)
                whole[number : number + len(part)] = part
                self._fresh[file] = whole
                written = self._written.setdefault(file, np.zeros(self._whole, np.bool_))
                written[number : number + len(part)] = True
            done += len(part)
            self.files.write(file, part.tobytes(), int(times[done - 1]))
            if file.first_in_queue and self.min_offset == -1:
                self.min_offset = int(part["base_offset"][0])
        if not done:
            return
        self.max_physical = int(offsets[fresh[-1]])
        self.max_offset = wrap64(int(bases[fresh[-1]]) + int(counts[fresh[-1]]))
        self.appended += len(fresh)
        if run.in_place is not None:
            self.wrong_offsets += int((~run.in_place[run.chosen[fresh]]).sum())

    def correct_min(self, floor: int) -> bool:
        """`#correctMinOffset`: behind the first units of the first file that point below `floor`.

        Never True: there are no extension files.
        """
        self._revise_min()
        if not self.files.files or not self.files.files[0].wrote:
            return False
        first = self.files.files[0]
        units = first.wrote // BYTES
        gone = units
        for start in range(0, units, _TOGETHER):
            kept = np.flatnonzero(
                self._part(first, start, min(start + _TOGETHER, units))["physical_offset"] >= floor
            )
            if kept.size:
                gone = start + int(kept[0])
                break
        if gone:
            self.min_offset = _end(self._part(first, gone - 1, gone)[0])
        return False

    search_min = correct_min

    def _revise(self) -> None:
        self._revise_min()
        self.max_offset = 0
        for one in reversed(self.files.files[-2:]):
            if one.wrote >= BYTES:
                self.max_offset = _end(self._part(one, one.wrote // BYTES - 1, one.wrote // BYTES)[0])
                break

    def _revise_min(self) -> None:
        files = self.files.files
        if not files:
            self.max_offset, self.min_offset = 0, -1
        elif files[0].wrote < BYTES:
            self.min_offset = -1
        else:
            self.min_offset = int(self._part(files[0], 0, 1)["base_offset"][0])

    def _whole_file(self, one: MappedFile) -> Units:
        """All units of a file, those of the disk where nothing was appended to it."""
        if one in self._fresh:
            return self._fresh[one]
        units = np.zeros(self._whole, BATCH_UNIT)
        if one.file is not None:
            with one.file.open(self._mode) as source:
                end = min(data_end(source, BYTES), self._whole * BYTES)
                units[: end // BYTES] = source.window(0, end).view(BATCH_UNIT)
        return units

    def _part(self, one: MappedFile, start: int, end: int) -> Units:
        """Units [start, end) of a file, zeros behind its bytes."""
        if one in self._fresh:
            return self._fresh[one][start:end]
        units = np.zeros(end - start, BATCH_UNIT)
        if one.file is not None:
            with one.file.open(self._mode) as source:
                raw = source.window(start * BYTES, (end - start) * BYTES)
                there = raw[: len(raw) // BYTES * BYTES].view(BATCH_UNIT)
                units[: len(there)] = there
        return units


def _encoded(run: QueueRecords, fresh: npt.NDArray[np.intp]) -> Units:
    units = np.zeros(len(fresh), BATCH_UNIT)
    units["physical_offset"], units["size"] = run.offsets[fresh], run.sizes[fresh]
    units["tags_code"], units["store_timestamp"] = run.codes[fresh], run.times[fresh]
    units["base_offset"], units["batch_size"] = run.bases[fresh], run.messages[fresh]
    units["compacted_offset"] = COMPACTED_OFFSET
    return units


def _end(unit: Any) -> int:
    return int(unit["base_offset"]) + int(unit["batch_size"])
