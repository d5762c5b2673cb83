"""Commands as processes, beside the broker's own store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.commands import against_java
from tests.interop.jars import UnavailableError

if TYPE_CHECKING:
    from tests.bench.data import BenchLog

pytestmark = [pytest.mark.bench, pytest.mark.full, pytest.mark.timeout(900)]


def test_commands_are_faster_than_the_broker(log: BenchLog) -> None:
    try:
        figures = list(against_java(log))
    except UnavailableError as missing:
        pytest.skip(f"no real RocketMQ to compare with: {missing}")
    assert [figure.cells() for figure in figures if not figure.held()] == []
