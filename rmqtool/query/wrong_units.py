"""Units of a query that lead to no message of their place: to those of others, or behind the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formats.properties import INNER_MULTI_DISPATCH
from rmqtool.scan.units import UNIT
from rmqtool.store.coverage import Incomplete
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from rmqtool.broker.queue_view import QueueView

Row = dict[str, Any]

QUEUE_COLUMNS = ("path", "position", "physical_offset", "topic", "queue_id", "queue_offset", "properties")
_MOST = 4096
"""units that are looked at; one pull looks at fewer"""


def misdirected(view: QueueView, batch: pa.RecordBatch, slots: Sequence[int]) -> list[Row]:
    """Rows of `not_covered` for records that are messages of another queue, or of another queue offset.

    slots: queue offset of the unit of each. Records that say which further queues they feed
    (`INNER_MULTI_DISPATCH`) are left alone in those; a batch has one queue offset for all its messages.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    topic, queue_id = view.name
    other = pc.or_(
        pc.fill_null(pc.not_equal(batch["topic"], topic), True), pc.not_equal(batch["queue_id"], queue_id)
    )
    feeds = pc.map_lookup(batch["properties"], INNER_MULTI_DISPATCH, "last").is_valid()
    numbered = batch.append_column("slot", pa.array(slots, pa.int64()))
    rows = []
    if (found := numbered.filter(pc.and_not(other, feeds))).num_rows:
        rows.append(
            _row(found, "queues", lambda one: f"{escape_name(one['topic'] or '?')}/{one['queue_id']}")
        )
    moved = pc.and_not(pc.not_equal(numbered["queue_offset"], numbered["slot"]), other)
    if not view.batch and (found := numbered.filter(moved)).num_rows:
        rows.append(_row(found, "queue offsets", lambda one: f"queue offset {one['queue_offset']}"))
    return rows


def _row(found: pa.RecordBatch, others: str, where: Callable[[Row], str]) -> Row:
    """The row for the messages of `others` that were found in the place of those of this queue."""
    first = found.slice(0, 1).select([*QUEUE_COLUMNS, "slot"]).to_pylist()[0]
    error = (
        f"consume queue entries from queue offset {first['slot']} on lead to messages of other {others} "
        f"({found.num_rows} of them), the first to one of {where(first)}"
    )
    place = {name: first[name] for name in ("path", "position", "physical_offset")}
    lost = {"messages": found.num_rows, "reason": Incomplete.DAMAGE.value, "error": error}
    return place | {"queue_offset": first["slot"]} | lost


def cut_units(view: QueueView, start: int, end: int) -> list[Row]:
    """No row of `not_covered`, or the one for queue offsets [start, end) behind the end that a start makes.

    It cuts from the last queue file what leads behind the end of the log
    (`ConsumeQueue#truncateDirtyLogicFiles`).
    """
    start = max(start, view.max_offset)
    if view.batch or view.hidden is not None or start >= end:
        return []
    at = start * UNIT.itemsize
    for file in view.queue.files:
        base = file.base_offset or 0
        if not base <= at < base + file.size:
            continue
        with file.open("pread") as source:
            raw = source.window(at - base, min(end - start, _MOST) * UNIT.itemsize)
        units = raw[: len(raw) // UNIT.itemsize * UNIT.itemsize].view(UNIT)
        lost = np.flatnonzero((units["size"] > 0) & (units["physical_offset"] >= view.log.high))
        if len(lost):
            first = int(lost[0])
            offset = int(units["physical_offset"][first])
            error = f"the message at queue offset {start + first} lay at {offset}, where the log has none"
            place = {"path": file.shown, "queue_offset": start + first, "messages": len(lost)}
            return [place | {"reason": Incomplete.DAMAGE.value, "error": error}]
    return []
