"""Messages of a queue that could not be shown, neighbours together: as many rows as runs, not as messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.scan.picked import Damaged, Missing, pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from rmqtool.broker.get_message import Delivered
    from rmqtool.store.segments import SegmentSet

    Row = dict[str, Any]

MOST_RUNS = 1000
"""rows that are kept: what comes behind them, as a queue is followed for months, the last one counts"""


@dataclass
class MissingRuns:
    """What a listing of a queue met that is no record, in the order of the queue.

    rows: of `not_covered`, each with the first message of a run and how many `messages` that has.
    """

    rows: list[Row] = field(default_factory=list)
    _goes_on: bool = False
    """whether the last message that was delivered is one of them"""

    def picked(
        self,
        segments: SegmentSet,
        some: Sequence[Delivered],
        columns: Sequence[str],
        damaged: list[Damaged] | None = None,
    ) -> list[tuple[pa.RecordBatch, list[Delivered]]]:
        """The records that are there, each batch with what was delivered for it; the others are noted."""
        parts = list(pick(segments, [one.physical_offset for one in some], columns, damaged=damaged))
        missing = {part.physical_offset: part for part in parts if isinstance(part, Missing)}
        for one in some:
            lost = missing.get(one.physical_offset)
            if lost is not None:
                self._add(one, lost.row())
            self._goes_on = lost is not None
        there = [one for one in some if one.physical_offset not in missing]
        return [(part, there) for part in parts if not isinstance(part, Missing)]

    def _add(self, one: Delivered, row: Row) -> None:
        same = self._goes_on and self.rows[-1]["reason"] == row["reason"]
        if same or len(self.rows) >= MOST_RUNS:
            self.rows[-1]["messages"] += one.messages
        else:
            self.rows.append(row | {"queue_offset": one.queue_offset, "messages": one.messages})
