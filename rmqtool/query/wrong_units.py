"""Units of a query that lead to no message of their place: to those of others, or behind the log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET
from rmqtool.errors import VanishedError
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check
from rmqtool.scan.multi import LMQ_PREFIX, MultiDispatch, slots_in, unlisted
from rmqtool.scan.opened import behind, opened
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.units import UNIT, pre_blanks
from rmqtool.store.coverage import Incomplete
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.broker.get_message import Delivered
    from rmqtool.broker.queue_view import QueueView

    Ints = npt.NDArray[np.int64]

Row = dict[str, Any]

QUEUE_COLUMNS = ("path", "position", "physical_offset", "topic", "queue_id", "queue_offset", "properties")
_LISTS = (INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET)
_NEAR = 64 << 20
"""bytes of the log that are read for what its records say of a queue"""
_MOST = 4096
"""units that are looked at; one pull looks at fewer"""


@dataclass
class WrongUnits:
    """Finds units of one queue that lead to messages of others. Keep it as long as the queue is asked."""

    view: QueueView

    def rows(self, batch: pa.RecordBatch, slots: Sequence[int]) -> list[Row]:
        """Rows of `not_covered` for records that are messages of another queue, or of another queue offset.

        slots: queue offset of the unit of each. A record belongs to its own queue and to those that its lists
        name (`INNER_MULTI_DISPATCH`); a batch has one queue offset for all its messages.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        view = self.view
        topic, queue_id = view.name
        own = pc.and_(
            pc.fill_null(pc.equal(batch["topic"], topic), False), pc.equal(batch["queue_id"], queue_id)
        ).to_numpy(zero_copy_only=False)
        placed = (
            own & (batch["queue_offset"].to_numpy() == np.asarray(slots)) if not view.batch else own.copy()
        )
        others = np.flatnonzero(~placed)
        foreign = ~own
        if not view.batch and len(others):
            offsets = batch["physical_offset"].to_numpy()[others]
            further = _further(view, batch.take(pa.array(others)))
            for place, found, by in zip(others.tolist(), further, self._ahead(offsets).tolist(), strict=True):
                placed[place] = slots[place] + by in found
                foreign[place] &= not found
        numbered = batch.append_column("slot", pa.array(slots, pa.int64()))
        rows = []
        if (wrong := numbered.filter(pa.array(foreign))).num_rows:
            rows.append(
                _row(wrong, "queues", lambda one: f"{escape_name(one['topic'] or '?')}/{one['queue_id']}")
            )
        if (wrong := numbered.filter(pa.array(~placed & ~foreign))).num_rows:
            rows.append(_row(wrong, "queue offsets", lambda one: f"queue offset {_stated(view, one)}"))
        return rows

    def _ahead(self, offsets: Ints) -> Ints:
        """How many records without a unit lie in front of each, none where that is not looked at."""
        if not self._may_run_ahead:
            return np.zeros(len(offsets), np.int64)
        return np.where(offsets <= _NEAR, np.searchsorted(self._unlisted, offsets), 0)

    @property
    def _may_run_ahead(self) -> bool:
        """Whether messages may have greater queue offsets than their units: of light queues in 5.x.

        A list that ends with a queue that is not a light one loses its empty last offset, so that none of its
        queues gets a unit, although each has counted one (`MultiDispatchUtils`,
        `CommitLogDispatcherBuildConsumeQueue`).
        """
        view = self.view
        light = view.name[0].startswith(LMQ_PREFIX)
        return view.traits.multi_dispatch is MultiDispatch.USER_TOPICS and light and view.log.low == 0

    @cached_property
    def _unlisted(self) -> Ints:
        """Physical offsets, ascending, of such records of the queue in what is read of the log: once."""
        high = min(self.view.log.high, _NEAR)
        reading = ReadOptions(input_bytes=high)
        found: list[int] = []
        for segment in self.view.log.segments:
            if segment.base >= high:
                break
            with opened(segment, reading, checks=Check.TEXT, until=high - segment.base) as (_, scan):
                for event in scan:
                    if isinstance(event, Records):
                        names = unlisted(event, self.view.name[0], reading.kernels)
                        found += (segment.base + offset for offset in names)
                        if segment.base + behind(event) >= high:
                            break
        return np.array(sorted(found), np.int64)


def _further(view: QueueView, batch: pa.RecordBatch) -> Iterator[list[int]]:
    """Slots of each record in this queue by its lists; none of one that does not name it."""
    import pyarrow.compute as pc

    lists = (pc.map_lookup(batch["properties"], name, "last").to_pylist() for name in _LISTS)
    for queues, offsets, queue_id in zip(*lists, batch["queue_id"].to_pylist(), strict=True):
        yield slots_in(view.name, queues, offsets, queue_id)


def _stated(view: QueueView, row: Row) -> int:
    """The queue offset in this queue that a record names."""
    if (row["topic"], row["queue_id"]) == view.name:
        return int(row["queue_offset"])
    names, offsets = map(dict(row["properties"]).get, _LISTS)
    return slots_in(view.name, names, offsets, row["queue_id"])[0]


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


def not_holding(view: QueueView, first: Delivered, asked: int) -> list[Row]:
    """No row of `not_covered`, or the one for a batch that ends in front of the queue offset asked for.

    A batch queue is searched by the offsets in its units (`BatchConsumeQueue#iterateFrom`): where the right
    one is damaged, the one before is delivered.
    """
    end = first.queue_offset + first.messages
    if not view.batch or asked < end:
        return []
    error = f"the batch found ends with queue offset {end - 1}: the entry of queue offset {asked} is damaged"
    place = {"path": view.path, "queue_offset": asked, "physical_offset": first.physical_offset}
    return [place | {"reason": Incomplete.DAMAGE.value, "error": error}]


def cut_units(view: QueueView, start: int, end: int) -> list[Row]:
    """No row of `not_covered`, or the one for queue offsets [start, end) behind the end that a start makes.

    It cuts from the last queue file what leads behind the end of the log, which is where its recovery stops
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
        try:
            with file.open("pread") as source:
                raw = source.window(at - base, min(end - start, _MOST) * UNIT.itemsize)
        except VanishedError:
            continue  # expired since it was listed
        units = raw[: len(raw) // UNIT.itemsize * UNIT.itemsize].view(UNIT)
        lost = np.flatnonzero((units["size"] > 0) & ~pre_blanks(units))
        if len(lost):
            first = int(lost[0])
            offset = int(units["physical_offset"][first])
            error = f"the message at queue offset {start + first} lay at {offset}, where no start finds it"
            place = {"path": file.display_path, "queue_offset": start + first, "messages": len(lost)}
            return [place | {"reason": Incomplete.DAMAGE.value, "error": error}]
    return []
