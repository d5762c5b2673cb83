"""Records behind the last units of several queues, in one pass over the log: units of a lost last file.

Dispatching goes in the order of the log, so what lies in front of the last record with a unit of any queue
had a unit once. A file that follows is begun only when the one before is full: only behind a full last file,
or where a queue that had messages has no file, all of that part of the log is searched; else its last
segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from glob import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.primitives import sizeof
from rmqtool.broker.log_view import LogView
from rmqtool.errors import RmqtoolError
from rmqtool.query.dispatch_position import dispatch_position
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.queue_ends import SCHEMAS, file_ends
from rmqtool.query.select import Selector
from rmqtool.scan.counted import counting
from rmqtool.scan.fields import Check
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.store.coverage import Incomplete
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import numpy.typing as npt

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Queue, Store

    Ints = npt.NDArray[np.int64]
    Row = dict[str, Any]
    Key = tuple[str, int]

LAST_SEGMENTS = 3
"""segments that are searched where no further file can have been"""
_COLUMNS = ("topic", "queue_id", "queue_offset", "physical_offset", "transaction")


@dataclass(slots=True)
class BehindUnits:
    """Of one queue: records at or behind its end (`max_offset`), from the physical offset `start` on.

    messages, first: how many of them dispatching has passed, and their lowest queue offset. end: behind the
    highest of all of them. in_part: the log in front of `start` was not searched.
    """

    path: str
    max_offset: int
    start: int
    in_part: bool
    messages: int = 0
    first: int = 0
    end: int = 0

    def take(self, slots: Ints, places: Ints, reached: int) -> None:
        """Adds records of this queue by queue offset and physical offset."""
        behind = (places >= self.start) & (slots >= self.max_offset)
        self.end = max(int(slots[behind].max(initial=-1)) + 1, self.end)
        passed = slots[behind & (places < reached)]
        if len(passed):
            self.first = min(int(passed.min()), self.first if self.messages else 1 << 62)
            self.messages += len(passed)

    def row(self, reached: int) -> Row:
        """As a row of `not_covered`; reached: where the units of all queues end."""
        many = "1 message of the queue lies"
        if self.messages != 1:
            many = f"{self.messages} messages of the queue lie"
        what = (
            f"{'at least ' * self.in_part}{many} in the log without a consume queue entry, "
            f"though other queues have entries up to offset {reached} of the log"
        )
        place = {"path": self.path, "queue_offset": self.first, "messages": self.messages}
        return place | {"reason": Incomplete.DAMAGE.value, "error": what}


def behind_units(
    store: Store,
    reading: ReadOptions,
    queues: Iterable[Queue],
    had: Collection[Key] = (),
    last_segments: int = LAST_SEGMENTS,
) -> tuple[dict[Key, BehindUnits], list[Row]]:
    """Queues with records in the log behind their last units, and rows of `not_covered`.

    A row is for a queue of which dispatching has passed such records: they lost their units.
    had: queues that had messages, whatever files they have now. last_segments: 0 for none. Nothing is said
    of light queues, which count records that get no unit, nor of a store that a broker holds, where
    dispatching goes on.
    """
    if reading.live:
        return {}, []
    with LogView(store.segments) as log:
        reached, low, high = dispatch_position(store, log), log.low, log.high
    bases = [one.base for one in store.segments if one.base < reached]
    late = max(bases[-last_segments:][:1], default=0) if last_segments else high
    found: dict[Key, BehindUnits] = {}
    for queue in queues:
        if queue.topic is not None and queue.queue_id is not None:
            key = queue.topic, queue.queue_id
            try:
                found[key] = _begin(queue, max(low, 0), late, whole=key in had)
            except RmqtoolError:
                continue  # who asks for the end of the queue says so
    _search(store, found, (reached, high), reading)
    behind = {key: one for key, one in sorted(found.items()) if one.end}
    return behind, [one.row(reached) for one in behind.values() if one.messages]


def _begin(queue: Queue, low: int, late: int, *, whole: bool) -> BehindUnits:
    path = escape_name(f"{queue.kind}/{queue.topic}/{queue.queue_id}")
    start, end, may_go_on = low, 0, whole
    for file in reversed(queue.files):
        ends = file_ends(file)
        end = max(end, ends.max_offset or 0)
        if ends.last is not None:
            start = max(low, ends.last["physical_offset"] + ends.last["size"])
            may_go_on = (ends.units + 1) * sizeof(SCHEMAS[queue.kind]) > file.size
            break
    searched = start if may_go_on else max(start, late)
    return BehindUnits(path, end, searched, searched > start)


def _search(
    store: Store, queues: dict[Key, BehindUnits], until: tuple[int, int], reading: ReadOptions
) -> None:
    reached, high = until
    start = min((one.start for one in queues.values()), default=high)
    if start >= high:
        return
    topics = tuple(escape(name) for name in sorted({topic for topic, _ in queues}))
    wanted = MessageFilter(topics=topics, queues=frozenset(number for _, number in queues))
    selector = Selector(wanted, reading.kernels)
    with counting(reading, store.segments, (start, high)) as options:
        how = LogScan(_COLUMNS, selector.choose, offsets=(start, high), checks=Check.TEXT, options=options)
        for piece in scan_log(store.segments, how):
            if isinstance(piece.content, pa.RecordBatch):
                for key, slots, places in _by_queue(piece.content):
                    if key in queues:
                        queues[key].take(slots, places, reached)


def _by_queue(batch: pa.RecordBatch) -> Iterator[tuple[Key, Ints, Ints]]:
    """Queue offsets and physical offsets of the records that enter queues, by queue."""
    entering = pc.is_in(batch["transaction"].cast(pa.string()), pa.array(["none", "commit"]))
    coded = pc.dictionary_encode(batch["topic"])
    names, topics = coded.dictionary.to_pylist(), coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    numbers, slots, places = (batch[name].to_numpy() for name in _COLUMNS[1:4])
    rows = np.flatnonzero(entering.to_numpy(zero_copy_only=False) & (topics >= 0))
    rows = rows[np.lexsort((numbers[rows], topics[rows]))]
    changes = (np.diff(topics[rows]) != 0) | (np.diff(numbers[rows]) != 0)
    for some in np.split(rows, np.flatnonzero(changes) + 1) if len(rows) else ():
        yield (names[topics[some[0]]], int(numbers[some[0]])), slots[some], places[some]
