"""Where records get their places: queue offsets, physical offsets, store times, one appender at a time.

`CommitLog#asyncPutMessage`, `DefaultAppendMessageCallback#doAppend`.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formats import crc_trailer
from formats.commitlog import fits
from formats.errors import FormatError
from formats.properties import INNER_BASE, INNER_MULTI_QUEUE_OFFSET
from rmqtool.broker.encoder import encode_record
from rmqtool.errors import StoreIOError
from rmqtool.messagestore.messages import IllegalMessageError, PutStatus
from rmqtool.scan.fields import Field
from rmqtool.store.access import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from rmqtool.broker.encoder import MessageColumns
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.messagestore.log_files import LogFiles
    from rmqtool.messagestore.records import Late, Prepared, RecordMaker
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]

REOPEN = "close the store and open it again"
"""what puts right what an interrupt left half done: the next open goes by the log"""
WHOLE = -1
"""no write is under way"""
_AT_ONCE = 1 << 20
"""bytes of one write"""


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

    maker: completes records with what only the log knows. clock: what time it is, in ms.
    """

    def __init__(
        self,
        log: LogFiles,
        offsets: dict[Key, int],
        kernels: Kernels,
        maker: RecordMaker,
        *,
        clock: Callable[[], int] = milliseconds,
    ) -> None:
        self.lock = threading.Lock()
        self.offsets = offsets
        self.entered = 0.0
        self.torn = WHOLE
        """where a write begins that is not counted yet; while the lock is free: that was interrupted"""
        self.log, self.kernels, self._maker, self.clock = log, kernels, maker, clock
        self._trailer = maker.trailer

    @property
    def held_for(self) -> float:
        """Seconds since when one append has the lock; 0 when none has (`CommitLog#getBeginTimeInLock`)."""
        entered = self.entered
        if not entered or not self.lock.locked():
            return 0.0
        return time.monotonic() - entered

    @property
    def end(self) -> int:
        """Physical offset behind the last record."""
        return self.log.end

    def append(self, topic: str, queue_id: int, record: Prepared) -> Place:
        """One record. Raises `NotAppendedError`, `IllegalMessageError`."""
        key = topic, queue_id
        with self.lock:
            self._demand_whole()
            self.entered = time.monotonic()
            slot = record.queue_offset
            if slot is None:
                slot = self.offsets.get(key, 0) if record.messages else 0
            further: dict[Key, int] = {}
            if record.late is not None:
                record, further = self._completed(record, record.late, queue_id, slot, {})
            file = self._file_for(record.size)
            physical = file.base + file.wrote
            now = self.clock() if record.store_timestamp is None else record.store_timestamp
            self._write(file, self._encoded(record, queue_id, slot, physical, now), now)
            if record.messages:
                self.offsets[key] = slot + record.messages
            self.offsets.update(further)
            self.torn, self.entered = WHOLE, 0.0
        return Place._make((slot, physical, physical + record.size))

    def append_each(
        self, records: Sequence[tuple[str, int, Prepared]], *, together: bool = False
    ) -> list[Place | NotAppendedError]:
        """Records one behind the other, as many as go into a segment with one write.

        together: all of them into one segment, as a client's batch (`CommitLog#asyncPutMessages`).
        """
        room = sum(record.size for _, _, record in records) if together else 0
        places: list[Place | NotAppendedError] = []
        if not records:
            return places
        with self.lock:
            self.entered = time.monotonic()
            while len(places) < len(records):
                try:
                    self._demand_whole()
                    self._append_run(records, places, room)
                except IllegalMessageError as error:
                    places.append(NotAppendedError(error.status, str(error)))
                except NotAppendedError as error:
                    places += [error] * (len(records) - len(places))
            self.entered = 0.0
        return places

    def _append_run(
        self, records: Sequence[tuple[str, int, Prepared]], places: list[Place | NotAppendedError], room: int
    ) -> None:
        """As many records as go into one segment; room: bytes that it must have."""
        rest = iter(records[len(places) :])
        offsets: dict[Key, int] = {}
        topic, queue_id, record = next(rest)
        slot, record, counts = self._numbered(topic, queue_id, record, offsets)
        file = self._file_for(max(record.size, room))
        at, end, now = file.wrote, self.log.log.size, self.clock()
        parts: list[bytes] = []
        found: list[Place] = []
        while True:
            stamp = now if record.store_timestamp is None else record.store_timestamp
            parts.append(self._encoded(record, queue_id, slot, file.base + at, stamp))
            found.append(Place(slot, file.base + at, file.base + at + record.size))
            at += record.size
            offsets.update(counts)
            following = next(rest, None)
            if following is None:
                break
            topic, queue_id, record = following
            try:
                slot, record, counts = self._numbered(topic, queue_id, record, offsets)
            except IllegalMessageError:
                break  # which the next run says
            if not fits(record.size, end - at):
                break
        self._write(file, b"".join(parts), stamp)
        self.offsets.update(offsets)
        self.torn = WHOLE
        places += found

    def _numbered(
        self, topic: str, queue_id: int, record: Prepared, offsets: dict[Key, int]
    ) -> tuple[int, Prepared, dict[Key, int]]:
        """Queue offset of a record, the record complete, and what the counters are behind it.

        offsets: of records that are not appended yet. Raises `IllegalMessageError`.
        """
        key, slot = (topic, queue_id), record.queue_offset
        if slot is None:
            slot = (offsets[key] if key in offsets else self.offsets.get(key, 0)) if record.messages else 0
        counts: dict[Key, int] = {}
        if record.late is not None:
            record, counts = self._completed(record, record.late, queue_id, slot, offsets)
        if record.messages:
            counts[key] = slot + record.messages
        return slot, record, counts

    def _completed(
        self, record: Prepared, late: Late, queue_id: int, slot: int, offsets: dict[Key, int]
    ) -> tuple[Prepared, dict[Key, int]]:
        """See `_numbered`; the counters of further queues only."""
        counts: dict[Key, int] = {}
        numbers: list[str] = []
        for place, name in enumerate(late.names):
            key = self._maker.further.key(name, queue_id)
            number = None if late.stored is None else late.stored[place]
            if key is not None:
                if number is None:
                    number = offsets[key] if key in offsets else self.offsets.get(key, 0)
                counts[key] = number + 1
            numbers.append("" if number is None else str(number))
        text = f"{INNER_BASE}\x01{slot}" if late.based else ""
        if numbers and late.stored is None:
            text += "\x02" if text else ""
            text += f"{INNER_MULTI_QUEUE_OFFSET}\x01{','.join(numbers)}"
        return (self._maker.completed(record, late, text) if text else record), counts

    def append_columns(
        self, columns: MessageColumns, keys: Sequence[Key], which: Ints
    ) -> tuple[Ints, NotAppendedError | None]:
        """Records of columns in their order, with their queue offsets put into `rows`.

        keys: topics and queues; which: the number of its key for each row. Returns the physical offset of
        each, -1 for those that were not appended, the last ones, and why they were not.
        """
        rows, done, failed = columns.rows, 0, None
        with self.lock:
            self.entered = time.monotonic()
            following = np.array([self.offsets.get(key, 0) for key in keys], np.int64)
            self.kernels.encoding.number_rows(which, following, rows, self.clock())
            try:
                self._demand_whole()
                while done < len(rows):
                    done += self._append_part(columns, done)
            except NotAppendedError as error:
                failed = error
            counts = np.bincount(which[:done], minlength=len(keys))
            for key, count in zip(keys, counts.tolist(), strict=True):
                self.offsets[key] = self.offsets.get(key, 0) + count
            if done:
                self.torn = WHOLE
            self.entered = 0.0
        physical = rows[:, Field.STORED_PHYSICAL_OFFSET].copy()
        physical[done:] = -1
        return physical, failed

    def _append_part(self, columns: MessageColumns, done: int) -> int:
        """As many records from `done` on as go into one segment, and into one write."""
        rows = columns.rows[done:]
        file = self._file_for(int(rows[0, Field.STORE_SIZE]))
        places = np.empty(len(rows), np.int64)
        count, length = self.kernels.encoding.place_rows(
            rows, file.base + file.wrote, self.log.log.size - file.wrote, _AT_ONCE, places
        )
        if not count:
            why = f"a record of {rows[0, Field.STORE_SIZE]} bytes"
            raise NotAppendedError(PutStatus.MESSAGE_ILLEGAL, why)
        data = np.empty(length, np.uint8)
        part = slice(done, done + count)
        columns.encode(part, places[:count], data, self.kernels, crc_trailer=self._trailer)
        self._write(file, data, int(rows[count - 1, Field.STORE_TIMESTAMP]))
        return count

    def _demand_whole(self) -> None:
        """What an interrupt has left goes. Raises `NotAppendedError` for records that no counter knows."""
        if self.torn == WHOLE:
            return
        if not self.torn == self.log.end == self.log.log.max_offset:
            why = f"a put was interrupted when it had written: {REOPEN}"
            raise NotAppendedError(PutStatus.SERVICE_NOT_AVAILABLE, why)
        try:
            self.log.clear_tail()
        except StoreIOError as error:
            raise NotAppendedError(PutStatus.UNKNOWN_ERROR, in_words(error)) from error
        self.torn = WHOLE

    def _file_for(self, size: int) -> MappedFile:
        try:
            return self.log.place_for(size)
        except (OSError, StoreIOError) as error:
            self.entered = 0.0
            raise NotAppendedError(PutStatus.CREATE_MAPPED_FILE_FAILED, in_words(error)) from error

    def _encoded(self, record: Prepared, queue_id: int, slot: int, physical: int, now: int) -> bytes:
        try:
            return self.encoded(record, queue_id, slot, physical, now)
        except NotAppendedError:
            self.entered = 0.0
            raise

    def encoded(self, record: Prepared, queue_id: int, slot: int, physical: int, now: int) -> bytes:
        """A record for its place, stored at `now` (ms). Raises `NotAppendedError`."""
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
        if self.torn == WHOLE:  # else of a part in front of this one
            self.torn = file.base + file.wrote
        try:
            self.log.append(file, data)
        except OSError as error:
            self.torn, self.entered = WHOLE, 0.0
            why = f"{file.path}: {error.strerror}"
            raise NotAppendedError(PutStatus.UNKNOWN_ERROR, why) from error
        self.log.last_timestamp = now
