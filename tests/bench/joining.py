"""Both joins of `pipeline query-key`: how long, and how large the worker processes become."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from fixtures.derived import write_derived
from rmqtool.pipeline.arrow_map import map_in_arrow
from rmqtool.pipeline.keys.key_request import Join, KeyRequest
from rmqtool.pipeline.keys.query import KeySearch
from rmqtool.pipeline.options import SourceOptions
from rmqtool.pipeline.session import one_session, parallelism
from rmqtool.pipeline.types import struct_of
from rmqtool.query.by_key import KeySource
from rmqtool.store.layout import Store
from tests.bench.data import make_log
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

BYTES = int(os.environ.get("RMQTOOL_BENCH_PIPELINE_BYTES", str(256 << 20)))
"""bytes of the log"""
HITS = 50_000
"""keys that a message has, of all that are asked for"""


@dataclass(frozen=True)
class Run:
    """seconds: of the search, records fetched. worker: MiB that the largest worker process had at most."""

    seconds: float
    worker: float
    found: int


def make_store(directory: Path) -> Path:
    """A store with log, queues and index."""
    made = make_log(directory, "1 KiB", BYTES, max(BYTES >> 30, 1))
    write_derived(made.root, made.facts)
    return made.root


def keys(count: int) -> Iterator[str]:
    """`HITS` keys of the log, as far as it goes, and others of the same length."""
    yield from (f"order-{number * 7:010d}" for number in range(min(HITS, count)))
    yield from (f"absent{number:010d}" for number in range(count - min(HITS, count)))


def run(root: Path, join: str, source: str, count: int) -> Run:
    """One search, in a process and a session of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.joining", str(root), join, source, str(count)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def _largest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        time.sleep(0.2)  # so that each worker gets some
        yield pa.record_batch({"kib": [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]})


def main(root: str, join: str, source: str, count: str) -> Run:
    """The work of `run`."""
    with one_session("local[2]", {"spark.driver.host": "127.0.0.1"}) as session, ExitStack() as stack:
        session.range(1).count()
        began = time.perf_counter()
        search = KeySearch(session, SourceOptions((root,)), {root: Store.open(root)}, stack)
        asked = KeyRequest(source=KeySource(source), columns=("topic", "keys", "body"))
        found = search.find(asked, keys(int(count)), Join(join))
        seconds = time.perf_counter() - began
        tasks = 4 * parallelism(session)
        struct = struct_of(pa.schema([("kib", pa.int64())]))
        largest = (
            map_in_arrow(session.range(0, tasks, 1, tasks), _largest, struct).agg({"kib": "max"}).first()
        )
    return Run(round(seconds, 2), round(largest[0] / 1024), found.found)


if __name__ == "__main__":
    print(json.dumps(vars(main(*sys.argv[1:]))))
