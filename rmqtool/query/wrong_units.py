"""Units of a query that lead to no message of their queue: to those of others, or behind the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formats.properties import INNER_MULTI_DISPATCH
from rmqtool.scan.units import UNIT
from rmqtool.store.coverage import Incomplete
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from rmqtool.query.queue_view import QueueView

Row = dict[str, Any]

QUEUE_COLUMNS = ("path", "position", "physical_offset", "topic", "queue_id", "properties")
_MOST = 4096
"""units that are looked at; one pull looks at fewer"""


def misdirected(view: QueueView, batch: pa.RecordBatch, slots: Sequence[int]) -> list[Row]:
    """No row of `not_covered`, or the one for records that are messages of another queue.

    slots: queue offset of the unit of each. Records that say which further queues they feed
    (`INNER_MULTI_DISPATCH`) are left alone.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    topic, queue_id = view.name
    other = pc.or_(
        pc.fill_null(pc.not_equal(batch["topic"], topic), True), pc.not_equal(batch["queue_id"], queue_id)
    )
    feeds = pc.map_lookup(batch["properties"], INNER_MULTI_DISPATCH, "last").is_valid()
    numbered = batch.select([one for one in QUEUE_COLUMNS if one != "properties"])
    numbered = numbered.append_column("queue_offset", pa.array(slots, pa.int64()))
    found = numbered.filter(pc.and_not(other, feeds))
    if not found.num_rows:
        return []
    first = found.slice(0, 1).to_pylist()[0]
    error = (
        f"units from queue offset {first['queue_offset']} on lead to messages of other queues "
        f"({found.num_rows} of them), the first to one of {escape_name(first['topic'] or '?')}/"
        f"{first['queue_id']}"
    )
    place = {name: first[name] for name in ("path", "position", "physical_offset", "queue_offset")}
    return [place | {"messages": found.num_rows, "reason": Incomplete.DAMAGE.value, "error": error}]


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
