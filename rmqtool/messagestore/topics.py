"""The topics of a store that is written: `config/topics.json`, and topics made by the first message.

`TopicConfigManager#createTopicInSendMessageMethod`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from formats.system_topics import is_system_topic
from rmqtool.errors import UsageError
from rmqtool.messagestore.arguments import checked
from rmqtool.messagestore.messages import IllegalMessageError
from rmqtool.store.config_json import TopicConfig
from rmqtool.store.names import INT_MAX, escape_name, names_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rmqtool.messagestore.memory.table import MemoryTable
    from rmqtool.messagestore.state_files import StateFiles

_FILE = "topics.json"
_CLIENT_QUEUES = 4
"""`defaultTopicQueueNums` of a producer"""
READ, WRITE = 4, 2
_PERMISSIONS = (WRITE, READ, READ | WRITE)
QUEUE_TYPE, BATCH_QUEUE = "queue.type", "BatchCQ"
_TYPES = ("SimpleCQ", BATCH_QUEUE)
"""of queues in files (`TopicAttributes#QUEUE_TYPE_ATTRIBUTE`), the first where nothing is said"""


class Topics:
    """By name. create: whether a message for an unknown topic makes it. queues: of the topic made so.

    typed: the release knows types of queues. undrained: which of these queues of a topic hold messages that
    were not consumed. demand_open: raises `StoreClosedError` once the store is closed, and its descriptors
    perhaps another one's. check_name: raises `IllegalMessageError` for the name of a topic that no message
    can go to. on_delete: called with the name of a topic that is gone. kept: our own table of those in
    memory.

    Changes are on disk when a call returns.
    """

    def __init__(  # noqa: PLR0913 - what it asks of the store and tells it
        self,
        known: Mapping[str, TopicConfig],
        files: StateFiles,
        *,
        create: bool,
        queues: int,
        typed: bool,
        undrained: Callable[[str, range], list[int]],
        demand_open: Callable[[], None],
        check_name: Callable[[str], object],
        on_delete: Callable[[str], object],
        kept: MemoryTable,
    ) -> None:
        self._all = dict(known)
        self._files, self._create, self._queues = files, create, min(queues, _CLIENT_QUEUES)
        self._undrained, self._typed, self._demand_open = undrained, typed, demand_open
        self._check_name, self._on_delete = check_name, on_delete
        self._turns: dict[str, Iterator[int]] = {}
        self._guard = threading.Lock()
        self._version = 0
        self._kept = kept
        self.memory = _in_memory(self._all)
        """names of those whose messages are kept in memory only"""

    def __iter__(self) -> Iterator[TopicConfig]:
        return iter(list(self._all.values()))

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def get(self, name: str) -> TopicConfig | None:
        """One topic."""
        return self._all.get(name)

    @checked
    def set(
        self,
        name: str,
        *,
        read_queues: int | None = None,
        write_queues: int | None = None,
        perm: int | None = None,
        attributes: Mapping[str, str] | None = None,
        memory: bool | None = None,
        force: bool = False,
    ) -> TopicConfig:
        """Makes a topic or changes what is given of it. perm: 2 write, 4 read, 6 both.

        Fewer read queues are refused while queues that would go hold messages that a consumer group has not
        consumed, or nobody has; force: shrink all the same. attributes: `queue.type` BatchCQ, since 5.0 and
        for new topics only, makes a client's batch one record (`put_batch`). memory: messages are kept in
        memory only, for new topics. Raises `UsageError` for what cannot be, `StoreClosedError`,
        `StoreIOError`.
        """
        self._demand_open()
        if not names_directory(name):
            raise UsageError(f"{escape_name(name)}: a topic can have no such name")
        if name not in self._all and not is_system_topic(name):
            try:
                self._check_name(name)
            except IllegalMessageError as error:
                raise UsageError(f"{escape_name(name)}: {error}") from error
        if perm is not None and perm not in _PERMISSIONS:
            raise UsageError(f"perm is {perm}, not 2, 4 or 6")
        numbers = [one for one in (read_queues, write_queues) if one is not None]
        if numbers and min(numbers) < 0:
            raise UsageError("a topic cannot have fewer than 0 queues")
        if numbers and max(numbers) > INT_MAX:
            raise UsageError(f"a topic cannot have more than {INT_MAX} queues")
        known = self._all.get(name)
        if (
            not force
            and known is not None
            and read_queues is not None
            and read_queues < known.read_queue_nums
        ):
            self._refuse_undrained(name, range(read_queues, known.read_queue_nums))
        with self._guard:
            before = self._all.get(name) or TopicConfig(name, READ | WRITE, self._queues, self._queues, {})
            made = replace(
                before,
                perm=before.perm if perm is None else perm,
                read_queue_nums=before.read_queue_nums if read_queues is None else read_queues,
                write_queue_nums=before.write_queue_nums if write_queues is None else write_queues,
                attributes=before.attributes if attributes is None else dict(attributes),
                memory=before.memory if memory is None else memory,
            )
            self._check_type(name, made)
            self._check_memory(name, made)
            self._save({**self._all, name: made})
        return made

    def _check_type(self, name: str, made: TopicConfig) -> None:
        """Queues of one type cannot become those of another (`AttributeUtil#alterCurrentAttributes`)."""
        wanted = made.attributes.get(QUEUE_TYPE, _TYPES[0])
        if wanted not in _TYPES or (wanted == BATCH_QUEUE and not self._typed):
            raise UsageError(f"{QUEUE_TYPE} {wanted} of topic {name} is not supported")
        before = self._all.get(name)
        if before is not None and before.attributes.get(QUEUE_TYPE, _TYPES[0]) != wanted:
            raise UsageError(f"{QUEUE_TYPE} of topic {name} cannot change")

    def _check_memory(self, name: str, made: TopicConfig) -> None:
        before = self._all.get(name)
        if before is not None and before.memory != made.memory:
            raise UsageError(f"topic {name} cannot move between memory and disk: delete it and make it again")
        if made.memory and (is_system_topic(name) or made.queue_type == BATCH_QUEUE):
            raise UsageError(f"topic {name} cannot be kept in memory")

    def is_batch(self, topic: TopicConfig) -> bool:
        """A client's batch for it is one record."""
        return self._typed and topic.attributes.get(QUEUE_TYPE) == BATCH_QUEUE

    def _refuse_undrained(self, name: str, going: range) -> None:
        left = self._undrained(name, going)
        if left:
            numbers = f"queue {left[0]}" if len(left) == 1 else f"queues {', '.join(map(str, left))}"
            raise UsageError(
                f"{numbers} of topic {name}: not all messages were consumed; it shrinks with force only"
            )

    @checked
    def delete(self, name: str) -> bool:
        """Takes a topic out of the table; its messages stay. Whether it was there.

        Raises `StoreClosedError`, `StoreIOError`.
        """
        self._demand_open()
        with self._guard:
            left = {one: topic for one, topic in self._all.items() if one != name}
            gone = len(left) < len(self._all)
            if gone:
                self._save(left)
        if gone:
            self._on_delete(name)
        return gone

    def for_message(self, name: str) -> TopicConfig | None:
        """The topic of a message, made if that is allowed; None if it is not."""
        found = self._all.get(name)
        if found is None and self._create:
            found = self.set(name)
        return found

    def next_queue(self, topic: TopicConfig) -> int:
        """The write queues of a topic in turn."""
        turn = self._turns.get(topic.name)
        if turn is None:
            turn = self._turns.setdefault(topic.name, count())
        return next(turn) % (topic.write_queue_nums or 1)

    def turns(self, topic: TopicConfig, many: int) -> int:
        """The queue of the first of many messages; the others follow in turn, as of `next_queue`."""
        first = self.next_queue(topic)
        self._turns[topic.name] = count(first + many)
        return first

    def _save(self, topics: dict[str, TopicConfig]) -> None:
        """The table as it is from now on; nothing changes where it cannot be written."""
        self._version += 1
        memory = _in_memory(topics)
        if memory != self.memory:
            self._kept.save(memory)
        self._files.table(_FILE, self._document(topics))
        self._all, self.memory = topics, memory

    def _document(self, topics: dict[str, TopicConfig]) -> dict[str, Any]:
        table = {
            one.name: {
                "attributes": dict(one.attributes),
                "order": one.order,
                "perm": one.perm,
                "readQueueNums": one.read_queue_nums,
                "topicFilterType": one.topic_filter_type,
                "topicName": one.name,
                "topicSysFlag": one.topic_sys_flag,
                "writeQueueNums": one.write_queue_nums,
                **({"memory": True} if one.memory else {}),
            }
            for one in topics.values()
        }
        version = {"counter": self._version, "stateVersion": 0, "timestamp": int(time.time() * 1000)}
        return {"dataVersion": version, "topicConfigTable": table}


def _in_memory(topics: Mapping[str, TopicConfig]) -> frozenset[str]:
    return frozenset(name for name, one in topics.items() if one.memory)
