"""Where records get their places: queue offsets, physical offsets, store times, one appender at a time.

`CommitLog#asyncPutMessage`, `DefaultAppendMessageCallback#doAppend`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formats import crc_trailer
from formats.commitlog import fits
from formats.errors import FormatError
from rmqtool.broker.encoder import encode_record, roll
from rmqtool.errors import StoreIOError
from rmqtool.messagestore.messages import PutStatus
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from rmqtool.broker.encoder import MessageColumns
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.messagestore.log_files import LogFiles
    from rmqtool.messagestore.records import Prepared
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]

_ROWS = 1 << 16
_AT_ONCE = 1 << 20
"""records and bytes of one write"""


class NotAppendedError(Exception):
    """The system refused; nothing was stored."""

    def __init__(self, status: PutStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Place(NamedTuple):
    """Where a record is. end: physical offset behind it."""

    queue_offset: int
    physical_offset: int
    end: int


def milliseconds() -> int:
    """Now, as brokers write it."""
    return time.time_ns() // 1_000_000


class Appender:
    """Appends to the log. offsets: the next queue offset of each topic and queue, which it counts on.

    clock: what time it is, in ms. trailer: records end in `__CRC32#`.
    """

    def __init__(
        self,
        log: LogFiles,
        offsets: dict[Key, int],
        kernels: Kernels,
        *,
        trailer: bool,
        clock: Callable[[], int] = milliseconds,
    ) -> None:
        self.lock = threading.Lock()
        self.offsets = offsets
        self._log, self._kernels, self._trailer, self._clock = log, kernels, trailer, clock

    def append(self, topic: str, queue_id: int, record: Prepared) -> Place:
        """One record. Raises `NotAppendedError`."""
        key = topic, queue_id
        with self.lock:
            file = self._file_for(record.size)
            slot = record.queue_offset
            if slot is None:
                slot = self.offsets.get(key, 0) if record.counted else 0
            physical = file.base + file.wrote
            now = self._clock() if record.store_timestamp is None else record.store_timestamp
            self._write(file, self._encoded(record, queue_id, slot, physical, now), now)
            if record.counted:
                self.offsets[key] = slot + 1
        return Place._make((slot, physical, physical + record.size))

    def append_each(
        self, records: Sequence[tuple[str, int, Prepared]], *, together: bool = False
    ) -> list[Place | NotAppendedError]:
        """Records one behind the other, as many as go into a segment with one write.

        together: all of them into one segment, as a client's batch (`CommitLog#asyncPutMessages`).
        """
        room = sum(record.size for _, _, record in records) if together else 0
        places: list[Place | NotAppendedError] = []
        with self.lock:
            while len(places) < len(records):
                try:
                    self._append_run(records, places, room)
                except NotAppendedError as error:
                    places += [error] * (len(records) - len(places))
        return places

    def _append_run(
        self, records: Sequence[tuple[str, int, Prepared]], places: list[Place | NotAppendedError], room: int
    ) -> None:
        """As many records as go into one segment; room: bytes that it must have."""
        file = self._file_for(max(records[len(places)][2].size, room))
        at, end, now = file.wrote, self._log.log.size, self._clock()
        parts: list[bytes] = []
        found: list[Place] = []
        offsets: dict[Key, int] = {}
        for topic, queue_id, record in records[len(places) :]:
            if parts and not fits(record.size, end - at):
                break
            key = topic, queue_id
            slot = record.queue_offset
            if slot is None:
                slot = offsets[key] if key in offsets else self.offsets.get(key, 0)
            if record.counted:
                offsets[key] = slot + 1
            elif record.queue_offset is None:
                slot = 0
            stamp = now if record.store_timestamp is None else record.store_timestamp
            parts.append(self._encoded(record, queue_id, slot, file.base + at, stamp))
            found.append(Place(slot, file.base + at, file.base + at + record.size))
            at += record.size
        self._write(file, b"".join(parts), stamp)
        self.offsets.update(offsets)
        places += found

    def append_columns(self, columns: MessageColumns, keys: Sequence[Key], which: Ints) -> tuple[int, Ints]:
        """Records of columns in their order, with their queue offsets put into `rows`.

        keys: topics and queues; which: the number of its key for each row. Returns how many were appended,
        the first ones, and the physical offset of each. Raises `NotAppendedError` when none was.
        """
        sizes = columns.sizes()
        physical = np.full(len(columns), -1, np.int64)
        done = 0
        with self.lock:
            columns.rows[:, Field.QUEUE_OFFSET] = self._slots(keys, which)
            now = self._clock()
            columns.rows[columns.rows[:, Field.STORE_TIMESTAMP] < 0, Field.STORE_TIMESTAMP] = now
            columns.rows[columns.rows[:, Field.BORN_TIMESTAMP] < 0, Field.BORN_TIMESTAMP] = now
            try:
                while done < len(columns):
                    done += self._append_part(columns, sizes, done, physical)
            except NotAppendedError:
                if not done:
                    raise
            counts = np.bincount(which[:done], minlength=len(keys))
            for key, count in zip(keys, counts.tolist(), strict=True):
                self.offsets[key] = self.offsets.get(key, 0) + count
        return done, physical

    def _slots(self, keys: Sequence[Key], which: Ints) -> Ints:
        """Queue offset of each row: those of one queue in the order of the rows."""
        order = np.argsort(which, kind="stable")
        ranks = np.empty(len(which), np.int64)
        begins = np.searchsorted(which[order], np.arange(len(keys)))
        ranks[order] = np.arange(len(which)) - begins[which[order]]
        starts = np.array([self.offsets.get(key, 0) for key in keys], np.int64)
        slots: Ints = starts[which] + ranks
        return slots

    def _append_part(self, columns: MessageColumns, sizes: Ints, done: int, physical: Ints) -> int:
        """As many records from `done` on as go into one segment, and into one write."""
        file = self._file_for(int(sizes[done]))
        last = int(np.searchsorted(np.cumsum(sizes[done : done + _ROWS]), _AT_ONCE)) + 1
        count = max(roll(sizes[done : done + min(last, _ROWS)], self._log.log.size - file.wrote), 1)
        part = slice(done, done + count)
        places = np.cumsum(sizes[part]) - sizes[part]
        physical[part] = file.base + file.wrote + places
        some = replace(columns, rows=columns.rows[part], hosts=columns.hosts[part])
        some.rows[:, Field.STORED_PHYSICAL_OFFSET] = physical[part]
        data = np.empty(int(sizes[part].sum()), np.uint8)
        some.write(places, data, self._kernels, crc_trailer=self._trailer)
        self._write(file, data, int(some.rows[-1, Field.STORE_TIMESTAMP]))
        return count

    def _file_for(self, size: int) -> MappedFile:
        try:
            return self._log.place_for(size)
        except (OSError, StoreIOError) as error:
            raise NotAppendedError(PutStatus.CREATE_MAPPED_FILE_FAILED, str(error)) from error

    def _encoded(self, record: Prepared, queue_id: int, slot: int, physical: int, now: int) -> bytes:
        sent = now if record.born_timestamp is None else record.born_timestamp
        try:
            raw = encode_record(
                record.fields,
                queue_id,
                slot,
                physical,
                (sent, *record.born_host),
                (now, *record.store_host),
                record.body,
                record.tail,
            )
        except FormatError as error:
            raise NotAppendedError(PutStatus.MESSAGE_ILLEGAL, str(error)) from error
        return crc_trailer.seal(raw) if self._trailer else raw

    def _write(self, file: MappedFile, data: bytes | npt.NDArray[np.uint8], now: int) -> None:
        try:
            self._log.append(file, data)
        except OSError as error:
            raise NotAppendedError(PutStatus.UNKNOWN_ERROR, str(error)) from error
        self._log.last_timestamp = now
