"""`python -m tests.fuzz kernels|commands|jobs FIRST COUNT [--hours H]`: each seed is printed before it runs.

What ends this process (a byte behind a buffer, a hang, too much memory) is thus the last seed printed. It
goes on behind broken laws, says them, and ends with 1.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.conftest import ENVIRONMENT
from tests.fuzz.buffers import buffer
from tests.fuzz.commands import JOBS, VERBS, Case
from tests.scan.conftest import compiled_kernels
from tests.scan.guarded import before_guard, run_all_kernels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SECONDS = 300
"""of one seed, on a machine that has other work; then its stack is printed and the process ends"""
MEMORY = 8 << 30
"""bytes of its own that the process may have"""


def fuzz_kernels(seeds: Iterable[int]) -> int:
    """Every kernel on the buffer of every seed."""
    for seed in seeds:
        print("seed", seed, flush=True)
        with before_guard(buffer(Random(seed))) as guarded:
            run_all_kernels(guarded, compiled_kernels())
    return 0


def fuzz_commands(seeds: Iterable[int], verbs: Sequence[str] = VERBS) -> int:
    """The command of every seed, one of `verbs`; how many broke a law."""
    broken = 0
    with tempfile.TemporaryDirectory() as goldens:
        for seed in seeds:
            print("seed", seed, flush=True)
            with tempfile.TemporaryDirectory() as place:
                os.chdir(place)
                faulthandler.dump_traceback_later(SECONDS, exit=True)
                case = Case(seed, Path(place), Path(goldens), verbs)
                case.run()
                faulthandler.cancel_dump_traceback_later()
                os.chdir(goldens)
            for text in case.broken:
                print("BROKEN", seed, text, "|", *case.done, flush=True)
            broken += bool(case.broken)
    return broken


def fuzz_jobs(seeds: Iterable[int]) -> int:
    """The same with the commands of the pipeline, in one session of Spark."""
    from rmqtool.pipeline.session import one_session

    with one_session("local[1]"):
        limit_memory()
        return fuzz_commands(seeds, JOBS)


def limit_memory() -> None:
    """Of this process and those that it starts from now on."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


FUZZ = {"kernels": fuzz_kernels, "commands": fuzz_commands, "jobs": fuzz_jobs}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", choices=FUZZ)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--hours", type=float, help="go on from FIRST so long, whatever COUNT is")
    given = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    if given.what != "jobs":  # Java takes more
        limit_memory()
    seeds: Iterable[int] = range(given.first, given.first + given.count)
    if given.hours is not None:
        end = time.monotonic() + 3600 * given.hours
        seeds = itertools.takewhile(lambda _: time.monotonic() < end, itertools.count(given.first))
    broken = FUZZ[given.what](seeds)
    print("survived, broken:", broken, flush=True)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
