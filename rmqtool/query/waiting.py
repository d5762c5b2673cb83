"""Records that lie in the log and wait for their dispatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.select import Selector
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.fields import Check
from rmqtool.scan.log import LogScan, data_bytes, scan_log

if TYPE_CHECKING:
    from rmqtool.query.reading import Reading
    from rmqtool.store.layout import Store


def waiting_records(
    store: Store, offsets: tuple[int, int], topic: str, queue_id: int, reading: Reading
) -> int:
    """How many records of a queue begin at physical offsets [start, end), of those that enter queues."""
    if offsets[0] >= offsets[1]:
        return 0
    wanted = MessageFilter(topics=(_literal(topic),), queues=frozenset({queue_id}))
    selector = Selector(wanted, choose_kernels(data_bytes(store.segments)))
    how = LogScan(
        columns=("transaction",),
        choose=selector.choose,
        offsets=offsets,
        checks=Check.TEXT,
        **reading.as_scan(),
    )
    count = 0
    for piece in scan_log(store.segments, how):
        if isinstance(piece.content, pa.RecordBatch):
            kinds = piece.content["transaction"].to_pylist()
            count += sum(kind in {"none", "commit"} for kind in kinds)
    return count


def _literal(topic: str) -> str:
    """A topic as a glob that means only itself."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in topic)
