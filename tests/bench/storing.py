"""How the cost of the message store grows, and how fast a large one starts.

    python -m tests.bench.storing FILE        all figures, as NDJSON rows into FILE; docs/charts.py draws them

It needs 12 GiB in the temporary directory; RMQTOOL_BENCH_START_BYTES sets another size for the start.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from formats.index import DEFAULT_ITEMS, DEFAULT_SLOTS
from rmqtool import MessageStore
from rmqtool.broker.file_rules import FileRules
from rmqtool.messagestore.bench.work import SETTINGS, TOPIC, messages, table_of
from rmqtool.messagestore.messages import Message
from tests.bench.appending import MESSAGES, ROUNDS, SIZES, at_hand, figures, rates
from tests.bench.measure import Figure, in_turn, settle
from tests.bench.replicating import against_plain_copy
from tests.bench.scanning import JAVA_RELEASE, java_loads
from tests.interop.jars import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START_BYTES = int(os.environ.get("RMQTOOL_BENCH_START_BYTES", str(10 << 30)))
FILES = {
    "mappedFileSizeConsumeQueue": FileRules().consume_queue_size,
    "maxHashSlotNum": DEFAULT_SLOTS,
    "maxIndexNum": DEFAULT_ITEMS,
}
SEGMENT = 16 << 20
QUEUE_FILE = 20_000
BODY = 1024


@dataclass(frozen=True)
class Point:
    """One point of a curve: messages a second where there are so many of what grows."""

    curve: str
    work: str
    of: int
    per_second: float


def growth(directory: Path) -> Iterator[Point]:
    """Rates at 1, 100 and 10,000 queues, at 1 and 50 segments, with 0 to 16 readers."""
    for queues in (1, 100, 10_000):
        with _store(directory / f"queues-{queues}") as store:
            store.topics.set(TOPIC, read_queues=queues, write_queues=queues)
            body = os.urandom(BODY)
            some = [Message(TOPIC, body, queue_id=number % queues) for number in range(MESSAGES)]
            store.put_many(some)
            yield Point("queues", "put", queues, _best(_put_each, store, some))
            yield Point("queues", "put_many", queues, _best(_put_many, store, some))
    for segments in (1, 50):
        with _store(directory / f"segments-{segments}", mappedFileSizeCommitLog=SEGMENT) as store:
            some = messages(BODY, MESSAGES)
            table = table_of(some)
            while store.segments() < segments:
                store.put_many(table)
            yield Point("segments", "put", segments, _best(_put_each, store, some))
            yield Point("segments", "get", segments, _best(_consumed, store))
    for readers in (0, 1, 4, 16):
        with _store(directory / f"readers-{readers}") as store:
            some = messages(BODY, MESSAGES)
            store.put_many(some)
            ended = threading.Event()
            threads = [threading.Thread(target=_read, args=(store, ended)) for _ in range(readers)]
            for one in threads:
                one.start()
            yield Point("readers", "put", readers, _best(_put_each, store, some))
            ended.set()
            for one in threads:
                one.join()


def _store(root: Path, **settings: int | str) -> MessageStore:
    return MessageStore.open(
        root, create=True, config={**SETTINGS, "mappedFileSizeConsumeQueue": QUEUE_FILE, **settings}
    )


def _best(work: Callable[..., None], *given: Any) -> float:
    """Messages a second of the best round."""
    return MESSAGES / in_turn({"work": partial(work, *given)}, ROUNDS)["work"].best


def synced(directory: Path, size: int, java: float) -> Iterator[Figure]:
    """Puts that share flushes. java: messages a second of its 16 writers that wait for each."""
    with _store(directory / "synced", flushDiskType="SYNC_FLUSH") as store:
        some = messages(size, MESSAGES)
        alone, together = _best(_put_async, store, some), _best(_put_many, store, some)
    note = f"{together / 1000:,.1f} k/s, `put_async` {alone / 1000:,.1f} k/s"
    yield Figure(
        f"`put_many` synced, bodies of {size} B", "java, put_sync_16", together / java, 2.0, note=note
    )


def _put_async(store: MessageStore, some: list[Message]) -> None:
    for one in [store.put_async(message) for message in some]:
        one.result()


def _put_each(store: MessageStore, some: list[Message]) -> None:
    for one in some:
        store.put(one)


def _put_many(store: MessageStore, some: list[Message]) -> None:
    store.put_many(some)


def _consumed(store: MessageStore) -> None:
    """So many messages from the front of the first queue, again and again."""
    low, high = store.offsets(TOPIC, 0)
    done, at = 0, low
    while done < MESSAGES:
        found = store.get(TOPIC, 0, at)
        done += len(found.messages)
        at = low if found.next_begin_offset >= high else found.next_begin_offset


def _read(store: MessageStore, ended: threading.Event) -> None:
    while not ended.is_set():
        for number in range(4):
            store.get(TOPIC, number, 0)


def start(directory: Path) -> Iterator[Figure]:
    """A store that was stopped in order, opened by us and loaded by Java. Raises `UnavailableError`."""
    root = directory / "start"
    table = table_of(messages(BODY, MESSAGES))
    with MessageStore.open(root, create=True, config={"brokerIP1": "127.0.0.1"}) as store:
        size = store.config.mapped_file_size_commit_log
        while store.segments() * size < START_BYTES:
            store.put_many(table)

    def ours() -> float:
        began = time.perf_counter()
        opened = MessageStore.open(root)
        seconds = time.perf_counter() - began
        opened.close()
        return seconds

    with java_loads(root, size, index=True, **FILES) as load:
        taken = in_turn({"java": load, "ours": ours}, 5)
    java, mine = taken["java"], taken["ours"]
    note = f"{mine.best:.2f} s, Java {java.best:.2f} s"
    subject = f"start of a store of {START_BYTES >> 30} GiB"
    yield Figure(subject, f"Java {JAVA_RELEASE} load", mine.best / java.best, 1.0, at_most=True, note=note)


def main(path: str) -> None:
    """Writes every row as soon as it is known, and prints what is held against a target."""
    with Path(path).open("wb") as rows, tempfile.TemporaryDirectory(prefix="rmqtool-bench-") as name:
        directory = Path(name)

        def put(row: dict[str, object]) -> None:
            rows.write(orjson.dumps(row) + b"\n")
            rows.flush()

        for size in SIZES:
            taken = rates(directory / str(size), at_hand(), size, MESSAGES, between=settle)
            for (work, engine), rate in taken.items():
                put({"type": "rate", "work": work, "engine": engine, "body_bytes": size, "per_second": rate})
            shared = synced(directory / str(size), size, taken.get(("put_sync_16", "java"), math.nan))
            for one in (*figures(taken, size), *shared):
                print(f"| {' | '.join(one.cells())} |", flush=True)
            shutil.rmtree(directory / str(size))
        for point in growth(directory):
            put({"type": "point", **asdict(point)})
            print(point, flush=True)
        print(f"| {' | '.join(against_plain_copy(directory).cells())} |", flush=True)
        try:
            for one in start(directory):
                print(f"| {' | '.join(one.cells())} |", flush=True)
        except UnavailableError as missing:
            print(f"skipped, no real RocketMQ to compare with: {missing}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
