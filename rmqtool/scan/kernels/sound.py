"""Records with nothing to tell, checked and summed up block by block while their bytes are in a cache."""

from __future__ import annotations

from rmqtool.scan.fields import Sum
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import POSITION, ROWS_FULL, STORE_SIZE, STORE_TIMESTAMP
from rmqtool.scan.kernels.dispatch import outline, stretch
from rmqtool.scan.kernels.hashes import keyed
from rmqtool.scan.kernels.walk import walk

RECORDS = int(Sum.RECORDS)
START = int(Sum.START)
END = int(Sum.END)
FIRST_TIME = int(Sum.FIRST_TIME)
LAST_TIME = int(Sum.LAST_TIME)
KEYED = int(Sum.KEYED)
KEYED_START = int(Sum.KEYED_START)
KEYED_END = int(Sum.KEYED_END)


@kernel()
def sound_stretches(
    buf, start, origin, place, checks, most, rows, status, known, counts, columns, found, sums
):
    """As many whole blocks of records from window position `start` on as have nothing to tell.

    place: file size, physical offset of the segment's first byte, position behind which no record is taken.
    A block is as many records as `rows` has; it ends what is taken where a record has something to tell, or
    a store timestamp is not as it should be (`outline`, with `most`). known, counts, columns: of `stretch`,
    which ends it, too, where one of them has no more room. found: room for `keyed`. `sums`: `fields.Sum`.
    """
    file_size, segment_base, limit = place[0], place[1], place[2]
    sums[:] = 0
    at = start
    while True:
        walk(buf, at, origin, file_size, segment_base, checks, rows, status)
        if status[0] < rows.shape[0] or status[2] != ROWS_FULL or status[1] > limit:
            return
        odd, even = outline(rows, most)
        first = rows[0, STORE_TIMESTAMP]
        if odd or not even or (sums[RECORDS] and not -most <= first - sums[LAST_TIME] <= most):
            return
        count = stretch(buf, origin, rows, 0, segment_base, known, counts, columns)
        if count == 0:
            return
        taken = rows[:count]
        keyed(buf, origin, taken, found)
        if found[2]:
            if sums[KEYED] == 0:
                sums[KEYED_START] = taken[found[0], POSITION]
            sums[KEYED_END] = taken[found[1], POSITION] + taken[found[1], STORE_SIZE]
            sums[KEYED] += found[2]
        if sums[RECORDS] == 0:
            sums[START] = rows[0, POSITION]
            sums[FIRST_TIME] = first
        sums[RECORDS] += count
        sums[LAST_TIME] = taken[count - 1, STORE_TIMESTAMP]
        sums[END] = taken[count - 1, POSITION] + taken[count - 1, STORE_SIZE]
        if count < rows.shape[0]:
            return
        at = sums[END] - origin
