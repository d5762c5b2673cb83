"""How far consumer groups are behind the ends of their queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.broker.deleted_topics import is_somebodys
from rmqtool.errors import StoreIOError, UnreadableError
from rmqtool.query.behind_units import behind_units
from rmqtool.query.groups import committed_offsets
from rmqtool.query.queue_ends import file_ends
from rmqtool.store.contents import Queue
from rmqtool.store.coverage import unreadable
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

    Key = tuple[str, int]

Row = dict[str, Any]


def group_rows(store: Store, left: list[Row], reading: ReadOptions) -> Iterator[Row]:
    """A row for each queue in which a group has committed an offset, sorted by group, topic and queue.

    max_offset: of the next message, None without the queue or where its end cannot be read; lag: messages up
    to there, below 0 for an offset behind it. Messages of the log count that have no unit. `left` gets
    rows of `not_covered` for those that lost it, and for what cannot be read.
    """
    ends: dict[Key, int] = {}
    for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
        for queue in store.queues(kind):
            end = _end_of(queue, left)
            if end is not None and queue.topic is not None and queue.queue_id is not None:
                ends[queue.topic, queue.queue_id] = end
    committed = committed_offsets(store)
    offsets = [(one.topic, one.queue_id, one.offset) for one in committed]
    behind, lost = behind_units(store, reading, *consumed(store, offsets))
    ends |= {key: one.end for key, one in behind.items()}
    left += lost
    for one in sorted(committed, key=lambda one: (one.group, one.topic, one.queue_id)):
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


def consumed(store: Store, offsets: Iterable[tuple[str, int, int]]) -> tuple[list[Queue], set[Key]]:
    """The queues of committed offsets, given by topic, number and offset, and which of them had messages.

    Without files where they have none; none of topics that were deleted, whose records stay in the log.
    """
    had: dict[Key, bool] = {}
    for topic, queue_id, offset in offsets:
        if is_somebodys(store.topics, topic):
            had[topic, queue_id] = offset > 0 or had.get((topic, queue_id), False)
    queues = {key: Queue(FileKind.CONSUMEQUEUE, *key, ()) for key in had}
    for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
        for queue in store.queues(kind):
            key = queue.topic or "", -1 if queue.queue_id is None else queue.queue_id
            if key in queues and (queue.files or not queues[key].files):
                queues[key] = queue
    return list(queues.values()), {key for key, there in had.items() if there}


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
