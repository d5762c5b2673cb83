"""The end of a log that a broker is writing: what looks bad there may only be half written."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rmqtool.scan.fields import CrcState, Field, Issue, Stop

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rmqtool.scan.events import Records

PATIENCE = 0.2
"""seconds until a bad record, unit or item at a moving end is read again"""

_HALF_WRITTEN = Issue.OFFSET | Issue.TOPIC_NUL | Issue.PROPERTIES_NUL
"""how a record may look, besides a wrong CRC, that is being copied into the file"""


class TornTailRetry:
    """Remembers how far a segment is known to be as it will stay.

    A broker copies one record after the other into the mapping, so whatever is incomplete lies at the end,
    and is complete a moment later.
    """

    def __init__(self) -> None:
        self._settled = -1

    def waited(self, records: Records | None, at: int, stop: Stop, *, whole: bool) -> bool:
        """Whether something looked bad; then time has passed, and all of it is to be read again.

        records: what was read; at: where reading stopped, and why; whole: a filler ends there properly.
        What looks the same once more is as it will stay, so this ends.
        """
        well = whole or stop in (Stop.ROWS_FULL, Stop.END, Stop.ZERO) or at < self._settled
        if well and not self._doubtful(records):
            return False
        self._settled = at + 1
        time.sleep(PATIENCE)
        return True

    def _doubtful(self, records: Records | None) -> bool:
        if records is None:
            return False
        rows = records.rows
        return bool((half_written(rows) & (rows[:, Field.POSITION] >= self._settled)).any())


def half_written(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which rows of records look as if the broker had not finished writing them; bodies must be checked."""
    bad = (rows[:, Field.CRC_STATE] == CrcState.BAD) | ((rows[:, Field.ISSUES] & int(_HALF_WRITTEN)) != 0)
    looks: npt.NDArray[np.bool_] = bad | (rows[:, Field.STORE_TIMESTAMP] <= 0)
    return looks
