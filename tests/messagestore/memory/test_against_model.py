"""What is kept in memory, against a model that does the same with lists."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqtool import Message, MessageStore
from rmqtool.broker.get_message import GetMessageStatus
from rmqtool.messagestore.memory.topic_log import BASE, BESIDE
from rmqtool.messagestore.messages import Ack, PutStatus
from rmqtool.messagestore.records import RecordMaker
from tests.messagestore.helpers import RELEASES, open_small

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPICS, QUEUES = ("A", "B", "C"), 2
BOUND = 4000


@dataclass
class Model:
    """The rule itself: over the bound the oldest of the own topic goes, of all where that has none."""

    there: list[tuple[Ack, Message, int]] = field(default_factory=list)
    """with the bytes that each takes, in the order in which they came"""
    following: dict[tuple[str, int], int] = field(default_factory=dict)

    def put(self, ack: Ack, message: Message, cost: int) -> None:
        key = ack.topic, ack.queue_id
        assert ack.queue_offset == self.following.get(key, 0)
        self.following[key] = ack.queue_offset + 1
        while sum(one[2] for one in self.there) + cost > BOUND:
            own = [one for one in self.there if one[0].topic == ack.topic]
            self.there.remove((own or self.there)[0])
        self.there.append((ack, message, cost))

    def queue(self, topic: str, queue_id: int) -> list[tuple[int, bytes]]:
        return [
            (ack.queue_offset, message.body)
            for ack, message, _ in self.there
            if (ack.topic, ack.queue_id) == (topic, queue_id)
        ]


@pytest.fixture(scope="module", params=RELEASES)
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MessageStore]:
    root = tmp_path_factory.mktemp("memory") / "store"
    with open_small(root, request.param, memoryTopicMaxBytes=BOUND) as store:
        yield store


MESSAGE = st.builds(
    lambda topic, queue_id, size, number, tags: Message(
        topic, b"%d" % number * size, queue_id=queue_id, tags=tags, keys=[f"key-{number}"]
    ),
    st.sampled_from(TOPICS),
    st.integers(0, QUEUES - 1),
    st.integers(0, 500) | st.integers(900, 1800),
    st.integers(0, 9),
    st.none() | st.sampled_from(["red", "blue"]),
)
PUT = st.tuples(st.just("put"), st.lists(MESSAGE, min_size=1, max_size=1))
MANY = st.tuples(st.sampled_from(["list", "table", "batch"]), st.lists(MESSAGE, min_size=1, max_size=40))
LOOK = st.tuples(st.just("look"), st.just([]))


def fitting(how: str, messages: list[Message]) -> list[Message]:
    """A client's batch has one topic and queue, and no more bytes than a segment."""
    if how != "batch":
        return messages
    first = messages[0]
    return [one for one in messages if (one.topic, one.queue_id) == (first.topic, first.queue_id)][:2]


def put(store: MessageStore, how: str, messages: list[Message]) -> list[Ack]:
    if how == "put":
        return [store.put(messages[0])]
    if how == "batch":
        return store.put_batch(messages)
    if how == "list":
        return store.put_many(messages)
    columns = {
        name: [getattr(one, name) for one in messages] for name in ("topic", "body", "queue_id", "tags")
    }
    columns["keys"] = [list(one.keys) for one in messages]
    found = store.put_many(pa.table(columns)).to_pylist()
    return [Ack(store_host=(b"", 0), **one | {"status": PutStatus(one["status"])}) for one in found]


def agree(store: MessageStore, model: Model) -> None:
    """Each way of reading shows what the model holds."""
    assert store.memory.bytes == sum(one[2] for one in model.there) <= BOUND
    assert store.memory.messages == len(model.there)
    for topic in TOPICS:
        for queue_id in range(QUEUES):
            expected = model.queue(topic, queue_id)
            end = model.following.get((topic, queue_id), 0)
            low = expected[0][0] if expected else end
            assert store.offsets(topic, queue_id) == (low, end)
            table = store.get_table(topic, queue_id, columns=("queue_offset", "body"))
            assert list(zip(*(one.to_pylist() for one in table.columns), strict=True)) == expected
            found: list[tuple[int, bytes]] = []
            at = low
            while at < end:
                result = store.get(topic, queue_id, at)
                assert result.status is GetMessageStatus.FOUND
                assert (result.min_offset, result.max_offset) == (low, end)
                raw = store.get_raw(topic, queue_id, at)
                assert [one.tobytes() for one in raw.records] == [one.raw for one in result.messages]
                found += [(one.queue_offset, one.body) for one in result.messages]
                at = result.next_begin_offset
            assert found == expected
    for ack, message, _ in model.there:
        one = store.message_at(ack.physical_offset)
        assert one is not None
        assert (one.topic, one.queue_offset, one.body) == (ack.topic, ack.queue_offset, message.body)
    for number in range(10):
        wanted = {
            topic: [message.body for ack, message, _ in model.there
                    if ack.topic == topic and list(message.keys) == [f"key-{number}"]]
            for topic in TOPICS
        }  # fmt: skip
        for topic in TOPICS:
            assert [one.body for one in store.query_key(topic, f"key-{number}")] == wanted[topic]


@settings(max_examples=40)
@given(steps=st.lists(PUT | MANY | LOOK, max_size=25))
def test_what_is_there_is_what_a_naive_model_keeps(
    opened: MessageStore, steps: list[tuple[str, list[Message]]]
) -> None:
    for topic in TOPICS:
        opened.topics.delete(topic)
        opened.topics.set(topic, read_queues=QUEUES, write_queues=QUEUES, memory=True)
    model, maker = Model(), RecordMaker(opened.release, opened.config, (bytes(4), 0))
    for how, drawn in steps:
        if how == "look":
            agree(opened, model)
            continue
        messages = fitting(how, drawn)
        for ack, message in zip(put(opened, how, messages), messages, strict=True):
            assert ack.status is PutStatus.PUT_OK, ack
            assert ack.physical_offset >= BASE
            size = maker.prepare(replace(message, uniq_key=ack.uniq_key)).size
            model.put(ack, message, size + BESIDE)
    agree(opened, model)
    assert opened.end == 0
