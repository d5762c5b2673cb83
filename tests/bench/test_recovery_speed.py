"""Simulating a start against verifying."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.recovering import against_verify

if TYPE_CHECKING:
    from tests.bench.data import BenchLog

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


def test_a_start_is_simulated_about_as_fast_as_a_log_is_verified(log: BenchLog) -> None:
    figure = against_verify(log)
    assert figure.held(), figure.cells()
