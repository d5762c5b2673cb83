"""A replayable file into a store: its messages are put as they were sent, many at once.

What a message is stays: topic, queue number, body as stored (compressed or not), properties, flags, born time
and host, how often it was given back. Where and when it lies is new: offsets, store time, store host. What
only meant something in the old log goes: the sealing CRC, offsets in further queues, that of a half message.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formats.commitlog import HEADERS, SysFlag, record_size
from formats.crc_trailer import TRAILER_SIZE
from formats.java import java_utf8_decode
from formats.primitives import offset_of
from formats.properties import CRC32, INNER_BASE, INNER_MULTI_QUEUE_OFFSET, without
from formats.replay import ENTRY_HEAD_SIZE
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.broker.encoder import MessageColumns
from rmqtool.errors import Stopped
from rmqtool.messagestore.messages import (
    AppendContext,
    IllegalMessageError,
    Message,
    PutStatus,
    StoredMessage,
)
from rmqtool.messagestore.topics import BATCH_QUEUE, QUEUE_TYPE
from rmqtool.scan.fields import Check, CrcState, Field
from rmqtool.scan.replay_scan import ReplayScan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from rmqtool.messagestore.records import RecordMaker
    from rmqtool.messagestore.topics import Topics
    from rmqtool.messagestore.writing import Writer
    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.replay import ReplayEnd
    from rmqtool.store.bytes import ByteSource

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

_MOST_QUEUES = 1 << 15
_TOO_LARGE = "the record is larger than maxMessageSize or a segment"
_STORE_V6 = int(SysFlag.STOREHOST_V6)
_V6 = 16
_BORN_HOST = offset_of(HEADERS[False, False], "born_host")
_SEAL = np.frombuffer(f"{CRC32}\x01".encode(), np.uint8)
_JUDGED = b"INNER_", SCHEDULE_TOPIC.encode()
"""what records have that feed further queues, or whose properties must be numbers"""


class Why(NamedTuple):
    """Why a record was not put."""

    status: PutStatus
    message: str


class Refused(NamedTuple):
    """A record that was not put. position: byte of the file; topic, queue_id: None where no record lies."""

    position: int
    topic: str | None
    queue_id: int | None
    status: PutStatus
    message: str


@dataclass
class Loaded:
    """What has been put so far. bytes: of records in the log. end: how the file ended, None in front of it.

    read: bytes of the file. refused: how many by status.
    """

    messages: int = 0
    bytes: int = 0
    read: int = 0
    refused: Counter[PutStatus] = field(default_factory=Counter)
    end: ReplayEnd | None = None


class Loader:
    """Puts the records of a replayable file. Topics that are not there are made, with queues as needed."""

    def __init__(self, writer: Writer, maker: RecordMaker, topics: Topics, kernels: Kernels) -> None:
        self._writer, self._maker, self._topics, self._kernels = writer, maker, topics, kernels
        self._made: set[str] = set()
        self.done = Loaded()

    def load(self, source: ByteSource, stop: Callable[[], bool] = bool) -> Iterator[list[Refused]]:
        """Run after run what was refused; `done` tells the rest.

        stop: asked in front of each run; a source that raises `Stopped` ends it as well.

        Raises `NotAStoreError`, `NewerFormatError`, `UnreadableError`, `StoreIOError`, `StoreClosedError`.
        """
        try:
            most = self._maker.most_record
            scan = ReplayScan(source, checks=Check.CRC, kernels=self._kernels, longest=most)
            for run in scan:
                if stop():
                    return
                yield self._strange(scan) + self._put(run)
                last = run.rows[-1]
                self.done.read = int(last[Field.POSITION] + last[Field.STORE_SIZE])
        except Stopped:
            return
        self.done.end = scan.end
        yield self._strange(scan)

    def _strange(self, scan: ReplayScan) -> list[Refused]:
        found = [
            Refused(position, None, None, PutStatus.MESSAGE_ILLEGAL, f"{length} bytes are not a record")
            if length - ENTRY_HEAD_SIZE <= self._maker.most_record
            else Refused(position, None, None, PutStatus.MESSAGE_ILLEGAL, _TOO_LARGE)
            for position, length in scan.strange
        ]
        scan.strange.clear()
        self.done.refused.update(one.status for one in found)
        return found

    def _put(self, run: Records) -> list[Refused]:
        rows = run.rows.copy()
        for place in (Field.BODY_POSITION, Field.TOPIC_POSITION, Field.PROPERTIES_POSITION):
            rows[:, place] -= run.origin
        rows[_sealed(rows, run.window), Field.PROPERTIES_LENGTH] -= TRAILER_SIZE
        why: dict[int, Why] = {}
        keys, which = self._queues(rows, run.window, why)
        self._judge(rows, why)
        kept = np.array([number for number in range(len(rows)) if number not in why], np.int64)
        if self._by_itself(rows, run.window):
            for number in kept.tolist():
                self._put_one(rows[number], run, keys[which[number]][0], number, why)
        else:
            self._put_columns(rows[kept], run, keys, which[kept], kept, why)
        refused = []
        for number, said in sorted(why.items()):
            topic, queue_id = keys[which[number]]
            position = int(run.rows[number, Field.POSITION])
            refused.append(Refused(position, topic, queue_id, said.status, said.message))
        self.done.refused.update(one.status for one in refused)
        return refused

    def _by_itself(self, rows: Ints, window: Bytes) -> bool:
        """Whether some of these records need more than new offsets and times."""
        odd = rows[:, Field.SYS_FLAG] & int(SysFlag.INNER_BATCH | SysFlag.TRANSACTION_MASK) != 0
        odd |= rows[:, Field.BORN_TIMESTAMP] < 0  # which stands for the time of the append in columns
        if self._maker.trailer or bool(odd.any()):
            return True
        data = window.tobytes()
        return any(name in data for name in _JUDGED)

    def _put_columns(
        self,
        rows: Ints,
        run: Records,
        keys: list[tuple[str, int]],
        which: Ints,
        kept: Ints,
        why: dict[int, Why],
    ) -> None:
        host = self._maker.host
        hosts = np.empty((len(rows), 2), np.int64)
        hosts[:, 0] = rows[:, Field.POSITION] - run.origin + _BORN_HOST
        hosts[:, 1] = len(run.window)
        rows[:, Field.SYS_FLAG] &= ~_STORE_V6
        if len(host[0]) == _V6:
            rows[:, Field.SYS_FLAG] |= _STORE_V6
        rows[:, Field.STORE_TIMESTAMP] = -1
        rows[:, Field.PREPARED_TRANSACTION_OFFSET] = 0
        ours = np.frombuffer(host[0] + host[1].to_bytes(4, "big", signed=True), np.uint8)
        window, addresses = run.window, np.concatenate([run.window, ours])
        columns = MessageColumns(rows, hosts, window, window, window, addresses)
        physical, *failed = self._writer.put_columns(columns, keys, which)
        stored = physical >= 0
        self.done.messages += int(stored.sum())
        self.done.bytes += int(rows[stored, Field.STORE_SIZE].sum())
        for number in kept[~stored].tolist():
            why[number] = Why._make(failed)

    def _put_one(self, row: Ints, run: Records, topic: str, number: int, why: dict[int, Why]) -> None:
        record = StoredMessage(_part(run.window, row[Field.POSITION] - run.origin, row[Field.STORE_SIZE]))
        properties = _part(run.window, row[Field.PROPERTIES_POSITION], row[Field.PROPERTIES_LENGTH])
        for name in (INNER_BASE, INNER_MULTI_QUEUE_OFFSET):
            properties = without(properties, name)
        head = record.header
        message = Message(
            topic,
            record.body,
            queue_id=record.queue_id,
            flag=record.flag,
            born_timestamp=record.born_timestamp,
            born_host=(head["born_host.ip"], head["born_host.port"]),
        )
        context = AppendContext(
            sys_flag=record.sys_flag, reconsume_times=record.reconsume_times, properties=properties
        )
        ack = self._writer.put(message, context)
        if ack.physical_offset < 0:
            why[number] = Why(ack.status, ack.message)
        else:
            self.done.messages += 1
            self.done.bytes += len(record.raw)

    def _queues(self, rows: Ints, window: Bytes, why: dict[int, Why]) -> tuple[list[tuple[str, int]], Ints]:
        """Topics and queues, and which each row goes to; into `why` those that have none."""
        data = window.tobytes()
        places = rows[:, [Field.TOPIC_POSITION, Field.TOPIC_LENGTH, Field.QUEUE_ID]].tolist()
        numbers: dict[tuple[bytes, int], int] = {}
        found = [
            numbers.setdefault((data[at : at + size], queue), len(numbers)) for at, size, queue in places
        ]
        which = np.array(found, np.int64)
        keys = [(java_utf8_decode(raw)[0], queue) for raw, queue in numbers]
        inner = rows[:, Field.SYS_FLAG] & int(SysFlag.INNER_BATCH) != 0
        for name in dict(keys):
            mine = [number for number, key in enumerate(keys) if key[0] == name]
            theirs = np.isin(which, mine)
            try:
                rows[theirs, Field.MAGIC] = self._maker.topic(name)[0]
                count = self._queue_count(name, rows[theirs, Field.QUEUE_ID], inner=inner[theirs].any())
            except IllegalMessageError as error:
                wrong, said = theirs, Why(error.status, str(error))
            else:
                queues = rows[:, Field.QUEUE_ID]
                wrong = theirs & ((queues < 0) | (queues >= count))
                said = Why(PutStatus.MESSAGE_ILLEGAL, f"topic {name} has {count} write queues")
            why |= dict.fromkeys(np.flatnonzero(wrong).tolist(), said)
        return keys, which

    def _queue_count(self, name: str, queues: Ints, *, inner: bool) -> int:
        """Write queues of a topic, which is made with enough of them if this load made it.

        inner: it gets inner batches. Raises `IllegalMessageError` for one that takes no messages.
        """
        topic = self._topics.get(name)
        if topic is not None and not topic.writeable:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"topic {name} is not writeable")
        have = 0 if topic is None else topic.write_queue_nums
        wanted = int(queues[(queues >= 0) & (queues < _MOST_QUEUES)].max(initial=-1)) + 1
        if wanted > have and (topic is None or name in self._made):
            self._made.add(name)
            kind = {QUEUE_TYPE: BATCH_QUEUE} if inner and topic is None else None
            self._topics.set(name, read_queues=wanted, write_queues=wanted, attributes=kind)
            have = wanted
        return have

    def _judge(self, rows: Ints, why: dict[int, Why]) -> None:
        """Rows that no store takes, or that are damaged, into `why`."""
        maker, illegal = self._maker, PutStatus.MESSAGE_ILLEGAL
        beside = record_size(int(rows[0, Field.MAGIC]), int(SysFlag.BORNHOST_V6) | _STORE_V6, 0, 0, 0) + 1
        sizes = rows[:, [Field.BODY_LENGTH, Field.TOPIC_LENGTH, Field.PROPERTIES_LENGTH]].sum(axis=1) + beside
        large = (sizes > maker.most_record) | (rows[:, Field.BODY_LENGTH] > maker.most_body)
        for wrong, status, message in (
            (rows[:, Field.CRC_STATE] == CrcState.BAD, illegal, "the body does not have its CRC"),
            (large, illegal, _TOO_LARGE),
        ):
            for number in np.flatnonzero(wrong).tolist():
                why.setdefault(number, Why(status, message))


def _sealed(rows: Ints, window: Bytes) -> npt.NDArray[np.bool_]:
    """Which records end in `__CRC32#`."""
    ends = rows[:, Field.PROPERTIES_POSITION] + rows[:, Field.PROPERTIES_LENGTH]
    sealed: npt.NDArray[np.bool_] = rows[:, Field.PROPERTIES_LENGTH] >= TRAILER_SIZE
    places = (ends[sealed] - TRAILER_SIZE)[:, None] + np.arange(len(_SEAL))
    sealed[sealed] = (window[places] == _SEAL).all(axis=1)
    return sealed


def _part(window: Bytes, begin: int, length: int) -> bytes:
    return window[begin : begin + length].tobytes()
