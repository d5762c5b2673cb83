"""Units of consume queue files as NumPy sees them: their layout, their states, where they end.

A queue file is as long as it will ever be from the moment it is made, so what follows the last unit is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.consumequeue import PRE_BLANK_SIZE, BatchUnit, Unit
from formats.primitives import dtype_of
from rmqtool.store.holes import last_hole, last_in

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.store.bytes import ByteSource

UNIT = dtype_of(Unit)
BATCH_UNIT = dtype_of(BatchUnit)

CHUNK_UNITS = 1 << 16
"""units that are looked at together"""
_END_UNITS = 1 << 10
"""units that are looked at together when the end of the data is searched"""

OK, PRE_BLANK, ZERO, INVALID, DANGLING, EXPIRED = range(6)
STATES = ["ok", "pre_blank", "zero", "invalid", "dangling", "expired"]
"""`invalid`: a negative offset or no size, where `ConsumeQueue#recover` stops. `dangling`: points behind the
end of the log or between its files. `expired`: points below its first file."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """Physical offsets [low, high) that commit log files cover.

    holes: those inside of it that none covers, in order: int64, (number, 2), start and end.
    """

    low: int
    high: int
    holes: npt.NDArray[np.int64]


def valid_units(units: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which units `ConsumeQueue#recover` and `BatchConsumeQueue#recover` accept."""
    good = (units["physical_offset"] >= 0) & (units["size"] > 0)
    if units.dtype == BATCH_UNIT:
        good &= (units["base_offset"] >= 0) & (units["batch_size"] > 0)
    return np.asarray(good, np.bool_)


def pre_blanks(units: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which units a broker filled a queue up with (`ConsumeQueue#fillPreBlank`); shape of `units`."""
    return np.asarray((units["physical_offset"] == 0) & (units["size"] == PRE_BLANK_SIZE), np.bool_)


def unit_states(units: npt.NDArray[Any], log: LogRange | None) -> npt.NDArray[np.int8]:
    """State of each unit, as an index into `STATES`; without `log` nothing is dangling or expired."""
    offset, size = units["physical_offset"], units["size"]
    end = offset + size
    states = np.zeros(len(units), np.int8)
    if log is not None:
        states[(end > log.high) | (end < offset)] = DANGLING
        if len(log.holes):
            lows, highs = log.holes.T
            first = np.minimum(np.searchsorted(highs, offset, side="right"), len(highs) - 1)
            states[(offset < highs[first]) & (end > lows[first])] = DANGLING
        states[offset < log.low] = EXPIRED
    states[~valid_units(units)] = INVALID
    states[pre_blanks(units) & (units["tags_code"] == 0)] = PRE_BLANK
    states[np.logical_and.reduce([units[name] == 0 for name in units.dtype.names or ()])] = ZERO
    return states


def data_end(source: ByteSource, unit: int) -> int:
    """End of the last unit that is not all zero, searched from the end of the file; holes are not read."""
    step = _END_UNITS * unit
    at = min(last_hole(source) + unit, source.size) // unit * unit
    while at > 0:
        start = max(at - step, 0)
        data = source.next_data(start)
        window = source.window(start, at - start if data is not None and data < at else 0)
        last = last_in(window)
        if last >= 0:
            return start + (last // unit + 1) * unit
        at, step = start, min(2 * step, CHUNK_UNITS * unit)
    return 0
