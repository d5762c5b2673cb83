"""The end of a log: the last messages, and those that a broker adds while somebody watches.

Nothing is read that is not near the end: chunk by chunk backwards, each read forward from the first record
that begins in it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.errors import RmqtoolError, VanishedError
from rmqtool.query.lost_end import lost_end
from rmqtool.query.not_read import not_read
from rmqtool.query.select import Selector
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Blank, Records, Unreadable
from rmqtool.scan.fields import Field
from rmqtool.scan.follower import LogFollower
from rmqtool.scan.log_end import end_of_records
from rmqtool.scan.opened import behind
from rmqtool.scan.parts import cut
from rmqtool.scan.picked import Damaged, damage_of
from rmqtool.scan.table import to_batch
from rmqtool.store.access import Access
from rmqtool.store.coverage import Incomplete, coverage, rest_of_log
from rmqtool.store.holes import hole_before
from rmqtool.store.live import is_live

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.scan.events import Event
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment, SegmentSet

Row = dict[str, Any]

FIRST_CHUNK = 1 << 18
"""bytes in front of the end of a segment that are searched first"""
_LARGEST_CHUNK = 1 << 26
POLL_SECONDS = 0.2
_SIZE = 4
"""bytes of the size that a record begins with"""


@dataclass
class LogTail:
    """The last `count` messages that pass `wanted`, and with `follow` those that come.

    unread: what of the log cannot be opened, as rows of `store.coverage`. access: how segments are opened.
    messages: how many were given. at: physical offset up to which the log was read. damage: ranges between
    the messages that are not records. torn: the same at the end of the log, where a broker may be writing:
    what looks bad there is read again first, and while following every time.
    """

    store: Store
    wanted: MessageFilter
    count: int
    follow: bool = False
    unread: Sequence[Row] = ()
    first_chunk: int = FIRST_CHUNK
    messages: int = 0
    first_offset: int | None = None
    access: Access = field(default_factory=lambda: Access("pread"))
    at: int = 0
    interrupted: bool = False
    damage: list[Row] = field(default_factory=list)
    torn: list[Row] = field(default_factory=list)
    _scanned: int = 0
    _cut_short: list[Row] = field(default_factory=list)
    _gone: list[Row] = field(default_factory=list)

    @cached_property
    def log(self) -> LogFollower:
        """The log as it was listed last."""
        return LogFollower(self.store, live=self.follow or is_live(self.store), access=self.access)

    @property
    def segments(self) -> SegmentSet:
        """As they were listed last."""
        return self.log.segments

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch | None]:
        """Batches of the record table, oldest first; None when everything there is has been given."""
        self._gone = lost_end(self.store, self.wanted)
        if not len(self.segments) and not self.follow:
            return
        self.at = self._start()
        if self.at > self.segments.first_offset:
            low = list(self.segments)
            self._cut_short = rest_of_log(low, self.segments.first_offset, Incomplete.LIMIT, end=self.at)
        while True:
            for batch in self._forward(columns):
                left = None if self.wanted.limit is None else self.wanted.limit - self.messages
                some = batch if left is None else batch.slice(0, left)
                self._count(some)
                yield some
                if left is not None and left <= batch.num_rows:
                    self._stop_at_limit(some)
                    return
            yield None
            if not self.follow:
                return
            time.sleep(POLL_SECONDS)
            self.log.look()

    def summary(self) -> Row:
        """The closing summary."""
        reported: Row = {
            "messages": self.messages,
            "first_offset": self.first_offset,
            "end_offset": self.at,
            "followed": self.follow,
        }
        return reported | coverage(self.not_covered())

    def not_covered(self) -> list[Row]:
        """What lies before the messages, what between or behind them is damaged, and what came later."""
        rows = [*self.unread, *self._cut_short, *self.damage, *self.torn, *self._gone]
        if self.interrupted:
            rows.append({"path": "commitlog", "physical_offset": self.at, "reason": Incomplete.INTERRUPTED})
        return rows

    def _count(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows and self.first_offset is None:
            self.first_offset = batch["physical_offset"][0].as_py()
        self.messages += batch.num_rows

    def _stop_at_limit(self, last: pa.RecordBatch) -> None:
        if last.num_rows:
            self.at = last["physical_offset"][-1].as_py() + last["store_size"][-1].as_py()
        self._cut_short += rest_of_log(list(self.segments), self.at, Incomplete.LIMIT)

    # backwards

    def _start(self) -> int:
        """Where the last `count` messages begin."""
        last = self.segments.last_with_data()
        if last is None:
            return max(self.segments.first_offset, 0)
        found: list[np.ndarray] = []
        here = [one for one in self.segments if one.base <= last.base]
        for segment in reversed(here):
            end = self.log.end(segment)
            if not self.count:
                return segment.base + end_of_records(segment)
            for offsets in self._backwards(segment, end):
                found.insert(0, offsets)
                total = sum(map(len, found))
                if total >= self.count:
                    return int(found[0][total - self.count])
        return self.segments.first_offset

    def _backwards(self, segment: Segment, end: int) -> Iterator[np.ndarray]:
        """Physical offsets of the messages that pass, chunk by chunk, the last first."""
        frontier, step = end, self.first_chunk
        while frontier > 0:
            low = max(frontier - step, 0)
            place = low
            offsets: list[np.ndarray] = []
            for event in self._scan(segment, low, end):
                if not isinstance(event, Records):
                    continue
                if not offsets:
                    place = int(event.rows[0, Field.POSITION])
                offsets.append(self._passing(event, segment, frontier))
                if int(event.rows[-1, Field.POSITION]) >= frontier:
                    break
            yield np.concatenate([np.empty(0, np.int64), *offsets])
            # a record that reaches over `low` begins in the next chunk
            frontier, step = min(place, frontier) if low else 0, min(step * 4, _LARGEST_CHUNK)
            if not offsets:
                frontier = self._in_front_of_hole(segment, frontier)

    def _in_front_of_hole(self, segment: Segment, frontier: int) -> int:
        """A place up to `frontier` behind which no record begins, by the holes of the file.

        The zeros that a record may begin with are the first bytes of its size.
        """
        try:
            with segment.open("pread") as source:
                start = hole_before(source, min(frontier + _SIZE, source.size))
        except RmqtoolError:
            return frontier
        return min(start, frontier)

    def _passing(self, records: Records, segment: Segment, frontier: int) -> np.ndarray:
        rows = records.rows[records.rows[:, Field.POSITION] < frontier]
        kept = [
            self._choose(some, segment).rows[:, Field.POSITION] + segment.base
            for some in cut(Records(rows, records.window, records.origin))
        ]
        return np.concatenate([np.empty(0, np.int64), *kept])

    # forward

    def _forward(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """What lies between `at` and the end; `at` moves along."""
        wanted = tuple(dict.fromkeys((*columns, "physical_offset", "store_size")))
        while True:
            segment = self.log.next_segment(self.at)
            if segment is None:
                return
            if segment.base > self.at:
                self._lost(segment)
            end = self.log.end(segment)
            yield from self._of_segment(segment, end, wanted)
            if self.torn and self.log.live:
                self._look_again(segment, end)
            if self.segments.is_active(segment) and self.at < segment.end:
                return
            self.at = max(self.at, segment.end)

    def _lost(self, following: Segment) -> None:
        row = {"path": "commitlog", "physical_offset": self.at, "length": following.base - self.at}
        self.damage.append({**row, "reason": Incomplete.DAMAGE})
        self.at = following.base

    def _of_segment(self, segment: Segment, end: int, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        held: list[Row] = []
        self.torn = []
        for event in self._scan(segment, self.at - segment.base, end):
            if isinstance(event, Records):
                self.damage += held
                held = []
                for some in cut(event):
                    chosen = self._choose(some, segment)
                    self.damage += _damaged(chosen, segment)
                    yield self._batch(chosen, segment, columns)
                    self.at = segment.base + behind(some)
            elif isinstance(event, Blank):
                self.at = segment.end
            else:
                held += not_read(segment, event)
        if self.segments.is_active(segment):
            self.torn = held
        else:
            self.damage += held

    def _look_again(self, segment: Segment, end: int) -> None:
        """A record that was being written reached over the end of what was there, and may be whole by now.

        It came after the look and is not listed; what follows it is not looked at.
        """
        now = self.log.end(segment)
        if _expired(segment):
            self.torn = []
        elif now > end:
            first = next(self._scan(segment, self.at - segment.base, now), None)
            self.torn = [] if isinstance(first, Records | Blank) else self.torn

    def _batch(self, records: Records, segment: Segment, columns: tuple[str, ...]) -> pa.RecordBatch:
        path = segment.file.display_path
        return to_batch(records, base=segment.base, path=path, kernels=self._kernels(), columns=columns)

    def _choose(self, records: Records, segment: Segment) -> Records:
        selector = Selector(self.wanted, self._kernels())
        return selector.choose(records, segment.base, segment.file.display_path)

    def _scan(self, segment: Segment, start: int, end: int) -> Iterator[Event]:
        """Events from a position on, as if the file ended at `end`."""
        self._scanned += max(end - start, 0)  # there may be no record in it
        try:
            yield from self.log.events(segment, start, end, kernels=self._kernels())
        except RmqtoolError as error:
            yield Unreadable(start, max(end - start, 0), str(error))

    def _kernels(self) -> Any:
        """The compiled ones, which take a while to load, only for who reads much."""
        return choose_kernels(self._scanned)


def _expired(segment: Segment) -> bool:
    """Whether the file has gone since it was listed."""
    try:
        segment.open("pread").close()
    except VanishedError:
        return True
    except RmqtoolError:
        pass
    return False


def _damaged(records: Records, segment: Segment) -> list[Row]:
    """Rows for records that are listed with a body that fails its CRC, or torn."""
    found = ((row, damage_of(row)) for row in records.rows)
    places = ((int(row[Field.POSITION]), int(row[Field.STORE_SIZE]), torn) for row, torn in found)
    return [
        Damaged(segment.file.display_path, start, segment.base + start, size, torn).row()
        for start, size, torn in places
        if torn is not None
    ]
