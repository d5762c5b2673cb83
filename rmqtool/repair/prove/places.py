"""Where records of queues lie that no plain file tells of: of batch queues, and of those in RocksDB."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import SysFlag
from rmqtool.repair.prove.records import whole
from rmqtool.scan.fields import Field
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.reader import LogReader

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import Access
    from rmqtool.store.segments import Segment, SegmentSet

    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]

MOST = 1 << 22
"""records that are remembered; where there are more, the others prove nothing"""
_TYPE = int(SysFlag.TRANSACTION_MASK)
_WITHOUT_UNIT = (int(SysFlag.PREPARED), int(SysFlag.ROLLBACK))
"""`CommitLogDispatcherBuildConsumeQueue#dispatch` passes over them"""


@dataclass(frozen=True, slots=True)
class _Found:
    """Of records of wanted queues: topic by its number, queue number, queue offset, physical offset."""

    rows: Ints

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes


@dataclass
class LogPlaces:
    """Queue offsets of whole records in their own place, of queues that are asked for.

    Made by one pass over the log. Of two records with one queue offset it knows the first.
    """

    segments: SegmentSet
    keys: Collection[Key]
    kernels: Kernels
    access: Access
    _known: dict[Key, tuple[Ints, Ints]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        names = sorted({topic.encode("utf-8", "surrogateescape") for topic, _ in self.keys})
        self._topics: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        for number, name in enumerate(names):
            self._topics[len(name)].append((number, name))
        self._queues = np.unique(np.array([queue_id for _, queue_id in self.keys], np.int64))
        reader = LogReader(self.segments, ReadOptions(self.access), self.kernels, self._taking)
        found, count = [np.empty((0, 4), np.int64)], 0
        for _, event in reader.events():
            if isinstance(event, _Found) and len(event.rows) and count < MOST:
                found.append(event.rows[: MOST - count])
                count += len(found[-1])
        rows = np.concatenate(found)
        rows = rows[np.lexsort(rows.T[::-1])]
        edges = np.flatnonzero((np.diff(rows[:, :2], axis=0) != 0).any(axis=1)) + 1
        for part in np.split(rows, edges) if len(rows) else ():
            key = names[part[0, 0]].decode("utf-8", "surrogateescape"), int(part[0, 1])
            self._known[key] = part[:, 2], part[:, 3]

    def at(self, topic: str, queue_id: int, slot: int) -> int | None:
        """Physical offset of the record with a queue offset."""
        slots, places = self._known.get((topic, queue_id), (None, None))
        if slots is None or places is None:
            return None
        number = int(np.searchsorted(slots, slot))
        return int(places[number]) if number < len(slots) and slots[number] == slot else None

    def lower_behind(self, topic: str, queue_id: int, slot: int, place: int) -> int:
        """How many records with lower queue offsets lie behind a physical offset."""
        slots, places = self._known.get((topic, queue_id), (None, None))
        if slots is None or places is None:
            return 0
        return int((places[: int(np.searchsorted(slots, slot))] > place).sum())

    def _taking(self, segment: Segment) -> partial[_Found]:
        return partial(self._take, base=segment.base)

    def _take(self, run: Records, /, *, base: int) -> _Found:
        found = [np.empty((0, 4), np.int64)]
        for one in whole([run], base, self.kernels):
            rows = one.rows
            rows = rows[np.isin(rows[:, Field.QUEUE_ID], self._queues)]
            rows = rows[~np.isin(rows[:, Field.SYS_FLAG] & _TYPE, _WITHOUT_UNIT)]
            for length, topics in self._topics.items():
                same = rows[rows[:, Field.TOPIC_LENGTH] == length]
                starts = same[:, Field.TOPIC_POSITION] - one.origin
                text = one.window[starts[:, None] + np.arange(length)] if len(same) else None
                if text is None:
                    continue
                names = np.array([list(name) for _, name in topics], np.uint8).reshape(-1, length)
                every, which = np.unique(np.concatenate((names, text)), axis=0, return_inverse=True)
                numbers = np.full(len(every), -1, np.int64)
                numbers[which.ravel()[: len(names)]] = [number for number, _ in topics]
                topic = numbers[which.ravel()[len(names) :]]
                columns = topic, same[:, Field.QUEUE_ID], same[:, Field.QUEUE_OFFSET]
                made = np.stack((*columns, base + same[:, Field.POSITION]), axis=1)
                found.append(made[topic >= 0])
        return _Found(np.concatenate(found))
