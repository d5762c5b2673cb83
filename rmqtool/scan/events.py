"""What a scan yields, in physical order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rmqtool.scan.fields import Stop
    from rmqtool.store.doubts import Doubt


class TailContent(StrEnum):
    """What lies behind the last record of the active segment."""

    ZERO = "zero"
    """preallocated and never written, the ordinary case"""
    STALE = "stale"
    """records of an earlier life: truncation moves positions and never clears
    (`MappedFileQueue#truncateDirtyFiles`)"""
    GARBAGE = "garbage"


@dataclass(frozen=True, slots=True)
class Records:
    """A run of records: int64 rows (`fields.Field`) and the window that holds their bytes.

    The rows are overwritten when the scan goes on: take what you need before the next event.
    """

    rows: npt.NDArray[np.int64]
    window: npt.NDArray[np.uint8]
    origin: int
    """position in the segment of the window's first byte"""


@dataclass(frozen=True, slots=True)
class Blank:
    """End-of-file filler. `stored_length` is what its header says; the broker trusts the magic only."""

    position: int
    length: int
    stored_length: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that are not a record, with live data behind them or where data must be.

    stale: what follows is left of an earlier life of the file; said where `SegmentScan` is asked to tell.
    """

    position: int
    length: int
    reason: Stop
    expected: int
    found: int
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Tail:
    """The rest of the active segment. `records`: whole records in it, for stale content."""

    position: int
    length: int
    content: TailContent
    records: int
    reason: Stop
    expected: int
    found: int


@dataclass(frozen=True, slots=True)
class End:
    """Always the last event of a segment: where valid data ends and why reading stopped there."""

    position: int
    reason: Stop
    expected: int
    found: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Bytes that the medium did not give. What is left of records around them are gaps: `TORN`."""

    position: int
    length: int
    reason: str


@dataclass(frozen=True, slots=True)
class Doubtful:
    """Records reported before, from the first to behind the last, that are not what was written there."""

    position: int
    length: int
    records: int
    cause: Doubt


Event = Records | Blank | Gap | Tail | Unreadable | End
