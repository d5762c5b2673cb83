"""The bench logs, made once a session and removed at its end."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.bench.data import EACH_SIZE, LEAST_BYTES, LOG_BYTES, BenchLog, make_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def bench_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where logs of some GiB may lie for a while."""
    directory = tmp_path_factory.mktemp("bench")
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module", params=EACH_SIZE)
def log(request: pytest.FixtureRequest, bench_directory: Path) -> Iterator[BenchLog]:
    """A log of full size, of each kind in turn."""
    made = make_log(bench_directory, request.param)
    yield made
    shutil.rmtree(made.root, ignore_errors=True)


@pytest.fixture(scope="module", params=EACH_SIZE)
def long_log(request: pytest.FixtureRequest, bench_directory: Path) -> Iterator[BenchLog]:
    """A log beside which what a run costs whatever its length is little."""
    made = make_log(bench_directory, request.param, max(LOG_BYTES, LEAST_BYTES))
    yield made
    shutil.rmtree(made.root, ignore_errors=True)


@pytest.fixture(scope="module", params=EACH_SIZE)
def part(request: pytest.FixtureRequest, bench_directory: Path) -> Iterator[BenchLog]:
    """A log of a quarter of the size, for what goes message by message."""
    made = make_log(bench_directory, request.param, LOG_BYTES // 4)
    yield made
    shutil.rmtree(made.root, ignore_errors=True)
