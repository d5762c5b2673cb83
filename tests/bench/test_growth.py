"""Cost goes with the bytes: at 4n about four times what it is at n."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.growing import CASES, Case, growth

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.full, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("case", CASES, ids=[one.name for one in CASES])
def test_time_grows_as_what_is_there(bench_directory: Path, case: Case) -> None:
    figures = list(growth(bench_directory, case))
    assert [figure.cells() for figure in figures if not figure.met] == []
