"""Spark costs a session, not the work."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.bench.pipelining import figures

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]


@pytest.mark.full
@pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java")
def test_verify_on_spark_is_as_fast_as_the_command(bench_directory: Path) -> None:
    assert [figure.cells() for figure in figures(bench_directory, rounds=2) if not figure.held()] == []
