"""Looks at what a setting does: each is an `Effect`, or asks a store of which `answers` makes one."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from formats.checkpoint import parse_checkpoint
from rmqtool import Message, MessageStore
from rmqtool.broker.expiry import look
from rmqtool.broker.mapped_files import MappedFiles
from rmqtool.errors import UsageError
from rmqtool.messagestore.log_files import LogFiles
from rmqtool.messagestore.log_places import open_places
from rmqtool.messagestore.messages import PutStatus
from rmqtool.messagestore.warm_up import WarmUp
from rmqtool.store.config import config_of
from tests.disks import replace
from tests.helpers import free_port
from tests.messagestore.helpers import POOLED, copy_of_open, open_small

if TYPE_CHECKING:
    from collections.abc import Callable

    Patch = pytest.MonkeyPatch
    Effect = Callable[[Path, Patch, str], None]
    """asserts what the setting of that name does, with stores below a directory"""

SYNC = {"flushDiskType": "SYNC_FLUSH"}
HOUR = 3_600_000
"""ms, where nothing is to happen by itself"""
NEARLY = 5 * 4096
"""bytes that may wait for further pages"""


def length_of(path: str, value: int, needs: dict[str, Any] | None = None, *, given: int = 0) -> Effect:
    """Every file below `path` has that length; given: the value of the setting, the length by default."""

    def effect(root: Path, patch: Patch, name: str) -> None:
        del patch
        settings = (needs or {}) | {name: given or value}
        with MessageStore.open(root, create=True, config={"maxIndexNum": 40} | settings) as store:
            store.topics.set("B", attributes={"queue.type": "BatchCQ"})
            store.put(Message("T", b"x", keys=["k"]))
            store.put(Message("B", b"x"))
            store.flush()
        assert {one.stat().st_size for one in (root / path).rglob("*") if one.is_file()} == {value}

    return effect


def answers(low: Any, high: Any, ask: Callable[[MessageStore], Any], expected: Any, **needs: Any) -> Effect:
    """What a store says with the one value and with the other."""

    def effect(root: Path, patch: Patch, name: str) -> None:
        del patch
        found = []
        for number, value in enumerate((low, high)):
            with open_small(root / str(number), **needs | {name: value}) as store:
                found.append(ask(store))
        assert found == expected

    return effect


def told() -> Callable[[MessageStore], bytes | None]:
    """What a slave without a log hears first; None when it hears nothing for a while."""

    def ask(store: MessageStore) -> bytes | None:
        with socket.create_connection(store.listen(port=0)) as peer:
            peer.sendall(bytes(8))
            peer.settimeout(0.7)
            try:
                return peer.recv(100)
            except TimeoutError:
                return None

    return ask


def slow(store: MessageStore) -> PutStatus:
    """A put beside a slave that has nothing."""
    with socket.create_connection(store.listen(port=0)) as peer:
        peer.sendall(bytes(8))
        until = time.monotonic() + 10
        while [one for _, one in store.slaves] != [0] and time.monotonic() < until:
            time.sleep(0.001)
        return store.put(Message("T", b"")).status


def by_default(root: Path, patch: Patch, name: str) -> None:
    """The port that is listened on."""
    del patch
    port = free_port()
    with open_small(root, **{name: port}) as store:
        assert store.listen()[1] == port


def looked(low: Any, high: Any, percent: int = 10, hour: int = 4, **needs: Any) -> Effect:
    """Expiry decides otherwise with the one value than with the other."""

    def effect(root: Path, patch: Patch, name: str) -> None:
        del root, patch
        first, second = (
            look(
                config_of({key: str(one) for key, one in (needs | {name: value}).items()}),
                percent,
                hour,
                manual=False,
            )
            for value in (low, high)
        )
        assert first != second

    return effect


def started(low: Any, high: Any, attribute: str) -> Effect:
    """The start of the store is reported; what follows is tested with the rules of a start."""
    return answers(low, high, lambda store: getattr(store._start.settings, attribute), [low, high])


def put(*bodies: bytes, **more: Any) -> Callable[[MessageStore], list[PutStatus]]:
    """Statuses of messages with these bodies."""
    return lambda store: [store.put(Message("T", body, queue_id=0, **more)).status for body in bodies]


def flushed(wait: float) -> Callable[[MessageStore], bool]:
    """Whether a put of some pages is on the medium by itself within so many seconds."""

    def ask(store: MessageStore) -> bool:
        store.put_many([Message("T", bytes(500)) for _ in range(40)])
        until = time.monotonic() + wait
        while store.flush_behind > NEARLY and time.monotonic() < until:
            time.sleep(0.005)
        return store.flush_behind <= NEARLY

    return ask


def got(count: int = 20, body: bytes = b"x" * 100) -> Callable[[MessageStore], int]:
    """How many of so many messages one get answers."""

    def ask(store: MessageStore) -> int:
        store.put_many([Message("T", body, queue_id=0) for _ in range(count)])
        return len(store.get("T", 0, 0, limit=count).messages)

    return ask


def consumes(store: MessageStore) -> bool:
    """Whether a group that consumes is made."""
    with suppress(UsageError):
        store.groups.of_consumer("G")
    return "G" in store.groups


def written(name: str, wait: float) -> Callable[[MessageStore], bool]:
    """Whether a table is written by itself within so many seconds."""

    def ask(store: MessageStore) -> bool:
        path = Path(store.root, "config", name)
        before = path.read_text() if path.exists() else ""  # a new store has one without offsets
        store.commit_offset("G", "T", 0, 1)
        store.send_delayed(Message("T", b"x"), 1)
        later = store._services.engine.clock() + 1000
        while store._services.engine.clock() < later:
            time.sleep(0.05)
        store.deliver_due()
        until = time.monotonic() + wait
        while not (there := path.exists() and path.read_text() != before) and time.monotonic() < until:
            time.sleep(0.005)
        return there

    return ask


def asked(rounds: int) -> Callable[[MessageStore], list[int]]:
    """How many transactions a listener is asked about, round after round."""

    def ask(store: MessageStore) -> list[int]:
        store.transaction(Message("T", b"x"))
        found = []
        for _ in range(rounds):
            time.sleep(0.01)
            found.append(store.check_transactions(lambda half: None))
        return found

    return ask


def listened(wait: float) -> Callable[[MessageStore], bool]:
    """Whether a listener is asked within so many seconds."""

    def ask(store: MessageStore) -> bool:
        called = threading.Event()
        store.listen_to_transactions(lambda half: called.set())  # type: ignore[func-returns-value]
        store.transaction(Message("T", b"x"))
        return called.wait(wait)

    return ask


def settled(count: int) -> Callable[[MessageStore], int]:
    """How many op messages there are right behind so many commits."""

    def ask(store: MessageStore) -> int:
        for _ in range(count):
            with store.transaction(Message("T", b"x")):
                pass
        return store.offsets("RMQ_SYS_TRANS_OP_HALF_TOPIC", 0)[1]

    return ask


def expired(count: int = 5, *, once: bool = False) -> Callable[[MessageStore], tuple[int, bool]]:
    """Segments that go by hand, and whether it pauses for a tenth of a second."""

    def ask(store: MessageStore) -> tuple[int, bool]:
        store.put_many([Message("T", bytes(300), queue_id=number % 2) for number in range(count * 10)])
        store.flush()
        store.get("T", 0, 0)
        log = f"{store.root}/commitlog"
        for name in sorted(os.listdir(log))[:count]:
            os.utime(f"{log}/{name}", (0, 0))
        paused: list[float] = []
        vars(store._expiry._stop)["wait"] = paused.append
        gone = (store._expiry.clean(manual=True) if once else store.expire()).segments
        return gone, sum(paused) > 0.1

    return ask


def commits(**settings: Any) -> Effect:
    """With the value a pool commits by itself, without it does not."""

    def effect(root: Path, patch: Patch, name: str) -> None:
        del patch
        for number, more in enumerate((settings, {})):
            with open_small(
                root / str(number), **POOLED | {"commitCommitLogThoroughInterval": HOUR} | more
            ) as store:
                store.put(Message("T", b"0", queue_id=0))
                assert len(store.get("T", 0, 0, wait=0.05 if number else 5).messages) == 1 - number
        assert name in settings

    return effect


def slow_flush(root: Path, patch: Patch, name: str) -> None:
    """A put whose flush comes too late says so."""
    with open_small(root, flushDiskType="SYNC_FLUSH", **{name: 20}) as store:
        store.put(Message("T", b""))
        sync = LogFiles.sync

        def slow(self: LogFiles, begin: int) -> int:
            entered.set()
            left.wait()
            return sync(self, begin)

        entered, left = threading.Event(), threading.Event()
        patch.setattr(LogFiles, "sync", slow)
        other = threading.Thread(target=store.put, args=(Message("T", b""),))
        other.start()
        entered.wait()
        assert store.put(Message("T", b"")).status is PutStatus.FLUSH_DISK_TIMEOUT
        left.set()
        other.join()


def checkpointed(root: Path, patch: Patch, name: str) -> None:
    """The checkpoint gets the time of the queues."""
    del patch
    with open_small(root, **{name: 1}) as store:
        store.put(Message("T", b""))
        store.offsets("T", 0)
        store._background._keep_checkpoint()
        assert parse_checkpoint((root / "checkpoint").read_bytes()).logics_msg_timestamp > 0


def evicted(root: Path, patch: Patch, name: str) -> None:
    """A topic in memory keeps no more bytes than that."""
    del patch
    with open_small(root, **{name: 1000}) as store:
        store.topics.set("M", memory=True)
        for _ in range(2):
            store.put(Message("M", bytes(600), queue_id=0))
        assert store.offsets("M", 0) == (1, 2)


def unchecked_body(root: Path, patch: Patch, name: str) -> None:
    """A body that is damaged ends the log of a crashed store, unless nobody looks."""
    del patch
    with open_small(root) as store:
        ack = store.put(Message("T", b"good", queue_id=0))
        store.put(Message("T", b"harmed", queue_id=0))
        store.flush()
        copy_of_open(root, root / "killed")
    log = root / "killed" / "commitlog" / ("0" * 20)
    log.write_bytes(log.read_bytes().replace(b"harmed", b"Harmed"))
    shutil.rmtree(root / "killed" / "consumequeue", ignore_errors=True)  # perhaps none was made yet
    found = []
    for value in (True, False):
        shutil.copytree(root / "killed", root / str(value))
        with MessageStore.open(
            root / str(value), config={"mappedFileSizeCommitLog": 4096, name: value}, recovery="broker"
        ) as store:
            found.append(store.offsets("T", 0)[1])
    assert (ack.queue_offset, found) == (0, [1, 2])


def stamped(store: MessageStore) -> int:
    """Tags code less store time of a message of a delay level."""
    store.put(Message("SCHEDULE_TOPIC_XXXX", b"", queue_id=1, properties={"DELAY": "2"}))
    message = store.get("SCHEDULE_TOPIC_XXXX", 1, 0).messages[0]
    unit = f"{store.root}/consumequeue/SCHEDULE_TOPIC_XXXX/1/{'0' * 20}"
    with open(unit, "rb") as file:
        return int.from_bytes(file.read(20)[12:], "big") - message.store_timestamp


def extended(store: MessageStore) -> bool:
    """Whether queues have extension files."""
    store.put(Message("T", b""))
    store.queues()
    return os.path.isdir(f"{store.root}/consumequeue_ext")


def hot(store: MessageStore) -> bool:
    """Whether the next pull should go to a slave."""
    got()(store)
    return store.get("T", 0, 0).suggest_pulling_from_slave


def filtered(store: MessageStore) -> int:
    """Where a get with a filter ends that one message behind sixty others fits."""
    store.put_many([Message("T", b"", queue_id=0, tags="A")] * 60 + [Message("T", b"", queue_id=0, tags="B")])
    return store.get("T", 0, 0, tags="B").next_begin_offset


def listed(store: MessageStore) -> bool:
    """Whether a message has offsets in the queues that it names."""
    store.put(Message("T", b"", properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}))
    return "INNER_MULTI_QUEUE_OFFSET" in store.message_at(0).properties


def host(store: MessageStore) -> tuple[int, int]:
    """The last part of the address that a message was stored at, and the port."""
    address, port = store.put(Message("T", b"")).store_host
    return address[3], port


def light(store: MessageStore) -> list[tuple[str, int]]:
    """Queues of a message for a light queue."""
    store.put(Message("T", b"", queue_id=0, properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}))
    return store.queues()


def warmed(root: Path, patch: Patch, name: str) -> None:
    """Segments have all of their room, and are forced more often the fewer pages are said."""
    forced: list[int] = []
    replace(patch, "fdatasync", forced.append)
    counts = []
    for pages in (1, 100):
        settings = SYNC | {"warmMapedFileEnable": True, "flushLeastPagesWhenWarmMapedFile": pages}
        forced.clear()
        (root / "commitlog").mkdir()
        places = open_places(root, config_of({}))
        log = LogFiles(places, MappedFiles(1 << 16, "commitlog"), ahead=False, warm=WarmUp(pages))
        log.place_for(100)
        log.close()
        counts.append(len(forced))
        with open_small(root / str(pages), **settings) as store:
            store.put(Message("T", b""))
            assert os.stat(f"{store.root}/commitlog/{'0' * 20}").st_blocks * 512 >= 4096
            assert store._settings.warmed_pages == pages
        shutil.rmtree(root / "commitlog")
    assert (counts, name in settings) == ([17, 1], True)


def elsewhere(root: Path, patch: Patch, name: str) -> None:
    """More of it in `test_log_places.py`."""
    del patch
    with open_small(root / "store", **{name: str(root / "disk")}) as store:
        store.put(Message("T", b""))
    assert os.listdir(root / "disk") == ["0" * 20]


def retried(root: Path, patch: Patch, name: str) -> None:
    """A file that could not be deleted is tried again after the interval."""
    del patch
    for number, (interval, again) in enumerate(((HOUR, False), (0, True))):
        with open_small(root / str(number), **{name: interval}) as store:
            store._expiry._hanging.append("commitlog/" + "9" * 20)
            store._expiry._tried = time.monotonic()
            store._expiry._again()
            assert (store._expiry._hanging == []) is again


def refused(root: Path, settings: dict[str, Any]) -> None:
    """The error names the setting, the first of `settings`."""
    with pytest.raises(UsageError, match=next(iter(settings))):
        MessageStore.open(root / "store", create=True, config=settings)


def cleaned_again(root: Path, patch: Patch, settings: dict[str, Any]) -> None:
    """Runs follow one another at the interval, once the first minute is over."""
    runs: list[float] = []
    patch.setattr("rmqtool.messagestore.expiry.FIRST_RUN", 0.001)
    patch.setattr("rmqtool.messagestore.expiry.Expiry.clean", lambda self: runs.append(time.monotonic()))
    with open_small(root, **settings):
        until = time.monotonic() + 5
        while len(runs) < 3 and time.monotonic() < until:
            time.sleep(0.005)
    assert len(runs) >= 3
