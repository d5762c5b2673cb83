"""Keys whose chains and records are mapped: the answer of `by_key` in one call of a kernel.

What needs more than a look at them is left to that.
"""

from __future__ import annotations

from itertools import repeat
from struct import Struct, error
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import pyarrow as pa

from formats.index import item_position, slot_position
from formats.java import java_utf8_encode
from rmqtool.collection import paused_collection
from rmqtool.errors import VanishedError
from rmqtool.messagestore.messages import StoredMessage
from rmqtool.scan.engine import prepared
from rmqtool.scan.fields import FoundColumn, IndexColumn, LookupRequest, SegmentColumn
from rmqtool.scan.index import ITEM
from rmqtool.store import faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.broker.index_files import IndexFile
    from rmqtool.broker.mapped_files import MappedFiles
    from rmqtool.messagestore.dispatching import Dispatching, Index
    from rmqtool.messagestore.held_files import HeldFiles
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.messagestore.mapped_pulls import MappedPulls
    from rmqtool.scan.kernel_types import Kernels, Lookup
    from rmqtool.store.bytes import ByteSource, Window

    Ints = npt.NDArray[np.int64]

MOST = 64
"""index files that stay mapped, those used last, and segments that are at hand"""
_STEPS = 256
"""items looked at for one key, the lock of the interpreter held"""
_STEPS_OF_MANY = 1 << 16
_TEXT = 512
"""bytes of topic and key in the question that is used again"""
_LIMIT = 32
"""messages of a key, of which there is room for as many in it"""
_TOGETHER = 4096
"""keys that are looked up with one call"""
_COPIED = 8 << 20
"""bytes of records that are copied together, about"""
_NUMBER = 8
_WIDTH = len(FoundColumn)
_ROWS = len(LookupRequest) + 3
"""place of what is found for the only key of a question"""
_TEXT_AT = (_ROWS + _LIMIT * _WIDTH) * _NUMBER
_PUT_AT, _put = (
    LookupRequest.WRITTEN * _NUMBER,
    Struct(f"={len(LookupRequest) + 1 - LookupRequest.WRITTEN}q").pack_into,
)
_END_AT, _put_end = (len(LookupRequest) + 1) * _NUMBER, Struct("=q").pack_into
_ANSWER_AT, _answer = LookupRequest.ENDED * _NUMBER, Struct(f"=2q{3 * _NUMBER}x4q").unpack_from
"""`ENDED`, `MISSING`, number of messages and the first of them"""
_INT64 = 1 << 63
_ALWAYS = -_INT64, _INT64 - 1
_SPARE = 64
"""segments to come that a table has rows for"""


class _Mapped:
    """Index files and segments as the kernel knows them, for as long as they are referenced.

    current: the index file that is written. data: bytes of each segment, none where they are not at hand.
    """

    def __init__(
        self, current: IndexFile, files: Sequence[_IndexFile], log: MappedFiles, index: Index, *, whole: bool
    ) -> None:
        self.current, self._files, self._size = current, files, log.size
        self.slots = current.slots  # the kernel knows their address
        self.faults = faults.total()
        rows = []
        for one in files:
            at = one.window.ctypes.data
            own = one.path == current.path
            slots = self.slots.ctypes.data if own else at + slot_position(0)
            items = item_position(0, index.slots)
            rows.append((slots, int(own), at + items, (len(one.window) - items) // ITEM.itemsize))
        self._table = np.array(rows, np.int64).reshape(-1, len(IndexColumn))
        self.first = log.files[0].base // log.size if log.files else 0
        last = log.files[-1].base // log.size if log.files else 0
        self.data = [memoryview(b"")] * (last - self.first + 1 + _SPARE)
        self._segments = np.zeros((len(self.data), len(SegmentColumn)), np.int64)
        self.mapped = 0
        self.known = (
            *(self._table.ctypes.data, len(files), int(whole), index.slots),
            *(self._segments.ctypes.data, len(self.data), self.first, log.size),
        )
        """`LookupRequest` up to `SEGMENT_SIZE`"""

    def add(self, number: int, base: int, data: memoryview) -> None:
        """A segment is at hand."""
        row = self._segments[number]
        self.data[number] = data
        row[SegmentColumn.BASE] = base
        row[SegmentColumn.ADDRESS] = np.frombuffer(data, np.uint8).ctypes.data
        row[SegmentColumn.LENGTH] = len(data)  # last, as others may look it up meanwhile
        self.mapped += 1

    def whole(self, ended: int) -> bool:
        """Whether nobody has cut the first files, of so many of which a chain may have ended early.

        Zeros, in the place of what was cut, look like an end.
        """
        return all(one.source.size_now() >= len(one.window) for one in self._files[:ended])


class _IndexFile(NamedTuple):
    path: str
    source: ByteSource
    window: Window


class _Question:
    """A question for one key, whose memory is used again. look_up: asks it."""

    def __init__(self, lookup: Lookup) -> None:
        self.memory = bytearray(_TEXT_AT + _TEXT)
        self._view = memoryview(self.memory)  # takes bytes in less time
        self.numbers = np.frombuffer(self.memory, np.int64)
        self.look_up = prepared(lookup.look_up, self.numbers)
        self.mapped: _Mapped | None = None
        self.topic, self.key_at = "", 0
        self.asked_for: tuple[int, int, int, int, int | None] | None = None
        self.behind = 0
        """what stands in the memory already: see `put`, and the end of the key"""

    def _be_about(self, mapped: _Mapped, topic: str) -> None:
        """Other files, or another topic."""
        raw = java_utf8_encode(topic)
        self.key_at = _TEXT_AT + len(raw)  # of a topic without room no key is asked for
        self.memory[_TEXT_AT : self.key_at] = raw[:_TEXT]
        self.numbers[: LookupRequest.WRITTEN] = (*mapped.known, _LIMIT, _STEPS)
        self.mapped, self.topic, self.asked_for = mapped, topic, None

    def put(
        self, mapped: _Mapped, topic: str, key: str, asked: tuple[int, int, int, int, int | None]
    ) -> bool:
        """Writes the question; False for a key that takes more than a look.

        asked: items written and end of what is dispatched; limit, begin and end.
        """
        try:
            if self.mapped is not mapped or self.topic != topic:
                self._be_about(mapped, topic)
            memory, at = self.memory, self.key_at
            raw = key.encode()
            behind = at + len(raw)
            if behind > len(memory):
                return False
            self._view[at:behind] = raw
            if self.asked_for != asked:
                written, reach, limit, begin, end = asked
                low, high = _within(begin, end) if begin or end is not None else _ALWAYS
                _put(memory, _PUT_AT, written, reach, low, high, limit, 0, 0, 1, at - _TEXT_AT)
                self.asked_for, self.behind = asked, 0
            if self.behind != behind:
                _put_end(memory, _END_AT, behind - _TEXT_AT)
                self.behind = behind
            return 0 < asked[2] <= _LIMIT
        except (UnicodeEncodeError, AttributeError, TypeError, error):  # of other types, too
            return False

    def messages(self, count: int) -> list[StoredMessage]:
        """Copies of so many that were found, in the order of the log."""
        data: Sequence[memoryview] = () if self.mapped is None else self.mapped.data
        rows = self.numbers[_ROWS : _ROWS + count * _WIDTH].reshape(-1, _WIDTH).tolist()
        return [StoredMessage(data[row][start:stop].tobytes()) for row, start, stop in rows[::-1]]


class MappedKeys:
    """Mapped index files and segments. held: index files."""

    def __init__(
        self,
        held: HeldFiles,
        log: LogReader,
        of_log: MappedFiles,
        mapped_pulls: MappedPulls,
        dispatching: Dispatching,
        index: Index | None,
        kernels: Kernels,
    ) -> None:
        self._held, self._log, self._of_log, self._mapped_pulls = held, log, of_log, mapped_pulls
        self._dispatching, self._limit = dispatching, dispatching.limit
        self._index, self._kernels, self._lookup = index, kernels, kernels.lookup
        self._files = None if index is None or self._lookup is None else index.files
        self._mapped: _Mapped | None = None
        self._forgotten = 0
        self._free: list[_Question] = []

    def find(
        self, topic: str, key: str, limit: int, begin: int, end: int | None
    ) -> list[StoredMessage] | None:
        """See `KeyReader.find`; None where not all of it is at hand, or something waits to be dispatched."""
        dispatching, files, lookup = self._dispatching, self._files, self._lookup
        reach = dispatching.offset
        if files is None or lookup is None or reach < self._limit() or dispatching.error is not None:
            return None
        mapped, current = self._mapped, files.last
        if mapped is None or mapped.current is not current or current.waiting:
            mapped = self._mapped_now()
            if mapped is None:
                return None
        question = self._free.pop() if self._free else _Question(lookup)
        asked = mapped.current.written, reach, limit, begin, end
        if not question.put(mapped, topic, key, asked):
            return None
        while True:
            question.look_up()
            ended, missing, count, row, start, stop = _answer(question.memory, _ANSWER_AT)
            if count >= 0:
                break
            if not self._add(mapped, missing):
                if faults.total() != mapped.faults:
                    self._copy()
                return None
        if count == 1:
            found = [StoredMessage(mapped.data[row][start:stop].tobytes())]
        else:
            found = question.messages(count)
        # zeros, in the place of what another process cut, look like the end of a chain
        if (ended and not mapped.whole(ended)) or faults.total() != mapped.faults:
            self._copy()
            return None
        if self._mapped is mapped:
            self._free.append(question)
        return found

    def _mapped_now(self) -> _Mapped | None:
        """What is mapped, up to the index file that is written, which has all its items."""
        files = self._files
        current = None if files is None else files.last
        if current is None:
            return None
        if current.waiting:
            with self._dispatching.lock:
                current.flush()
        mapped = self._mapped
        return mapped if mapped is not None and mapped.current is current else self._map(current)

    def find_each(
        self, topic: str, keys: Sequence[str], limit: int, begin: int, end: int | None
    ) -> Iterator[list[StoredMessage] | None]:
        """As `find` for each of many keys."""
        for at in range(0, len(keys), _TOGETHER):
            some = keys[at : at + _TOGETHER]
            yield from self._find_some(topic, some, limit, begin, end) or repeat(None, len(some))

    def _find_some(
        self, topic: str, keys: Sequence[str], limit: int, begin: int, end: int | None
    ) -> list[list[StoredMessage] | None] | None:
        mapped = self._mapped_now() if limit > 0 else None
        if mapped is None or self._lookup is None:
            return None
        for number in range(len(mapped.data) - _SPARE):
            self._add(mapped, number)
        try:
            raw, lengths = _joined(topic, keys)
        except UnicodeEncodeError:
            return None
        count, room = len(keys), len(keys) * min(limit, _LIMIT)
        low, high = _within(begin, end) if begin or end is not None else _ALWAYS
        most = min(limit, _INT64 - 1)
        now = mapped.current.written, self._dispatching.offset, low, high, most, 0, 0, count
        head = *mapped.known, room, _STEPS_OF_MANY, *now
        rows = len(head) + 2 * count + 1
        text = rows + room * _WIDTH
        asked = np.empty(text + -(-len(raw) // _NUMBER), np.int64)
        asked[: len(head)] = head
        np.cumsum(np.fromiter(lengths, np.int64, count + 1), out=asked[len(head) : rows - count])
        asked[text:].view(np.uint8)[: len(raw)] = np.frombuffer(raw, np.uint8)
        used = self._lookup.look_up(asked)
        records = self._records(mapped, asked[rows : rows + used * _WIDTH].reshape(-1, _WIDTH))
        if not mapped.whole(int(asked[LookupRequest.ENDED])) or faults.total() != mapped.faults:
            self._copy()
            return None
        with paused_collection():
            return _messages_of_each(records, asked[rows - count : rows])

    def _records(self, mapped: _Mapped, found: Ints) -> list[bytes]:
        """The bytes of rows of `FoundColumn`, copied together from each segment."""
        segments, starts = found[:, FoundColumn.SEGMENT], found[:, FoundColumn.START]
        sizes = found[:, FoundColumn.STOP] - starts
        order = np.argsort(segments, kind="stable")
        parts = np.diff(segments[order]) | np.diff(sizes[order].cumsum() // _COPIED)
        records = np.empty(len(found), object)
        for some in np.split(order, np.flatnonzero(parts) + 1) if len(order) else ():
            data = np.frombuffer(mapped.data[segments[some[0]]], np.uint8)
            copied, ends = np.empty(int(sizes[some].sum()), np.uint8), np.empty(len(some) + 1, np.int32)
            self._kernels.gather(data, starts[some], sizes[some], ends, copied)
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(copied)]
            # Arrow makes objects of bytes in a third of the time that slices take
            records[some] = pa.Array.from_buffers(pa.binary(), len(some), buffers).to_numpy(
                zero_copy_only=False
            )
        return cast("list[bytes]", records.tolist())

    def _map(self, current: IndexFile) -> _Mapped | None:
        """What is there now; None where any index file has to be copied."""
        index, forgotten = self._index, self._forgotten
        if index is None:
            return None
        files: list[_IndexFile] = []
        paths = index.paths
        self._copy()
        for path in reversed(paths):
            if len(files) == MOST:
                break
            try:
                source = self._held.source(path)
                window = None if source is None else self._held.mapped(path)
            except VanishedError:
                if path == current.path:
                    return None  # it is not made yet
                continue
            if source is None or window is None:
                return None
            if len(window) >= item_position(0, index.slots):
                files.append(_IndexFile(path, source, window))
        if not files or files[0].path != current.path:
            return None
        made = _Mapped(current, files, self._of_log, index, whole=len(files) < MOST)
        if self._forgotten != forgotten:
            return None
        self._mapped = made
        return made

    def _add(self, mapped: _Mapped, number: int) -> bool:
        """Takes a segment in, by its row; False where it is not at hand."""
        if not 0 <= number < len(mapped.data) or mapped.data[number]:
            return False
        if mapped.mapped >= MOST:
            self._mapped = None  # others get their places
            return False
        number_of_all = mapped.first + number
        found = self._mapped_pulls.segment(number_of_all, number_of_all * self._of_log.size)
        if found is None:
            return False
        file, _, data, _ = found
        mapped.add(number, file.base, data)
        return True

    def _copy(self) -> None:
        """Files that have shown zeros are mapped no more."""
        self._clear()
        self._held.retried(int)
        self._log.retried(int)

    def forget(self) -> None:
        """A segment or an index file is gone."""
        self._forgotten += 1
        self._clear()

    def _clear(self) -> None:
        self._mapped = None
        self._free.clear()


def _joined(topic: str, keys: Sequence[str]) -> tuple[bytes, Iterator[int]]:
    """Bytes of a topic and keys, one behind the other, and how many each has.

    Raises `UnicodeEncodeError` for a key that takes more than a look.
    """
    text = "".join((topic, *keys))
    if text.isascii():
        return text.encode(), map(len, (topic, *keys))
    each = [java_utf8_encode(topic), *map(str.encode, keys)]
    return b"".join(each), map(len, each)


def _messages_of_each(records: Sequence[bytes], counts: Ints) -> list[list[StoredMessage] | None]:
    """Messages of each key in the order of the log, None of one that is not sure.

    counts: how many of the records each has, which come the newest first.
    """
    if len(records) == len(counts) and (counts == 1).all():
        return [[StoredMessage(one)] for one in records]
    messages = list(map(StoredMessage, records))
    ends = np.maximum(counts, 0).cumsum().tolist()
    return [
        messages[end - number : end][::-1] if number >= 0 else None
        for number, end in zip(counts.tolist(), ends, strict=True)
    ]


def _within(begin: int, end: int | None) -> tuple[int, int]:
    """First and last of times from `begin` up to, not including, `end`, as far as records can have them."""
    last = _INT64 - 1 if end is None else min(end - 1, _INT64 - 1)
    return (max(begin, -_INT64), last) if begin < _INT64 and last >= -_INT64 else (0, -1)
