"""Jobs over every golden and every damaged store, against the local commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import fixtures
from rmqtool.errors import RmqtoolError
from rmqtool.store.layout import Store
from tests.pipeline import test_jobs, test_rebuild

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

NOT_BUILT = ("dledger", "rocksdb", "rocksdb-double")


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All stores that can be opened."""
    place = tmp_path_factory.mktemp("every")
    paths = [fixtures.open_golden(name, place).path for name in fixtures.golden_names()]
    paths += [fixtures.apply_case(case, place / case.id) for case in fixtures.damage_cases()]
    found = []
    for path in paths:
        try:
            Store.open(path)
        except RmqtoolError:
            continue
        found.append(path)
    return found


def test_verify(spark: SparkSession, every: list[Path]) -> None:
    test_jobs.test_verify(spark, every)


def test_stats(spark: SparkSession, every: list[Path]) -> None:
    test_jobs.same_statistics(every, "--by", "topic,hour,tag", "--inflate")


def test_export(spark: SparkSession, every: list[Path], tmp_path: Path) -> None:
    with_log = [path for path in every if len(Store.open(path).segments)]
    test_jobs.test_export_ndjson(spark, with_log, tmp_path)


def test_rebuild_files(spark: SparkSession, every: list[Path], tmp_path: Path) -> None:
    fit = [path for path in every if not path.parent.name.endswith(NOT_BUILT)]
    test_rebuild.compare(test_rebuild.with_log(fit), tmp_path)
