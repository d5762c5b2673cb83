"""Which queue offsets the messages of every queue have, by the log: what a queue must reach at both ends.

A queue that ends lower after the start gives offsets to new messages that older messages have already; one
that begins higher hides messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import SysFlag
from rmqtool.errors import RmqtoolError
from rmqtool.scan import text
from rmqtool.scan.events import Gap, Records
from rmqtool.scan.fields import Check, CrcState, Field, Issue
from rmqtool.scan.parallel import in_order
from rmqtool.scan.segment import SegmentScan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from rmqtool.recovery.mapped import MappedFile
    from rmqtool.recovery.reading import Reading
    from rmqtool.scan.parallel import Lane


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The message of a queue with the highest queue offset. end: physical offset behind it, as stated."""

    slot: int
    end: int


class QueueSpans:
    """Fed with runs of records; `of` then answers for each queue. Memory depends on the number of queues."""

    def __init__(self, kernels: ModuleType) -> None:
        self._kernels = kernels
        self._spans: dict[tuple[str, int], tuple[int, int]] = {}
        self._last: dict[tuple[str, int], LastMessage] = {}

    def of(self) -> dict[tuple[str, int], tuple[int, int]]:
        """(topic, queue id) → lowest queue offset of a record with a unit, highest plus one."""
        return self._spans

    def last_of(self, topic: str, queue_id: int) -> LastMessage | None:
        """The last message of a queue, None when none was seen."""
        return self._last.get((topic, queue_id))

    def take(self, run: Records, base: int) -> None:
        """A run of records whose topics were looked at; `base` does not matter."""
        del base
        rows = run.rows
        kind = rows[:, Field.SYS_FLAG] & int(SysFlag.TRANSACTION_MASK)
        wants = (kind != int(SysFlag.PREPARED)) & (kind != int(SysFlag.ROLLBACK))
        rows = rows[wants & (rows[:, Field.CRC_STATE] != CrcState.BAD)]
        if not len(rows):
            return
        places = np.ascontiguousarray(rows[:, Field.TOPIC_POSITION]) - run.origin
        lengths = np.ascontiguousarray(rows[:, Field.TOPIC_LENGTH])
        ill = (rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8)) != 0
        present = np.ones(len(rows), np.bool_)
        encoded = text.strings(self._kernels, run.window, places, lengths, present, ill).dictionary_encode()
        codes, ids = encoded.indices.to_numpy(), rows[:, Field.QUEUE_ID]
        order = np.lexsort((ids, codes))
        changes = (np.diff(codes[order]) != 0) | (np.diff(ids[order]) != 0)
        starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
        slots = rows[order, Field.QUEUE_OFFSET]
        lowest, highest = np.minimum.reduceat(slots, starts), np.maximum.reduceat(slots, starts)
        names = encoded.dictionary.to_pylist()
        ends = (rows[:, Field.STORED_PHYSICAL_OFFSET] + rows[:, Field.STORE_SIZE])[order]
        tops = np.maximum.reduceat(
            np.where(slots == np.repeat(highest, np.diff([*starts, len(slots)])), ends, -1), starts
        )
        found = (order[starts].tolist(), lowest.tolist(), highest.tolist(), tops.tolist())
        for start, low, high, end in zip(*found, strict=True):
            key = names[codes[start]], int(ids[start])
            known = self._spans.get(key, (low, high + 1))
            if key not in self._last or high >= self._last[key].slot:
                self._last[key] = LastMessage(high, end)
            self._spans[key] = min(known[0], low), max(known[1], high + 1)


@dataclass
class Looked:
    """unread: paths not read to their end. gaps: (path, offset, length) of what is no record."""

    unread: list[str] = field(default_factory=list)
    gaps: list[tuple[str, int, int]] = field(default_factory=list)


def look_back(files: list[MappedFile], reading: Reading, see: Callable[[Records, int], object]) -> Looked:
    """Goes through files that recovery does not read; `see` is told their records."""
    looked = Looked()
    for one, event in in_order(
        files, lambda one, lane: _runs(one, reading, looked.unread, lane), reading.jobs
    ):
        if isinstance(event, Gap):
            looked.gaps.append((one.path, one.base + event.position, event.length))
        else:
            see(event, one.base)
    return looked


def _runs(
    one: MappedFile, reading: Reading, unread: list[str], lane: Lane
) -> Iterator[tuple[MappedFile, Records | Gap]]:
    if one.file is None:
        return
    done = 0
    try:
        with reading.open(one.file, lane) as source:
            for event in SegmentScan(
                source,
                one.base,
                checks=Check.TEXT,
                active=False,
                kernels=reading.kernels,
                stop=lane.stop,
            ):
                if isinstance(event, Gap):
                    yield one, event
                elif isinstance(event, Records):
                    lane.take(event.rows.nbytes + event.window.nbytes)
                    yield one, Records(event.rows.copy(), event.window, event.origin)
                    end = int(event.rows[-1, Field.POSITION])
                    if reading.advance is not None:
                        reading.advance(end - done)
                    done = end
    except RmqtoolError:
        unread.append(one.path)
    if reading.advance is not None:
        reading.advance(one.file.size - done)
