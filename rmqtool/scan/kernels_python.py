"""The plain-Python twin of `kernels`: same functions, same arguments, same rows, no compiler.

It answers where numba is missing, where `RMQTOOL_KERNELS=python` asks for it, and for inputs so small that
loading a compiler would take longer than reading them. It is written from the format, not from the kernels,
so that the parity tests hold two readings of the format against each other.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from formats.commitlog import BLANK_MAGIC_CODE, END_FILE_MIN_BLANK_LENGTH
from formats.commitlog import MESSAGE_MAGIC_CODE as MAGIC_V1
from formats.commitlog import MESSAGE_MAGIC_CODE_V2 as MAGIC_V2
from rmqtool.scan import building_python as building
from rmqtool.scan import carve_python as carve
from rmqtool.scan import dispatch_python as dispatch
from rmqtool.scan import encoding_python as encoding
from rmqtool.scan import fields as f
from rmqtool.scan import hashes_python as hashes
from rmqtool.scan.columns_python import gather_fields, numbers
from rmqtool.scan.entries_python import walk_entries
from rmqtool.scan.fields import Check, CrcState, DispatchColumn, Field, Issue, Place, Status, Stop, Sum
from rmqtool.scan.record_python import ACCEPTED, Verdict, contents, frame
from rmqtool.scan.spans_python import (
    first_nonzero,
    gather,
    message_ids,
    property_spans,
    property_texts,
)
from rmqtool.scan.tally_python import tally

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]

__all__ = [
    "HAVE_ISAL",
    "building",
    "carve",
    "dispatch",
    "encoding",
    "find_record",
    "first_nonzero",
    "gather",
    "gather_fields",
    "hashes",
    "lookup",
    "message_ids",
    "numbers",
    "property_spans",
    "property_texts",
    "records_at",
    "sound_columns",
    "sound_stretches",
    "sound_without_keys",
    "span_units",
    "tally",
    "walk",
    "walk_entries",
]

HAVE_ISAL = False
lookup = span_units = None
"""what they read is mapped, and nothing is without compiled kernels"""

_MAGIC = re.compile(
    b"|".join(re.escape(struct.pack(">i", magic)) for magic in (MAGIC_V1, MAGIC_V2, BLANK_MAGIC_CODE))
)


def _checked(data: memoryview, at: int, origin: int, segment_base: int, checks: int, row: Ints) -> None:
    if row[Field.STORED_PHYSICAL_OFFSET] != segment_base + origin + at:
        row[Field.ISSUES] = Issue.OFFSET
    contents(data, origin, checks, row)


def walk(
    buf: Bytes,
    start: int,
    origin: int,
    file_size: int,
    segment_base: int,
    checks: int,
    rows: Ints,
    status: Ints,
) -> None:
    """See `kernels.walk`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    at = start
    verdict: Verdict = (Stop.ROWS_FULL, 0, 0)
    count = 0
    while count < rows.shape[0]:
        row = rows[count]
        verdict = frame(data, at, origin, file_size, row)
        if verdict[0] != ACCEPTED:
            break
        _checked(data, at, origin, segment_base, checks, row)
        at += int(row[Field.STORE_SIZE])
        count += 1
    stop = Stop.ROWS_FULL if verdict[0] == ACCEPTED else verdict[0]
    status[:5] = (count, origin + at, stop, verdict[1], verdict[2])


def _is_sound(  # noqa: PLR0913, PLR0917 - as the compiled one
    buf: Bytes,
    at: int,
    origin: int,
    place: Ints,
    checks: int,
    most: int,
    rows: Ints,
    status: Ints,
    sums: Ints,
) -> bool:
    file_size, base, limit = place.tolist()
    walk(buf, at, origin, file_size, base, checks & Check.VERIFY, rows, status)
    count, position, stop = status[: Status.STOP + 1].tolist()
    if count < len(rows) or stop != Stop.ROWS_FULL or position > limit:
        return False
    odd, even = dispatch.outline(rows, most)
    apart = abs(int(rows[0, Field.STORE_TIMESTAMP]) - int(sums[Sum.LAST_TIME]))
    if odd or not even or (sums[Sum.RECORDS] and apart > most):
        return False
    return not checks & Check.SINGLE or building.are_single(buf, origin, rows)


def _add(taken: Ints, sums: Ints) -> None:
    first, last = taken[0], taken[-1]
    if not sums[Sum.RECORDS]:
        sums[Sum.START], sums[Sum.FIRST_TIME] = first[Field.POSITION], first[Field.STORE_TIMESTAMP]
    sums[Sum.RECORDS] += len(taken)
    sums[Sum.LAST_TIME] = last[Field.STORE_TIMESTAMP]
    sums[Sum.END] = last[Field.POSITION] + last[Field.STORE_SIZE]


def sound_stretches(  # noqa: PLR0913, PLR0917 - as the compiled one
    buf: Bytes,
    start: int,
    origin: int,
    place: Ints,
    checks: int,
    most: int,
    rows: Ints,
    status: Ints,
    known: tuple[Ints, Bytes, Int32s, Ints],
    counts: Ints,
    columns: Ints,
    found: Ints,
    sums: Ints,
) -> None:
    """See `kernels.sound.sound_stretches`."""
    sums[:] = 0
    at = start
    while _is_sound(buf, at, origin, place, checks, most, rows, status, sums):
        taken = rows[: dispatch.stretch(buf, origin, rows, 0, int(place[1]), known, counts, columns)]
        if not len(taken):
            return
        hashes.keyed(buf, origin, taken, found)
        if found[2]:
            if not sums[Sum.KEYED]:
                sums[Sum.KEYED_START] = taken[found[0], Field.POSITION]
            last = taken[found[1]]
            sums[Sum.KEYED_END] = last[Field.POSITION] + last[Field.STORE_SIZE]
            sums[Sum.KEYED] += found[2]
        _add(taken, sums)
        if len(taken) < len(rows):
            return
        at = int(sums[Sum.END]) - origin


def sound_columns(  # noqa: PLR0913, PLR0917 - as the compiled one
    buf: Bytes,
    start: int,
    origin: int,
    place: Ints,
    checks: int,
    most: int,
    rows: Ints,
    status: Ints,
    known: tuple[Ints, Bytes, Int32s],
    counts: Ints,
    columns: Ints,
    keys: tuple[Int32s, Int32s],
    places: Ints,
    sums: Ints,
) -> None:
    """See `kernels.sound.sound_columns`."""
    sums[:] = 0
    at, base = start, int(place[1])
    while _is_sound(buf, at, origin, place, checks, most, rows, status, sums):
        done, filled = int(sums[Sum.RECORDS]), int(counts[2])
        taken = rows[: places.shape[1] - done]
        own = [one[sums[Sum.KEYED] :] for one in keys]
        found, count = hashes.key_hashes(buf, origin, taken, 0, *own)
        taken = taken[: dispatch.place(buf, origin, taken[:count], 0, base, known, counts, columns)]
        if not len(taken):
            return
        columns[DispatchColumn.OWNER, filled : counts[2]] += done
        owners = own[1][:found]
        owners = owners[owners < len(taken)]
        owners += done
        own[1][: len(owners)] = owners
        sums[Sum.KEYED] += len(owners)
        there = places[:, done : done + len(taken)]
        there[Place.START] = base + taken[:, Field.POSITION]
        there[Place.END] = there[Place.START] + taken[:, Field.STORE_SIZE]
        there[Place.TIME] = taken[:, Field.STORE_TIMESTAMP]
        _add(taken, sums)
        if len(taken) < len(rows):
            return
        at = int(sums[Sum.END]) - origin


def sound_without_keys(  # noqa: PLR0913, PLR0917 - as the compiled one
    buf: Bytes,
    start: int,
    origin: int,
    place: Ints,
    checks: int,
    most: int,
    bits: Bytes,
    rows: Ints,
    status: Ints,
    sums: Ints,
) -> None:
    """See `kernels.sound.sound_without_keys`."""
    sums[:] = 0
    at = start
    while _is_sound(buf, at, origin, place, checks, most, rows, status, sums):
        if hashes.first_in_sieve(buf, origin, rows, bits) < len(rows):
            return
        _add(rows, sums)
        at = int(sums[Sum.END]) - origin


def records_at(
    buf: Bytes,
    positions: Ints,
    origin: int,
    file_size: int,
    segment_base: int,
    checks: int,
    rows: Ints,
) -> int:
    """See `kernels.records_at`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    count = 0
    for at in positions[: len(rows)].tolist():
        if 0 <= at < len(data):
            row = rows[count]
            if frame(data, at, origin, file_size, row)[0] == ACCEPTED:
                _checked(data, at, origin, segment_base, checks, row)
                count += 1
    return count


def find_record(  # noqa: PLR0913, PLR0917 - as the compiled one
    buf: Bytes,
    start: int,
    origin: int,
    file_size: int,
    segment_base: int,
    shift: int,
    any_offset: int,
    rows: Ints,
    status: Ints,
) -> None:
    """See `kernels.find_record`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    row = rows[0]
    for match in _MAGIC.finditer(data, min(start + f.OFF_MAGIC, len(data))):
        at = match.start() - f.OFF_MAGIC
        stop, expected, found = frame(data, at, origin, file_size, row)
        if stop == Stop.NEED_MORE:
            status[:4] = (0, origin + at, Stop.NEED_MORE, expected)
            return
        if stop == Stop.BLANK and expected == found:
            status[:3] = (1, origin + at, Stop.BLANK)
            return
        place = segment_base + origin + at
        if stop == ACCEPTED and (any_offset or row[Field.STORED_PHYSICAL_OFFSET] == place + shift):
            contents(data, origin, Check.ALL, row)
            # a record at its own place needs no more proof than its CRC
            wrong = any_offset and row[Field.ISSUES] & (Issue.TOPIC_UTF8 | Issue.TOPIC_CHARACTERS)
            if row[Field.CRC_STATE] != CrcState.BAD and not wrong:
                status[:3] = (1, origin + at, Stop.ROWS_FULL)
                return
    end = max(start, len(data) - END_FILE_MIN_BLANK_LENGTH + 1)
    status[:3] = (0, origin + end, Stop.END)
