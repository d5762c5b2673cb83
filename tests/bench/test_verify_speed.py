"""Cross-checks beside the pass over the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.verifying import against_the_log, damaged_against_whole

if TYPE_CHECKING:
    from tests.bench.data import BenchLog

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


def test_cross_checks_cost_less_than_the_log_pass(long_log: BenchLog) -> None:
    figures = [*against_the_log(long_log), damaged_against_whole(long_log)]
    assert [figure.cells() for figure in figures if not figure.held()] == []
