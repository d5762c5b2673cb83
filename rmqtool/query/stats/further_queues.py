"""Records in the further queues that they feed (LMQ, `enableMultiDispatch`), from their properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from formats.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET
from rmqtool.scan.multi import MultiDispatch, is_exempt, listed_units

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Ints = npt.NDArray[np.int64]

COLUMNS = ("topic", "queue_id", "properties")
_LISTS = (INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET)


def further_queues(batch: pa.RecordBatch, *, lmq: bool) -> dict[tuple[str, int], tuple[Ints, Ints]]:
    """Row numbers and queue offsets of a batch with `COLUMNS`, by topic and number of the further queue.

    lmq: `enableLmq`. Records of system and retry topics feed none, nor do names with a path separator.
    """
    lists = [pc.map_lookup(batch["properties"], name, "last") for name in _LISTS]
    rule = MultiDispatch.USER_TOPICS
    topics = pc.dictionary_encode(batch["topic"])
    exempt = np.array([*(is_exempt(name, rule) for name in topics.dictionary.to_pylist()), False], np.bool_)
    of_record = topics.indices.fill_null(-1).to_numpy(zero_copy_only=False)  # no topic: the last place
    both = pc.and_(*(one.is_valid() for one in lists)).to_numpy(zero_copy_only=False)
    chosen = np.flatnonzero(both & ~exempt[of_record])
    names, slots = (one.take(chosen) for one in lists)
    queue_ids = batch["queue_id"].to_numpy(zero_copy_only=False).astype(np.int64)
    units = listed_units(chosen, names, slots, queue_ids, rule, lmq=lmq)
    order = np.lexsort((units.queue_ids, units.name_of))
    changes = (np.diff(units.name_of[order]) != 0) | (np.diff(units.queue_ids[order]) != 0)
    return {
        (units.names[units.name_of[some[0]]], int(units.queue_ids[some[0]])): (
            units.records[some],
            units.slots[some],
        )
        for some in np.split(order, np.flatnonzero(changes) + 1)
        if len(some)
    }
