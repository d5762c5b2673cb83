"""Ctrl-C at every moment of a call: nothing is lost or held for good, and the next open is clean."""

from __future__ import annotations

import sys
import threading
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message, MessageStore
from rmqtool.errors import StoreIOError
from rmqtool.messagestore.messages import PutStatus
from tests.helpers import rmq
from tests.messagestore.helpers import open_small

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rmqtool.messagestore.messages import Ack

SECONDS = 20
MOMENTS = frozenset({"call", "c_return"})
"""Python looks for signals where a function begins, and behind a call of one in C"""


def interrupted(work: Callable[[], object], moment: int) -> bool:
    """Does something that Ctrl-C interrupts at a moment; False where it is done before."""
    numbers = count()

    def look(_frame: object, event: str, _arg: object) -> None:
        if event in MOMENTS and next(numbers) == moment:
            raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        work()
    except (KeyboardInterrupt, StoreIOError):
        pass
    finally:
        sys.setprofile(None)
    return next(numbers) > moment


def in_time(work: Callable[[], Any]) -> Any:
    """What it answers; fails where it waits for a lock that nobody holds any more."""
    answers: list[Any] = []

    def call() -> None:
        try:
            answers.append(work())
        except StoreIOError as error:
            answers.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert answers, "it hangs"
    return answers[0]


def put(store: MessageStore, bodies: list[bytes]) -> list[Ack]:
    return [store.put(Message("T", body, queue_id=0, keys=["k"])) for body in bodies]


def put_with_properties(store: MessageStore, bodies: list[bytes]) -> list[Ack]:
    return [store.put(Message("T", body, queue_id=0, properties={"a": "b"})) for body in bodies]


def put_many(store: MessageStore, bodies: list[bytes]) -> list[Ack]:
    return store.put_many([Message("T", body, queue_id=0) for body in bodies * 10])


def put_batch(store: MessageStore, bodies: list[bytes]) -> list[Ack]:
    return store.put_batch([Message("T", body, queue_id=0) for body in bodies])


def put_and_get(store: MessageStore, bodies: list[bytes]) -> list[Ack]:
    acks = put(store, bodies)
    store.get("T", 0, store.offsets("T", 0)[1] - 1)
    store.query_key("T", "k", 1)
    return acks


class Book:
    """Every acknowledged message is where its answer said, in this store and in the next one."""

    def __init__(self) -> None:
        self.bodies: dict[int, bytes] = {}

    def take(self, acks: list[Ack], store: MessageStore) -> bool:
        """Whether all were stored."""
        for ack in acks:
            if ack.status is PutStatus.PUT_OK:
                assert ack.queue_offset not in self.bodies
                record = store.message_at(ack.physical_offset)
                assert record is not None
                self.bodies[ack.queue_offset] = record.body
        return all(ack.status is PutStatus.PUT_OK for ack in acks)

    def check(self, store: MessageStore, newest: int = 0) -> None:
        """All, or so many of the newest."""
        for offset, body in list(self.bodies.items())[-newest:]:
            found = store.get("T", 0, offset, 1)
            assert [(one.queue_offset, one.body) for one in found.messages] == [(offset, body)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("work", "step"), [(put, 2), (put_with_properties, 5), (put_many, 61), (put_batch, 7), (put_and_get, 61)]
)
@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_ctrl_c_at_every_moment(
    tmp_path: Path, work: Callable[[MessageStore, list[bytes]], list[Ack]], step: int, flush: str
) -> None:
    """The next put took the same queue offset, another one waited forever, readers got other messages."""
    settings: dict[str, Any] = {"flushDiskType": flush, "mappedFileSizeCommitLog": 4096}
    root, book, moment, again = tmp_path / "store", Book(), 0, True
    with open_small(tmp_path / "warm", **settings) as store:
        work(store, [b"what it imports"])
    while again:
        store = open_small(root, **settings)
        store.topics.set("T", read_queues=1, write_queues=1)
        book.check(store)
        good = True
        while good and again:
            again = interrupted(partial(work, store, [b"%d" % moment * 300, b"lost"]), moment)
            moment += step
            after = in_time(partial(put, store, [b"behind %d" % moment]))
            read = in_time(partial(book.check, store, 3))
            good = book.take(after, store) and read is None
        in_time(store.close)
    assert moment > 20
    with open_small(root, **settings) as store:
        book.check(store)
    assert rmq("verify", root).exit_code == 0
