"""`verify` by parts: what comparing units and index costs beside the pass over the log itself."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import numpy as np

from fixtures.derived import write_derived
from rmqtool.check.cross import CrossCheck
from rmqtool.check.index import IndexCheck, LogRange
from rmqtool.check.index_keys import keys_of
from rmqtool.check.log import RecordCheck
from rmqtool.check.queue_files import OpenFiles, queues_of
from rmqtool.check.queue_order import check_units
from rmqtool.check.times import DAY_MS, TimeCheck, times_of
from rmqtool.check.verify import Verification
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.extensions import Extensions
from rmqtool.scan.fields import Check
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.partitions import Partitions
from rmqtool.scan.reader import BATCH_ROWS
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import Access
from rmqtool.store.layout import FileKind, Store
from tests.bench.measure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rmqtool.check.findings import Finding
    from tests.bench.data import BenchLog

CROSS_TARGET = 1.0
"""CPU time of a cross-check at most, in units of the log pass"""

DAMAGED_TARGET = 2.0
"""CPU time of `verify` where each queue file has entries of lost records, in that of a whole store"""
_LOST = 64
"""records that are lost"""

ROUNDS = 5


def against_the_log(log: BenchLog) -> list[Figure]:
    """CPU seconds of both cross-checks over those of the log pass, all of one run, best of some."""
    for made_by_java in ("consumequeue", "index"):
        shutil.rmtree(log.root / made_by_java, ignore_errors=True)
    write_derived(log.root, log.facts)
    store = Store.open(log.root)
    rounds = [_round(store) for _ in range(ROUNDS + 1)][1:]
    best = {part: min(one[part] for one in rounds) for part in ("log", "units", "index")}
    return [
        Figure(
            f"{what}, {log.name}",
            "scan and checks of the log",
            best[part] / best["log"],
            CROSS_TARGET,
            at_most=True,
            note=f"{best[part]:.2f} s CPU, log {best['log']:.2f} s",
        )
        for part, what in (
            ("units", "verify: records against units"),
            ("index", "verify: keys against index"),
        )
    ]


def damaged_against_whole(log: BenchLog) -> Figure:
    """CPU seconds of `verify` with some records zeroed over those without; `against_the_log` went before."""
    whole = min(_verified(log.root) for _ in range(ROUNDS))
    segment = np.memmap(log.segment, np.uint8, "r+")
    size = int.from_bytes(segment[:4].tobytes(), "big")
    records = segment[: log.facts.messages * size].reshape(-1, size)
    lost = np.arange(1, _LOST) * (len(records) // _LOST)
    kept = records[lost]
    records[lost] = 0
    damaged = min(_verified(log.root, len(lost)) for _ in range(ROUNDS))
    records[lost] = kept
    return Figure(
        f"`verify`, {len(lost)} records lost, {log.name}",
        "the store without damage",
        damaged / whole,
        DAMAGED_TARGET,
        at_most=True,
        note=f"{damaged:.2f} s CPU, whole {whole:.2f} s",
    )


def _verified(root: Path, dangling: int = 0) -> float:
    began = time.process_time()
    run = Verification(Store.open(root), ReadOptions())
    codes = [one.code for one in run.findings()]
    assert codes.count("CQ-DANGLING") == dangling
    return time.process_time() - began


def _round(store: Store) -> dict[str, float]:
    spent = {"log": 0.0, "units": 0.0, "index": 0.0}
    began = time.process_time()

    def lap(part: str) -> None:
        nonlocal began
        now = time.process_time()
        spent[part] += now - began
        began = now

    kernels = choose_kernels()
    files = OpenFiles(Access())
    with Extensions(store, Access()) as extensions:
        cross = CrossCheck(queues_of(store, FileKind.CONSUMEQUEUE, files), {}, extensions, kernels)
        lap("units")
        index = IndexCheck(store, kernels)
        lap("index")
        times, hashing = TimeCheck(), kernels.hashes
        for segment in store.segments:
            check, partitions = RecordCheck(segment), Partitions(kernels, BATCH_ROWS)
            with segment.open() as source:
                for event in SegmentScan(
                    source, segment.base, checks=Check.VERIFY, kernels=kernels, batch_rows=BATCH_ROWS
                ):
                    if not isinstance(event, Records):
                        continue
                    odd, even = kernels.dispatch.outline(event.rows, DAY_MS)
                    assert not check.wants(odd)
                    _silent(times.records(times_of(event.rows, even=bool(even)), segment))
                    lap("log")
                    _silent(cross.take(partitions.placed(event, segment.base)))
                    lap("units")
                    _silent(index.match(keys_of(hashing, event, segment.base)))
                    lap("index")
            lap("log")
        _silent(cross.close())
        for queue in cross.queues.values():
            _silent(check_units(queue, cross.kernels))
            assert all(queue.is_claimed(number) for number in range(len(queue.files)))
        files.close()
        lap("units")
        _silent(index.finish(LogRange(0, store.segments.end_offset), ()))
        lap("index")
    return spent


def _silent(findings: Iterator[Finding]) -> None:
    """Runs a check on a store that is right."""
    assert list(findings) == []
