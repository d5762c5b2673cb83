"""How far the log has been dispatched: the end of the last record that a queue knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.query.queue_ends import file_ends
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from rmqtool.query.log_view import LogView
    from rmqtool.store.layout import Store


def dispatch_position(store: Store, log: LogView) -> int:
    """Physical offset behind the last record with a unit, the start of the log without any.

    Units that point behind the end of the log do not count.
    """
    reached = max(log.low, 0)
    for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
        for queue in store.queues(kind):
            for file in reversed(queue.files):
                last = file_ends(file).last
                if last is not None:
                    end = last["physical_offset"] + last["size"]
                    reached = max(reached, end if end <= log.high else reached)
                    break
    return reached
