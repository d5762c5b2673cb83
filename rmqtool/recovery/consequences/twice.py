"""What follows from two starts, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.recovery.consequences.all_consequences import worst_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.recovery.consequences.consequence import Consequence

_TOTAL = "DR-MESSAGES-LOST"
"""counted over both starts by the second"""
_DONE = {
    _TOTAL,
    "DR-LOG-CUT",
    "DR-SEGMENTS-DELETED",
    "DR-LOOKAHEAD-DELETED",
    "DR-QUEUES-DESTROYED",
    "DR-EMPTY-FILE-DELETED",
    "DR-SKIPPED",
    "DR-BORDER-RECORD",
    "DR-DISPATCHED",
    "DR-LMQ-SKIPPED",
    "DR-QUEUE-CUT",
    "DR-MISPLACED",
    "DR-ASTRAY",
    "DR-SLOT-TAKEN",
    "DR-INDEX-DROPPED",
    "DR-INDEX-ITEMS-MISSING",
    "DR-INDEX-DOUBLE",
    "DR-REFUSED-LATE",
}
"""what a start does and no later one takes back; the others tell how the last start finds the store"""


def of_both(first: Sequence[Consequence], second: Sequence[Consequence]) -> tuple[Consequence, ...]:
    """All that the second start tells, and what the first has done."""
    counted = any(one.code == _TOTAL for one in second)
    done = [
        one
        for one in first
        if one.code in _DONE and one not in second and not (counted and one.code == _TOTAL)
    ]
    return worst_first((*done, *second))
