"""What a run of records contributes: its bytes by cell and topic, its messages by topic and by second.

Made by the thread that scanned the run, while its bytes are at hand; small enough to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.query.stats.groups import Groups
from rmqtool.report.cells import TOPICS_FROM, Grid, Pieces, State, pieces, stretches
from rmqtool.scan.fields import CrcState, Field
from rmqtool.scan.table import to_batch

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.segments import Segment

    Ints = npt.NDArray[np.int64]

SECOND = 1000
_BASE = 2000
"""bytes of a shape without its columns, about"""
_FACTS = ("physical_offset", "store_size", "topic")


@dataclass(frozen=True, slots=True)
class Volume:
    """Messages and bytes by time: the number of the interval, both sums."""

    at: Ints
    messages: Ints
    bytes: Ints


@dataclass(frozen=True, slots=True)
class RunShape:
    """A run of records at positions [start, end) of its segment.

    topics: names, by the numbers in `drawn` from `TOPICS_FROM` on; None for one that is no UTF-8.
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
        summed = 0 if self.sums is None else int(self.sums.nbytes)
        return _BASE + self.drawn.nbytes + 100 * len(self.topics) + summed


@dataclass(frozen=True)
class Shaping:
    """How shapes are made. cells: of a segment at most. summed: sums by topic and second, too."""

    kernels: Kernels
    cells: int
    summed: bool = False

    def __call__(self, run: Records, segment: Segment) -> RunShape:
        """Of a run of records, which is not empty."""
        rows = run.rows
        columns = ("topic", "store_size", "body_length", "sys_flag", "store_timestamp", "physical_offset")
        batch = to_batch(
            run,
            base=segment.base,
            path=segment.file.shown,
            kernels=self.kernels,
            columns=columns if self.summed else ("topic",),
        )
        coded = pc.dictionary_encode(batch["topic"], null_encoding="encode")
        starts, sizes = rows[:, Field.POSITION].copy(), rows[:, Field.STORE_SIZE]
        codes = TOPICS_FROM + coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes[rows[:, Field.CRC_STATE] == CrcState.BAD] = State.BAD_CRC
        ends, times = starts + sizes, rows[:, Field.STORE_TIMESTAMP]
        drawn = pieces(*stretches(starts, ends, codes), Grid.of(segment.size, self.cells))
        shape = RunShape(
            int(starts[0]),
            int(ends[-1]),
            len(rows),
            int(times.min()),
            int(times.max()),
            coded.dictionary.to_pylist(),
            drawn,
        )
        return self._with_sums(shape, batch, times, sizes) if self.summed else shape

    @staticmethod
    def _with_sums(shape: RunShape, batch: pa.RecordBatch, times: Ints, sizes: Ints) -> RunShape:
        by_topic = Groups(("topic",))
        by_topic.add(batch)
        at = int(np.argmax(sizes))
        largest = {name: batch[name][at].as_py() for name in _FACTS}
        seconds, which = np.unique(times // SECOND, return_inverse=True)
        volume = Volume(
            seconds,
            np.bincount(which, minlength=len(seconds)).astype(np.int64),
            np.bincount(which, sizes, len(seconds)).astype(np.int64),
        )
        return RunShape(
            shape.start,
            shape.end,
            shape.records,
            shape.first_timestamp,
            shape.last_timestamp,
            shape.topics,
            shape.drawn,
            volume,
            by_topic.partial(),
            largest,
        )
