"""A topic in memory beside the same topic on disk, in the same works.

python -m tests.bench.remembering       the table, as Markdown
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtool import MessageStore
from rmqtool.messagestore.bench.own import MessageStoreEngine
from rmqtool.messagestore.bench.work import SETTINGS, TOPIC, messages, table_of
from tests.bench.measure import Figure, in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGES, ROUNDS, BODY = 20_000, 5, 1024
TARGET = 1.0
WORKS = (
    "put",
    "put_many",
    "put_sync",
    "consume_table",
    "consume_raw",
    "consume_objects",
    "get_random",
    "key",
)


def beside_disk(directory: Path) -> Iterator[Figure]:
    """Times as many messages a second as on disk."""
    given = messages(BODY, MESSAGES)
    with ExitStack() as stack:
        disk, memory = (
            MessageStoreEngine(directory / "disk", given),
            MessageStoreEngine(directory / "memory", given, memory=True),
        )
        for one in (disk, memory):
            stack.callback(one.close)
        for work in WORKS:
            best = {"disk": 0.0, "memory": 0.0}
            for _ in range(ROUNDS):
                for name, engine in (("disk", disk), ("memory", memory)):
                    done = engine.measure(work, 1)
                    assert done is not None
                    best[name] = max(best[name], done[0] / done[1])
            note = f"{best['memory'] / 1000:,.1f} k/s, {best['disk'] / 1000:,.1f} k/s"
            ratio = best["memory"] / best["disk"]
            yield Figure(
                f"`{work}` into a topic in memory, {BODY} B", "the same on disk", ratio, TARGET, note=note
            )


def over_the_bound(directory: Path) -> Iterator[Figure]:
    """Puts that evict as much as they put, beside those that evict nothing."""
    given = messages(BODY, MESSAGES)
    table = table_of(given)
    with ExitStack() as stack:
        stores = {}
        for name, bound in (("bounded", 16 << 20), ("free", 0)):
            config = {**SETTINGS, "memoryTopicMaxBytes": bound}
            store = stack.enter_context(MessageStore.open(directory / name, create=True, config=config))
            store.topics.set(TOPIC, memory=True)
            stores[name] = store

        def put(name: str) -> None:
            for message in given:
                stores[name].put(message)

        def put_many(name: str) -> None:
            stores[name].put_many(table)

        for work in (put, put_many):
            taken = in_turn({name: partial(work, name) for name in stores}, ROUNDS)
            free, bounded = taken["free"].best, taken["bounded"].best
            note = f"{MESSAGES / bounded / 1000:,.1f} k/s, {MESSAGES / free / 1000:,.1f} k/s"
            subject = f"`{work.__name__}` over the bound"
            yield Figure(subject, "below it", free / bounded, 0.5, note=note)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="rmqtool-bench-") as name:
        for made in (beside_disk, over_the_bound):
            for figure in made(Path(name) / made.__name__):
                print(f"| {' | '.join(figure.cells())} |", flush=True)
