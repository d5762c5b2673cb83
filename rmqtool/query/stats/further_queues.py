"""Records in the further queues that they feed (LMQ, `enableMultiDispatch`), from their properties."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from formats.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET
from rmqtool.scan.multi import MultiDispatch, further_places, is_exempt

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Ints = npt.NDArray[np.int64]

COLUMNS = ("topic", "queue_id", "properties")
_LISTS = (INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET)


def further_queues(batch: pa.RecordBatch, *, lmq: bool) -> dict[tuple[str, int], tuple[Ints, Ints]]:
    """Row numbers and queue offsets of a batch with `COLUMNS`, by topic and number of the further queue.

    lmq: `enableLmq`. Records of system and retry topics feed none.
    """
    lists = [pc.map_lookup(batch["properties"], name, "last") for name in _LISTS]
    both = np.flatnonzero(pc.and_(*(one.is_valid() for one in lists)).to_numpy(zero_copy_only=False))
    rows = batch.select(["topic", "queue_id"]).take(both).to_pylist()
    found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    given = zip(both.tolist(), rows, *(one.take(both).to_pylist() for one in lists), strict=True)
    for place, row, names, slots in given:
        if is_exempt(row["topic"] or "", MultiDispatch.USER_TOPICS):
            continue
        for name, number, slot in further_places(names, slots, row["queue_id"], lmq=lmq) or ():
            if slot is not None:
                found[name, number].append((place, slot))
    tables = {queue: np.array(pairs, np.int64) for queue, pairs in found.items()}
    return {queue: (table[:, 0], table[:, 1]) for queue, table in tables.items()}
