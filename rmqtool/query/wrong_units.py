"""Units of a query that lead to no message of their queue: to those of others, or behind the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formats.properties import INNER_MULTI_DISPATCH
from rmqtool.scan.units import UNIT
from rmqtool.store.coverage import Incomplete
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqtool.query.queue_view import QueueView

Row = dict[str, Any]

QUEUE_COLUMNS = ("path", "position", "physical_offset", "topic", "queue_id", "properties")
_MOST = 4096
"""units that are looked at; one pull looks at fewer"""


def misdirected(view: QueueView, batch: pa.RecordBatch) -> list[Row]:
    """No row of `not_covered`, or the one for records of a pull that are messages of another queue.

    Those that say which further queues they feed (`INNER_MULTI_DISPATCH`) are left alone.
    """
    import pyarrow.compute as pc

    topic, queue_id = view.name
    other = pc.or_(
        pc.fill_null(pc.not_equal(batch["topic"], topic), True), pc.not_equal(batch["queue_id"], queue_id)
    )
    feeds = pc.map_lookup(batch["properties"], INNER_MULTI_DISPATCH, "last").is_valid()
    found = batch.filter(pc.and_not(other, feeds))
    if not found.num_rows:
        return []
    first = found.select([one for one in QUEUE_COLUMNS if one != "properties"]).slice(0, 1).to_pylist()[0]
    entries = "1 unit" if found.num_rows == 1 else f"{found.num_rows} units"
    error = (
        f"{entries} of {escape_name(topic)}/{queue_id} lead to messages of other queues, the first to one of "
        f"{escape_name(first['topic'] or '?')}/{first['queue_id']}"
    )
    place = {name: first[name] for name in ("path", "position", "physical_offset")}
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
