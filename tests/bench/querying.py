"""Looking up a key: through a full index file of default size, and by reading all of the log."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from fixtures import logs
from fixtures.derived import write_full_index
from rmqtool.check.log import RecordCheck
from rmqtool.check.times import DAY_MS, TimeCheck, times_of
from rmqtool.query.by_key import KeySource
from rmqtool.query.key_query import KeyQuery
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check
from rmqtool.scan.keys import key_hashes
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.reader import BATCH_ROWS
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.layout import Store
from tests.bench.measure import Figure, in_turn
from tests.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.data import BenchLog

INDEXED_BYTES = 256 << 20
LOOKUP_SECONDS = 0.05
"""of a first lookup, once the program has started"""
LOOKUPS = 15
SCAN_TARGET = 1.0
"""speed of a scan for a key at least, in units of `verify` without the CRC of bodies"""

# What a program pays once comes first: libraries, those too that Arrow loads when it is first used, and the
# opening of the store.
FIRST_LOOKUP = """
import sys, time
import pyarrow, pyarrow.compute
import rmqtool.scan.picked, rmqtool.scan.table
from rmqtool.query.by_key import KeySource
from rmqtool.query.key_query import KeyQuery
from rmqtool.scan.options import ReadOptions
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.store.layout import Store
pyarrow.compute.fill_null(pyarrow.array([1, None]), 0)
pyarrow.array(pyarrow.array([True]).to_numpy(False))
store = Store.open(sys.argv[1])
for topic, key in zip(sys.argv[2::2], sys.argv[3::2]):
    began = time.perf_counter()
    query = KeyQuery(store, WantedKeys([key], topic), KeySource.AUTO, ReadOptions())
    found = sum(batch.num_rows for batch, _ in query.batches(("physical_offset", "topic", "keys", "body")))
    print(time.perf_counter() - began)
    assert found == 1 and query.answer.source == "index", (found, query.answer)
"""


def make_indexed(directory: Path) -> tuple[Path, int]:
    """A store with one index file of 420 MB that is full, and how many messages it has."""
    root = directory / "indexed"
    shutil.rmtree(root, ignore_errors=True)
    facts = logs.write_log(
        root / "commitlog", INDEXED_BYTES, body_size=logs.BODY_OF_300, segment_size=1 << 30
    )
    write_full_index(root, facts)
    return root, facts.messages


def lookup_times(root: Path, messages: int) -> tuple[list[float], list[float]]:
    """Seconds of the first lookup of a process, and of further ones in it, over some processes."""
    first: list[float] = []
    later: list[float] = []
    for number in range(LOOKUPS):
        wanted = [(number * 7919 + step * 104_729) * 31 % messages for step in range(3)]
        keys = [text for one in wanted for text in (logs.TOPICS[one % 4], f"order-{one:010d}")]
        done = subprocess.run(
            [sys.executable, "-c", FIRST_LOOKUP, str(root), *keys],
            capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        seconds = [float(line) for line in done.stdout.split()]
        first.append(seconds[0])
        later += seconds[1:]
    return first, later


def lookup_figure(root: Path, messages: int) -> Figure:
    """The first lookup of a process against the time that one may take."""
    first, later = lookup_times(root, messages)
    ratio = sorted(first)[len(first) // 2] / LOOKUP_SECONDS
    note = f"median {1000 * ratio * LOOKUP_SECONDS:.0f} ms, best {1000 * min(first):.0f} ms"
    note += f"; later ones {1000 * min(later):.1f} ms"
    return Figure("first key in an index of 420 MB", "50 ms", ratio, 1.0, at_most=True, note=note)


def scan_figure(log: BenchLog, rounds: int = 4) -> Figure:
    """`query-key --source scan` against `verify` without CRC, each on one thread, by CPU time."""
    taken = in_turn({"scan": lambda: _scan(log), "verify": lambda: _verify(log)}, rounds)
    ratio = taken["verify"].best / taken["scan"].best
    note = f"{log.size / taken['scan'].best / 1e9:.1f} GB/s; by CPU time"
    return Figure(f"query-key --source scan, {log.name}", "verify without CRC", ratio, SCAN_TARGET, note=note)


def _scan(log: BenchLog) -> float:
    began = time.process_time()
    number = log.facts.messages // 2
    wanted = WantedKeys([f"order-{number:010d}"], logs.TOPICS[number % 4])
    query = KeyQuery(Store.open(log.root), wanted, KeySource.SCAN, ReadOptions(jobs=1))
    assert len(query.answer.matches) == 1
    return time.process_time() - began


def _verify(log: BenchLog) -> float:
    """The pass of `verify` over the log alone: frames, texts, times and key hashes of all records."""
    began = time.process_time()
    kernels, times = choose_kernels(), TimeCheck()
    for segment in Store.open(log.root).segments:
        check = RecordCheck(segment)
        with segment.open() as source:
            scan = SegmentScan(
                source, segment.base, checks=Check.TEXT, kernels=kernels, batch_rows=BATCH_ROWS
            )
            for event in scan:
                if isinstance(event, Records):
                    odd, even = kernels.dispatch.outline(event.rows, DAY_MS)
                    assert not check.wants(odd)
                    assert list(times.records(times_of(event.rows, even=bool(even)), segment)) == []
                    key_hashes(kernels.hashes, event)
    return time.process_time() - began
