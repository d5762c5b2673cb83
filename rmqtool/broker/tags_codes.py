"""Tags codes of units: the hash of a message's tags, or the time at which a delayed one is delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.broker.queue_records import NO_CODE
from rmqtool.scan.fields import Column
from rmqtool.scan.lanes import Lanes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]

_ROOM = 1 << 14


class TagsCodes:
    """Those of the records of a run; `NO_CODE` for records that want no unit.

    levels: delays in ms by level, the broker's defaults when not given. delayed: those of delayed messages
    too.
    """

    def __init__(
        self, kernels: Kernels, levels: Mapping[int, int] | None = None, *, delayed: bool = True
    ) -> None:
        self._lanes = Lanes(kernels, _ROOM, levels)
        self._delayed = delayed

    def __call__(self, run: Records, base: int) -> Ints:
        """base: physical offset of the segment's first byte."""
        codes = np.full(len(run.rows), NO_CODE)
        placed = self._lanes.placed(run, base)
        chosen = np.ones(placed.columns.shape[1], np.bool_)
        if not self._delayed:
            delayed = [lane for lane, (topic, _) in enumerate(placed.keys) if topic == SCHEDULE_TOPIC]
            chosen = ~np.isin(placed.columns[Column.LANE], delayed)
        codes[placed.columns[Column.OWNER][chosen]] = placed.columns[Column.CODE][chosen]
        return codes
