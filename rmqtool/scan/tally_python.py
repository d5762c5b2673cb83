"""The plain-Python twin of `kernels.tally`: same functions, same arguments, same answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.commitlog import SysFlag
from rmqtool.scan.fields import CrcState, Field, TopicSum

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


def tally(
    rows: Ints, partitions: Ints, topics: Ints, grid: Ints, drawn: Ints, sums: Ints, seconds: Ints
) -> tuple[int, int]:
    """See `kernels.tally.tally`."""
    width, behind = grid.tolist()
    front = int(rows[0, Field.POSITION]) // width if len(rows) else 0
    by_second: list[list[int]] = []
    for row, topic in zip(rows.tolist(), topics[partitions].tolist(), strict=True):
        size, time, start = row[Field.STORE_SIZE], row[Field.STORE_TIMESTAMP], row[Field.POSITION]
        own = sums[topic]
        first = not own[TopicSum.MESSAGES]
        own[TopicSum.MESSAGES :] = (
            own[TopicSum.MESSAGES] + 1,
            own[TopicSum.BYTES] + size,
            own[TopicSum.BODY_BYTES] + max(row[Field.BODY_LENGTH], 0),
            own[TopicSum.COMPRESSED] + bool(row[Field.SYS_FLAG] & SysFlag.COMPRESSED),
            size if first else max(own[TopicSum.LARGEST], size),
            time if first else min(own[TopicSum.FIRST_TIMESTAMP], time),
            time if first else max(own[TopicSum.LAST_TIMESTAMP], time),
        )
        if not by_second or by_second[-1][0] != time // 1000:
            by_second.append([time // 1000, 0, 0])
        by_second[-1][1] += 1
        by_second[-1][2] += size
        column = 0 if row[Field.CRC_STATE] == CrcState.BAD else topic + 1
        end = min(start + size, behind)
        for cell in range(start // width, -(-end // width)):
            low, high = max(start, cell * width), min(end, (cell + 1) * width)
            drawn[cell - front, column] += max(high - low, 0)
    for at, found in enumerate(by_second):
        seconds[at] = found
    return len(by_second), int(rows[:, Field.STORE_SIZE].argmax()) if len(rows) else 0
