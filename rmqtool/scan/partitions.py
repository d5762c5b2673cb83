"""Records sorted by topic and queue, in columns, as dispatch would hand them to the consume queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.errors import FormatError
from formats.java import java_utf8_decode
from formats.properties import decode
from formats.tags_code import SCHEDULE_TOPIC, tags_code_of
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, DispatchColumn, Field, Issue, QueueKeyColumn, Stretch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]

_FIRST_PARTITIONS = 256
_FIRST_NAMES = 1 << 16
_NOWHERE = np.empty(0, np.int64)


class PartitionColumns:
    """Up to `room` records that want a unit, in columns (`fields.DispatchColumn`), or stretches of them.

    They come from one `Partitions` after the other (`take_placed`). `keys` are the topics and queue numbers
    seen so far, by partition. width: `len(DispatchColumn)` or that of `Stretch`.
    """

    def __init__(self, kernels: Kernels, room: int, width: int = len(DispatchColumn)) -> None:
        self._kernels = kernels.dispatch
        self._counts = np.zeros(3, np.int64)
        """partitions, bytes of their names, columns that are filled"""
        self._order = np.empty(room, np.int64)
        self.columns: Ints = np.empty((width, room), np.int64)
        self.keys: list[Key] = []
        self._numbers: dict[Key, int] = {}
        """partitions by key, of those that `take_placed` knows"""
        self._theirs: list[Key] = []
        self._own = np.empty(0, np.int64)
        """partition here, by partition of `_theirs`"""

    def __len__(self) -> int:
        return int(self._counts[2])

    def clear(self) -> None:
        """Makes room; partitions stay."""
        self._counts[2] = 0

    def take_placed(self, placed: Placed) -> Iterator[None]:
        """Adds what another `Partitions` has placed; yields where the columns are full, for a `clear`."""
        own = self._partitions_for(placed.keys)
        start, end = 0, placed.columns.shape[1]
        while start < end:
            filled = len(self)
            count = min(self.columns.shape[1] - filled, end - start)
            part = self.columns[:, filled : filled + count]
            part[:] = placed.columns[:, start : start + count]
            part[DispatchColumn.PARTITION] = own[part[DispatchColumn.PARTITION]]
            self._counts[2] = filled + count
            start += count
            if len(self) == self.columns.shape[1]:
                yield

    def _partitions_for(self, keys: list[Key]) -> Ints:
        if keys is not self._theirs:
            self._theirs, self._own = keys, np.empty(0, np.int64)
        if new := keys[len(self._own) :]:
            self._number()
            if added := [key for key in dict.fromkeys(new) if key not in self._numbers]:
                self._add(added)
                self._number()
            self._own = np.concatenate([self._own, [self._numbers[key] for key in new]])
        return self._own

    def _number(self) -> None:
        for number in range(len(self._numbers), len(self.keys)):
            self._numbers[self.keys[number]] = number

    def _add(self, keys: list[Key]) -> None:
        """New partitions."""
        self.keys += keys

    def groups(self) -> Iterator[tuple[Key, Ints]]:
        """Topic and queue, and the places of its records in `columns`, in log order."""
        starts = np.zeros(len(self.keys) + 1, np.int64)
        self._kernels.by_partition(self.columns, len(self), starts, self._order)
        for partition in np.flatnonzero(np.diff(starts)).tolist():
            yield self.keys[partition], self._order[starts[partition] : starts[partition + 1]]


@dataclass(frozen=True, slots=True)
class Placed:
    """Neighbouring records that want a unit, or their stretches, in columns.

    keys: of their partitions; more are added while the log is read.
    """

    columns: Ints
    keys: list[Key]


class Partitions(PartitionColumns):
    """Places the records of a log in columns.

    Prepared and rolled back records want no unit (`CommitLogDispatcherBuildConsumeQueue#dispatch`). levels:
    delays of the broker (`parse_delay_levels`), its defaults when not given. any_topic: topics that are not
    UTF-8, too, decoded as Java does; they are left out otherwise. delivery_times: in the place of the hash of
    tags, for delayed messages. Memory: `room` columns of 56 bytes, and some hundred bytes for each topic and
    queue.
    """

    width = len(DispatchColumn)

    def __init__(
        self,
        kernels: Kernels,
        room: int,
        levels: Mapping[int, int] | None = None,
        *,
        any_topic: bool = False,
        delivery_times: bool = True,
    ) -> None:
        super().__init__(kernels, room, self.width)
        self._any_topic, self._delivery_times = any_topic, delivery_times
        self.decoded = False
        """some topic is not UTF-8, so that two partitions may have one key"""
        self._partitions = np.empty((_FIRST_PARTITIONS, len(QueueKeyColumn)), np.int64)
        self._names = np.empty(_FIRST_NAMES, np.uint8)
        self._table = np.zeros(4 * _FIRST_PARTITIONS, np.int32)
        self.delayed: set[int] = set()
        """partitions of messages that are delivered later"""
        self._levels = levels

    def take(self, run: Records, segment_base: int) -> Iterator[None]:
        """Adds a run of records, made with `Check.TEXT`; yields where the columns are full, for a `clear`."""
        start = 0
        if self._any_topic:
            run = _taken_for_utf8(run)
        while start < len(run.rows):
            before = len(self)
            start = self._put(run, start, segment_base)
            places = self.delayed_places(before)
            if len(places):
                rows = run.rows[self.columns[DispatchColumn.OWNER, places]]
                self.set_delivery_times(places, Records(rows, run.window, run.origin))
            if len(self) == self.columns.shape[1]:
                yield
            elif start < len(run.rows):
                self._grow()

    def _put(self, run: Records, start: int, segment_base: int) -> int:
        """Columns of the records from row `start` on; the first row without room."""
        following: int = self._kernels.place(
            run.window, run.origin, run.rows, start, segment_base, *self.state()
        )
        return following

    def state(self) -> tuple[tuple[Any, ...], Ints, Ints]:
        """The arrays that the kernel goes on with: what is known of partitions, counts, columns."""
        return (self._partitions, self._names, self._table), self._counts, self.columns

    def filled(self) -> Placed:
        """What a kernel has put into the columns of `state`, which are empty then."""
        self._name_new_partitions()
        columns = self.columns[:, : len(self)].copy()
        self.clear()
        return Placed(columns, self.keys)

    def placed(self, run: Records, segment_base: int) -> Placed:
        """A run of records by itself, of any length."""
        parts = []
        for _ in self.take(run, segment_base):
            parts.append(self.columns[:, : len(self)].copy())
            self.clear()
        parts.append(self.columns[:, : len(self)].copy())
        self.clear()
        return Placed(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1), self.keys)

    def _add(self, keys: list[Key]) -> None:
        """Those that the kernel is to know, too, by a record of each."""
        names = [topic.encode() for topic, _ in keys]
        rows = np.zeros((len(keys), ROW_WIDTH), np.int64)
        rows[:, Field.QUEUE_ID] = [queue_id for _, queue_id in keys]
        rows[:, Field.TOPIC_LENGTH] = lengths = [len(name) for name in names]
        rows[:, Field.TOPIC_POSITION] = np.cumsum(lengths) - lengths
        window = np.frombuffer(b"".join(names) + b"\0", np.uint8)  # not empty where the names are
        columns, start = np.empty((self.width, len(keys)), np.int64), 0
        while True:
            counts = np.append(self._counts[:2], start)
            start = self._kernels.place(window, 0, rows, start, 0, self.state()[0], counts, columns)
            self._counts[:2] = counts[:2]
            if start == len(rows):
                break
            self._name_new_partitions()
            self._grow()
        self._name_new_partitions()

    def _name_new_partitions(self) -> None:
        for row in self._partitions[len(self.keys) : self._counts[0]].tolist():
            start = row[QueueKeyColumn.NAME]
            raw = self._names[start : start + row[QueueKeyColumn.NAME_LENGTH]].tobytes()
            topic, ill = java_utf8_decode(raw)
            self.decoded |= ill
            if topic == SCHEDULE_TOPIC:
                self.delayed.add(len(self.keys))
            self.keys.append((topic, row[QueueKeyColumn.QUEUE_ID]))

    def _grow(self) -> None:
        self._partitions = np.concatenate([self._partitions, np.empty_like(self._partitions)])
        self._names = np.concatenate([self._names, np.empty_like(self._names)])
        self._table = np.zeros(2 * len(self._table), np.int32)
        self._kernels.rehash(self._partitions, len(self.keys), self._table)

    def delayed_places(self, before: int = 0) -> Ints:
        """Places of columns, from `before` on, whose message is delivered later."""
        self._name_new_partitions()
        if not (self.delayed and self._delivery_times):
            return _NOWHERE
        partitions = self.columns[DispatchColumn.PARTITION, before : len(self)]
        return before + np.flatnonzero(np.isin(partitions, list(self.delayed)))

    def set_delivery_times(self, places: Ints, run: Records) -> None:
        """A delayed message has the time of its delivery in place of the hash of its tags.

        run: the messages at these places alone.
        """
        for place, row in zip(places.tolist(), run.rows, strict=True):
            start = int(row[Field.PROPERTIES_POSITION]) - run.origin
            raw = run.window[start : start + max(int(row[Field.PROPERTIES_LENGTH]), 0)].tobytes()
            try:
                code = tags_code_of(
                    SCHEDULE_TOPIC, decode(raw), int(row[Field.STORE_TIMESTAMP]), self._levels
                )
            except FormatError:
                code = 0
            self.columns[DispatchColumn.CODE, place] = code


class StretchedPartitions(Partitions):
    """As `Partitions`, with one column for neighbouring queue offsets (`fields.Stretch`)."""

    width = len(Stretch)

    def __init__(self, kernels: Kernels, room: int) -> None:
        super().__init__(kernels, room)
        self._newest = np.zeros(len(self._partitions), np.int64)

    def state(self) -> tuple[tuple[Any, ...], Ints, Ints]:
        """See `Partitions.state`; `kernels.dispatch.stretch` knows each partition's newest stretch, too."""
        if len(self._newest) < len(self._partitions):
            self._newest = np.full(len(self._partitions), self.columns.shape[1])
        return (self._partitions, self._names, self._table, self._newest), self._counts, self.columns

    def _put(self, run: Records, start: int, segment_base: int) -> int:
        following: int = self._kernels.stretch(
            run.window, run.origin, run.rows, start, segment_base, *self.state()
        )
        return following

    def delayed_places(self, before: int = 0) -> Ints:  # noqa: ARG002 - no tags code, no time in its place
        """See `Partitions.delayed_places`."""
        self._name_new_partitions()
        return _NOWHERE


def _taken_for_utf8(run: Records) -> Records:
    """The same records, of whose topics none is marked as not UTF-8."""
    ill = (run.rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8)) != 0
    if not ill.any():
        return run
    rows = run.rows.copy()
    rows[ill, Field.ISSUES] &= ~int(Issue.TOPIC_UTF8)
    return Records(rows, run.window, run.origin)
