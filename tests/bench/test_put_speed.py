"""The message store keeps its distance to SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.appending import MESSAGES, figures, rates

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("body_bytes", "number"), [(256, MESSAGES // 5), pytest.param(1024, MESSAGES, marks=pytest.mark.full)]
)
def test_ratios_to_sqlite(tmp_path: Path, body_bytes: int, number: int) -> None:
    taken = rates(tmp_path, ("rmqtool", "sqlite"), body_bytes, number)
    short = [one.cells() for one in figures(taken, body_bytes) if not one.held()]
    assert not short
