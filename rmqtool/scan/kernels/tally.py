"""What a run of records adds up to: bytes by cell of its segment, sums by topic, and by second."""

from __future__ import annotations

from formats.commitlog import SysFlag
from rmqtool.scan.fields import TopicSum
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    BODY_LENGTH,
    CRC_BAD,
    CRC_STATE,
    POSITION,
    STORE_SIZE,
    STORE_TIMESTAMP,
    SYS_FLAG,
)

MESSAGES = int(TopicSum.MESSAGES)
BYTES = int(TopicSum.BYTES)
BODY_BYTES = int(TopicSum.BODY_BYTES)
COMPRESSED_ONES = int(TopicSum.COMPRESSED)
LARGEST = int(TopicSum.LARGEST)
FIRST_TIME = int(TopicSum.FIRST_TIMESTAMP)
LAST_TIME = int(TopicSum.LAST_TIMESTAMP)
COMPRESSED = int(SysFlag.COMPRESSED)
SECOND = 1000


@kernel()
def tally(rows, partitions, topics, grid, drawn, sums, seconds):
    """How many rows of `seconds` are used, and the row of the first record of the largest size.

    partitions: of each record; topics: numbers by partition. grid: bytes of a cell, and of the segment,
    behind which nothing counts. drawn: bytes by cell, from that of the first record on, of records whose body
    fails its CRC, then by topic. sums: by topic (`fields.TopicSum`). Both hold zeros. seconds: second,
    messages, bytes of neighbouring records with the same second; room for a row a record.
    """
    width = grid[0]
    cell = 0
    bound = rows[0, POSITION] // width * width + width if rows.shape[0] else 0
    used = 0
    second_end = 0
    largest = 0
    for r in range(rows.shape[0]):
        row = rows[r]
        topic = topics[partitions[r]]
        size, time = row[STORE_SIZE], row[STORE_TIMESTAMP]
        own = sums[topic]
        if own[MESSAGES] == 0 or size > own[LARGEST]:
            own[LARGEST] = size
        if own[MESSAGES] == 0 or time < own[FIRST_TIME]:
            own[FIRST_TIME] = time
        if own[MESSAGES] == 0 or time > own[LAST_TIME]:
            own[LAST_TIME] = time
        own[MESSAGES] += 1
        own[BYTES] += size
        own[BODY_BYTES] += max(row[BODY_LENGTH], 0)
        own[COMPRESSED_ONES] += row[SYS_FLAG] & COMPRESSED
        if size > rows[largest, STORE_SIZE]:
            largest = r
        if used == 0 or time >= second_end or time < second_end - SECOND:
            seconds[used, 0] = time // SECOND
            seconds[used, 1] = seconds[used, 2] = 0
            second_end = (seconds[used, 0] + 1) * SECOND
            used += 1
        seconds[used - 1, 1] += 1
        seconds[used - 1, 2] += size
        column = 0 if row[CRC_STATE] == CRC_BAD else topic + 1
        at, end = row[POSITION], min(row[POSITION] + size, grid[1])
        while at < end:
            while at >= bound:
                cell += 1
                bound += width
            part = min(end, bound)
            drawn[cell, column] += part - at
            at = part
    return used, largest
