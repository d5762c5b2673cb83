"""`python -m tests.laws FIRST COUNT [--java] [--store FILE]`: judges seeds, says which laws break and where.

A seed that does not end is given up after some minutes, and the next goes on in another process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import ENVIRONMENT
from tests.laws.java import Judge
from tests.laws.judging import RELEASES, judged

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

SECONDS = 300


def work(pipe: Connection, java: bool, store: Path | None) -> None:
    """Answers seed after seed with what was done to its store, and the laws that it breaks."""
    with ExitStack() as stack, tempfile.TemporaryDirectory() as place:
        names = RELEASES if java else ()
        judges = {name: stack.enter_context(Judge(name, Path(place))) for name in names}
        while (seed := pipe.recv()) is not None:
            try:
                pipe.send(judged(seed, judges, store))
            except Exception:  # noqa: BLE001 - said, and the next seed is tried
                pipe.send(("?", [f"harness: {traceback.format_exc()[-900:]}"]))


class Worker:
    """A process that judges, replaced when it hangs."""

    def __init__(self, java: bool, store: Path | None) -> None:
        self._java, self._store = java, store
        self._process: multiprocessing.process.BaseProcess | None = None

    def judge(self, seed: int) -> tuple[str, list[str]]:
        if self._process is None:
            context = multiprocessing.get_context("fork")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=work, args=(theirs, self._java, self._store))
            self._process.start()
        self._pipe.send(seed)
        if self._pipe.poll(SECONDS):
            return self._pipe.recv()
        self._process.kill()
        self._process = None
        return "?", [f"bounded: no end after {SECONDS} s"]

    def close(self) -> None:
        if self._process is not None:
            self._pipe.send(None)
            self._process.join()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.laws", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--java", action="store_true", help="the real stores judge, too")
    parser.add_argument("--store", type=Path, help="a store that was kept for the seed FIRST")
    given = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    worker = Worker(given.java, given.store)
    for seed in range(given.first, given.first + given.count):
        begun = time.monotonic()
        reported, broken = worker.judge(seed)
        state = "BROKEN" if broken else "ok"
        print(f"{seed} {state} {time.monotonic() - begun:.1f}s {reported}", flush=True)
        for text in broken:
            print(f"    {text}", flush=True)
    worker.close()


if __name__ == "__main__":
    main()
