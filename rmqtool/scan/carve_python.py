"""The plain-Python twin of `kernels.carve`: same function, same arguments, no compiler."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from formats.commitlog import BLANK_MAGIC_CODE, END_FILE_MIN_BLANK_LENGTH, MESSAGE_MAGIC_CODES
from rmqtool.scan import fields as f
from rmqtool.scan.fields import Check, CrcState, Field, Issue, Stop
from rmqtool.scan.record_python import ACCEPTED, contents, frame

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]

_BLANK = struct.pack(">i", BLANK_MAGIC_CODE)
_MAGIC = re.compile(b"|".join(re.escape(struct.pack(">i", magic)) for magic in MESSAGE_MAGIC_CODES))


def carve(  # noqa: PLR0913, PLR0917 - as the compiled one
    buf: Bytes,
    start: int,
    border: int,
    origin: int,
    file_size: int,
    longest: int,
    follows: int,
    rows: Ints,
    status: Ints,
) -> None:
    """See `kernels.carve.carve`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    reach = len(data) - END_FILE_MIN_BLANK_LENGTH + 1
    at, count, stop, wanted = start, 0, Stop.END, 0
    while at < border and at < reach:
        match = _MAGIC.search(data, at + f.OFF_MAGIC)
        place = match.start() - f.OFF_MAGIC if match else reach
        if place != at:
            follows = -1
        if place >= min(reach, border):
            at, follows = min(reach, border), -1
            break
        at = place
        if count == len(rows):
            stop = Stop.ROWS_FULL
            break
        row = rows[count]
        found, need, _ = frame(data, at, origin, file_size, row)
        if found == Stop.NEED_MORE and need <= longest and not _negative(data, at):
            stop, wanted = Stop.NEED_MORE, need
            break
        if found == ACCEPTED and _valid(data, origin, row, longest, follows):
            size = int(row[Field.STORE_SIZE])
            behind = at + size
            if behind + END_FILE_MIN_BLANK_LENGTH > len(data) and (
                origin + behind + END_FILE_MIN_BLANK_LENGTH <= file_size
            ):
                stop, wanted = Stop.NEED_MORE, size + END_FILE_MIN_BLANK_LENGTH
                break
            follows = int(row[Field.STORED_PHYSICAL_OFFSET]) + size
            count += 1
            at = _overlapped(data, int(row[Field.TOPIC_POSITION]) - origin, behind)
            follows = follows if at == behind else -1
            continue
        follows = -1
        at += 1
    status[:5] = (count, origin + at, stop, wanted, follows)


def _overlapped(data: memoryview, inside: int, behind: int) -> int:
    """Where to go on behind a record: in its uncovered end, if a record may begin there and none follows."""
    magic = bytes(data[behind + f.OFF_MAGIC : behind + END_FILE_MIN_BLANK_LENGTH])
    if len(magic) < 4 or _MAGIC.match(magic) or magic == _BLANK:
        return behind
    match = _MAGIC.search(data, inside + f.OFF_MAGIC, behind + END_FILE_MIN_BLANK_LENGTH - 1)
    return match.start() - f.OFF_MAGIC if match else behind


def _negative(data: memoryview, at: int) -> bool:
    if len(data) - at < f.OFF_SYS_FLAG:
        return False
    size, offset = struct.unpack_from(">i24xq", data, at)
    return bool(offset < 0 or size <= 0)


def _valid(data: memoryview, origin: int, row: Ints, longest: int, follows: int) -> bool:
    stored = row[Field.STORED_PHYSICAL_OFFSET]
    if row[Field.STORE_SIZE] > longest or stored < 0:
        return False
    contents(data, origin, Check.ALL, row)
    odd = row[Field.ISSUES] & (Issue.TOPIC_UTF8 | Issue.TOPIC_CHARACTERS)
    torn = row[Field.ISSUES] & (Issue.TOPIC_UTF8 | Issue.TOPIC_NUL)
    proven = row[Field.CRC_STATE] == CrcState.OK and not torn
    return bool(row[Field.CRC_STATE] != CrcState.BAD and (not odd or proven or stored == follows))
