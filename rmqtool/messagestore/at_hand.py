"""Pulls of one message whose unit and record are mapped: the answer of `get_message.pull` in few steps.

What needs more than a look at them is left to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.consumequeue import Unit
from formats.primitives import Flat
from rmqtool.broker.consume_queue import BYTES, ConsumeQueue
from rmqtool.broker.get_message import GetMessageStatus
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

MOST = 1024
"""queue files that stay mapped, and segments"""
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
        self._hot = limits.hot if limits.in_memory[1] > 0 else -1
        self._held = HeldFiles(at, MOST)
        self._units: dict[tuple[AnyQueue, int], tuple[MappedFile, memoryview]] = {}
        self._segments: dict[int, Segment] = {}
        self._forgotten = self._refused = 0

    def one(self, topic: str, queue_id: int, offset: int) -> RawResult | None:
        """A pull of at most one message from a queue offset on; None where that is not all at hand."""
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
        if not 0 <= begin <= file.wrote - BYTES:
            return None
        physical_offset, size, _ = _unit(units, begin)
        number = physical_offset // self._segment_size
        segment = self._segments.get(number) or self._map_segment(number, physical_offset)
        if segment is None:
            return None
        file, maps, data = segment
        begin = physical_offset - file.base
        end = begin + size
        if not 0 <= begin < end <= file.wrote:  # so are units that another process has cut off, zeros
            return None
        if not maps(end):
            self._segments.pop(number, None)
            return None
        last = self._of_log.files[-1]
        if last.base + last.wrote - physical_offset > self._hot or queue.min_logical != floor:
            return None  # the latter: what was read has expired meanwhile
        last = files.files[-1]
        high = (last.base + last.wrote) // BYTES
        self._got(1, size)
        answer: RawResult = _made(
            RawResult, (_FOUND, [data[begin:end]], offset + 1, floor // BYTES, high, False)
        )
        return answer

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

    def _map_segment(self, number: int, physical_offset: int) -> Segment | None:
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
        if self._refused % MOST == 0:
            mapped.clear()
        return False

    def forget(self, path: str) -> None:
        """A queue file or a segment is gone."""
        self._forgotten += 1
        self._units.clear()
        self._segments.clear()
        self._held.release(path)

    def close(self) -> None:
        """Lets go of all files."""
        self._forgotten += 1
        self._units.clear()
        self._segments.clear()
        self._held.close()
