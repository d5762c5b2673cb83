"""One Spark session for all tests of a process."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fixtures
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


GOLDENS = ("v498-basic", "v533-compressed", "v533-batchcq", "v498-edge")
DAMAGED = 2


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session as the commands make it; commands that run in this process use it."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    from rmqtool.pipeline.session import make_session
    from rmqtool.pipeline.source import RocketMQSource

    assert str(ROOT) in sys.path
    session = make_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    session.dataSource.register(RocketMQSource)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def goldens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A choice of goldens: name → root."""
    directory = tmp_path_factory.mktemp("goldens")
    return {name: fixtures.open_golden(name, directory).path for name in GOLDENS}


@pytest.fixture(scope="session")
def damaged_stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A choice of the damage corpus: id → root."""
    directory = tmp_path_factory.mktemp("damaged")
    every = list(fixtures.damage_cases())
    chosen = every[:: len(every) // DAMAGED]
    return {case.id: fixtures.apply_case(case, directory / case.id) for case in chosen}
