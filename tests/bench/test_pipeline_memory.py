"""What docs/pipeline.md says of the memory of a task holds."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.bench.sparing import figures

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.full, pytest.mark.timeout(3600)]


@pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java")
def test_tasks_keep_to_their_memory(bench_directory: Path) -> None:
    assert [figure.cells() for figure in figures(bench_directory) if not figure.met] == []
