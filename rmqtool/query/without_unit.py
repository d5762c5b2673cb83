"""Messages of the log for which their queue has no unit although dispatching went past them.

Dispatching goes in the order of the log (`ReputMessageService#doReput`), and a queue file expires only when
the record of its last unit lies below the log (`ConsumeQueue#deleteExpiredFile`). So a record in front of
the first unit, or one behind the last unit while another queue has units further on, had a unit once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.query.behind_units import behind_units
from rmqtool.query.waiting import queue_offsets_in
from rmqtool.store.coverage import Incomplete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.queue_view import QueueView
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

    Row = dict[str, Any]


def without_first_units(store: Store, view: QueueView, reading: ReadOptions) -> Iterator[Row]:
    """No row of `not_covered`, or the one for messages in front of the first unit of a queue.

    Reads the log from its begin to the record of that unit; where nothing has expired, damage there is
    reported, too. Nothing where a queue begins with blank units, as its first file then does
    (`ConsumeQueue#fillPreBlank`).
    """
    first = next((units[0] for file in view.files[:1] if len(units := view.units(file, 0, view.width))), None)
    if first is None or not (view.batch or view.begins_at is not None):
        return
    begin = int(first["base_offset"]) if view.batch else view.files[0].base // view.width
    if not begin:
        return
    end = min(int(first["physical_offset"]), view.log.high)
    found, whole = queue_offsets_in(store, (view.log.low, end), *view.name, reading)
    lost = [int(one) for one in found if one < begin]
    yield from _row(view, lost, "in front of its first consume queue entry")
    if not lost and not whole and view.log.low == 0:
        what = (
            f"the log is damaged in front of the first consume queue entry, of queue offset {begin}; "
            "nothing expired"
        )
        yield {"path": view.path, "reason": Incomplete.DAMAGE.value, "error": what}


def without_last_units(store: Store, view: QueueView, reading: ReadOptions) -> list[Row]:
    """No row of `not_covered`, or the one for messages behind the last unit of a queue (`behind_units`)."""
    return [] if view.hidden is not None else behind_units(store, reading, [view.queue])[1]


def _row(view: QueueView, slots: list[int], where: str) -> Iterator[Row]:
    if slots:
        many = "1 message of the queue lies" if len(slots) == 1 else f"{len(slots)} messages of the queue lie"
        what = f"{many} in the log without a consume queue entry, {where}"
        place = {"path": view.path, "queue_offset": min(slots), "messages": len(slots)}
        yield place | {"reason": Incomplete.DAMAGE.value, "error": what}
