"""Records behind a filler in the middle of a file: recovery and dispatching both go on with the next file.

A filler covers the rest of its file and says so; where it does not, something else stood there before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, CrcState, Field
from rmqtool.scan.segment import SegmentScan

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.recovery.mapped import MappedFile
    from rmqtool.recovery.reading import Reading


@dataclass(frozen=True, slots=True)
class PassedOver:
    """path, position: the filler. messages, bytes: intact records behind it in the file."""

    path: str
    position: int
    messages: int
    bytes: int


def behind_filler(
    one: MappedFile, position: int, size: int, reading: Reading, see: Callable[[Records, int], object]
) -> PassedOver | None:
    """What a filler at `position` hides, None for one that covers the rest as it should.

    size: bytes of the file. see: told the runs that are hidden.
    """
    if one.file is None:
        return None
    messages = length = 0
    try:
        with reading.open(one.file) as source:
            stated = int.from_bytes(source.window(position, 4).tobytes(), "big", signed=True)
            if stated == size - position:
                return None
            scan = SegmentScan(
                source, one.base, checks=Check.ALL, active=False, start=position + 8, kernels=reading.kernels
            )
            for event in scan:
                if isinstance(event, Records):
                    rows = event.rows
                    own = rows[:, Field.STORED_PHYSICAL_OFFSET] == rows[:, Field.POSITION] + one.base
                    run = Records(
                        rows[own & (rows[:, Field.CRC_STATE] != CrcState.BAD)], event.window, event.origin
                    )
                    messages += len(run.rows)
                    length += int(run.rows[:, Field.STORE_SIZE].sum())
                    see(run, one.base)
    except RmqtoolError:
        return None
    return PassedOver(one.path, position, messages, length) if messages else None
