"""How a verification reads the segments of a log, each in a thread of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH as BLANK_HEADER
from rmqtool.check.levels import Level
from rmqtool.errors import RmqtoolError, UnreadableError
from rmqtool.scan.events import Blank, Event, Records
from rmqtool.scan.fields import Field
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.lock import network_filesystem, probe
from rmqtool.store.throttle import RateLimit, ThrottledSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from rmqtool.check.findings import Finding
    from rmqtool.check.index import IndexCheck
    from rmqtool.check.index_match import Keys
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

BATCH_ROWS = 4096
"""records that are looked at together: their bytes are then still in the cache when keys are hashed"""


@dataclass(frozen=True)
class Reading:
    """How, and how much, to read.

    jobs: segments scanned at once. bytes_per_second: None without bound. advance: told how many bytes are
    done.
    """

    jobs: int = 1
    level: Level = Level.DEFAULT
    safe_io: bool = False
    bytes_per_second: int | None = None
    advance: Callable[[int], object] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Records, what they put into the index, and what is wrong inside of their bodies."""

    records: Records
    keys: Keys
    inside: list[Finding]


@dataclass(frozen=True, slots=True)
class Filler:
    """A blank record, and whether the bytes behind its header are not zero."""

    blank: Blank
    filled: bool


@dataclass(frozen=True, slots=True)
class Lost:
    """From `position` on the segment cannot be read."""

    position: int
    reason: str


class LogReader:
    """Opens and scans the segments of one store, as its circumstances and `reading` ask."""

    def __init__(self, store: Store, reading: Reading) -> None:
        self.store = store
        self.reading = reading

    @cached_property
    def _limit(self) -> RateLimit | None:
        rate = self.reading.bytes_per_second
        return RateLimit(rate) if rate else None

    @cached_property
    def careful(self) -> bool:
        """Read with pread: a file of a live store may shrink, and so may one on a network file system."""
        reading = self.reading
        live = probe(self.store.lock_path).held is True
        remote = network_filesystem(self.store.root) is not None
        return reading.safe_io or reading.bytes_per_second is not None or live or remote

    def open(self, segment: Segment) -> ByteSource:
        """The bytes of a segment, read as this run has to read."""
        limit = self._limit
        source = segment.open("pread" if self.careful or limit else "auto")
        return ThrottledSource(source, limit) if limit else source

    def scan(
        self, segment: Segment, kernels: ModuleType, index: IndexCheck
    ) -> Iterator[tuple[Segment, Event | Run | Filler | Lost]]:
        """Everything in a segment, for one thread; an unreadable rest is its last event."""
        side_by_side = self.reading.jobs > 1
        deep = _deep(self.reading.level)
        done = 0
        try:
            with self.open(segment) as opened:
                active = self.store.segments.is_active(segment)
                for event in SegmentScan(
                    opened, segment.base, active=active, kernels=kernels, batch_rows=BATCH_ROWS
                ):
                    if isinstance(event, Records):
                        last = event.rows[-1]
                        now = int(last[Field.POSITION] + last[Field.STORE_SIZE])
                        rows = event.rows.copy() if side_by_side else event.rows
                        inside = deep(event, segment, kernels) if deep is not None else []
                        keys = index.keys(event, segment.base)
                        yield segment, Run(Records(rows, event.window, event.origin), keys, inside)
                        self.advance(now - done)
                        done = now
                    elif isinstance(event, Blank):
                        rest = opened.window(event.position, event.length)[BLANK_HEADER:]
                        yield segment, Filler(event, int(kernels.first_nonzero(rest, 0)) < rest.size)
                    else:
                        yield segment, event
        except UnreadableError as error:
            yield segment, Lost(max(done, error.offset), error.reason)
        except RmqtoolError as error:
            yield segment, Lost(done, str(error))
        self.advance(segment.size - done)

    def advance(self, count: int) -> None:
        """Tells whoever waits that `count` more bytes are done."""
        if self.reading.advance is not None:
            self.reading.advance(count)


def _deep(level: Level) -> Callable[[Records, Segment, ModuleType], list[Finding]] | None:
    """What looks into bodies, at the level that does."""
    if level is not Level.DEEP:
        return None
    from rmqtool.check.deep import inside

    return inside
