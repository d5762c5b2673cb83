"""Rebuilding queues and index against the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.rebuilding import against_java_rebuild, rebuild_memory
from tests.interop.jars import UnavailableError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.data import BenchLog

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


def test_queues_and_index_are_rebuilt_faster_than_by_the_broker(log: BenchLog) -> None:
    try:
        figure = against_java_rebuild(log)
    except UnavailableError as missing:
        pytest.skip(str(missing))
    assert figure.held(), figure.cells()


@pytest.mark.full
def test_memory_of_a_rebuild_does_not_grow_with_the_log(bench_directory: Path) -> None:
    assert [figure.cells() for figure in rebuild_memory(bench_directory) if not figure.met] == []
