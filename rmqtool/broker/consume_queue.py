"""One consume queue through a start: recovered, appended to, truncated, its minimum corrected.

`ConsumeQueue#recover`, `#putMessagePositionInfo`, `#truncateDirtyLogicFiles`, `#correctMinOffset`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.consumequeue import PRE_BLANK, PRE_BLANK_SIZE
from rmqtool.broker.appended_units import AppendedUnits
from rmqtool.broker.java import div, rem, wrap64
from rmqtool.broker.queue_state import QueueState
from rmqtool.broker.units import chunks
from rmqtool.scan import kernels_python
from rmqtool.scan.fields import AppendState, DispatchColumn
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.broker.extension_files import ExtensionFiles
    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.broker.queue_records import QueueRecords
    from rmqtool.broker.units import Prefix
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import OpenMode

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

BYTES = UNIT.itemsize
LARGEST_SLOT = (1 << 63) // BYTES
"""places of greater ones overflow"""
_BLANKS = 1 << 16
"""blank units that are written together"""


class NegativePositionError(Exception):
    """Correcting the minimum throws `IllegalArgumentException`: an empty last file behind a full one."""


class ConsumeQueue(QueueState):
    """State of one plain queue in memory of the broker.

    max_physical: end of the last message it knows. min_logical: first byte that counts. floor: physical
    offset that every ordinary record lies behind (the log's first byte); None where nothing is asked of what
    is appended. keep_units: keep every appended unit as it is, for who asks what the files hold afterwards
    (`store_after_start`). extension: takes the tags codes of units that are appended, where `files` has a
    disk to write them to.
    """

    directory = "consumequeue"

    def __init__(
        self,
        topic: str,
        queue_id: int,
        files: MappedFiles,
        mode: OpenMode,
        floor: int | None,
        kernels: Kernels = kernels_python,
        *,
        keep_units: bool = False,
        extension: ExtensionFiles | None = None,
    ) -> None:
        super().__init__(topic, queue_id, files, mode, UNIT)
        self._kernels = kernels.building
        self._keep_units = keep_units
        self.extension = extension
        self.min_logical = 0
        self._remembers = floor is not None
        self._ordinary = (floor or 0) + 1
        self._first_is_zero = False
        self._highest: int | None = None
        """greatest physical offset in the last file, if `recover` has read it"""
        self._last: tuple[int, int] | None = None
        """offset and size of the unit appended last"""

    @property
    def min_offset(self) -> int:
        """`#getMinOffsetInQueue`, in messages."""
        return div(self.min_logical, BYTES)

    @property
    def max_offset(self) -> int:
        """`#getMaxOffsetInQueue`, in messages: the slot that is written next, in this file or a new one."""
        return div(self.files.max_offset, BYTES)

    @property
    def uneven(self) -> bool:
        """Whether a file is named after no whole entry: what is appended there lies between two of them.

        A broker compares slots with bytes (`#putMessagePositionInfo`), so it leaves some out, too; which is
        not followed here.
        """
        return any(one.base % BYTES for one in self.files.files)

    def destroy(self) -> None:
        """`#destroy`: the log has no files."""
        self.files.destroy()
        self.max_physical, self.min_logical = -1, 0

    def recover(self, found: list[tuple[MappedFile, Prefix]] | None = None) -> None:
        """`#recover`: the last three files up to the first unit that is none. found: see `read`."""
        if not self.files.files:
            return
        end = 0
        for one, prefix in self.read() if found is None else found:
            end = one.base + prefix.count * BYTES
            self.recovered.append((one, prefix.count))
            self._highest = prefix.highest
            if prefix.count:
                self.max_physical = wrap64(int(prefix.last["physical_offset"]) + int(prefix.last["size"]))
        self.files.truncate(end)
        self.recovered_max = self.max_offset

    def truncate(self, offset: int) -> None:
        """`#truncateDirtyLogicFiles`: takes the last file again from its first unit on, up to the log's end.

        The first unit is taken without a look at its size.
        """
        if self._lies_below(offset):
            return
        self.max_physical = offset
        while self.files.files:
            last = self.files.files[-1]
            last.wrote = 0
            count, end = self._below(last, offset)
            if count == 0:
                self.files.delete_last()
                continue
            last.wrote = count * BYTES
            self.max_physical = end
            self.phantom = div(last.base, BYTES) if self._first_is_zero else None
            if last.appended is not None:
                last.appended.cut(count)
            return

    def _lies_below(self, offset: int) -> bool:
        """Truncation takes all of the last file, as `recover` has read it."""
        last = self.files.files[-1] if self.files.files else None
        return (
            last is not None
            and last.appended is None
            and last.wrote > 0
            and self.recovered[-1:] == [(last, last.wrote // BYTES)]
            and self._highest is not None
            and self._highest < offset
        )

    def cut_later(self, offset: int) -> tuple[int, int]:
        """Entries of the last file that the next start takes away, which finds the log's end at `offset`.

        A clean stop leaves queues that know the log to its end, so recovery takes their last files again, up
        to the first entry that leads behind it, wherever that lies. And the end of the last message it knows.
        """
        files = self.files.files
        if not files or not files[-1].wrote:
            return 0, self.max_physical
        first_is_zero = self._first_is_zero
        count, end = self._below(files[-1], offset)
        self._first_is_zero = first_is_zero
        cut = max(files[-1].wrote // BYTES - count, 0)
        return (cut, end) if cut else (0, self.max_physical)

    def _below(self, one: MappedFile, offset: int) -> tuple[int, int]:
        """How many units from the first on point below `offset`, and the physical end of the last of them."""
        count, end = 0, offset
        for chunk in chunks(one, self._mode, self._whole, self._ordinary):
            good = (chunk.offsets >= 0) & (chunk.sizes > 0) & (chunk.offsets < offset)
            if chunk.first == 0:
                good[0] = chunk.offsets[0] < offset
                self._first_is_zero = bool(good[0]) and int(chunk.sizes[0]) <= 0
            wrong = np.flatnonzero(~good)
            here = int(wrong[0]) if wrong.size else len(good)
            if here:
                count = chunk.first + here
                end = self._end(one, count - 1, int(chunk.offsets[here - 1]), int(chunk.sizes[here - 1]))
            if wrong.size:
                break
        return count, end

    def _end(self, one: MappedFile, number: int, offset: int, size: int) -> int:
        appended = one.appended
        known = appended.end_of(number) if appended is not None else None
        if known is not None:
            return known
        if appended is not None and appended.low <= number < appended.high and self._last is not None:
            offset, size = self._last
        return wrap64(offset + size)

    def correct_min(self, floor: int) -> bool:
        """`#correctMinOffset` of 4.x: the first unit of the first file that points at or behind `floor`.

        Whether one was found: extension files below its own extension unit are deleted then.
        """
        if not self.files.files:
            return False
        first = self.files.files[0]
        for chunk in chunks(first, self._mode, first.wrote // BYTES, self._ordinary):
            hits = np.flatnonzero(chunk.offsets >= floor)
            if hits.size:
                self.min_logical = first.base + (chunk.first + int(hits[0])) * BYTES
                return True
        return False

    def search_min(self, floor: int) -> bool:
        """`#correctMinOffset` since 5.0: the last unit, then a binary search in the first file.

        Returns the same as `correct_min`; a minimum that is right already is not looked for. Raises
        `NegativePositionError` where the broker's load fails.
        """
        if self.min_logical >= self.files.max_offset or not self.files.files:
            return False
        last = self.files.files[-1]
        if last.wrote < BYTES:
            raise NegativePositionError
        if self._offset_at(last, last.wrote // BYTES - 1) < floor:
            self.min_logical = last.base + last.wrote
            return False
        first = self.files.files[0]
        start = self.min_logical - first.base
        intact = start >= 0
        start = max(start, 0)
        if start >= first.wrote or (intact and self._offset_at(first, start // BYTES) >= floor):
            return False
        found = self._first_at_or_behind(first, start // BYTES, floor)
        if found is not None:
            self.min_logical = first.base + start + found * BYTES
        return found is not None

    def _first_at_or_behind(self, one: MappedFile, first: int, floor: int) -> int | None:
        """Units from `first` of a file to the one at or above `floor` that the search of 5.x settles on.

        None when it finds none. It assumes rising offsets, so that fillers and disorder can lead it elsewhere
        than to the very first.
        """
        low, high = 0, one.wrote // BYTES - first - 1
        while high - low > 1:
            middle = (low + high) // 2
            value = self._offset_at(one, first + middle)
            if value == floor:
                low = high = middle
            elif value > floor:
                high = middle
            else:
                low = middle
        places = range(low, high + 1)
        return next((place for place in places if self._offset_at(one, first + place) >= floor), None)

    def _offset_at(self, one: MappedFile, number: int) -> int:
        return int(next(chunks(one, self._mode, number + 1, self._ordinary, number)).offsets[0])

    def first_address(self) -> int | None:
        """Physical offset in the first entry that counts; None where it lies in no file of the disk."""
        unit = self._first_unit()
        return None if unit is None else int(unit["physical_offset"][0])

    def first_code(self) -> int | None:
        """The tags code of the same entry."""
        unit = self._first_unit()
        return None if unit is None else int(unit["tags_code"][0])

    def _first_unit(self) -> npt.NDArray[np.void] | None:
        one = next((one for one in self.files.files if one.base + one.wrote > self.min_logical), None)
        if one is None or one.file is None or self.min_logical < one.base:
            return None
        with one.file.open(self._mode) as source:
            raw = source.window(self.min_logical - one.base, BYTES)
        return raw.view(UNIT) if len(raw) == BYTES else None

    def append(self, run: QueueRecords, lost: int = 0) -> None:
        """`#putMessagePositionInfo` for each record.

        lost: how many records may be missing from the log in front of these, which no broker reckons with; so
        many slots at most are left to them as blank units.
        """
        columns, chosen, in_place = self._with_extension(run)
        at = 0
        while at < len(chosen):
            end = len(chosen)
            if self._is_empty():
                at += self._skip_known(columns, chosen[at:])
                if at == end:
                    return
                if not self._begin(int(columns[DispatchColumn.SLOT, chosen[at]])):
                    end = at + 1
            at = self._put(columns, chosen[:end], at, lost, in_place)
            if at < end:
                self._leave_blank(int(columns[DispatchColumn.SLOT, chosen[at]]))

    def _with_extension(self, run: QueueRecords) -> tuple[Ints, Ints, Flags | None]:
        """Columns, places in them and `in_place`, with addresses of extension units as tags codes.

        Each record gets such a unit, also one that then gets none here (`#putMessagePositionInfoWrapper`),
        but for those that come by multi-dispatch.
        """
        if self.extension is None or not len(run):
            return run.columns, run.chosen, run.in_place
        columns = run.columns[:, run.chosen]
        places = np.arange(len(run)) if run.own is None else np.flatnonzero(run.own)
        columns[DispatchColumn.CODE, places] = self.extension.put(
            columns[DispatchColumn.CODE, places], columns[DispatchColumn.TIME, places]
        )
        in_place = None if run.in_place is None else run.in_place[run.chosen]
        return columns, np.arange(len(run)), in_place

    def _is_empty(self) -> bool:
        """Whether it has no file, or one that it made and has not written to."""
        files = self.files.files
        return not files or (files[-1].first_in_queue and not files[-1].wrote)

    def _skip_known(self, columns: Ints, chosen: Ints) -> int:
        """How many records at the begin are known already."""
        unknown = (
            columns[DispatchColumn.OFFSET, chosen] + columns[DispatchColumn.SIZE, chosen] > self.max_physical
        )
        count = int(np.argmax(unknown)) if unknown.any() else len(chosen)
        self.skipped += count
        return count

    def _begin(self, slot: int) -> bool:
        """The first file, with blanks in front of the first unit. Whether that unit is written."""
        wanted = wrap64(slot * BYTES)
        file = self.files.last_for(wanted)
        if slot != 0:
            self.min_logical = wanted
            self._pre_blank(file, rem(wanted, self.files.size))
        return wanted == file.base + file.wrote

    def _pre_blank(self, file: MappedFile, until: int) -> None:
        """`#fillPreBlank`: units that point to offset 0 and have the largest size."""
        count = max(until, 0) // BYTES
        self.blanked = count
        self._write_blanks(file, count)

    def _leave_blank(self, slot: int) -> None:
        """Blank units from the next slot up to this one."""
        count = slot - self.max_offset
        self.filled += count
        while count:
            file = self.files.last_for(0)
            part = min(count, self._room(file))
            if not part:
                return
            self._write_blanks(file, part)
            count -= part

    def _room(self, file: MappedFile) -> int:
        """Units that a file takes, where none is larger than what is left of it (`MappedFile#appendMessage`).

        One that is named after no whole entry ends with less than a unit, and no broker makes another one
        then: what is dispatched counts as known and gets no unit.
        """
        return (self.files.size - file.wrote) // BYTES

    def _write_blanks(self, file: MappedFile, count: int) -> None:
        if self._remembers and count:
            zeros = np.zeros(count, np.int64)
            appended, number = _appended(file), file.wrote // BYTES
            appended.add(number, count)
            appended.keep(number + np.arange(count, dtype=np.int64), zeros, zeros + PRE_BLANK_SIZE)
        for done in range(0, count, _BLANKS):
            self.files.write(file, PRE_BLANK * min(count - done, _BLANKS))

    def _put(self, columns: Ints, chosen: Ints, at: int, lost: int, in_place: Flags | None) -> int:
        """Units of the records from place `at` of `chosen` on, up to the place that is returned."""
        state = np.zeros(len(AppendState), np.int64)
        state[AppendState.NEXT], state[AppendState.KNOWN] = self.max_offset, self.max_physical
        out = np.empty((len(chosen) - at) * BYTES, np.uint8)
        taken = np.empty(len(chosen) - at, np.int64)
        at, count = self._kernels.append_units(columns, chosen, at, lost, state, out, taken)
        self.doubled += int(state[AppendState.DOUBLED])
        self.skipped += int(state[AppendState.SKIPPED])
        self.misplaced += count if self.uneven else int(state[AppendState.MISPLACED])
        if count:
            self.max_physical = int(state[AppendState.KNOWN])
            self._write(columns, taken[:count], out[: count * BYTES], in_place)
        if state[AppendState.REPEATED]:
            # a full last file is followed by a new one before a slot is looked at
            self.files.last_for(0)
        return at

    def _write(self, columns: Ints, taken: Ints, units: Bytes, in_place: Flags | None) -> None:
        """Units one behind the other, into new files where one is full."""
        self.appended += len(taken)
        if in_place is not None:
            self.wrong_offsets += int((~in_place[taken]).sum())
        remembered = self._to_remember(columns, taken, in_place) if self._remembers else None
        done = 0
        while done < len(taken):
            file = self.files.last_for(0)
            number = file.wrote // BYTES
            part = slice(done, done + min(len(taken) - done, self._room(file)))
            if part.start == part.stop:
                return
            if remembered is not None:
                appended, which = _appended(file), np.flatnonzero(remembered[part])
                appended.add(number, part.stop - done)
                offsets, sizes = columns[[DispatchColumn.OFFSET, DispatchColumn.SIZE]][:, taken[part][which]]
                appended.keep(number + which, offsets, sizes)
            time = int(columns[DispatchColumn.TIME, taken[part.stop - 1]])
            self.files.write(file, units[done * BYTES : part.stop * BYTES], time)
            done = part.stop
        last = taken[-1]
        self._last = int(columns[DispatchColumn.OFFSET, last]), int(columns[DispatchColumn.SIZE, last])

    def _to_remember(self, columns: Ints, taken: Ints, in_place: Flags | None) -> Flags:
        """Which units are kept as they are, see `AppendedUnits`."""
        kept: Flags = (columns[DispatchColumn.OFFSET, taken] < self._ordinary) | self._keep_units
        if in_place is not None:
            kept |= ~in_place[taken]
        if kept[0]:
            self._keep_last()
        kept[:-1] |= kept[1:]
        return kept

    def _keep_last(self) -> None:
        """The unit in front of one that may be cut off is asked for its end."""
        if self._last is None or not self.files.files:
            return
        file = next((one for one in reversed(self.files.files) if one.wrote), None)
        if file is None or file.appended is None:
            return
        number = file.wrote // BYTES - 1
        if file.appended.low <= number < file.appended.high:
            file.appended.keep(*(np.array([value], np.int64) for value in (number, *self._last)))


def _appended(file: MappedFile) -> AppendedUnits:
    if file.appended is None:
        number = file.wrote // BYTES
        file.appended = AppendedUnits(number, number)
    return file.appended
