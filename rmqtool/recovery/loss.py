"""Intact records that a start takes away: behind the place where recovery stops, in that file and later ones.

Records that an earlier truncation left behind are not a loss, and neither are copies of records that stay.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.errors import RmqtoolError
from rmqtool.recovery.fillers import live
from rmqtool.scan import text
from rmqtool.scan.events import Records
from rmqtool.scan.fields import CrcState, Field, Issue
from rmqtool.scan.joined_runs import joined_runs
from rmqtool.scan.opened import scanned

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.options import ReadOptions


@dataclass(frozen=True, slots=True)
class LostRange:
    """Physical offsets [start, end) with intact records in them. recoverable: their bytes are still there."""

    start: int
    end: int
    recoverable: bool = True


@dataclass
class Loss:
    """messages, bytes: intact records and their sizes. Timestamps: store times in ms, None without records.

    topics: records by topic.
    """

    messages: int = 0
    bytes: int = 0
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    ranges: list[LostRange] = field(default_factory=list)
    topics: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LostPart:
    """A file, or the rest of one from `position` on, that recovery gives up.

    since: behind a filler, the store time (ms) of the last record in front of it: what is older was left
    there by an earlier life of the file.
    """

    file: MappedFile
    position: int
    active: bool
    since: int | None = None


def measure_loss(
    parts: list[LostPart], kept: tuple[int, int], reading: ReadOptions
) -> tuple[Loss, list[str]]:
    """What is intact in the parts, and the paths that could not be read.

    kept: physical offsets [low, high) of the log that stays. Records at their own place count first. Those at
    another place are copies when their own place stays or was counted, and stale when a file of its own
    records holds them and they are older than the log.
    """
    loss = Loss()
    unreadable: list[str] = []
    claimed = _Claimed(*kept)
    elsewhere: list[tuple[LostPart, bool]] = []
    for part in parts:
        try:
            own, displaced = _add(loss, part, reading, None)
            if displaced:
                elsewhere.append((part, own or part.position > 0))
        except RmqtoolError:
            unreadable.append(part.file.path)
    claimed.add([(one.start, one.end) for one in loss.ranges])
    for part, has_own in elsewhere:
        _add(loss, part, reading, replace(claimed, stale_below=kept[0] if has_own else None))
    return loss, unreadable


@dataclass
class _Claimed:
    """Physical offsets whose records stay or are counted: [low, high), and the ranges between `bounds`.

    stale_below: what states a lower offset is of an earlier life of its file.
    """

    low: int
    high: int
    bounds: list[tuple[int, int]] = field(default_factory=list)
    stale_below: int | None = None

    def add(self, ranges: list[tuple[int, int]]) -> None:
        """These ranges too; they may overlap others."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted([*self.bounds, *ranges]):
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(merged[-1][1], end)
            else:
                merged.append((start, end))
        self.bounds[:] = merged

    def holds(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of these offsets are claimed, or come a second time."""
        found: npt.NDArray[np.bool_] = (offsets >= self.low) & (offsets < self.high)
        if self.stale_below is not None:
            found |= offsets < self.stale_below
        if self.bounds:
            starts, ends = (np.array(column, np.int64) for column in zip(*self.bounds, strict=True))
            at = np.searchsorted(starts, offsets, side="right") - 1
            found |= (at >= 0) & (offsets < ends[at])
        again = np.ones(len(offsets), np.bool_)
        again[np.unique(offsets, return_index=True)[1]] = False
        return found | again


def _add(loss: Loss, part: LostPart, reading: ReadOptions, claimed: _Claimed | None) -> tuple[bool, bool]:
    """Counts the intact records at their own place, or, with `claimed`, those at another one.

    Returns whether the part has records at their own place, and at another.
    """
    own = displaced = False
    if part.file.file is None:
        return own, displaced
    with scanned(part.file.file, part.file.base, reading, active=part.active, start=part.position) as (
        _,
        scan,
    ):
        for run in joined_runs(scan):
            reading.done(0)
            rows = run.rows
            stored = rows[:, Field.STORED_PHYSICAL_OFFSET]
            here = stored == rows[:, Field.POSITION] + part.file.base
            own, displaced = own or bool(here.any()), displaced or not here.all()
            good = (rows[:, Field.CRC_STATE] != CrcState.BAD) & (here if claimed is None else ~here)
            if part.since is not None:
                good &= live(run, part.file.base, part.since)
            if claimed is not None and good.any():
                chosen = np.flatnonzero(good)
                good[chosen[claimed.holds(stored[chosen])]] = False
                sizes = rows[good, Field.STORE_SIZE]
                claimed.add(list(zip(stored[good].tolist(), (stored[good] + sizes).tolist(), strict=True)))
            if good.any():
                chosen_run = Records(rows[good], run.window, run.origin)
                _count(loss, chosen_run, part.file.base, reading.kernels)
    return own, displaced


def _count(loss: Loss, run: Records, base: int, kernels: Kernels) -> None:
    rows = run.rows
    starts = rows[:, Field.POSITION] + base
    ends = starts + rows[:, Field.STORE_SIZE]
    loss.messages += len(rows)
    loss.bytes += int((ends - starts).sum())
    times = rows[:, Field.STORE_TIMESTAMP]
    low, high = int(times.min()), int(times.max())
    loss.first_timestamp = low if loss.first_timestamp is None else min(loss.first_timestamp, low)
    loss.last_timestamp = high if loss.last_timestamp is None else max(loss.last_timestamp, high)
    for first, last in _stretches(starts, ends):
        adjoins = loss.ranges and loss.ranges[-1].end == first
        start = loss.ranges.pop().start if adjoins else first
        loss.ranges.append(LostRange(start, last))
    _topics(loss, run, kernels)


def _stretches(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
    firsts = [0, *breaks.tolist()]
    lasts = [*(breaks - 1).tolist(), len(starts) - 1]
    return [(int(starts[a]), int(ends[b])) for a, b in zip(firsts, lasts, strict=True)]


def _topics(loss: Loss, run: Records, kernels: Kernels) -> None:
    rows = run.rows
    places = np.ascontiguousarray(rows[:, Field.TOPIC_POSITION]) - run.origin
    lengths = np.ascontiguousarray(rows[:, Field.TOPIC_LENGTH])
    ill = (rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8)) != 0
    names = text.strings(kernels, run.window, places, lengths, np.ones(len(rows), np.bool_), ill)
    for entry in names.value_counts().to_pylist():
        loss.topics[entry["values"]] = loss.topics.get(entry["values"], 0) + entry["counts"]
