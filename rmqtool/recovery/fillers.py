"""Whether a filler is one: a record may lie under its header, and live records behind it.

A filler covers the rest of its file. Behind a true one lie zeros, or what an earlier life of the file left
there: records that are older than those in front of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, CrcState, Field
from rmqtool.scan.opened import scanned

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.bytes import ByteSource

FILLER = 8
"""bytes of a filler's size and magic"""


def covers_rest(source: ByteSource, position: int, size: int) -> bool:
    """Whether what a filler states as its length goes to the end of the file, which has `size` bytes."""
    return int.from_bytes(source.window(position, 4).tobytes(), "big", signed=True) == size - position


def latest_before(one: MappedFile, position: int, reading: ReadOptions) -> int | None:
    """Youngest store time (ms) of a record in front of `position`, None without any."""
    latest: int | None = None
    if one.file is None:
        return None
    with scanned(one.file, one.base, reading, checks=Check.FRAME) as (_, scan):
        for event in scan:
            reading.done(0)
            if not isinstance(event, Records):
                continue
            times = event.rows[event.rows[:, Field.POSITION] < position, Field.STORE_TIMESTAMP]
            if not len(times):
                break
            latest = max(int(times.max()), int(times.max()) if latest is None else latest)
    return latest


def live(run: Records, base: int, since: int | None) -> npt.NDArray[np.bool_]:
    """Which records are intact, lie where they say, and are not older than `since`."""
    rows = run.rows
    found: npt.NDArray[np.bool_] = rows[:, Field.STORED_PHYSICAL_OFFSET] == rows[:, Field.POSITION] + base
    found &= rows[:, Field.CRC_STATE] != CrcState.BAD
    return found if since is None else found & (rows[:, Field.STORE_TIMESTAMP] >= since)
