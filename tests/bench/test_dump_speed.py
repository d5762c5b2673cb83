"""NDJSON of logs and queues: cost of a row, and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.data import BODY_SIZES, EACH_SIZE, make_log, make_queue
from tests.bench.dumping import (
    FORMS,
    MODES,
    SEVERAL,
    SEVERAL_BYTES,
    STEADY_BYTES,
    dump_rate,
    memory,
    memory_of_jobs,
)
from tests.bench.starting import help_time, start_time
from tests.scan.conftest import ahead_kernels

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.data import BenchLog

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "form", [form if form == "bodies" else pytest.param(form, marks=pytest.mark.full) for form in FORMS]
)
def test_a_dumped_message_costs_little_more_than_its_json(part: BenchLog, form: str) -> None:
    found = dump_rate(part.root / "commitlog", part.facts.messages, f"{part.name}, {form}", FORMS[form])
    assert found.figure.met, found.figure.cells()


@pytest.mark.full
def test_a_dumped_unit_costs_little_more_than_its_json(bench_directory: Path) -> None:
    queue, units = make_queue(bench_directory)
    found = dump_rate(queue, units, "consume-queue units")
    assert found.figure.met, found.figure.cells()


@pytest.mark.parametrize("name", EACH_SIZE)
@pytest.mark.parametrize(
    "mode", [mode if mode == "--safe-io" else pytest.param(mode, marks=pytest.mark.full) for mode in MODES]
)
def test_memory_does_not_grow_with_the_log(name: str, mode: str, bench_directory: Path) -> None:
    small, large = (make_log(bench_directory, name, size) for size in (STEADY_BYTES, 2 * STEADY_BYTES))
    assert [figure.cells() for figure in memory(small, large, mode) if not figure.met] == []


@pytest.mark.full
@pytest.mark.parametrize("name", BODY_SIZES)
def test_memory_does_not_grow_with_the_jobs(name: str, bench_directory: Path) -> None:
    log = make_log(bench_directory, name, SEVERAL_BYTES, SEVERAL)
    assert [figure.cells() for figure in memory_of_jobs(log) if not figure.met] == []


@pytest.mark.full
def test_help_takes_at_most_twice_a_bare_program() -> None:
    figure = help_time()
    assert figure.met, figure.cells()


def test_the_first_command_on_a_machine_takes_little_longer_than_info(tmp_path: Path) -> None:
    ahead_kernels()
    figure = start_time(tmp_path)
    assert figure.held(), figure.cells()
