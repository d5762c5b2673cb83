"""Records in the further queues that they feed (LMQ, `enableMultiDispatch`), from their properties."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from formats.java import java_parse_int, java_split
from formats.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET
from rmqtool.scan.multi import LMQ_PREFIX, MultiDispatch, is_exempt

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Ints = npt.NDArray[np.int64]

COLUMNS = ("topic", "queue_id", "properties")
_LISTS = (INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET)


def further_queues(batch: pa.RecordBatch) -> dict[tuple[str, int], tuple[Ints, Ints]]:
    """Row numbers and queue offsets of a batch with `COLUMNS`, by topic and number of the further queue.

    Light queues have the number 0, others that of the record. Records of system and retry topics feed none.
    """
    lists = [pc.map_lookup(batch["properties"], name, "last") for name in _LISTS]
    both = np.flatnonzero(pc.and_(*(one.is_valid() for one in lists)).to_numpy(zero_copy_only=False))
    rows = batch.select(["topic", "queue_id"]).take(both).to_pylist()
    found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    given = zip(both.tolist(), rows, *(one.take(both).to_pylist() for one in lists), strict=True)
    for place, row, names, slots in given:
        named, numbers = java_split(names, ","), java_split(slots, ",")
        if len(named) != len(numbers) or is_exempt(row["topic"] or "", MultiDispatch.USER_TOPICS):
            continue
        for name, number in zip(named, numbers, strict=True):
            slot = java_parse_int(number, 64)
            if slot is not None:
                found[name, 0 if name.startswith(LMQ_PREFIX) else row["queue_id"]].append((place, slot))
    tables = {queue: np.array(pairs, np.int64) for queue, pairs in found.items()}
    return {queue: (table[:, 0], table[:, 1]) for queue, table in tables.items()}
