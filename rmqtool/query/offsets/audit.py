"""Stored offsets against the bounds of their queues, as a broker of a release serves these."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from formats.checkpoint import parse_checkpoint
from formats.consumequeue import EXT_MAX_ADDRESS
from formats.system_topics import DLQ_PREFIX, RETRY_PREFIX
from formats.tags_code import SCHEDULE_TOPIC, deliver_time
from rmqtool.broker.get_message import pull
from rmqtool.broker.log_view import LogView
from rmqtool.broker.queue_view import QueueView
from rmqtool.errors import NewerFormatError, RmqtoolError, StoreIOError, UnreadableError
from rmqtool.query.behind_units import behind_units
from rmqtool.query.group_lag import consumed
from rmqtool.query.offsets.places import Chosen, Kind, Place, table_offsets
from rmqtool.query.queue_damage import queue_damage
from rmqtool.store.consumer_offsets import DELAY_OFFSETS, offsets_file
from rmqtool.store.coverage import unreadable
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import INT_MAX
from rmqtool.store.rocksdb import reads_rocksdb_queues
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from rmqtool.query.served_queue import ReadRules
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Queue, Store

Row = dict[str, Any]
_PERSISTED = 10_000
"""ms within which a broker writes delayOffset.json (`flushDelayOffsetInterval`)"""


class State(StrEnum):
    """What an offset says of its queue.

    below_min: the next messages have expired, the group has missed them. beyond_max: new messages are skipped
    until the queue has come so far. unknown_queue: there is no such queue. missing: the queue has
    messages, and the table that has its neighbours has no offset for it.
    """

    OK = "ok"
    BELOW_MIN = "below_min"
    BEYOND_MAX = "beyond_max"
    UNKNOWN_QUEUE = "unknown_queue"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Audited:
    """One offset. offset: None for a missing one. low, high: of the queue, None without it or unread.

    next_timestamp: store time (ms) of the next message; deliver_timestamp: of a delay level, when that is
    due. delivered: a broker was alive when it was.
    """

    place: Place
    offset: int | None
    state: State | None
    low: int | None = None
    high: int | None = None
    next_timestamp: int | None = None
    deliver_timestamp: int | None = None
    delivered: bool = False

    @property
    def wrong(self) -> bool:
        """Whether messages are missed or repeated by it.

        A group may be new to a queue, and a level has no offset before its first delivery.
        """
        missing = self.state is State.MISSING and self.delivered
        return missing or self.state in {State.BELOW_MIN, State.BEYOND_MAX, State.UNKNOWN_QUEUE}

    @property
    def row(self) -> Row:
        """Its keys in JSON."""
        known = self.high is not None and self.offset is not None
        made: Row = {
            "type": "offset",
            **self.place.row,
            "offset": self.offset,
            "min_offset": self.low,
            "max_offset": self.high,
            "lag": self.high - self.offset if known else None,  # type: ignore[operator]
            "next_timestamp": self.next_timestamp,
        }
        if self.place.kind is Kind.DELAY:
            made["deliver_timestamp"] = self.deliver_timestamp
        return made | {"state": None if self.state is None else str(self.state)}


@dataclass
class QueuesOnDisk:
    """Queues by topic and number, opened one at a time. A context manager; the log stays open."""

    store: Store
    rules: ReadRules
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self._log = self._open.enter_context(LogView(self.store.segments))
        self._queues: dict[str, dict[int, Queue]] = defaultdict(dict)
        for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
            for queue in self.store.queues(kind):
                if queue.topic is not None and queue.queue_id is not None:
                    known = self._queues[queue.topic].get(queue.queue_id)
                    if known is None or queue.files:
                        self._queues[queue.topic][queue.queue_id] = queue
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def numbers(self, topic: str) -> list[int]:
        """Numbers of the queues of a topic that have a directory, sorted."""
        return sorted(self._queues.get(topic, ()))

    @contextmanager
    def view(self, topic: str, queue_id: int) -> Iterator[QueueView | None]:
        """A queue, open, None where it has no directory. Raises what reading raises."""
        queue = self._queues.get(topic, {}).get(queue_id)
        if queue is None:
            yield None
            return
        with QueueView(queue, self._log, self.rules.traits) as view:
            yield view

    def may_be_empty(self, topic: str, queue_id: int) -> bool:
        """Whether a broker makes the queue when it is asked: one that never had a message has no files."""
        known = self.store.topics.get(topic)
        if known is not None:
            return 0 <= queue_id < max(known.read_queue_nums, known.write_queue_nums, 0)
        return topic.startswith((RETRY_PREFIX, DLQ_PREFIX)) or topic == SCHEDULE_TOPIC


def audit(
    store: Store, rules: ReadRules, chosen: Chosen, left: list[Row], reading: ReadOptions
) -> Iterator[Audited]:
    """Every offset that was chosen, by kind, group, topic and queue, with those that are missing.

    left: gets rows of `not_covered` for queues that cannot be read or are damaged, or end in front of
    messages of the log: their bounds are those of a broker, which knows nothing of what is gone. Raises
    `NewerFormatError` where the queues lie in RocksDB.
    """
    if reads_rocksdb_queues(store):
        raise NewerFormatError("the queues of this store are in RocksDB, which this release does not read")
    stored: dict[Place, int | None] = {}
    for name in (offsets_file(store), DELAY_OFFSETS):
        stored |= table_offsets(name, store.config_pair(name).data)
    with QueuesOnDisk(store, rules) as queues:
        for place in _missing(store, queues, stored):
            stored[place] = None
        alive = _alive_until(store)
        seen: set[tuple[str, int]] = set()
        places = sorted(filter(chosen, stored))
        asked = [(one.topic, one.queue_id, stored[one] or 0) for one in places]
        left += behind_units(store, reading, *consumed(store, asked))[1]
        for place in places:
            if (place.topic, place.queue_id) not in seen:
                seen.add((place.topic, place.queue_id))
                left += _damage(queues, place)
            found = _audited(queues, place, stored[place], left)
            if found is not None:
                due = found.deliver_timestamp
                yield replace(found, delivered=due is not None and due + _PERSISTED < alive)


def _alive_until(store: Store) -> int:
    """Store time (ms) of the last message that was flushed, 0 where the checkpoint does not tell."""
    file = next(iter(store.of_kind(FileKind.CHECKPOINT)), None)
    try:
        return 0 if file is None else int(parse_checkpoint(read_whole(file)).physic_msg_timestamp)
    except RmqtoolError:
        return 0


def _missing(store: Store, queues: QueuesOnDisk, stored: dict[Place, int | None]) -> list[Place]:
    """Places without an offset beside others of the group and topic that have one."""
    known: set[tuple[Kind, str, str]] = {(one.kind, one.group, one.topic) for one in stored}
    known = {one for one in known if one[0] is Kind.CONSUMER}
    known.add((Kind.DELAY, "", SCHEDULE_TOPIC))
    found = []
    for kind, group, topic in known:
        settings = store.topics.get(topic)
        most = INT_MAX if settings is None or kind is Kind.DELAY else settings.read_queue_nums
        places = (Place(kind, group, topic, number) for number in queues.numbers(topic) if number < most)
        found += [one for one in places if one not in stored]
    return found


def _damage(queues: QueuesOnDisk, place: Place) -> list[Row]:
    try:
        with queues.view(place.topic, place.queue_id) as view:
            return [] if view is None else list(queue_damage(view, queues.store))
    except (StoreIOError, UnreadableError):
        return []  # what is made of its offsets says so


def _audited(queues: QueuesOnDisk, place: Place, offset: int | None, left: list[Row]) -> Audited | None:
    try:
        with queues.view(place.topic, place.queue_id) as view:
            if view is not None:
                return _against(view, place, offset)
    except (StoreIOError, UnreadableError) as error:
        path = f"consumequeue/{place.topic}/{place.queue_id}"
        left.append(unreadable(path, str(error)))
        return Audited(place, offset, None)
    if offset == 0 and queues.may_be_empty(place.topic, place.queue_id):
        return Audited(place, 0, State.OK, 0, 0)
    return Audited(place, offset, State.UNKNOWN_QUEUE)


def _against(view: QueueView, place: Place, offset: int | None) -> Audited | None:
    low, high = view.min_offset, view.max_offset
    if offset is None:
        return (
            Audited(place, None, State.MISSING, low, high, *_next(view, place, low)) if low < high else None
        )
    state = State.BELOW_MIN if offset < low else State.BEYOND_MAX if offset > high else State.OK
    return Audited(place, offset, state, low, high, *_next(view, place, max(offset, low)))


def _next(view: QueueView, place: Place, offset: int) -> tuple[int | None, int | None]:
    """Store time of the message that a pull from there gives first, and of a delay level when it is due."""
    if offset >= view.max_offset:
        return None, None
    first = next(iter(pull(view, offset, 1).delivered), None)
    if first is None:
        return None, None
    time = view.log.store_timestamp(first.physical_offset, first.size)
    if place.kind is not Kind.DELAY:
        return None if time < 0 else time, None
    if first.tags_code <= EXT_MAX_ADDRESS:  # an address in an extension file
        return time, deliver_time(place.queue_id + 1, time)
    return None if time < 0 else time, first.tags_code
