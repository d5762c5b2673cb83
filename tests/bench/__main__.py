"""`python -m tests.bench`: every figure once, as the table of docs/performance.md."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import appending, commands
from tests.bench.data import BODY_SIZES, LOG_BYTES, BenchLog, make_log, make_queue
from tests.bench.dumping import (
    MODES,
    RATE_TARGET,
    SEVERAL,
    SEVERAL_BYTES,
    STEADY_BYTES,
    Rate,
    dump_rate,
    log_rates,
    memory,
    memory_of_jobs,
)
from tests.bench.encoding import against_single_records
from tests.bench.exporting import export_rate, partition_memory
from tests.bench.growing import CASES, growth
from tests.bench.pipelining import figures as pipeline_figures
from tests.bench.querying import lookup_figure, make_indexed, scan_figure
from tests.bench.rebuilding import against_java_rebuild, rebuild_memory
from tests.bench.recovering import against_verify
from tests.bench.salvaging import carving
from tests.bench.scanning import against_java, against_plain_crc
from tests.bench.starting import help_time, start_time
from tests.bench.verifying import against_the_log, damaged_against_whole
from tests.interop.jars import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

from tests.bench.measure import Figure, settle

DUMPED = {"1 KiB": 1, "300 B": 4}
"""what part of the log is dumped, so that both give about as many messages"""


def main() -> None:
    """Print a line for each figure as soon as it is known, then the rates that have an absolute target."""
    machine = f"{os.cpu_count()} cores, {_processor()}, Python {platform.python_version()}"
    print(f"{machine}; logs of {LOG_BYTES >> 20} MiB\n")
    print("| what | against | ratio | target | met | |\n|---|---|---|---|---|---|", flush=True)
    rates: dict[str, Rate] = {}
    with tempfile.TemporaryDirectory(prefix="rmqtool-bench-") as name:
        for figure in _figures(Path(name), rates):
            print(f"| {' | '.join(figure.cells())} |", flush=True)
    print(
        "\n| rows of `dump --format ndjson` a second | process, one core | warm | target |\n|---|---|---|---|"
    )
    for subject, rate in rates.items():
        target = f"≥ {RATE_TARGET // 1000} k" if subject != "units" else ""
        print(f"| {subject} | {rate.process / 1000:,.0f} k | {rate.warm / 1000:,.0f} k | {target} |")


def _figures(directory: Path, rates: dict[str, Rate]) -> Iterator[Figure]:
    yield help_time()
    yield from map(against_single_records, (256, 1024))
    for size in appending.SIZES:
        place = directory / f"put-{size}"
        yield from appending.figures(
            appending.rates(place, appending.at_hand(), size, appending.MESSAGES, between=settle), size
        )
        shutil.rmtree(place)
    yield start_time(directory)
    for name in BODY_SIZES:
        log = make_log(directory, name)
        yield from against_plain_crc(log)
        yield from _java(log)
        yield from against_the_log(log)
        yield damaged_against_whole(log)
        yield against_verify(log)
        yield scan_figure(log)
        size = LOG_BYTES // DUMPED[name]
        dumped = log if size == LOG_BYTES else make_log(directory, name, size)
        for form, rate in log_rates(dumped).items():
            rates[f"{name}, {form}"] = rate
            yield rate.figure
        yield export_rate(dumped)
        yield from carving(directory, log)
        small = make_log(directory, name, min(STEADY_BYTES, size // 2))
        for mode in MODES:
            yield from memory(small, dumped, mode)
        yield from memory_of_jobs(make_log(directory, name, SEVERAL_BYTES, SEVERAL))
        for written in directory.glob("*/*/*"):
            if written.is_file():
                written.unlink()
    yield lookup_figure(*make_indexed(directory))
    yield from partition_memory(directory)
    yield from rebuild_memory(directory)
    for case in CASES:
        yield from growth(directory, case)
    queue, units = make_queue(directory)
    rates["units"] = dump_rate(queue, units, "consume-queue units")
    yield rates["units"].figure
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        print("skipped, Spark needs Java", file=sys.stderr)
    else:
        yield from pipeline_figures(directory)


def _java(log: BenchLog) -> Iterator[Figure]:
    try:
        yield from against_java(log)
        yield against_java_rebuild(log)
        yield from commands.against_java(log)
    except UnavailableError as missing:
        print(f"skipped, no real RocketMQ to compare with: {missing}", file=sys.stderr)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


if __name__ == "__main__":
    main()
