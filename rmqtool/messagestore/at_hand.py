"""Pulls whose units and records are mapped: the answer of `get_message.pull` in few steps.

What needs more than a look at them is left to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.consumequeue import Unit
from formats.primitives import Flat
from rmqtool.broker.consume_queue import BYTES, ConsumeQueue
from rmqtool.broker.get_message import GetMessageStatus, columns_of, hot_run
from rmqtool.errors import VanishedError
from rmqtool.messagestore.held_files import HeldFiles
from rmqtool.messagestore.messages import RawResult
from rmqtool.store.mapped import MappedSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.broker.get_message import PullLimits
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.broker.start import AnyQueue, Start
    from rmqtool.messagestore.dispatching import Dispatching
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.messagestore.statistics import Statistics
    from rmqtool.messagestore.topics import Topics

    Segment = tuple[MappedFile, Callable[[int], bool], memoryview]

MOST = 64
"""queue files that stay mapped, and segments; each has two descriptors, of which a process may have few"""
SELDOM = 64
"""how often as many as are mapped have to be refused before others get their places"""
_FOUND = GetMessageStatus.FOUND
_unit = Flat(Unit).unpack_from
_made: Any = tuple.__new__
"""as `RawResult._make`, in half the time"""


class AtHand:
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
    ) -> None:
        self._log, self._of_log, self._segment_size = log, start.log, start.log.size
        self._queues, self._topics, self._got = start.queues, topics, statistics.got
        self._dispatching, self._limit = dispatching, dispatching.limit
        self._limits, self._hot = limits, limits.hot if limits.at_once > 0 else -1
        self._held = HeldFiles(at, MOST)
        self._units: dict[tuple[AnyQueue, int], tuple[MappedFile, memoryview]] = {}
        self._segments: dict[int, Segment] = {}
        self._forgotten = self._refused = 0

    def pull(self, topic: str, queue_id: int, offset: int, limit: int) -> RawResult | None:
        """A pull of at most `limit` messages from a queue offset on; None where that is not all at hand."""
        dispatching, queue = self._dispatching, self._queues.get((topic, queue_id))
        done = dispatching.offset >= self._limit() and dispatching.error is None
        if not done or not isinstance(queue, ConsumeQueue) or topic in self._topics.memory:
            return None
        files, floor, at = queue.files, queue.min_logical, offset * BYTES
        mapped = self._units.get((queue, at // files.size)) or self._map_units(queue, at)
        if mapped is None or not 0 <= floor <= at:
            return None
        file, units = mapped
        begin = at - file.base
        many = min((file.wrote - begin) // BYTES, limit)
        if begin < 0 or many < 1:
            return None
        found = self._one(units, begin) if many == 1 else self._some(offset, units, begin, many)
        last = files.files[-1]
        if found is None or queue.min_logical != floor:
            return None  # the latter: what was read has expired meanwhile
        records, size = found
        self._got(len(records), size)
        high = (last.base + last.wrote) // BYTES
        answer: RawResult = _made(
            RawResult, (_FOUND, records, offset + len(records), floor // BYTES, high, False)
        )
        return answer

    def _one(self, units: memoryview, at: int) -> tuple[list[memoryview], int] | None:
        """The record of a unit, and its size."""
        physical_offset, size, _ = _unit(units, at)
        number = physical_offset // self._segment_size
        segment = self._segments.get(number) or self.segment(number, physical_offset)
        if segment is None:
            return None
        file, maps, data = segment
        begin = physical_offset - file.base
        end = begin + size
        last = self._of_log.files[-1]
        # a unit that another process has cut off is zeros
        if not 0 <= begin < end <= file.wrote or last.base + last.wrote - physical_offset > self._hot:
            return None
        if not maps(end):
            self._segments.pop(number, None)
            return None
        return [data[begin:end]], size

    def _some(
        self, offset: int, units: memoryview, at: int, many: int
    ) -> tuple[list[memoryview], int] | None:
        """The records of neighbouring units, and their bytes."""
        columns = columns_of(units[at : at + min(many, self._limits.at_once) * BYTES])
        first = columns[0][0] if columns[0] else -1
        number = first // self._segment_size
        segment = self._segments.get(number) or self.segment(number, first)
        if segment is None:
            return None
        file, maps, data = segment
        base = file.base
        run = hot_run(offset, columns, base, base + file.wrote, self._of_log.max_offset, self._limits)
        if run is None:
            return None
        if not maps(run.end - base):
            self._segments.pop(number, None)
            return None
        places = zip(run.offsets, run.sizes)  # noqa: B905
        return [data[(begin := one - base) : begin + size] for one, size in places], run.size

    def _map_units(self, queue: ConsumeQueue, at: int) -> tuple[MappedFile, memoryview] | None:
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
        found = self._units[queue, at // size] = file, window.data
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
        if not isinstance(source, MappedSource):
            return None
        data = source.window(0, source.size).data
        if len(data) < self._segment_size:
            return None
        found = self._segments[number] = file, source.maps, data
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
        self._segments.clear()
