"""The topic table and consumer offsets against the queues on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formats.java import java_utf8_encode
from formats.system_topics import BROKER_TOPICS
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.check.config_files import check_table
from rmqtool.check.findings import Severity, finding
from rmqtool.scan.legal import may_be_topic
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.store.consumer_offsets import (
    StoredOffset,
    offsets_file,
    stored_delay_offsets,
    stored_offsets,
)
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rmqtool.check.findings import Finding
    from rmqtool.store.config_json import TopicConfig
    from rmqtool.store.layout import Store

_QUEUES = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
_TOPICS = "config/topics.json"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class QueueEnds:
    """Queue offsets of the first message and of the next one to come."""

    min_offset: int
    max_offset: int


def _on_disk(store: Store) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for kind in _QUEUES:
        for queue in store.queues(kind):
            if queue.topic is not None and queue.queue_id is not None:
                found.setdefault(queue.topic, set()).add(queue.queue_id)
    return found


def odd_topics(store: Store) -> frozenset[bytes]:
    """Topics of this store whose names no broker takes: `MessageStore#putMessage`, below it, takes them.

    A record alone does not make a topic: there is a queue of it, or it stands in the topic table.
    """
    names = (name for name in _on_disk(store).keys() | store.topics.keys() if not may_be_topic(name))
    return frozenset(map(_stored, names))


def _stored(name: str) -> bytes:
    """A name as records have it: bytes of a directory's name, else what Java makes of one of a table."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return java_utf8_encode(name)


Times = Callable[[str, int], tuple[int, int] | None]
"""Topic, queue → store times (ms) of the first and the last message that has a unit; None when unknown."""


def check_topics(
    store: Store, queues: Mapping[tuple[str, int], QueueEnds], times: Times | None = None
) -> Iterator[Finding]:
    """Topic table against queue directories; little is said without a table in JSON."""
    topics = store.topics
    disk = _on_disk(store)
    if not topics:
        yield from check_table(store, len(disk))
        return
    numbered: dict[str, list[tuple[int, QueueEnds]]] = {}
    for (name, queue_id), ends in sorted(queues.items()):
        numbered.setdefault(name, []).append((queue_id, ends))
    for _, topic in sorted(topics.items()):
        yield from _settings(topic)
        yield from _unreachable(topic, numbered.get(topic.name, ()), times)
    for name in sorted(disk.keys() - topics.keys()):
        # brokers clean up none of these, and make the entries of their own topics (`TopicValidator`)
        if not name.startswith(LMQ_PREFIX) and name not in BROKER_TOPICS:
            yield finding("CFG-NO-TOPIC", path=_TOPICS, topic=name, found=len(disk[name]))
    empty = sorted(topics.keys() - disk.keys())
    if empty and disk:
        shown = ", ".join(empty[:_SHOWN]) + (" …" if len(empty) > _SHOWN else "")
        yield finding("CFG-NO-QUEUE", path=_TOPICS, found=f"{len(empty)} topics: {shown}")


def _settings(topic: TopicConfig) -> Iterator[Finding]:
    read, write = topic.read_queue_nums, topic.write_queue_nums
    if read != write:
        code = "CFG-WRITE-MORE" if write > read else "CFG-READ-MORE"
        yield finding(code, path=_TOPICS, topic=topic.name, part="writeQueueNums", expected=read, found=write)
    if not topic.readable or not topic.writeable:
        lacking = [
            name for name, there in (("read", topic.readable), ("write", topic.writeable)) if not there
        ]
        yield finding(
            "CFG-PERM", path=_TOPICS, topic=topic.name, part="perm", expected=" or ".join(lacking),
            found=topic.perm,
        )  # fmt: skip


def _unreachable(
    topic: TopicConfig, queues: Iterable[tuple[int, QueueEnds]], times: Times | None
) -> Iterator[Finding]:
    """Queues of the topic that consumers do not see."""
    first = topic.read_queue_nums if topic.readable else 0
    for queue_id, ends in queues:
        count = ends.max_offset - ends.min_offset
        if queue_id >= first and count > 0:
            span = times(topic.name, queue_id) if times is not None else None
            yield finding(
                "CFG-UNREACHABLE",
                path=_TOPICS,
                topic=topic.name,
                queue_id=queue_id,
                queue_offset=ends.min_offset,
                part="readQueueNums",
                expected=topic.read_queue_nums,
                found=count,
                first_timestamp=None if span is None else span[0],
                last_timestamp=None if span is None else span[1],
            )


def check_offsets(
    store: Store, queues: Mapping[tuple[str, int], QueueEnds], *, unclean: bool
) -> Iterator[Finding]:
    """Consumer offsets against the ends of their queues. unclean: queues may be behind what was consumed."""
    known = set(store.topics) | set(_on_disk(store))
    for path, one in _offsets(store):
        place: dict[str, Any] = {
            "path": path,
            "topic": one.topic,
            "queue_id": one.queue_id,
            "queue_offset": one.offset,
            "part": f"{one.topic}@{one.group}",
            "found": one.offset,
        }
        if type(one.stored) is not int:
            yield finding("CFG-OFFSET-VALUE", **place | {"found": one.stored}, expected=one.offset)
        ends = queues.get((one.topic, one.queue_id))
        if one.topic not in known and not one.topic.startswith(LMQ_PREFIX):
            yield finding("CFG-OFFSET-TOPIC", **place)
        elif ends is None:
            if one.offset > 0:
                yield finding("CFG-OFFSET-QUEUE", **place)
        elif one.offset > ends.max_offset:
            mild = Severity.NOTE if unclean else None
            yield finding("CFG-OFFSET-BEYOND", **place, expected=ends.max_offset, severity=mild)
        elif one.offset < ends.min_offset:
            yield finding("CFG-OFFSET-BELOW", **place, expected=ends.min_offset)


def _offsets(store: Store) -> Iterator[tuple[str, StoredOffset]]:
    """(path, entry) of what a broker loads; delay level n is queue n - 1."""
    path = f"config/{offsets_file(store)}"
    for one in stored_offsets(store):
        yield path, one
    for level, offset, stored in stored_delay_offsets(store):
        entry = StoredOffset(SCHEDULE_TOPIC, f"level {level}", level - 1, offset, stored)
        yield "config/delayOffset.json", entry
