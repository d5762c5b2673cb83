"""`python -m tests.laws FIRST COUNT [OUT]`: judges that many seeds, one line a broken law; OUT is gone on with."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from fixtures.compound import make
from tests.conftest import ENVIRONMENT
from tests.laws.java import Judge
from tests.laws.judging import RELEASES, judge

SECONDS = 180


def one(seed: int, judges) -> tuple[str, list[str]]:
    """What was done to the store of a seed, and the laws it breaks."""
    place = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as work:
        made = make(seed, Path(work) / "case")
        told = f"{made.ground} | {' | '.join(made.done)}"
        (Path(work) / "out").mkdir()
        return told, judge(made, Path(work) / "out", judges)


def worker(pipe) -> None:
    judges = {}
    if os.environ.get("LAWS_JAVA"):
        place = Path(tempfile.mkdtemp())
        judges = {release: Judge(release, place) for release in RELEASES}
    while True:
        seed = pipe.recv()
        try:
            pipe.send(one(seed, judges))
        except Exception:
            pipe.send(("harness", [f"harness: {traceback.format_exc()[-900:]}"]))


def main() -> None:
    os.environ.update(ENVIRONMENT)
    first, count = int(sys.argv[1]), int(sys.argv[2])
    out = open(sys.argv[3], "a") if len(sys.argv) > 3 else sys.stdout
    context = multiprocessing.get_context("fork")
    process = None
    for seed in range(first, first + count):
        if process is None:
            mine, theirs = context.Pipe()
            process = context.Process(target=worker, args=(theirs,), daemon=True)
            process.start()
        begun = time.monotonic()
        mine.send(seed)
        if mine.poll(SECONDS):
            told, broken = mine.recv()
        else:
            told, broken = "?", [f"bounded: no end after {SECONDS} s"]
            process.kill()
            process.join()
            process = None
        took = time.monotonic() - begun
        print(f"{seed} {'ok' if not broken else 'BROKEN'} {took:.1f}s {told}", file=out, flush=True)
        for text in broken:
            print(f"    {text}", file=out, flush=True)


main()
