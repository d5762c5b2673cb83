"""What properties add to the columns of a run: further queues that a record feeds, sizes of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.events import Records
from rmqtool.scan.fields import Column
from rmqtool.scan.multi import ExtraRows, extra_rows, inner_batches

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.lanes import Lanes

    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]


def set_batches(
    lanes: Lanes, run: Records, here: slice, counts: Ints, rules: FileRules, kernels: Kernels
) -> None:
    """First queue offset and number of messages of the records in columns `here` that go to batch queues."""
    columns = lanes.columns
    there = np.unique(columns[Column.LANE, here]).tolist()
    wanted = [lane for lane in there if lanes.keys[lane][0] in rules.batch_topics]
    places = np.flatnonzero(np.isin(columns[Column.LANE, here], wanted))
    counts[here] = 1
    if places.size:
        where = here.start + places
        every, ones = np.ones(len(places), np.bool_), np.ones(len(places), np.int64)
        slots = columns[Column.SLOT, where]
        records = _owners(lanes, run, here, places)
        columns[Column.SLOT, where], counts[where] = inner_batches(records, every, slots, ones, kernels)


def further_columns(
    lanes: Lanes, run: Records, here: slice, rules: FileRules, kernels: Kernels
) -> tuple[dict[Key, list[Ints]], ExtraRows]:
    """Columns of the queues that the records in columns `here` name besides their own, a column a unit."""
    columns = lanes.columns[:, here]
    records = _owners(lanes, run, here, np.arange(columns.shape[1]))
    there, lane = np.unique(columns[Column.LANE], return_inverse=True)
    names = [lanes.keys[one][0] for one in there.tolist()]
    found = extra_rows(records, lane, names, kernels, rules.multi_dispatch, lmq=rules.lmq)
    made: dict[Key, list[Ints]] = {}
    for row, name, queue_id, slot in zip(
        found.records.tolist(), found.name_of.tolist(), found.queue_ids.tolist(), found.slots, strict=True
    ):
        column = columns[:, row : row + 1].copy()
        column[Column.SLOT] = slot
        made.setdefault((found.names[name], queue_id), []).append(column)
    return made, found


def _owners(lanes: Lanes, run: Records, here: slice, places: npt.NDArray[np.intp]) -> Records:
    """The records of columns `here`, those at `places` among them."""
    return Records(run.rows[lanes.columns[Column.OWNER, here][places]], run.window, run.origin)
