"""`pipeline verify` in a session that runs already, beside `verify` as a command, and how its cost grows."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

from fixtures.derived import write_derived
from rmqtool.pipeline.options import SourceOptions
from rmqtool.pipeline.session import one_session
from rmqtool.pipeline.verify import verify
from tests.bench.data import make_log
from tests.bench.measure import Figure, in_turn, run_alone

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.bench.data import BenchLog

BYTES = int(os.environ.get("RMQTOOL_BENCH_PIPELINE_BYTES", str(256 << 20)))
"""bytes of the log that both verify; 8 GiB are what the target is about"""
SEGMENTS = 8
LOCAL_TARGET = 1.5
"""time on `local[2]` after the session has started, in units of the local command with two jobs"""
COUNTS = (1, 2, 4, 8, 16, 32)
STEP_BYTES = min(max(BYTES // 32, 8 << 20), 64 << 20)
"""bytes of a segment where only their number changes"""
LINEAR_TARGET = 1.25
"""time of twice the segments, in units of twice the time"""
ROUNDS = 3
NAME = "1 KiB"


def figures(directory: Path, rounds: int = ROUNDS) -> list[Figure]:
    """Both comparisons, in one session on two cores, as the command makes it."""
    with one_session("local[2]", {"spark.driver.host": "127.0.0.1"}, light=True) as session:
        return [_beside_local(session, directory, rounds), _growth(session, directory, rounds)]


def _store(directory: Path, size: int, segments: int) -> BenchLog:
    made = make_log(directory, NAME, size, segments)
    write_derived(made.root, made.facts)
    return made


def _beside_local(session: SparkSession, directory: Path, rounds: int) -> Figure:
    made = _store(directory, BYTES, SEGMENTS)
    took = in_turn(
        {
            "spark": lambda: on_spark(session, made.root),
            "local": lambda: run_alone("verify", made.root, "--jobs", "2", "--quiet", one_core=False).seconds,
        },
        rounds,
    )
    shutil.rmtree(made.root)
    spark, local = took["spark"].best, took["local"].best
    return Figure(
        f"pipeline verify on local[2], {BYTES >> 20:,} MiB in {SEGMENTS} segments",
        "verify --jobs 2",
        spark / local,
        LOCAL_TARGET,
        at_most=True,
        note=f"{spark:.2f} s, local {local:.2f} s",
    )


def _growth(session: SparkSession, directory: Path, rounds: int) -> Figure:
    made = {count: _store(directory, STEP_BYTES * count, count) for count in COUNTS}
    took = in_turn(
        {str(count): (lambda root=one.root: on_spark(session, root)) for count, one in made.items()}, rounds
    )
    for one in made.values():
        shutil.rmtree(one.root)
    seconds = {count: took[str(count)].best for count in COUNTS}
    last, before = COUNTS[-1], COUNTS[-2]
    return Figure(
        f"pipeline verify, {last} segments of {STEP_BYTES >> 20} MiB",
        f"twice the time of {before}",
        seconds[last] / (2 * seconds[before]),
        LINEAR_TARGET,
        at_most=True,
        note=", ".join(f"{count}: {value:.2f} s" for count, value in seconds.items()),
    )


def on_spark(session: SparkSession, root: Path) -> float:
    """Seconds of one run of the job over a store that is right."""
    began = time.perf_counter()
    (verdict,) = verify(session, SourceOptions((str(root),)))
    seconds = time.perf_counter() - began
    serious = {name: count for name, count in verdict.summary["by_severity"].items() if name != "note"}
    assert not any(serious.values()), verdict.findings[:3]
    return seconds
