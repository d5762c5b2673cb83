"""What a run of records contributes: its bytes by cell and topic, its messages by topic and by second.

Made by the thread that scanned the run, while its bytes are at hand; small enough to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from rmqtool.report.cells import TOPICS_FROM, Grid, Pieces, State
from rmqtool.scan.fields import DispatchColumn, Field, TopicSum
from rmqtool.scan.table import to_batch

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.partitions import Placed
    from rmqtool.store.segments import Segment

    Ints = npt.NDArray[np.int64]
    Topics = tuple[list[str | None], Ints, Ints]
    """names, the number of a name by partition, the partition of each record"""

_BASE = 2000
"""bytes of a shape without its columns, about"""


@dataclass(frozen=True, slots=True)
class Volume:
    """Messages and bytes by time: the number of the interval, both sums; one may come more than once."""

    at: Ints
    messages: Ints
    bytes: Ints


@dataclass(frozen=True, slots=True)
class RunShape:
    """A run of records at positions [start, end) of its segment.

    topics: names, by the numbers in `drawn` from `TOPICS_FROM` on; None for one that is not UTF-8. sums: by
    topic (`fields.TopicSum`). volume: by seconds. largest: a record, as `LogStatistics` has it.
    """

    start: int
    end: int
    records: int
    topics: list[str | None]
    drawn: Pieces
    sums: Ints
    volume: Volume
    largest: dict[str, Any]

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return _BASE + self.drawn.nbytes + 200 * len(self.topics) + 24 * len(self.volume.at)


@dataclass(frozen=True)
class Shaping:
    """How shapes are made. cells: of a segment at most."""

    kernels: Kernels
    cells: int

    def __call__(self, run: Records, segment: Segment, placed: Placed | None = None) -> RunShape:
        """Of a run of records, which is not empty. placed: records of it by queue, where that is known."""
        rows = run.rows
        names, topics, partitions = self._topics(run) if placed is None else _placed_topics(placed)
        if len(partitions) != len(rows):  # half messages, or topics that are not UTF-8
            names, topics, partitions = self._topics(run)
        start, end = int(rows[0, Field.POSITION]), int(rows[-1, Field.POSITION] + rows[-1, Field.STORE_SIZE])
        width = Grid.of(segment.size, self.cells).cell_bytes
        first = start // width
        drawn = np.zeros((-(-end // width) - first, 1 + len(names)), np.int64)
        sums, seconds = np.zeros((len(names), len(TopicSum)), np.int64), np.empty((len(rows), 3), np.int64)
        grid = np.array([width, segment.size])
        used, at = self.kernels.tally(rows, partitions, topics, grid, drawn, sums, seconds)
        cells, codes = np.nonzero(drawn)
        largest = {
            "physical_offset": segment.base + int(rows[at, Field.POSITION]),
            "store_size": int(rows[at, Field.STORE_SIZE]),
            "topic": names[topics[partitions[at]]],
        }
        return RunShape(
            start,
            end,
            len(rows),
            names,
            Pieces(
                cells + first, np.where(codes, codes + TOPICS_FROM - 1, State.BAD_CRC), drawn[cells, codes]
            ),
            sums,
            Volume(*seconds[:used].T.copy()),
            largest,
        )

    def _topics(self, run: Records) -> Topics:
        batch = to_batch(run, base=None, path="", kernels=self.kernels, columns=("topic",))
        coded = pc.dictionary_encode(batch["topic"], null_encoding="encode")
        names = coded.dictionary.to_pylist()
        return names, np.arange(len(names)), coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _placed_topics(placed: Placed) -> Topics:
    """Topics of the records that were placed; of none where stretches were."""
    if len(placed.columns) != len(DispatchColumn):
        return [], np.empty(0, np.int64), np.empty(0, np.int64)
    partitions = placed.columns[DispatchColumn.PARTITION]
    used = np.flatnonzero(np.bincount(partitions)).tolist()
    numbers: dict[str | None, int] = {}
    by_partition = np.zeros(used[-1] + 1 if used else 0, np.int64)
    for partition in used:
        by_partition[partition] = numbers.setdefault(placed.keys[partition][0], len(numbers))
    return list(numbers), by_partition, partitions
