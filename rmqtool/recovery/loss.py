"""Intact records that a start takes away: behind the place where recovery stops, in that file and later ones.

Records that an earlier truncation left behind are no loss, and neither are copies of records that stay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.errors import RmqtoolError
from rmqtool.recovery.fillers import live
from rmqtool.scan import text
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, CrcState, Field, Issue
from rmqtool.scan.segment import SegmentScan

if TYPE_CHECKING:
    from types import ModuleType

    import numpy.typing as npt

    from rmqtool.recovery.mapped import MappedFile
    from rmqtool.recovery.reading import Reading


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


def measure_loss(parts: list[LostPart], kept: tuple[int, int], reading: Reading) -> tuple[Loss, list[str]]:
    """What is intact in the parts, and the paths that could not be read.

    kept: physical offsets [low, high) of the log that stays.
    """
    loss = Loss()
    unreadable: list[str] = []
    for part in parts:
        try:
            _add(loss, part, kept, reading)
        except RmqtoolError:
            unreadable.append(part.file.path)
    return loss, unreadable


def _add(loss: Loss, part: LostPart, kept: tuple[int, int], reading: Reading) -> None:
    if part.file.file is None:
        return
    with reading.open(part.file.file) as source:
        scan = SegmentScan(
            source,
            part.file.base,
            checks=Check.ALL,
            active=part.active,
            start=part.position,
            kernels=reading.kernels,
        )
        for event in scan:
            reading.told(0)
            if isinstance(event, Records):
                rows = event.rows
                stored, place = (
                    rows[:, Field.STORED_PHYSICAL_OFFSET],
                    rows[:, Field.POSITION] + part.file.base,
                )
                copy = (stored != place) & (stored >= kept[0]) & (stored < kept[1])
                good = (rows[:, Field.CRC_STATE] != CrcState.BAD) & ~copy
                if part.since is not None:
                    good &= live(event, part.file.base, part.since)
                if good.any():
                    _count(
                        loss, Records(rows[good], event.window, event.origin), part.file.base, reading.kernels
                    )


def _count(loss: Loss, run: Records, base: int, kernels: ModuleType) -> None:
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


def _topics(loss: Loss, run: Records, kernels: ModuleType) -> None:
    rows = run.rows
    places = np.ascontiguousarray(rows[:, Field.TOPIC_POSITION]) - run.origin
    lengths = np.ascontiguousarray(rows[:, Field.TOPIC_LENGTH])
    ill = (rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8)) != 0
    names = text.strings(kernels, run.window, places, lengths, np.ones(len(rows), np.bool_), ill)
    for entry in names.value_counts().to_pylist():
        loss.topics[entry["values"]] = loss.topics.get(entry["values"], 0) + entry["counts"]
