"""The message store beside Java's and the embedded stores: the works of `rmqtool store bench`, in turn."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from rmqtool.messagestore.bench.engines import ENGINES, missing, opened
from rmqtool.messagestore.bench.work import WORKS
from tests.bench.measure import Figure
from tests.bench.scanning import JAVA_RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    Rates = Mapping[tuple[str, str], float]
    """messages a second by work and engine"""

MESSAGES, ROUNDS = 20_000, 3
SIZES = (256, 1024)


class Target(NamedTuple):
    """Times as many messages a second as another engine in a work of its own, by size of body."""

    work: str
    engine: str
    its_work: str
    ratios: tuple[float, float]


def _same(work: str, engine: str, ratio: float) -> Target:
    return Target(work, engine, work, (ratio, ratio))


EMBEDDED = ("sqlite", "rocksdb", "leveldb", "lmdb")
TARGETS = (
    _same("put", "sqlite", 4.0),
    _same("put", "rocksdb", 0.7),
    Target("put", "java", "put", (0.7, 0.5)),
    Target("put_many", "java", "put", (4.0, 2.0)),
    _same("put_many", "sqlite", 5.0),
    _same("put_many", "rocksdb", 2.0),
    _same("put_many", "lmdb", 1.5),
    *(_same("put_sync", one, 1.0) for one in EMBEDDED),
    _same("put_sync_16", "java", 0.7),
    Target("consume_table", "java", "consume_objects", (1.0, 1.0)),
    _same("consume_raw", "java", 0.4),
    _same("consume_objects", "java", 0.15),
    _same("get_random", "java", 0.3),
    _same("key", "java", 0.3),
    Target("key_many", "java", "key", (1.0, 1.0)),
    _same("consume_raw", "sqlite", 0.3),
    _same("consume_objects", "sqlite", 0.5),
    _same("get_random", "sqlite", 0.3),
    _same("key", "sqlite", 0.3),
)
"""`put` against Java is what is aimed at; reads against SQLite are what was reached, the others required"""


def rates(
    directory: Path,
    engines: Sequence[str],
    body_bytes: int,
    number: int,
    rounds: int = ROUNDS,
    between: Callable[[], object] = int,
) -> dict[tuple[str, str], float]:
    """The best rate of some rounds in which each engine does a work in turn, all open at once.

    between: called in front of each round of each.
    """
    found: dict[tuple[str, str], float] = {}
    with ExitStack() as stack:
        runs = {}
        for name in engines:
            place = directory / name
            place.mkdir(parents=True)
            runs[name] = opened(place, name, body_bytes, number, java_jars() if name == "java" else None)
            stack.callback(runs[name].close)
        for work in WORKS:
            for _ in range(rounds):
                for name, run in runs.items():
                    between()
                    done = run.measure(work, 1)
                    if done is not None:
                        found[work, name] = max(found.get((work, name), 0.0), done[0] / done[1])
    return found


def figures(taken: Rates, body_bytes: int) -> Iterator[Figure]:
    """What the rates are against the targets, of the engines that were measured."""
    for one in TARGETS:
        if (one.its_work, one.engine) in taken:
            ours, theirs = taken[one.work, "rmqtool"], taken[one.its_work, one.engine]
            anchor = f"{one.engine}, {one.its_work}" if one.work != one.its_work else one.engine
            note = f"{ours / 1000:,.1f} k/s, {theirs / 1000:,.1f} k/s"
            target = one.ratios[SIZES.index(body_bytes)]
            yield Figure(f"`{one.work}`, bodies of {body_bytes} B", anchor, ours / theirs, target, note=note)


def at_hand() -> list[str]:
    """Engines that can be measured here."""
    return [name for name in ENGINES if missing(name, java_jars() if name == "java" else None) is None]


def java_jars() -> Path | None:
    """Directory with the jars of the real store; None without Java or Maven."""
    from tests.interop.jars import UnavailableError, jars

    try:
        return jars(JAVA_RELEASE)[0].parent
    except UnavailableError:
        return None
