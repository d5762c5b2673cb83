"""`export` to Parquet: rate, against reading the same columns without writing them."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.measure import Figure, in_turn

if TYPE_CHECKING:
    from tests.bench.data import BenchLog

RATE_TARGET = 300_000
"""messages a second on one core; told in the report, while the test holds the ratio"""
COST_TARGET = 2.5
"""cost of an export at most, in units of making its columns"""


def export_rate(log: BenchLog, rounds: int = 2) -> Figure:
    """CPU time of an export of a whole log, in this process."""
    count = log.facts.messages
    taken = in_turn({"export": lambda: _export(log) / count, "read": lambda: _read(log) / count}, rounds)
    cost = taken["export"].best / taken["read"].best
    note = f"{1 / taken['export'].best / 1000:,.0f} k messages/s, target {RATE_TARGET // 1000} k"
    return Figure(
        f"export to Parquet, {log.name}", "making its columns", cost, COST_TARGET, at_most=True, note=note
    )


def _export(log: BenchLog) -> float:
    from tests.helpers import rmq

    with tempfile.TemporaryDirectory(prefix="rmqtool-bench-", dir=log.root.parent) as name:
        began = time.process_time()
        result = rmq("export", log.root, "--to", Path(name) / "x.parquet", "--jobs", "1", "--quiet")
        seconds = time.process_time() - began
    assert result.exit_code == 0, result.stderr
    return seconds


def _read(log: BenchLog) -> float:
    from rmqtool.api import open_store, scan
    from rmqtool.output.export.record_table import RecordTable
    from rmqtool.output.messages import MessageShape

    columns = RecordTable(MessageShape("auto")).columns
    began = time.process_time()
    rows = sum(batch.num_rows for batch in scan(open_store(log.root), columns=columns))
    seconds = time.process_time() - began
    assert rows == log.facts.messages
    return seconds
