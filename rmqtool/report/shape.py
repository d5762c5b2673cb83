"""What a run of records contributes: its bytes by cell and topic, its messages by topic and by second.

Made by the thread that scanned the run, while its bytes are at hand; small enough to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.commitlog import SysFlag
from rmqtool.query.stats.groups import Groups
from rmqtool.report.cells import TOPICS_FROM, Grid, Pieces, State, pieces
from rmqtool.scan.fields import CrcState, DispatchColumn, Field
from rmqtool.scan.table import to_batch

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.lanes import Placed
    from rmqtool.store.segments import Segment

    Ints = npt.NDArray[np.int64]
    Topics = tuple[list[str | None], Ints]
    """names, and for each record the number of its own"""

SECOND = 1000
_BASE = 2000
"""bytes of a shape without its columns, about"""
_LOWEST = np.iinfo(np.int64).min
_NEAR = 1 << 12
"""seconds between the first and the last message of a run that are counted without sorting"""


@dataclass(frozen=True, slots=True)
class Volume:
    """Messages and bytes by time: the number of the interval, both sums."""

    at: Ints
    messages: Ints
    bytes: Ints


@dataclass(frozen=True, slots=True)
class RunShape:
    """A run of records at positions [start, end) of its segment.

    topics: names, by the numbers in `drawn` from `TOPICS_FROM` on; None for one that is not UTF-8.
    sums, largest: as `LogStatistics.add_sums` takes them; None where nobody asked. volume: by seconds.
    """

    start: int
    end: int
    records: int
    first_timestamp: int
    last_timestamp: int
    topics: list[str | None]
    drawn: Pieces
    volume: Volume | None = None
    sums: pa.Table | None = None
    largest: dict[str, Any] | None = None

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return _BASE + self.drawn.nbytes + 200 * len(self.topics)


@dataclass(frozen=True)
class Shaping:
    """How shapes are made. cells: of a segment at most. summed: sums by topic and second, too."""

    kernels: Kernels
    cells: int
    summed: bool = False

    def __call__(self, run: Records, segment: Segment, placed: Placed | None = None) -> RunShape:
        """Of a run of records, which is not empty. placed: records of it by queue, where that is known."""
        rows = run.rows
        names, which = self._topics(run) if placed is None else _placed_topics(placed, len(rows))
        if len(which) != len(rows):  # half messages, or topics that are not UTF-8
            names, which = self._topics(run)
        starts, sizes = rows[:, Field.POSITION].copy(), rows[:, Field.STORE_SIZE]
        codes = TOPICS_FROM + which
        codes[rows[:, Field.CRC_STATE] == CrcState.BAD] = State.BAD_CRC
        ends, times = starts + sizes, rows[:, Field.STORE_TIMESTAMP]
        drawn = pieces(starts, ends, codes, Grid.of(segment.size, self.cells))
        shape = RunShape(
            int(starts[0]),
            int(ends[-1]),
            len(rows),
            int(times.min()),
            int(times.max()),
            names,
            drawn,
        )
        return _with_sums(shape, rows, which, segment.base) if self.summed else shape

    def _topics(self, run: Records) -> Topics:
        batch = to_batch(run, base=None, path="", kernels=self.kernels, columns=("topic",))
        coded = pc.dictionary_encode(batch["topic"], null_encoding="encode")
        return coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _placed_topics(placed: Placed, records: int) -> Topics:
    """Topics of all records, where each was placed; else of none."""
    columns = placed.columns
    if columns.shape != (len(DispatchColumn), records):
        return [], columns[0, :0]
    lanes = columns[DispatchColumn.LANE]
    used = np.flatnonzero(np.bincount(lanes)).tolist()
    numbers = {placed.keys[lane][0]: 0 for lane in used}
    numbers = {name: number for number, name in enumerate(numbers)}
    by_lane = np.zeros(used[-1] + 1, np.int64)
    by_lane[used] = [numbers[placed.keys[lane][0]] for lane in used]
    return list(numbers), by_lane[lanes]


def _with_sums(shape: RunShape, rows: Ints, which: Ints, base: int) -> RunShape:
    """Adds the sums, which need no batch: columns of the rows by the number of each record's topic.

    Sums of a run are below 2^53, so that floats hold them exactly.
    """
    sizes, times = rows[:, Field.STORE_SIZE].copy(), rows[:, Field.STORE_TIMESTAMP].copy()
    names = shape.topics
    count = len(names)

    def summed(values: Ints) -> Ints:
        return np.bincount(which, values, count).astype(np.int64)

    def most(values: Ints) -> Ints:
        found = np.full(count, _LOWEST)
        np.maximum.at(found, which, values)
        return found

    by_topic = Groups(("topic",)).part(
        topic=pa.array(names, pa.string()),
        messages=np.bincount(which, minlength=count).astype(np.int64),
        bytes=summed(sizes),
        body_bytes=summed(np.maximum(rows[:, Field.BODY_LENGTH], 0)),
        compressed=summed(rows[:, Field.SYS_FLAG] & int(SysFlag.COMPRESSED)),
        largest=most(sizes),
        first_timestamp=~most(~times),
        last_timestamp=most(times),
    )
    at = int(np.argmax(sizes))
    largest = {
        "physical_offset": base + int(rows[at, Field.POSITION]),
        "store_size": int(sizes[at]),
        "topic": names[int(which[at])],
    }
    return replace(shape, volume=_volume(times, sizes), sums=by_topic, largest=largest)


def _volume(times: Ints, sizes: Ints) -> Volume:
    """By seconds."""
    seconds = times // SECOND
    low, high = int(seconds.min()), int(seconds.max())
    if low == high:  # as usual
        return Volume(seconds[:1], np.array([len(seconds)]), np.array([int(sizes.sum())]))
    if high - low < _NEAR:
        at = seconds - low
        messages = np.bincount(at)
        there = np.flatnonzero(messages)
        return Volume(there + low, messages[there], np.bincount(at, sizes).astype(np.int64)[there])
    seconds, at = np.unique(seconds, return_inverse=True)
    return Volume(seconds, np.bincount(at), np.bincount(at, sizes).astype(np.int64))
