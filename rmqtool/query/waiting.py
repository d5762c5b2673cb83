"""Records of one queue in a part of the log, without its units: what waits for dispatch, what has no unit."""

from __future__ import annotations

from glob import escape
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.not_read import not_read
from rmqtool.query.select import Selector
from rmqtool.scan.counted import counting
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.fields import Check
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.options import data_bytes

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store


def queue_offsets_in(
    store: Store, offsets: tuple[int, int], topic: str, queue_id: int, reading: ReadOptions
) -> tuple[npt.NDArray[np.int64], bool]:
    """Queue offsets of a queue's records that begin at physical offsets [start, end), in log order.

    Of those that enter queues: no prepared ones and none that were rolled back. And whether all that lies
    there was read.
    """
    parts, whole = [np.empty(0, np.int64)], True
    if offsets[0] < offsets[1]:
        wanted = MessageFilter(topics=(escape(topic),), queues=frozenset({queue_id}))
        selector = Selector(wanted, choose_kernels(data_bytes(store.segments)))
        with counting(reading, store.segments, offsets) as options:
            how = LogScan(
                columns=("transaction", "queue_offset"),
                choose=selector.choose,
                offsets=offsets,
                checks=Check.TEXT,
                options=options,
            )
            for piece in scan_log(store.segments, how):
                if isinstance(piece.content, pa.RecordBatch):
                    entering = np.isin(piece.content["transaction"].to_pylist(), ("none", "commit"))
                    parts.append(piece.content["queue_offset"].to_numpy()[entering])
                elif not_read(piece.segment, piece.content):
                    whole = False
    return np.concatenate(parts), whole
