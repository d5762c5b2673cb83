"""Delayed delivery, transactions and consumer groups, in messages a second.

    python -m tests.bench.serving       the table, as Markdown

Delayed delivery has the Java store beside it, whose 4.9 jar holds it; the rest is in no store jar.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtool import Message, MessageStore
from rmqtool.java import java_program
from rmqtool.messagestore.bench.work import SETTINGS
from tests.bench.measure import Figure
from tests.interop.jars import jars

if TYPE_CHECKING:
    from collections.abc import Iterator

DELAYED, HALVES, CONSUMED, ROUNDS, BODY = 100_000, 20_000, 100_000, 3, 256
QUEUES = 4
RELEASE = "4.9.8"
_SOURCE = Path(__file__).with_name("Delays.java")
_OPENED = ("java.lang", "java.nio", "java.util", "jdk.internal.ref", "sun.nio.ch")
_HOUR = 3_600_000


def _store(root: Path, **more: object) -> MessageStore:
    made = MessageStore.open(root, create=True, config=SETTINGS, release=RELEASE, **more)  # type: ignore[arg-type]
    made.topics.set("Later", read_queues=QUEUES, write_queues=QUEUES)
    return made


def delivered(root: Path) -> float:
    """Seconds in which all that is due is delivered."""
    now = [time.time_ns() // 1_000_000]
    with _store(root, clock=lambda: now[0], deliver=False) as store:
        for number in range(DELAYED):
            store.send_delayed(
                Message("Later", bytes(BODY), queue_id=number % QUEUES, keys=[f"key-{number}"]), 1
            )
        store.queues()
        now[0] += _HOUR
        began = time.perf_counter()
        store.deliver_due()
        ended = sum(store.offsets("Later", queue)[1] for queue in range(QUEUES))
        seconds = time.perf_counter() - began
        assert ended == DELAYED
    return seconds


def delivered_by_java(root: Path) -> float:
    """The same by Java, by its own clock. Raises `UnavailableError`."""
    root.mkdir()
    ways = itertools.product(("opens", "exports"), _OPENED)
    opened = [f"--add-{way}=java.base/{package}=ALL-UNNAMED" for way, package in ways]
    given = [os.fspath(_SOURCE), os.fspath(root / "store"), str(DELAYED), str(BODY)]
    path = os.pathsep.join(map(str, jars(RELEASE)))
    command = [java_program("a JDK"), *opened, f"-Duser.home={root}", "-cp", path, *given]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    return int(done.stdout.split()[-1]) / 1e9


def committed(root: Path) -> float:
    """Seconds of half messages and their commits, one after the other."""
    with _store(root) as store:
        began = time.perf_counter()
        for number in range(HALVES):
            with store.transaction(Message("Later", bytes(BODY), queue_id=number % QUEUES)):
                pass
        return time.perf_counter() - began


def consumed(root: Path) -> float:
    """Seconds in which a group of one member gets and commits all messages."""
    with _store(root) as store:
        store.put_many(
            [Message("Later", bytes(BODY), queue_id=number % QUEUES) for number in range(CONSUMED)]
        )
        store.queues()
        with store.consumer("group", "Later", name="member") as consumer:
            began, seen = time.perf_counter(), 0
            while seen < CONSUMED:
                found = consumer.poll(limit=32, wait=1)
                seen += len(found)
                for message in found:
                    consumer.commit(message)
            return time.perf_counter() - began


def figures(directory: Path) -> Iterator[Figure]:
    """The best of some rounds in turn, each in a new store."""
    ours = theirs = float("inf")
    for number in range(ROUNDS):
        ours = min(ours, delivered(directory / f"ours-{number}"))
        theirs = min(theirs, delivered_by_java(directory / f"java-{number}"))
    note = f"{DELAYED / ours / 1000:,.0f} k/s, {DELAYED / theirs / 1000:,.0f} k/s"
    subject = f"delayed delivery of {DELAYED:,} due messages, {BODY} B"
    yield Figure(subject, f"Java {RELEASE} `ScheduleMessageService`", theirs / ours, 1.0, note=note)
    for name, work, count in (
        ("half message and commit", committed, HALVES),
        ("group consumption, each message committed", consumed, CONSUMED),
    ):
        best = min(work(directory / f"{work.__name__}-{number}") for number in range(ROUNDS))
        yield Figure(name, "nothing", math.nan, 0.0, note=f"{count / best / 1000:,.1f} k/s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="rmqtool-bench-") as name:
        for figure in figures(Path(name)):
            print(f"| {' | '.join(figure.cells())} |", flush=True)
