"""Parquet files: cost of a message, and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.exporting import export_rate, partition_memory

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.data import BenchLog

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


def test_an_exported_message_costs_little_more_than_writing_its_columns(part: BenchLog) -> None:
    figure = export_rate(part)
    assert figure.met, figure.cells()


@pytest.mark.full
def test_memory_does_not_grow_with_partitions_and_log(bench_directory: Path) -> None:
    assert [figure.cells() for figure in partition_memory(bench_directory) if not figure.met] == []
