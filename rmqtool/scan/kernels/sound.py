"""Records with nothing to tell, checked and summed up block by block while their bytes are in a cache."""

from __future__ import annotations

from rmqtool.scan.fields import DispatchColumn, Place, Sum
from rmqtool.scan.kernels.building import are_single
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    CHECK_SINGLE,
    CHECK_VERIFY,
    POSITION,
    ROWS_FULL,
    STORE_SIZE,
    STORE_TIMESTAMP,
)
from rmqtool.scan.kernels.dispatch import outline, stretch
from rmqtool.scan.kernels.dispatch import place as put_columns
from rmqtool.scan.kernels.hashes import first_in_sieve, key_hashes, keyed
from rmqtool.scan.kernels.walk import walk

RECORDS = int(Sum.RECORDS)
START = int(Sum.START)
END = int(Sum.END)
FIRST_TIME = int(Sum.FIRST_TIME)
LAST_TIME = int(Sum.LAST_TIME)
KEYED = int(Sum.KEYED)
KEYED_START = int(Sum.KEYED_START)
KEYED_END = int(Sum.KEYED_END)
OWNER = int(DispatchColumn.OWNER)
PLACE_START = int(Place.START)
PLACE_END = int(Place.END)
PLACE_TIME = int(Place.TIME)


@kernel()
def _is_sound(buf, at, origin, place, checks, most, rows, status, sums):
    """Are as many records as `rows` has, from window position `at` on, without anything to tell?

    place: file size, physical offset of the segment's first byte, position behind which no record is taken.
    A store timestamp that is not as it should be (`outline`, with `most`) is something to tell.
    """
    walk(buf, at, origin, place[0], place[1], checks & CHECK_VERIFY, rows, status)
    if status[0] < rows.shape[0] or status[2] != ROWS_FULL or status[1] > place[2]:
        return False
    odd, even = outline(rows, most)
    apart = rows[0, STORE_TIMESTAMP] - sums[LAST_TIME]
    if odd != 0 or not even or (sums[RECORDS] != 0 and not -most <= apart <= most):
        return False
    return checks & CHECK_SINGLE == 0 or are_single(buf, origin, rows)


@kernel()
def _add(rows, count, sums):
    """The first `count` records are taken."""
    if sums[RECORDS] == 0:
        sums[START] = rows[0, POSITION]
        sums[FIRST_TIME] = rows[0, STORE_TIMESTAMP]
    sums[RECORDS] += count
    sums[LAST_TIME] = rows[count - 1, STORE_TIMESTAMP]
    sums[END] = rows[count - 1, POSITION] + rows[count - 1, STORE_SIZE]


@kernel()
def sound_stretches(
    buf, start, origin, place, checks, most, rows, status, known, counts, columns, found, sums
):
    """As many whole blocks of records from window position `start` on as have nothing to tell (`_is_sound`).

    A block is as many records as `rows` has. known, counts, columns: of `stretch`, which ends what is taken,
    too, where one of them has no more room. found: room for `keyed`. `sums`: `fields.Sum`.
    """
    sums[:] = 0
    at = start
    while _is_sound(buf, at, origin, place, checks, most, rows, status, sums):
        count = stretch(buf, origin, rows, 0, place[1], known, counts, columns)
        if count == 0:
            return
        taken = rows[:count]
        keyed(buf, origin, taken, found)
        if found[2]:
            if sums[KEYED] == 0:
                sums[KEYED_START] = taken[found[0], POSITION]
            sums[KEYED_END] = taken[found[1], POSITION] + taken[found[1], STORE_SIZE]
            sums[KEYED] += found[2]
        _add(rows, count, sums)
        if count < rows.shape[0]:
            return
        at = sums[END] - origin


@kernel()
def sound_columns(
    buf, start, origin, place, checks, most, rows, status, known, counts, columns, keys, places, sums
):
    """As `sound_stretches`, with a column (`dispatch.place`) for every record that wants a unit.

    keys: hashes and owners of `key_hashes`, and `sums[KEYED]` how many. places: of every record
    (`fields.Place`). Owners count the records of this call. It ends, too, where one of these is full.
    """
    hashes, owners = keys
    sums[:] = 0
    at = start
    while _is_sound(buf, at, origin, place, checks, most, rows, status, sums):
        done = sums[RECORDS]
        first = sums[KEYED]
        filled = counts[2]
        count = min(rows.shape[0], places.shape[1] - done)
        found, count = key_hashes(buf, origin, rows[:count], 0, hashes[first:], owners[first:])
        count = put_columns(buf, origin, rows[:count], 0, place[1], known, counts, columns)
        if count == 0:
            return
        for k in range(filled, counts[2]):
            columns[OWNER, k] += done
        for k in range(first, first + found):
            if owners[k] >= count:  # of a record for which the columns have no room
                break
            owners[k] += done
            sums[KEYED] += 1
        for r in range(count):
            places[PLACE_START, done + r] = place[1] + rows[r, POSITION]
            places[PLACE_END, done + r] = place[1] + rows[r, POSITION] + rows[r, STORE_SIZE]
            places[PLACE_TIME, done + r] = rows[r, STORE_TIMESTAMP]
        _add(rows, count, sums)
        if count < rows.shape[0]:
            return
        at = sums[END] - origin


@kernel()
def sound_without_keys(buf, start, origin, place, checks, most, bits, rows, status, sums):
    """As `sound_stretches`, up to the block of a record that may have a key of a sieve (`first_in_sieve`)."""
    sums[:] = 0
    at = start
    while _is_sound(buf, at, origin, place, checks, most, rows, status, sums):
        count = first_in_sieve(buf, origin, rows, bits)
        if count < rows.shape[0]:
            return
        _add(rows, count, sums)
        at = sums[END] - origin
