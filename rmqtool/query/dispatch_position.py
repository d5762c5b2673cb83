"""How far the log has been dispatched: to the end of the last record that a queue knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.errors import VanishedError
from rmqtool.query.queue_ends import file_ends
from rmqtool.query.waiting import queue_offsets_in
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from rmqtool.broker.log_view import LogView
    from rmqtool.broker.queue_view import QueueView
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store


def dispatch_position(store: Store, log: LogView) -> int:
    """Physical offset behind the last record with a unit, the start of the log without any.

    Units that lead to no record do not count.
    """
    ends = []
    for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
        for queue in store.queues(kind):
            for file in reversed(queue.files):
                try:
                    last = file_ends(file).last
                except VanishedError:
                    continue  # expired since it was listed
                if last is not None:
                    ends.append((last["physical_offset"], last["size"]))
                    break
    there = (offset + size for offset, size in sorted(ends, reverse=True) if log.is_record(offset, size))
    return next(there, max(log.low, 0))


def not_dispatched(store: Store, view: QueueView, reading: ReadOptions) -> str | None:
    """What is said of records of a queue that wait for dispatch, if there are any."""
    start = dispatch_position(store, view.log)
    waiting = len(queue_offsets_in(store, (start, view.log.high), *view.name, reading)[0])
    if not waiting:
        return None
    return (
        f"{waiting} records of this queue lie in the log behind offset {start} and have no "
        "consume queue entry yet"
    )
