"""What is measured, and how: works on a store, each the best of some rounds."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from rmqtool.messagestore.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WORKS = (
    "put", "put_many", "put_sync", "put_sync_16", "consume_table", "consume_raw", "consume_objects",
    "get_random", "key", "key_many",
)  # fmt: skip
TOGETHER = 1000
"""messages of one `put_many`"""
SYNCED, LOOKUPS = 100, 10
"""of so many messages one is put synced, or looked up"""
WARM_SECONDS = 0.1
"""that a work runs before it is measured: most rounds are shorter, and the first are those of cold caches"""
WRITERS = 16
TOPIC = "BenchTopic"
SETTINGS: dict[str, Any] = {
    "mappedFileSizeCommitLog": 1 << 28,
    "maxHashSlotNum": 500_000,
    "maxIndexNum": 2_000_000,
    "brokerIP1": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class Bench:
    """One figure. count: messages."""

    work: str
    engine: str
    body_bytes: int
    count: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Messages a second."""
        return self.count / self.seconds


class Engine(Protocol):
    """A store that holds all messages once, and what it can be asked to do."""

    def measure(self, work: str, rounds: int) -> tuple[int, float] | None:
        """Messages and seconds of the best round of a work; None if it does not do that."""
        ...

    def close(self) -> None:
        """Lets go of it."""
        ...


class LocalEngine(ABC):
    """An engine of this process, filled when it is made."""

    @abstractmethod
    def works(self) -> dict[str, Callable[[], int]]:
        """What it does, by name; each returns how many messages it was about."""

    def measure(self, work: str, rounds: int) -> tuple[int, float] | None:
        """See `Engine.measure`."""
        action = self.works().get(work)
        if action is None:
            return None
        until = time.perf_counter() + WARM_SECONDS
        while time.perf_counter() < until:
            action()
        return min((_timed(action) for _ in range(rounds)), key=lambda one: one[1])


def _timed(action: Callable[[], int]) -> tuple[int, float]:
    began = time.perf_counter()
    count = action()
    return count, time.perf_counter() - began


def messages(body_bytes: int, number: int) -> list[Message]:
    """Messages with a tag and a key of their own, and one body."""
    body = os.urandom(body_bytes)
    return [Message(TOPIC, body, tags="TagA", keys=[f"key-{one}"]) for one in range(number)]


def table_of(given: Sequence[Message]) -> pa.Table:
    """The same as columns."""
    columns = {name: [getattr(one, name) for one in given] for name in ("topic", "body", "tags", "keys")}
    return pa.table(columns)


def in_threads(work: Callable[[], Any], each: int) -> int:
    """The work in 16 threads at once; messages of all, `each` of one. What fails in one is raised."""
    with ThreadPoolExecutor(WRITERS) as pool:
        for done in [pool.submit(work) for _ in range(WRITERS)]:
            done.result()
    return each * WRITERS
