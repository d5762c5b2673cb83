"""Messages that a queue knows and the log no longer has, among those that a query asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formats.consumequeue import PRE_BLANK
from formats.properties import INNER_MULTI_DISPATCH
from rmqtool.scan.units import UNIT
from rmqtool.store.coverage import Incomplete

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqtool.query.queue_view import QueueView

Row = dict[str, Any]

QUEUE_COLUMNS = ("path", "position", "physical_offset", "topic", "queue_id", "properties")
_MOST = 4096
"""units that are looked at; one pull looks at fewer"""
_FILLER = np.frombuffer(PRE_BLANK, UNIT)


def misdirected(batch: pa.RecordBatch, topic: str, queue_id: int) -> list[Row]:
    """No row of `not_covered`, or the one for records of a pull that are messages of another queue.

    Those that say which further queues they feed (`INNER_MULTI_DISPATCH`) are left alone.
    """
    import pyarrow.compute as pc

    other = pc.or_(
        pc.fill_null(pc.not_equal(batch["topic"], topic), True), pc.not_equal(batch["queue_id"], queue_id)
    )
    feeds = pc.map_lookup(batch["properties"], INNER_MULTI_DISPATCH, "last").is_valid()
    found = batch.filter(pc.and_not(other, feeds))
    if not found.num_rows:
        return []
    first = (
        found.select(["path", "position", "physical_offset", "topic", "queue_id"]).slice(0, 1).to_pylist()[0]
    )
    error = f"{found.num_rows} entries of {topic}/{queue_id} lead to messages of other queues"
    place = {name: first[name] for name in ("path", "position", "physical_offset")}
    return [place | {"messages": found.num_rows, "reason": Incomplete.DAMAGE.value, "error": error}]


def lost_units(view: QueueView, start: int, end: int) -> list[Row]:
    """No row of `not_covered`, or the one for messages at queue offsets [start, end) of one queue file.

    As the file lies on the disk: a broker that starts cuts from it what leads behind the end of the log.
    Messages that have expired are not lost.
    """
    if view.batch:
        return []
    at = start * UNIT.itemsize
    for file in view.queue.files:
        base = file.base_offset or 0
        if not base <= at < base + file.size:
            continue
        with file.open("pread") as source:
            length = min(end - start, _MOST) * UNIT.itemsize
            raw = source.window(at - base, length)
            units = raw[: len(raw) // UNIT.itemsize * UNIT.itemsize].view(UNIT).copy()
        lost = [
            (start + number, int(unit["physical_offset"]))
            for number, unit in enumerate(units)
            if unit != _FILLER[0] and unit["size"] > 0 and _is_lost(view, unit)
        ]
        if lost:
            error = f"the message at queue offset {lost[0][0]} lay at {lost[0][1]}, where the log has none"
            place = {"path": file.shown, "queue_offset": lost[0][0], "messages": len(lost)}
            return [place | {"reason": Incomplete.DAMAGE.value, "error": error}]
    return []


def _is_lost(view: QueueView, unit: np.void) -> bool:
    offset, size = int(unit["physical_offset"]), int(unit["size"])
    return offset >= view.log.low and not view.log.holds(offset, size)
