"""How far consumer groups are behind the ends of their queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.errors import StoreIOError, UnreadableError
from rmqtool.query.groups import committed_offsets
from rmqtool.query.queue_ends import file_ends
from rmqtool.store.coverage import unreadable
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.contents import Queue
    from rmqtool.store.layout import Store

Row = dict[str, Any]


def group_rows(store: Store, left: list[Row]) -> Iterator[Row]:
    """A row for each queue in which a group has committed an offset, sorted by group, topic and queue.

    max_offset: of the next message, None without the queue or where its end cannot be read, which goes into
    `left`; lag: messages up to there, below 0 for an offset behind it.
    """
    ends: dict[tuple[str, int], int] = {}
    for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
        for queue in store.queues(kind):
            end = _end_of(queue, left)
            if end is not None and queue.topic is not None and queue.queue_id is not None:
                ends[queue.topic, queue.queue_id] = end
    for one in sorted(committed_offsets(store), key=lambda one: (one.group, one.topic, one.queue_id)):
        end = ends.get((one.topic, one.queue_id))
        yield {
            "type": "group",
            "group": one.group,
            "topic": one.topic,
            "queue_id": one.queue_id,
            "offset": one.offset,
            "max_offset": end,
            "lag": None if end is None else end - one.offset,
        }


def _end_of(queue: Queue, left: list[Row]) -> int | None:
    for file in reversed(queue.files):
        try:
            end = file_ends(file).max_offset
        except (StoreIOError, UnreadableError) as error:
            left.append(unreadable(file.display_path, str(error)))
            return None
        if end is not None:
            return end
    return 0
