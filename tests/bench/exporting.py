"""`export` to Parquet: rate, against writing ready-made columns; memory where there are many partitions."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.data import make_log, spread
from tests.bench.dumping import GROWTH_TARGET, MEMORY_TARGET
from tests.bench.measure import Figure, in_turn, run_alone

if TYPE_CHECKING:
    import pyarrow as pa

    from tests.bench.data import BenchLog

RATE_TARGET = 300_000
"""messages a second on one core; shown in the report, while the test holds the ratio"""
COST_TARGET = 2.5
"""cost of an export at most, in units of writing its columns"""
GROUP_BYTES = 64 << 20

TOPICS, DAYS = 300, 2
PARTITIONED_BYTES = 256 << 20


def export_rate(log: BenchLog, rounds: int = 2) -> Figure:
    """CPU time of an export of a whole log, in this process."""
    count = log.facts.messages
    taken = in_turn({"export": lambda: _export(log) / count, "write": lambda: _write(log) / count}, rounds)
    cost = taken["export"].best / taken["write"].best
    note = f"{1 / taken['export'].best / 1000:,.0f} k messages/s, target {RATE_TARGET // 1000} k"
    return Figure(
        f"export to Parquet, {log.name}", "pyarrow writing its columns", cost, COST_TARGET, at_most=True,
        note=note,
    )  # fmt: skip


def partition_memory(directory: Path) -> list[Figure]:
    """Peak memory of an export into hundreds of partitions, and how much more a log twice as long needs."""
    peaks = []
    for size in (PARTITIONED_BYTES, 2 * PARTITIONED_BYTES):
        log = make_log(directory / f"spread-{size}", "1 KiB", size)
        spread(log, TOPICS, DAYS)
        lake = directory / "lake"
        ran = run_alone(
            "export", log.root, "--to", lake, "--partition", "topic,day", "--jobs", "1", "--quiet"
        )
        peaks.append(ran.peak_own)
        shutil.rmtree(lake)
        shutil.rmtree(log.root)
    subject = f"of export into {TOPICS * DAYS} partitions"
    note = f"{peaks[0]:.0f} MiB, then {peaks[1]:.0f} MiB"
    return [
        Figure(f"peak MiB {subject}", "", peaks[1], MEMORY_TARGET, at_most=True, note=note),
        Figure(
            f"MiB more {subject}, twice the log", "", peaks[1] - peaks[0], GROWTH_TARGET, at_most=True,
            note=note,
        ),
    ]  # fmt: skip


def _export(log: BenchLog) -> float:
    from tests.helpers import rmq

    with tempfile.TemporaryDirectory(prefix="rmqtool-bench-", dir=log.root.parent) as name:
        began = time.process_time()
        result = rmq("export", log.root, "--to", Path(name) / "x.parquet", "--jobs", "1", "--quiet")
        seconds = time.process_time() - began
    assert result.exit_code == 0, result.stderr
    return seconds


def _write(log: BenchLog) -> float:
    """pyarrow with its own settings and the same codec; what makes the columns is not counted."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rmqtool.api import open_store, scan
    from rmqtool.output.export.record_table import RecordTable
    from rmqtool.output.messages import MessageShape

    table = RecordTable(MessageShape("auto"))
    seconds, waiting = 0.0, list[pa.RecordBatch]()
    with tempfile.TemporaryDirectory(prefix="rmqtool-bench-", dir=log.root.parent) as name:
        began = time.process_time()
        with pq.ParquetWriter(Path(name) / "x.parquet", table.schema, compression="zstd") as writer:
            seconds += time.process_time() - began
            for batch in scan(open_store(log.root), columns=table.columns):
                waiting.append(table.arrange(batch))
                if sum(one.nbytes for one in waiting) >= GROUP_BYTES:
                    seconds += _group(writer, waiting)
            seconds += _group(writer, waiting)
            began = time.process_time()
        return seconds + time.process_time() - began


def _group(writer: object, waiting: list[pa.RecordBatch]) -> float:
    """Writes a row group; CPU seconds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert isinstance(writer, pq.ParquetWriter)
    if not waiting:
        return 0.0
    table = pa.Table.from_batches(waiting)
    began = time.process_time()
    writer.write_table(table, row_group_size=table.num_rows)
    seconds = time.process_time() - began
    waiting.clear()
    return seconds
