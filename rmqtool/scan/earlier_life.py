"""Whether records behind a place are left of an earlier life of a segment, which was cut and written on.

Truncation never clears bytes (`MappedFileQueue#truncateDirtyFiles`), so older records lie behind the end of
the log. Records behind a damaged one look like that where one store time is false. What tells them apart: the
cut ended inside of an old record, so that no header of a record of this place stands there; and several
records are newer than several others.
"""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING, NamedTuple

from formats.commitlog import HEADERS
from formats.primitives import sizeof
from rmqtool.scan.fields import OFF_PHYSICAL_OFFSET

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAD = OFF_PHYSICAL_OFFSET + 8
"""bytes of a header that `begins_record` looks at"""
FRONT, BEHIND = 3, 8
"""records nearest to the place that are asked on either side"""
SMALLEST = sizeof(HEADERS[False, False]) + 3


class Times(NamedTuple):
    """Store and born timestamp (ms) of a record; born is None where only a time is known."""

    store: int
    born: int | None


def begins_record(head: bytes, place: int, length: int) -> bool:
    """Whether a damaged record begins with `head`, `HEAD` bytes of the log at physical offset `place`.

    It states that place, or the size with which it ends where the next record begins, `length` bytes on.
    """
    if len(head) < HEAD or length < SMALLEST:
        return False
    stated = int.from_bytes(head[OFF_PHYSICAL_OFFSET:], "big", signed=True)
    return stated == place > 0 or int.from_bytes(head[:4], "big", signed=True) == length


def is_left_over(front: Sequence[Times], behind: Sequence[Times], length: int) -> bool:
    """Whether `behind` is older than `front`, `length` bytes in front of it; each of them may lie.

    One record that is newer by its store time alone proves nothing where a damaged one has room: it was
    written behind the others only if it was born that much later, too.
    """
    half = len(behind) / 2
    newer = [one for one in front if sum(other.store < one.store for other in behind) > half]
    if len(newer) != 1 or length < SMALLEST:
        return bool(newer)
    (one,) = newer
    if one.born is None:
        return True
    later = one.store - median_low([other.store for other in behind])
    born = [other.born for other in behind if other.born is not None]
    return not born or 2 * (one.born - median_low(born)) >= later
