"""Whether brokers reach the timers that wait (`TimerMessageStore#doEnqueue`, `#recover`, `#dequeue`; 5.3.3).

A slot of the wheel leads to the last timer of its time in the timer log, and each timer to the one before it
of the same time. A start leads slots to what lies in the last files of the log; for older ones the file of
the wheel has to tell.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formats.primitives import dtype_of
from formats.timer import TIMER_UNIT_SIZE, WHEEL_SIZE, WHEEL_SLOTS, WheelSlot
from rmqtool.broker.timer_log import WHEEL, entries_end, entries_of, read_files
from rmqtool.store.holes import data_windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.broker.timer_log import Units
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

_SLOT = dtype_of(WheelSlot)


@dataclass(frozen=True, slots=True)
class TimerFiles:
    """Timer log and wheel at a start.

    wheel: None where it is made new. flushed: up to where the log was, by `config/timercheck`. begin: where
    the log begins that should be there: what lies in front of it has expired. precision: ms of a slot.
    """

    log: MappedFiles
    wheel: StoreFile | None
    flushed: int
    begin: int
    precision: int
    reading: ReadOptions

    def unreached(self, first: int) -> Counter[str]:
        """Timers due at `first` (ms) or later to which nothing leads, by the file that is gone or wrong."""
        chains = _Chains(self, first // self.precision)
        read = list(read_files(self.log, self.flushed))
        started = read[0][0].base if read else 0
        unread = [one for one in self.log.files if one.base < started or not read]
        for one in unread:
            chains.take(one, self.log.size)
        for one, position in read:
            chains.take(one, position)
        chains.compare(self.wheel, started, read[-1][0].base + read[-1][1] if read else 0)
        return chains.lost if self.wheel is not None else chains.lost + self._untraced(unread)

    def _untraced(self, unread: Sequence[MappedFile]) -> Counter[str]:
        """Timers that may have been the only ones of their time: in missing files, and at what is none."""
        lost: Counter[str] = Counter()
        ends = (self.begin, *(one.base + self.log.size for one in self.log.files))
        for end, one in zip(ends, self.log.files, strict=False):
            if one.base > end:
                lost[self.log.path_of(end)] += (one.base - end) // TIMER_UNIT_SIZE
        for one in unread:
            if one.file is not None:
                end, goes_on = entries_end(one.file)
                if not goes_on:
                    lost[one.path] += (self.log.size - end) // TIMER_UNIT_SIZE
        return lost

    def due_between(self, first: int, end: int) -> int:
        """How many timers are due in [first, end), in ms: by the wheel, by the log where that is made new."""
        low, high = first // self.precision, end // self.precision
        if low >= high:
            return 0
        if self.wheel is not None:
            with self.reading.open(self.wheel) as source:
                found = [slots["count"][slots["time"] < high] for _, slots in _waiting(source, low)]
            return sum(int(np.maximum(one, 1).sum()) for one in found)
        return sum(self._between(one.file, low, high) for one in self.log.files if one.file is not None)

    def _between(self, file: StoreFile, low: int, high: int) -> int:
        with self.reading.open(file) as source:
            found = (_slots_of(units, self.precision) for _, units in entries_of(source, self.log.size))
            return sum(int(np.count_nonzero((one >= low) & (one < high))) for one in found)


def _slots_of(units: Units, precision: int) -> Ints:
    """Times at which entries are looked at, counted in `precision` ms."""
    due: Ints = units["write_time"].astype(np.int64) + units["delay"]
    return due // precision


class _Chains:
    """Of each slot: its time, how many timers of it are linked, and where the last one lies."""

    def __init__(self, files: TimerFiles, first: int) -> None:
        self._files, self._first = files, first
        self._times = np.zeros(WHEEL_SLOTS, np.int64)
        self._counts = np.zeros(WHEEL_SLOTS, np.int64)
        self._lasts = np.full(WHEEL_SLOTS, -1, np.int64)
        self._cut = np.zeros(WHEEL_SLOTS, np.int64)
        """timers in front of one that leads elsewhere"""
        self._bases = np.zeros(WHEEL_SLOTS, np.int64)
        """the file to which it leads, or in which it lies"""
        self.lost: Counter[str] = Counter()

    def take(self, file: MappedFile, end: int) -> None:
        """The timers in the first bytes of the file that comes next."""
        if file.file is None:
            return
        with self._files.reading.open(file.file) as source:
            for positions, units in entries_of(source, end):
                slots = _slots_of(units, self._files.precision)
                waits = np.flatnonzero((slots >= self._first) & (slots > 0))
                waits = waits[np.argsort(slots[waits] % WHEEL_SLOTS, kind="stable")]
                if len(waits):
                    previous = units["previous"][waits].astype(np.int64)
                    self._link(file, slots[waits], file.base + positions[waits], previous)

    def _link(self, file: MappedFile, slots: Ints, positions: Ints, previous: Ints) -> None:
        """Timers by slot, and those of a slot in the order of the log. previous: to which each leads."""
        index = slots % WHEEL_SLOTS
        begins = np.append(True, slots[1:] != slots[:-1])
        known = self._times[index] == slots
        before = np.where(known, self._lasts[index], -1)
        before[1:] = np.where(begins[1:], before[1:], positions[:-1])
        broken = (previous != before) & ((before >= 0) | (previous >= self._files.begin))
        starts = np.flatnonzero(begins)
        sizes = np.diff(np.append(starts, len(slots)))
        rank = np.arange(len(slots)) - np.repeat(starts, sizes)
        reached = np.maximum.reduceat(np.where(broken, rank, -1), starts)
        group = index[starts]
        earlier = np.where(known[starts], self._counts[group], 0)
        cut = np.flatnonzero(reached >= 0)
        self._cut[group] = np.where(known[starts], self._cut[group], 0)
        self._cut[group[cut]] += np.maximum(earlier[cut] + reached[cut], 1)
        self._bases[group[cut]] = self._blamed(previous[starts[cut] + reached[cut]], file.base)
        self._counts[group] = np.where(reached >= 0, sizes - reached, earlier + sizes)
        self._times[group], self._lasts[group] = slots[starts], positions[starts + sizes - 1]

    def _blamed(self, positions: Ints, base: int) -> Ints:
        """Bases of the files in which positions lie that are no timers of the time, if these are in front."""
        behind = (positions < 0) | (positions >= base)
        return np.where(behind, base, positions - positions % self._files.log.size)

    def _lose(self, bases: Ints, counts: Ints) -> None:
        """Counts timers as lost, at least one each time."""
        found, rows = np.unique(bases, return_inverse=True)
        for base, count in zip(found.tolist(), np.bincount(rows, np.maximum(counts, 1)), strict=True):
            self.lost[self._files.log.path_of(base)] += int(count)

    def compare(self, wheel: StoreFile | None, started: int, end: int) -> None:
        """Takes slots that lead to no timer, or to another than the last one, for lost.

        started, end: which part of the log a start reads, and leads slots to.
        """
        led = np.zeros(WHEEL_SLOTS, np.bool_)
        if wheel is not None:
            with self._files.reading.open(wheel) as source:
                started = self._leading(source, led, started, end)
        cut = np.flatnonzero(self._cut)
        self._lose(self._bases[cut], self._cut[cut])
        left = np.flatnonzero((self._counts > 0) & (self._lasts < started) & ~led)
        if len(left):
            self.lost[WHEEL] += int(self._counts[left].sum())

    def _leading(self, source: ByteSource, led: Flags, started: int, end: int) -> int:
        """Says which slots lead to their last timer; where the part of the log begins that a start reads.

        That reads more where slots lead behind its end: from the first timer of these on.
        """
        size = self._files.log.size
        for index, slots in _waiting(source, self._first):
            right, last = self._times[index] == slots["time"], slots["last"].astype(np.int64)
            led[index] = right & (self._lasts[index] == last)
            beyond = last > end
            if beyond.any():
                first = int(slots["first"][beyond].min())
                started = min(started, first - first % size)
            linked = np.where(right, self._counts[index], 0)
            parted = np.flatnonzero(right & (self._cut[index] > 0))
            rows = index[parted]
            self._cut[rows] = np.maximum(self._cut[rows], (slots["count"] - linked)[parted])
            behind = last > np.where(right, self._lasts[index], -1)
            # what is put next leads to where such a slot did, so that a chain may go round (`#doEnqueue`)
            ahead = (last < end) | ~right
            gone = np.flatnonzero((last >= self._files.begin) & ahead & behind)
            known = linked + np.where(right, self._cut[index], 0)
            self._lose(last[gone] - last[gone] % size, (slots["count"] - known)[gone])
        return started


def _waiting(source: ByteSource, first: int) -> Iterator[tuple[Ints, Units]]:
    """Slots in use from a time on that are where it puts them, with their numbers (`TimerWheel#getSlot`)."""
    for at, window in data_windows(source, 0, min(source.size, WHEEL_SIZE)):
        slots = window[: len(window) // _SLOT.itemsize * _SLOT.itemsize].view(_SLOT)
        index = at // _SLOT.itemsize + np.arange(len(slots))
        used = np.flatnonzero((slots["time"] >= first) & (slots["time"] > 0))
        used = used[(slots["time"][used] % WHEEL_SLOTS == index[used]) & (slots["last"][used] >= 0)]
        yield index[used], slots[used]
