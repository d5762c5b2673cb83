"""Rows of records to runs and pieces."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from formats import properties as props
from formats.commitlog import BLANK_MAGIC_CODE, SysFlag
from formats.dledger import ENTRY_HEAD_SIZE, MAGIC, EntryHead
from formats.primitives import dtype_of
from rmqtool.repair.salvage.relocate import batch_width
from rmqtool.repair.salvage.tables import Found, Piece, Run
from rmqtool.scan import fields as f
from rmqtool.scan.fields import DispatchColumn, Field
from rmqtool.scan.partitions import Partitions

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]

_ENTRY_HEAD = dtype_of(EntryHead)
_BLANK = BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True)


class Names:
    """Numbers for topics and queues ("partitions") and for store hosts, the same for all threads."""

    def __init__(self) -> None:
        self.partitions: list[tuple[str, int]] = []
        self.hosts: list[bytes] = []
        """4 or 16 bytes of address and 4 of port"""
        self.batch_topics: set[str] = set()
        """topics that hold inner batches: their queues are batch consume queues"""
        self._numbers: dict[object, int] = {}
        self._lock = Lock()

    def partition(self, topic: str, queue_id: int) -> int:
        """Number of a topic and queue."""
        return self._number((topic, queue_id), self.partitions)

    def host(self, raw: bytes) -> int:
        """Number of a store host field."""
        return self._number(raw, self.hosts)

    def _number(self, key: Any, known: list[Any]) -> int:
        found = self._numbers.get(key)
        if found is None:
            with self._lock:
                found = self._numbers.get(key)
                if found is None:
                    found = self._numbers[key] = len(known)
                    known.append(key)
        return found


class Tabulator:
    """Runs and pieces of the batches of one reader; not shared between threads."""

    def __init__(self, names: Names, kernels: Kernels, room: int) -> None:
        self._names = names
        self._partitions = Partitions(kernels, room)
        self._known: list[int] = []

    def table(self, batch: Records, source: int) -> Found:
        """The batch as runs and pieces; `batch.rows` are in the order of their positions."""
        rows = batch.rows
        header = np.where(_after_header(batch), ENTRY_HEAD_SIZE, 0)
        before, after = rows[:-1], rows[1:]
        space = after[:, Field.POSITION] - before[:, Field.POSITION] - before[:, Field.STORE_SIZE]
        stored = (
            after[:, Field.STORED_PHYSICAL_OFFSET]
            - before[:, Field.STORED_PHYSICAL_OFFSET]
            - before[:, Field.STORE_SIZE]
        )
        hosts = self.hosts_of(batch)
        follows = (space == stored) & (space == header[1:]) & (hosts[1:] == hosts[:-1])
        # a run has headers between all of its records or between none
        follows[1:] &= (header[2:] == header[1:-1]) | ~follows[:-1]
        starts = np.flatnonzero(np.concatenate([[True], ~follows]))
        number = np.cumsum(np.concatenate([[0], ~follows]))
        runs = self._runs(batch, source, starts, header, hosts)
        return Found(runs, self._pieces(batch, number))

    def _runs(self, batch: Records, source: int, starts: Ints, header: Ints, hosts: Ints) -> Ints:
        rows = batch.rows
        ends = np.concatenate([starts[1:], [len(rows)]]) - 1
        runs = np.empty((len(starts), len(Run)), np.int64)
        runs[:, Run.SOURCE] = source
        runs[:, Run.POSITION] = rows[starts, Field.POSITION]
        last = rows[ends, Field.POSITION] + rows[ends, Field.STORE_SIZE]
        runs[:, Run.LENGTH] = last - runs[:, Run.POSITION]
        runs[:, Run.COUNT] = ends - starts + 1
        runs[:, Run.OFFSET] = rows[starts, Field.STORED_PHYSICAL_OFFSET]
        times = rows[:, Field.STORE_TIMESTAMP]
        runs[:, Run.FIRST_TIME] = np.minimum.reduceat(times, starts)
        runs[:, Run.LAST_TIME] = np.maximum.reduceat(times, starts)
        runs[:, Run.HOST] = hosts[starts]
        runs[:, Run.HEADER] = header[starts]
        behind = runs[:, Run.OFFSET] + runs[:, Run.LENGTH]
        runs[:, Run.ROLLS] = [
            _rolls(batch, at, offset) for at, offset in zip(last.tolist(), behind.tolist(), strict=True)
        ]
        return runs

    def hosts_of(self, batch: Records) -> Ints:
        """Number of each record's store host."""
        flags = batch.rows[:, Field.SYS_FLAG]
        born = np.where(flags & SysFlag.BORNHOST_V6, f.HOST_V6_EXTRA, 0)
        places = batch.rows[:, Field.POSITION] - batch.origin + f.OFF_STORE_HOST + born
        numbers = np.empty(len(places), np.int64)
        for wide in (0, int(SysFlag.STOREHOST_V6)):
            chosen = np.flatnonzero((flags & SysFlag.STOREHOST_V6) == wide)
            size = f.HOST_V4_SIZE + (f.HOST_V6_EXTRA if wide else 0)
            raw = np.ascontiguousarray(batch.window[places[chosen][:, None] + np.arange(size)])
            if len(raw) and (raw == raw[0]).all():  # one broker, as nearly always
                numbers[chosen] = self._names.host(raw[0].tobytes())
                continue
            distinct, inverse = np.unique(raw.view(f"V{size}").ravel(), return_inverse=True)
            known = np.array([self._names.host(one.tobytes()) for one in distinct], np.int64)
            numbers[chosen] = known[inverse]
        return numbers

    def partitions_of(self, batch: Records) -> Ints:
        """Number of each record's topic and queue, -1 where it has no unit."""
        self._take(batch)
        numbers = np.full(len(batch.rows), -1, np.int64)
        for partition, places in self._groups():
            numbers[places] = partition
        return numbers

    def _take(self, batch: Records) -> None:
        self._partitions.clear()
        # fewer records than there is room for: at most the last step says that all is full
        for _ in self._partitions.take(batch, 0):
            pass

    def _pieces(self, batch: Records, number: Ints) -> Ints:
        width = self._widths(batch)
        self._take(batch)
        found = [
            self._partition(partition, places, batch.rows, number, width)
            for partition, places in self._groups()
        ]
        return np.concatenate(found) if found else np.empty((0, len(Piece)), np.int64)

    def _groups(self) -> Iterator[tuple[int, Ints]]:
        """Partition number and the rows of its records."""
        for key, places in self._partitions.groups():
            yield self._names.partition(*key), self._partitions.columns[DispatchColumn.OWNER, places]

    def _partition(self, partition: int, chosen: Ints, rows: Ints, number: Ints, width: Ints) -> Ints:
        slots = rows[chosen, Field.QUEUE_OFFSET]
        run = number[chosen]
        ends = slots + width[chosen]
        breaks = (run[1:] != run[:-1]) | (slots[1:] != ends[:-1])
        starts = np.flatnonzero(np.concatenate([[True], breaks]))
        lasts = np.concatenate([starts[1:], [len(chosen)]]) - 1
        pieces = np.empty((len(starts), len(Piece)), np.int64)
        pieces[:, Piece.RUN] = run[starts]
        pieces[:, Piece.PARTITION] = partition
        pieces[:, Piece.FIRST] = slots[starts]
        pieces[:, Piece.END] = ends[lasts]
        first, last = rows[chosen[starts]], rows[chosen[lasts]]
        pieces[:, Piece.START] = first[:, Field.STORED_PHYSICAL_OFFSET]
        pieces[:, Piece.STOP] = last[:, Field.STORED_PHYSICAL_OFFSET] + last[:, Field.STORE_SIZE]
        pieces[:, Piece.COUNT] = lasts - starts + 1
        pieces[:, Piece.TIME] = last[:, Field.STORE_TIMESTAMP]
        return pieces

    def _widths(self, batch: Records) -> Ints:
        """Queue positions of each record: those of its messages for an inner batch, else one."""
        widths = np.ones(len(batch.rows), np.int64)
        for place in np.flatnonzero(batch.rows[:, Field.SYS_FLAG] & SysFlag.INNER_BATCH):
            row = batch.rows[place]
            topic = text_of(batch, row, Field.TOPIC_POSITION).decode(errors="replace")
            named = props.decode(text_of(batch, row, Field.PROPERTIES_POSITION))
            if props.INNER_NUM in named:  # a wrong bit of the flags alone makes no batch
                self._names.batch_topics.add(topic)
                widths[place] = batch_width(named[props.INNER_NUM])
        return widths


def text_of(batch: Records, row: Ints, field: Field) -> bytes:
    """Bytes of a span of the window whose length stands in the next field."""
    start = int(row[field]) - batch.origin
    return batch.window[start : start + max(int(row[field + 1]), 0)].tobytes()


def _after_header(batch: Records) -> npt.NDArray[np.bool_]:
    """Records right behind a DLedger header that speaks of them (`DLedgerEntryCoder`)."""
    rows = batch.rows
    places = rows[:, Field.POSITION] - batch.origin - ENTRY_HEAD_SIZE
    result = np.zeros(len(rows), np.bool_)
    apart = np.flatnonzero(places >= 0)
    if len(apart) > 1:  # what follows a record at once has no header
        near = (
            rows[apart, Field.POSITION] == rows[apart - 1, Field.POSITION] + rows[apart - 1, Field.STORE_SIZE]
        )
        apart = apart[~(near & (apart > 0))]
    raw = np.ascontiguousarray(batch.window[places[apart][:, None] + np.arange(ENTRY_HEAD_SIZE)])
    head, row = raw.view(_ENTRY_HEAD)[:, 0], rows[apart]
    result[apart] = (
        (head["magic"] == MAGIC)
        & (head["size"] == row[:, Field.STORE_SIZE] + ENTRY_HEAD_SIZE)
        & (head["body_size"] == row[:, Field.STORE_SIZE])
        & (head["position"] == row[:, Field.STORED_PHYSICAL_OFFSET] - ENTRY_HEAD_SIZE)
    )
    return result


def _rolls(batch: Records, position: int, offset: int) -> int:
    """End of the segment by the blank at `position`, whose physical offset is `offset`; -1 without one."""
    head = batch.window[position - batch.origin : position - batch.origin + 8].tobytes()
    length = int.from_bytes(head[:4], "big", signed=True)
    return offset + length if head[4:] == _BLANK and length >= 8 else -1
