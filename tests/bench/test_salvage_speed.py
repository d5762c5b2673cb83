"""Carving reads images about as fast as they can be read, in bounded memory."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.bench.salvaging import carving, salvage_memory

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.data import BenchLog

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


def test_carving_keeps_up_with_reading(log: BenchLog, bench_directory: Path) -> None:
    figures = list(carving(bench_directory, log))
    assert [figure.cells() for figure in figures if not figure.held()] == []


@pytest.mark.full
def test_memory_does_not_follow_the_log(part: BenchLog, bench_directory: Path) -> None:
    figure = salvage_memory(part, bench_directory)
    shutil.rmtree(bench_directory / "salvaged")
    assert figure.met, figure.cells()
