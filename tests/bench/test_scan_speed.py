"""Reading logs against the plain CRC and against Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.scanning import against_java, against_plain_crc
from tests.interop.jars import UnavailableError

if TYPE_CHECKING:
    from tests.bench.data import BenchLog

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


def test_scan_reaches_its_share_of_a_plain_crc_pass(log: BenchLog) -> None:
    figures = against_plain_crc(log)
    assert [figure.cells() for figure in figures if not figure.held()] == []


@pytest.mark.full
def test_scan_is_faster_than_the_load_of_the_java_store(log: BenchLog) -> None:
    try:
        figures = against_java(log)
    except UnavailableError as missing:
        pytest.skip(f"no real RocketMQ to compare with: {missing}")
    assert [figure.cells() for figure in figures if not figure.held()] == []
