"""Records that cannot stay where they say they were."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.events import Records

    Ints = npt.NDArray[np.int64]


class Why(IntEnum):
    """Why a record does not lie at its stored physical offset. `WORDS` has the words of reports."""

    STAYS = 0
    DUPLICATE = 1
    CONFLICT = 2
    """another record lies there, and the evidence speaks for that one"""
    QUEUE = 3
    """its queue offset is behind that of an earlier record of its queue, or taken"""
    HOLE = 4
    """the queue offsets in front of it are missing, and the log has no room for placeholders there"""
    NARROW = 5
    """a gap next to it is too small to be bridged"""
    BORDER = 6
    """it would reach over the end of a segment"""
    FAR = 7
    """it lies too far from all others to be bridged"""
    HEADERS = 8
    """headers of a DLedger log lay between the records"""


WORDS = {
    Why.DUPLICATE: "duplicate",
    Why.CONFLICT: "offset-taken",
    Why.QUEUE: "queue-offset-taken",
    Why.HOLE: "queue-hole",
    Why.NARROW: "narrow-gap",
    Why.BORDER: "segment-border",
    Why.FAR: "far-away",
    Why.HEADERS: "dledger",
}


class Moved(IntEnum):
    """Columns of int64, a row a record.

    OFFSET, QUEUE_OFFSET: as stored. PARTITION: -1 for one without a unit. HOST: number of its run's.
    """

    SOURCE = 0
    POSITION = 1
    SIZE = 2
    OFFSET = 3
    QUEUE_OFFSET = 4
    PARTITION = 5
    TIME = 6
    WHY = 7
    HOST = 8


def none_moved() -> Ints:
    """No rows."""
    return np.empty((0, len(Moved)), np.int64)


def moved_rows(batch: Records, source: int, partitions: Ints, host: int, why: Ints) -> Ints:
    """Rows of `Moved` for a whole batch; partitions and `why` by row."""
    rows = batch.rows
    reported = np.empty((len(rows), len(Moved)), np.int64)
    reported[:, Moved.SOURCE] = source
    reported[:, Moved.POSITION] = rows[:, Field.POSITION]
    reported[:, Moved.SIZE] = rows[:, Field.STORE_SIZE]
    reported[:, Moved.OFFSET] = rows[:, Field.STORED_PHYSICAL_OFFSET]
    reported[:, Moved.QUEUE_OFFSET] = rows[:, Field.QUEUE_OFFSET]
    reported[:, Moved.PARTITION] = partitions
    reported[:, Moved.TIME] = rows[:, Field.STORE_TIMESTAMP]
    reported[:, Moved.WHY] = why
    reported[:, Moved.HOST] = host
    return reported
