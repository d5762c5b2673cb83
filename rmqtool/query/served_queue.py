"""The queue that a command names, as a broker of a given release serves it."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.broker.log_view import LogView
from rmqtool.broker.queue_view import QueueView
from rmqtool.broker.traits import traits_of
from rmqtool.errors import NewerFormatError, VanishedError
from rmqtool.store.growing import queue_now, segments_now
from rmqtool.store.layout import FileKind, Queue
from rmqtool.store.rocksdb import rocksdb_queue_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.traits import Traits
    from rmqtool.store.layout import Store

_TRIES = 10
"""how often files are listed that expire before they are opened"""


@dataclass(frozen=True, slots=True)
class ReadRules:
    """The release by whose rules messages are read. source: `given`, `inferred` or `assumed`."""

    version: str
    source: str

    @property
    def traits(self) -> Traits:
        """What the release does."""
        return traits_of(self.version)


def read_rules(store: Store, version: str | None) -> ReadRules:
    """Rules of the release given, else of the latest that the store does not exclude."""
    if version is not None:
        return ReadRules(version, "given")
    release = store.release
    return ReadRules(release.last, "inferred" if release.known else "assumed")


@contextmanager
def served_queue(store: Store, topic: str, queue_id: int, rules: ReadRules) -> Iterator[QueueView]:
    """The queue, open; one that has no directory is empty, as for a broker, which makes it when it is asked.

    Raises `NewerFormatError` where queues lie in RocksDB.
    """
    queue, segments = find_queue(store, topic, queue_id), store.segments
    with ExitStack() as stack:
        for left in reversed(range(_TRIES)):
            log = stack.enter_context(LogView(segments))
            try:
                view = stack.enter_context(QueueView(queue, log, rules.traits))
                break
            except VanishedError:
                if not left:
                    raise
                queue, segments = queue_now(store, queue.kind, topic, queue_id), segments_now(store)
        yield view


def first_there(view: QueueView) -> int:
    """Queue offset of the first message that has not expired; the end of the queue without one.

    A broker that starts while its queues lag behind the log, as they do while segments expire, serves from
    `min_offset`, where its consumers get nothing and go on.
    """
    floor = max(view.log.low, 0)
    for file in view.files:
        last = len(view.column(file, "physical_offset")) - 1
        if last < 0 or view.unit(file, last, "physical_offset") < floor:
            continue
        number = view.first_at(file, floor)
        if number is not None:
            first = view.unit(file, number, "base_offset") if view.batch else file.base // view.width + number
            return max(first, view.min_offset)
    return max(view.max_offset, view.min_offset)


def find_queue(store: Store, topic: str, queue_id: int) -> Queue:
    """The directory of a queue, batch queues before plain ones; `served_queue` says what happens without."""
    found = [
        queue
        for kind in (FileKind.BATCHCONSUMEQUEUE, FileKind.CONSUMEQUEUE)
        for queue in store.queues(kind)
        if (queue.topic, queue.queue_id) == (topic, queue_id)
    ]
    if not found and rocksdb_queue_files(store):
        raise NewerFormatError("the queues of this store are in RocksDB, which this release does not read")
    filled = (queue for queue in found if queue.files)
    return next(filled, found[0] if found else Queue(FileKind.CONSUMEQUEUE, topic, queue_id, ()))


def queue_numbers(store: Store, topic: str) -> list[int]:
    """Numbers of the queues that the topic has directories for."""
    kinds = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
    all_queues = (queue for kind in kinds for queue in store.queues(kind))
    return sorted(
        {queue.queue_id for queue in all_queues if queue.topic == topic and queue.queue_id is not None}
    )
