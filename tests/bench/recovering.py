"""A start simulated, against the pass of `verify` over the same log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rmqtool.check.verify import Verification
from rmqtool.recovery.simulation import simulate
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.bench.measure import Figure, in_turn

if TYPE_CHECKING:
    from tests.bench.data import BenchLog

VERIFY_TARGET = 0.4
"""of a `verify` whose checks are made in the kernel: a start asks for topics and queues of every record"""


def against_verify(log: BenchLog) -> Figure:
    """Every record checked as recovery does it and dispatched to its queue, by one thread."""
    taken = in_turn({"simulate": lambda: _simulate(log), "verify": lambda: _verify(log)}, rounds=5)
    ratio = taken["verify"].best / taken["simulate"].best
    note = f"{log.size / taken['simulate'].best / 1e9:.1f} GB/s; by CPU time"
    return Figure(f"a start simulated, {log.name}", "verify, one thread", ratio, VERIFY_TARGET, note=note)


def _simulate(log: BenchLog) -> float:
    began = time.process_time()
    store = Store.open(log.root)
    reading = ReadOptions.of(store)
    outcome = simulate(store, "5.3.3", reading=reading)
    assert sum(one.max_offset for one in outcome.queues) == log.facts.messages
    return time.process_time() - began


def _verify(log: BenchLog) -> float:
    began = time.process_time()
    opened = Store.open(log.root)
    run = Verification(opened, ReadOptions.of(opened))
    for _ in run.findings():
        pass
    return time.process_time() - began
