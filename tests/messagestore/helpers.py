"""Small stores for the engine's tests."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rmqtool import Message, MessageStore
from rmqtool.messagestore.appending import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALL: dict[str, Any] = {
    "mappedFileSizeCommitLog": 4096,
    "mappedFileSizeConsumeQueue": 400,
    "maxHashSlotNum": 13,
    "maxIndexNum": 40,
    "brokerIP1": "10.0.0.1",
}
POOLED: dict[str, Any] = {
    "transientStorePoolEnable": True,
    "commitIntervalCommitLog": 3_600_000,
    "flushIntervalCommitLog": 3_600_000,
}
"""a pool that commits nothing by itself"""
RELEASES = ("4.9.8", "5.3.3")


def open_small(
    root: Path,
    release: str | None = None,
    *,
    clock: Callable[[], int] = milliseconds,
    deliver: bool = True,
    **settings: Any,
) -> MessageStore:
    """A store of small files at `root`, made where there is none."""
    config = SMALL | settings
    return MessageStore.open(root, create=True, release=release, config=config, clock=clock, deliver=deliver)


def copy_of_open(root: Path, target: Path) -> None:
    """The files of a store that is open, as a kill leaves them; those that go meanwhile are passed over."""

    def copy(source: str, place: str) -> None:
        with suppress(FileNotFoundError):
            shutil.copy2(source, place)

    shutil.copytree(root, target, copy_function=copy)


def traffic(first: int, count: int) -> list[Message]:
    """Messages for two topics of three queues, numbered in their keys."""
    return [
        Message(
            f"Topic{number % 2}",
            b"%d" % number * (number % 90),
            queue_id=number % 3,
            tags=f"Tag{number % 4}",
            keys=[f"key-{number}"],
            uniq_key=f"id-{number}",
        )
        for number in range(first, first + count)
    ]


def bodies(store: MessageStore, topic: str, queue_id: int) -> list[bytes]:
    """Bodies of a queue, get after get."""
    found: list[bytes] = []
    offset, end = store.offsets(topic, queue_id)
    while offset < end:
        result = store.get(topic, queue_id, offset)
        assert [one.queue_offset for one in result.messages] == list(
            range(offset, offset + len(result.messages))
        )
        found += [one.body for one in result.messages]
        assert result.next_begin_offset > offset
        offset = result.next_begin_offset
    return found


def of_queue(messages: list[Message], topic: str, queue_id: int) -> list[bytes]:
    """Bodies of those for one queue."""
    return [one.body for one in messages if (one.topic, one.queue_id) == (topic, queue_id)]
