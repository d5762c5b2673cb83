"""The engines by name: which can be measured here, and how each is opened."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.java import java_program
from rmqtool.messagestore.bench.competitors import COMPETITORS
from rmqtool.messagestore.bench.embedded import EmbeddedEngine
from rmqtool.messagestore.bench.java import NEEDS, JavaEngine
from rmqtool.messagestore.bench.own import MessageStoreEngine
from rmqtool.messagestore.bench.work import Bench, Engine, messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

ENGINES = ("rmqtool", "java", *COMPETITORS)
_BINDINGS = {"rocksdb": "rocksdict", "leveldb": "plyvel", "lmdb": "lmdb"}


def missing(engine: str, jars: Path | None = None) -> str | None:
    """Why an engine cannot be measured here, None when it can. jars: directory with those of RocketMQ."""
    if engine == "java":
        if jars is None:
            return "name the lib directory of a RocketMQ release with --java"
        try:
            java_program(NEEDS)
        except UsageError as error:
            return str(error)
    module = _BINDINGS.get(engine)
    if module is not None:
        try:
            import_module(module)
        except ImportError:
            return f"{module} is not installed: pip install 'rmqtool[bench]'"
    return None


def measured(
    root: Path,
    engine: str,
    works: Sequence[str],
    body_bytes: int,
    number: int,
    rounds: int = 2,
    jars: Path | None = None,
) -> Iterator[Bench]:
    """The works that an engine does, in an empty directory. The best round counts.

    Raises `StoreIOError` where the Java store fails.
    """
    with suppress(FileExistsError):
        os.mkdir(root)
    with closing(opened(root, engine, body_bytes, number, jars)) as run:
        for work in works:
            best = run.measure(work, rounds)
            if best is not None:
                yield Bench(work, engine, body_bytes, *best)


def opened(root: Path, engine: str, body_bytes: int, number: int, jars: Path | None = None) -> Engine:
    """An engine that holds all messages once, in an empty directory. Raises as `measured`."""
    if engine == "java" and jars is not None:
        return JavaEngine(root, jars, body_bytes, number)
    given = messages(body_bytes, number)
    return MessageStoreEngine(root, given) if engine == "rmqtool" else EmbeddedEngine(root, engine, given)
