"""Parquet files: cost of a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.exporting import export_rate

if TYPE_CHECKING:
    from tests.bench.data import BenchLog

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


def test_an_exported_message_costs_little_more_than_its_columns(part: BenchLog) -> None:
    figure = export_rate(part)
    assert figure.met, figure.cells()
