"""Looking up a key, by the index and by reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.querying import lookup_figure, make_indexed, scan_figure

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.data import BenchLog

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


@pytest.mark.full
def test_the_first_lookup_in_a_full_index_file_takes_no_time_to_speak_of(bench_directory: Path) -> None:
    root, messages = make_indexed(bench_directory)
    figure = lookup_figure(root, messages)
    assert figure.held(), figure.cells()


def test_a_scan_for_a_key_goes_at_the_speed_of_verify_without_crc(long_log: BenchLog) -> None:
    figure = scan_figure(long_log)
    assert figure.held(), figure.cells()
