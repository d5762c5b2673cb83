"""Plain messages are stored as all others are, though by another way."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message
from rmqtool.messagestore.messages import AppendContext, PutStatus
from tests.messagestore.helpers import RELEASES, open_small

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = ("T", "Ü" * 40, "t" * 130)


def some(chance: random.Random, count: int) -> list[Message]:
    """Plain messages of all kinds."""

    def text() -> str:
        return "".join(chance.choices("ab 1ü€😀", k=chance.randrange(9)))

    return [
        Message(
            chance.choice(TOPICS),
            chance.randbytes(chance.randrange(300)),
            queue_id=chance.randrange(3),
            tags=chance.choice([None, text()]),
            keys=chance.choice([text(), [], [text()], [text(), text()]]),
            uniq_key=f"id-{number}",
            flag=chance.randrange(-(1 << 31), 1 << 31),
            born_timestamp=chance.choice([None, chance.randrange(1 << 45)]),
        )
        for number in range(count)
    ]


def log_of(root: Path, release: str, messages: list[Message], **context: Any) -> tuple[list[Any], bytes]:
    with open_small(root, release, mappedFileSizeCommitLog=1 << 14) as store:
        store._writer._appender.stored.clock = lambda: 1_700_000_000_000
        for topic in TOPICS:
            if len(topic) < 128:
                store.topics.set(topic, read_queues=3, write_queues=3)
        acks = [store.put(message, **context) for message in messages]
    return acks, b"".join(path.read_bytes() for path in sorted((root / "commitlog").iterdir()))


@pytest.mark.parametrize("release", RELEASES)
def test_the_same_bytes_as_by_the_general_way(tmp_path: Path, release: str) -> None:
    messages = some(random.Random(18), 300)
    plain = log_of(tmp_path / "plain", release, messages)
    assert plain == log_of(tmp_path / "general", release, messages, context=AppendContext())
    assert sum(ack.status is PutStatus.PUT_OK for ack in plain[0]) > 150


@pytest.mark.parametrize(
    ("odd", "status"),
    [
        ({"queue_id": 9}, PutStatus.MESSAGE_ILLEGAL),
        ({"tags": "a\x02b"}, PutStatus.MESSAGE_ILLEGAL),
        ({"flag": 1 << 31}, PutStatus.MESSAGE_ILLEGAL),
        ({"body": "text"}, PutStatus.MESSAGE_ILLEGAL),
        ({"body": bytes(5000)}, PutStatus.MESSAGE_ILLEGAL),
        ({"tags": "a" * 40_000}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ({"tags": "\ud800"}, PutStatus.PUT_OK),
        ({"body": bytearray(b"body")}, PutStatus.PUT_OK),
        ({"properties": {"a": "b"}}, PutStatus.PUT_OK),
    ],
)
def test_what_is_odd_is_answered_as_ever(tmp_path: Path, odd: dict[str, Any], status: PutStatus) -> None:
    with open_small(tmp_path / "store") as store:
        first = store.put(Message("T", b"body", queue_id=0))
        assert store.put(Message(**{"topic": "T", "body": b"body", **odd})).status is status
        assert store.put(Message("T", b"body", queue_id=0)).queue_offset >= first.queue_offset + 1


def test_a_topic_that_changes_is_looked_at_again(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        assert store.put(Message("T", b"body", queue_id=3)).status is PutStatus.PUT_OK
        assert store.put(Message("T", b"body", queue_id=3)).status is PutStatus.PUT_OK
        store.topics.set("T", write_queues=2)
        assert store.put(Message("T", b"body", queue_id=3)).status is PutStatus.MESSAGE_ILLEGAL
        store.topics.set("T", perm=4)
        assert store.put(Message("T", b"body", queue_id=1)).status is PutStatus.MESSAGE_ILLEGAL
