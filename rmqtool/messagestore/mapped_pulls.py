"""Pulls whose units and records are mapped: the answer of `get_message.pull` in few steps.

What needs more than a look at them is left to that.
"""

from __future__ import annotations

from functools import cache
from struct import Struct, error
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from formats.consumequeue import Unit
from formats.primitives import Flat
from rmqtool.broker.consume_queue import BYTES, ConsumeQueue
from rmqtool.broker.get_message import GetMessageStatus, are_whole_and_hot, columns_of, hot_run
from rmqtool.errors import VanishedError
from rmqtool.messagestore.held_files import HeldFiles
from rmqtool.messagestore.messages import GetResult, RawResult, StoredMessage
from rmqtool.scan.engine import prepared
from rmqtool.scan.fields import Spanned
from rmqtool.store.mapped import MappedSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from mmap import mmap

    import numpy.typing as npt

    from rmqtool.broker.get_message import PullLimits
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.broker.start import AnyQueue, Start
    from rmqtool.messagestore.dispatching import Dispatching
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.messagestore.statistics import Statistics
    from rmqtool.messagestore.topics import Topics
    from rmqtool.scan.kernel_types import Kernels

    Segment = tuple[MappedFile, Callable[[int], bool], memoryview, mmap]
    Units = tuple[ConsumeQueue, MappedFile, memoryview, int, int, int]
    Result = TypeVar("Result", bound=GetResult | RawResult)

MOST = 64
"""queue files that stay mapped, and segments; each has two descriptors, of which a process may have few"""
SELDOM = 64
"""how often as many as are mapped have to be refused before others get their places"""
_FOUND = GetMessageStatus.FOUND
_unit = Flat(Unit).unpack_from
_NUMBER = 8
_ENDS_AT = len(Spanned) * _NUMBER
_put = Struct("=3q").pack_into
_ANSWER_AT, _answer = Spanned.BASE * _NUMBER, Struct("=5q").unpack_from
_ROOM = 64
"""units whose records are looked for with one call"""
_made: Any = tuple.__new__
"""as `_make` of a result, in half the time"""


class _Question:
    """Units that are asked for, see `fields.Spanned`, in memory that is used again. look: asks."""

    def __init__(self, kernel: Callable[[npt.NDArray[np.int64]], int]) -> None:
        self.memory = bytearray(_ENDS_AT + 2 * _NUMBER * _ROOM)
        self.look = prepared(kernel, np.frombuffer(self.memory, np.int64))


@cache
def _ends(many: int) -> Callable[[bytearray, int], tuple[int, ...]]:
    """Reads begin and end of so many records."""
    return Struct(f"={2 * many}q").unpack_from


def _messages(records: list[bytes]) -> list[StoredMessage]:
    """None where another process may have cut the records: the end of one is zeros then."""
    messages = []
    for raw in records:
        if not raw[-1]:
            return []
        messages.append(StoredMessage(raw))
    return messages


class MappedPulls:
    """Mapped queue files and segments. at: gives a path into the store's directory, which is held.

    A file that is deleted has to be forgotten (`forget`), or the disk does not get its room back.
    """

    def __init__(
        self,
        at: Callable[[str], str],
        log: LogReader,
        start: Start,
        limits: PullLimits,
        dispatching: Dispatching,
        topics: Topics,
        statistics: Statistics,
        kernels: Kernels,
    ) -> None:
        self._log, self._of_log, self._segment_size = log, start.log, start.log.size
        self._queues, self._topics, self._statistics = start.queues, topics, statistics
        self._dispatching, self._limit = dispatching, dispatching.limit
        self._limits, self._hot = limits, limits.hot if limits.at_once > 0 else -1
        self._at_once, self._most_bytes = limits.at_once, limits.in_memory[0]
        self._kernel = kernels.span_units
        self._free: list[_Question] = []
        self._held = HeldFiles(at, MOST)
        self._units: dict[tuple[AnyQueue, int], Units] = {}
        """queue files: queue, file, its units and their address, begin and end of the file (bytes)"""
        self._latest: dict[tuple[str, int], Units] = {}
        """the one of `_units` that was read last, by topic and queue"""
        self._segments: dict[int, Segment] = {}
        """by number: file, whether its bytes up to a place can be read, its bytes as a view, and to copy"""
        self._forgotten = self._refused = 0

    def pull(  # noqa: C901, PLR0911, PLR0912 - one return a condition
        self, topic: str, queue_id: int, offset: int, limit: int, form: type[Result]
    ) -> Result | None:
        """A pull of at most `limit` messages from a queue offset on; None where that is not all at hand.

        form: views of the records, or messages, for which they are copied.
        """
        if offset.__class__ is not int or limit.__class__ is not int:
            return None
        try:
            last = self._of_log.files[-1]
            high = last.base + last.wrote
            dispatching = self._dispatching
            reach = dispatching.offset
            if (
                (reach < high and reach < self._limit())  # which asks more than a look, and is no more
                or dispatching.error is not None
                or topic in self._topics.memory
            ):
                return None
            at = offset * BYTES
            latest = self._latest.get((topic, queue_id))
            if latest is None or not latest[4] <= at < latest[5]:
                latest = self._units_at(topic, queue_id, at)
                if latest is None:
                    return None
            queue, file, units, address, base, _ = latest
            floor, begin = queue.min_logical, at - base
            many = (file.wrote - begin) // BYTES
            if many > limit:  # noqa: PLR1730 - a call of `min` takes a tenth of the whole pull
                many = limit
            if many < 1 or not 0 <= floor <= at:
                return None
            if many == 1:
                physical_offset, size, _ = _unit(units, begin)
                number = physical_offset // self._segment_size
                segment = self._segments.get(number) or self.segment(number, physical_offset)
                if segment is None:
                    return None
                stored, maps, data, copies = segment
                start = physical_offset - stored.base
                end = start + size
                # a unit that another process has cut off is zeros, and so is the end of a record
                if not 0 <= start < end <= stored.wrote or high - physical_offset > self._hot:
                    return None
                if not data[end - 1] and not maps(end):
                    self._segments.pop(number, None)
                    return None
                records: list[Any] = [data[start:end] if form is RawResult else copies[start:end]]
            else:
                many = min(many, self._at_once)
                found = self._together(address + begin, many, high, form) if 1 < many <= _ROOM else None
                found = found or self._some(offset, units, begin, many, high, form)
                if found is None:
                    return None
                records, size = found
                many = len(records)
            items = records if form is RawResult else _messages(records)
            if not items:
                return None
            last = queue.files.files[-1]
            if queue.min_logical != floor:
                return None  # what was read has expired meanwhile
            counted = self._statistics  # as `Statistics.got`
            counted.hits += 1
            counted.messages += many
            counted.bytes += size
            answer: Result = _made(
                form,
                (
                    _FOUND,
                    items,
                    offset + many,
                    floor // BYTES,
                    (last.base + last.wrote) // BYTES,
                    False,
                ),
            )
            return answer  # noqa: TRY300 - the whole body may raise
        # arguments of other types, which what takes more than a look names, or a log without files
        except (TypeError, error, IndexError):
            return None

    def _together(self, address: int, many: int, high: int, form: Any) -> tuple[list[Any], int] | None:
        """The records of neighbouring units, of which none needs a look, and their bytes."""
        kernel = self._kernel
        if kernel is None:
            return None
        question = self._free.pop() if self._free else _Question(kernel)
        memory = question.memory
        _put(memory, 0, address, many, self._segment_size)
        question.look()
        base, lowest, behind, least, size = _answer(memory, _ANSWER_AT)
        ends = iter(_ends(many)(memory, _ENDS_AT))
        self._free.append(question)
        number = base // self._segment_size
        segment = self._segments.get(number) or self.segment(number, lowest)
        if segment is None:
            return None
        file, maps, data, copies = segment
        whole = are_whole_and_hot(lowest, least, behind, base, base + file.wrote, high, self._hot)
        if not whole or file.base != base or size > self._most_bytes:
            return None
        if not data[behind - base - 1] and not maps(behind - base):
            self._segments.pop(number, None)
            return None
        source: Any = data if form is RawResult else copies
        return [source[start:end] for start, end in zip(ends, ends)], size  # noqa: B905

    def _some(
        self, offset: int, units: memoryview, at: int, many: int, high: int, form: Any
    ) -> tuple[list[Any], int] | None:
        """As `_together`, up to the bytes of one pull."""
        columns = columns_of(units[at : at + many * BYTES])
        first = columns[0][0] if columns[0] else -1
        number = first // self._segment_size
        segment = self._segments.get(number) or self.segment(number, first)
        if segment is None:
            return None
        file, maps, data, copies = segment
        base = file.base
        run = hot_run(offset, columns, base, base + file.wrote, high, self._limits)
        if run is None:
            return None
        if not maps(run.end - base):
            self._segments.pop(number, None)
            return None
        places = zip(run.offsets, run.sizes)  # noqa: B905
        source: Any = data if form is RawResult else copies
        return [source[(begin := one - base) : begin + size] for one, size in places], run.size

    def _units_at(self, topic: str, queue_id: int, at: int) -> Units | None:
        """The queue file around byte `at` of a queue, mapped from now on."""
        queue, before = self._queues.get((topic, queue_id)), self._forgotten
        if not isinstance(queue, ConsumeQueue):
            return None
        found = self._units.get((queue, at // queue.files.size)) or self._map_units(queue, at)
        if found is not None:
            self._latest[topic, queue_id] = found
            if self._forgotten != before:
                self._latest.clear()
        return found

    def _map_units(self, queue: ConsumeQueue, at: int) -> Units | None:
        size, before = queue.files.size, self._forgotten
        file = queue.files.at(at)
        if file is None or not self._has_room(self._units):
            return None
        try:
            window = self._held.mapped(file.path)
        except VanishedError:
            return None
        if window is None or len(window) < size:
            return None
        base = file.base
        found = self._units[queue, at // size] = (
            queue,
            file,
            window.data,
            window.ctypes.data,
            base,
            base + size,
        )
        if self._forgotten != before:
            self._units.clear()
        return found

    def segment(self, number: int, physical_offset: int) -> Segment | None:
        """A segment that is mapped from now on, by its number and an offset in it."""
        known = self._segments.get(number)
        if known is not None:
            return known
        before = self._forgotten
        file = self._of_log.at(physical_offset) if physical_offset >= 0 else None
        if file is None or not self._has_room(self._segments):
            return None
        source = self._log.source(file.path)
        if not isinstance(source, MappedSource) or source.mapping is None:
            return None
        data, copies = source.window(0, source.size).data, source.mapping
        if len(data) < self._segment_size:
            return None
        found = self._segments[number] = file, source.maps, data, copies
        if self._forgotten != before:
            self._segments.clear()
        return found

    def _has_room(self, mapped: dict[Any, Any]) -> bool:
        """Whether one more is mapped; from time to time all make room for those that are asked for now."""
        if len(mapped) < MOST:
            return True
        self._refused += 1
        if self._refused % (MOST * SELDOM) == 0:
            mapped.clear()
            self._latest.clear()
        return False

    def forget(self, path: str) -> None:
        """A queue file or a segment is gone."""
        self._clear()
        self._held.release(path)

    def close(self) -> None:
        """Lets go of all files."""
        self._clear()
        self._held.close()

    def _clear(self) -> None:
        self._forgotten += 1
        self._units.clear()
        self._latest.clear()
        self._segments.clear()
