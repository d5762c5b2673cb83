"""Cross-checks beside the pass over the log."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.bench.data import EACH_SIZE, LOG_BYTES, make_log
from tests.bench.verifying import against_the_log

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

_LEAST = 384 << 20
"""bytes of log beside which the zeros at the end of the queue files are little"""


@pytest.mark.parametrize("name", EACH_SIZE)
def test_cross_checks_cost_less_than_the_log_pass(name: str, bench_directory: Path) -> None:
    log = make_log(bench_directory, name, max(LOG_BYTES, _LEAST))
    figures = against_the_log(log)
    shutil.rmtree(log.root)
    assert [figure.cells() for figure in figures if not figure.held()] == []
