"""`pipeline stream` as a process of its own that is interrupted or killed: each message is there once."""

from __future__ import annotations

import json
import random
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers import rmq
from tests.pipeline.growing import GrowingStore
from tests.pipeline.processes import Process, end_group, program

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyspark.sql import SparkSession

KILLS = 4


def streaming(store: GrowingStore, to: Path) -> AbstractContextManager[Process]:
    """The command with a batch whenever there is something."""
    words = ("--every", "0.1", "--json", "--master", "local[1]")
    return program("pipeline", "stream", store.root, "--to", to, *words)


def after_batches(process: Process, number: int) -> None:
    """Waits until so many batches are reported of."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"batch {number}:"):
            return
    raise AssertionError("the stream has ended by itself")


def ended(process: Process) -> dict[str, Any]:
    """The summary of a stream that was asked to end, which says nothing else."""
    out, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    reported: dict[str, Any] = json.loads(out)
    assert (reported["complete"], reported["incomplete_reason"]) == (False, "interrupted")
    assert all(line.startswith("batch ") for line in error.splitlines()), error
    return reported


def is_whole(spark: SparkSession, store: GrowingStore, to: Path) -> None:
    """What is left is written by a run of its own; the table has each record of the log once."""
    done = rmq("pipeline", "stream", "--once", "--json", store.root, "--to", to)
    assert done.exit_code == 0, done.stderr
    rows = spark.read.parquet(str(to)).select("physical_offset").collect()
    assert sorted(row[0] for row in rows) == store.offsets


@pytest.mark.full
@pytest.mark.timeout(600)
def test_signals(spark: SparkSession, tmp_path: Path) -> None:
    store, to = GrowingStore(tmp_path / "store"), tmp_path / "lake"
    store.grow(20_001)
    messages = 0
    with store.growing(201):
        for sent in (signal.SIGINT, signal.SIGTERM):
            for whole_group in (False, True):
                with streaming(store, to) as process:
                    after_batches(process, 1)
                    if whole_group:
                        end_group(process, sent)
                    else:
                        process.send_signal(sent)
                    messages += ended(process)["messages"]
    assert 0 < messages <= len(store.offsets)
    is_whole(spark, store, to)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_killed_again_and_again(spark: SparkSession, tmp_path: Path) -> None:
    store, to = GrowingStore(tmp_path / "store"), tmp_path / "lake"
    store.grow(20_001)
    chosen = random.Random(7)
    with store.growing(501):
        for number in range(KILLS):
            with streaming(store, to) as process:
                after_batches(process, 1 + number % 3)
                time.sleep(chosen.random())
                if number % 2:
                    process.kill()  # Java sees the end of its input, a moment later
                    process.wait()
    is_whole(spark, store, to)
