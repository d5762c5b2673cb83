"""Jobs over every golden and every damaged store, against the local commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import fixtures
from rmqtool.errors import RmqtoolError
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.pipeline import test_jobs, test_rebuild
from tests.pipeline.comparing import Differences

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

CUT = ("--part-size", "20000")
"""two pieces and more of a segment"""
NOT_BUILT = ("dledger", "rocksdb", "rocksdb-double", "rocksdb-unclean")
KEYS_OF_A_GOLDEN = 6
OF_KEYS = ("source", "candidates", "rejected_collisions", "complete", "index_files_not_used", "messages")
STATEMENTS = {
    "messages": "count(*) as n, count(body) as bodies, sum(store_size) as bytes, max(queue_offset) as last",
    "consumequeue": "count(*) as n, sum(size) as bytes, max(slot) as last",
    "index_items": "count(*) as n, sum(time_diff) as times, sum(physical_offset) as offsets",
}


@pytest.fixture(scope="module")
def every(every_store: list[Path]) -> list[Path]:
    """Those of them that can be opened."""
    found = []
    for path in every_store:
        try:
            Store.open(path)
        except RmqtoolError:
            continue
        found.append(path)
    return found


def decoded(every: list[Path]) -> list[Path]:
    """Those whose log is none of DLedger: commands that answer from a log end with these."""
    return [path for path in every if not path.parent.name.endswith("dledger")]


def test_verify(spark: SparkSession, every: list[Path]) -> None:
    test_jobs.test_verify(spark, every)


def test_stats(spark: SparkSession, every: list[Path]) -> None:
    test_jobs.same_statistics(decoded(every), "--by", "topic,hour,tag", "--inflate", cut=CUT)


def test_export(spark: SparkSession, every: list[Path], tmp_path: Path) -> None:
    with_log = [path for path in every if len(Store.open(path).segments)]
    test_jobs.same_lines(with_log, tmp_path, cut=CUT)


def test_rebuild_files(spark: SparkSession, every: list[Path], tmp_path: Path) -> None:
    fit = [path for path in every if not path.parent.name.endswith(NOT_BUILT)]
    test_rebuild.compare(test_rebuild.with_log(fit), tmp_path)


@pytest.fixture(scope="module")
def keys_file(every: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some keys of each golden, and one that nobody has."""
    chosen: dict[str, None] = {}
    for store in every[: len(fixtures.golden_names())]:
        rows = rmq("dump", store, "--format", "ndjson", "--body", "none").of_type("message")
        found = {key for row in rows for key in (*(row["keys"] or ()), row["uniq_key"]) if key}
        fit = sorted(key for key in found if key == key.strip() and "\n" not in key)
        chosen |= dict.fromkeys(fit[:: max(len(fit) // KEYS_OF_A_GOLDEN, 1)][:KEYS_OF_A_GOLDEN])
    path = tmp_path_factory.mktemp("keys") / "keys.txt"
    path.write_text("\n".join([*chosen, "no such key"]))
    return path


@pytest.mark.parametrize("source", ["auto", "index", "scan"])
def test_query_key(spark: SparkSession, every: list[Path], keys_file: Path, source: str) -> None:
    options = ("--keys-file", keys_file, "--source", source, "--format", "ndjson")
    done = rmq("pipeline", "query-key", *decoded(every), *options, *CUT)
    rows, reported = test_jobs.by_store(done)
    codes, differences = set(), Differences()
    for store in decoded(every):
        local = rmq("query-key", store, "-", *options)
        *expected, whole = local.rows
        expected.sort(key=lambda row: row["physical_offset"])
        differences.compare(store, "rows", rows.get(str(store), []), expected)
        part = reported[str(store)]
        for name in OF_KEYS:
            differences.compare(store, name, part.get(name), whole.get(name))
        for name in ("index_files", "not_covered"):
            differences.compare(store, name, in_order(part.get(name)), in_order(whole.get(name)))
        codes.add(local.exit_code)
    differences.none()
    assert done.exit_code == (3 if 3 in codes else 0), done.stderr


@pytest.mark.parametrize("table", list(STATEMENTS))
def test_sql(spark: SparkSession, every: list[Path], table: str) -> None:
    topic = "topic" if table != "index_items" else "path as topic"
    options = ("--format", "ndjson")
    select = f"{topic}, {STATEMENTS[table]} from {table}"
    done = rmq("pipeline", "sql", *every, f"select store, {select} group by all", *options, *CUT)
    *rows, summary = done.rows
    found, lacking = of_stores(rows), of_stores(summary.get("not_covered", ()))
    codes, differences = set(), Differences()
    for store in every:
        local = rmq("sql", store, f"select {select} group by all", *options)
        *expected, whole = local.rows
        differences.compare(store, "rows", in_order(found.get(str(store))), in_order(expected))
        lacks = lacking.get(str(store))
        differences.compare(store, "not_covered", in_order(lacks), in_order(whole.get("not_covered")))
        codes.add(local.exit_code)
    differences.none()
    assert done.exit_code == (3 if 3 in codes else 0), done.stderr


def of_stores(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["store"], []).append(
            {name: value for name, value in row.items() if name != "store"}
        )
    return found


def in_order(rows: list[Any] | None) -> list[Any]:
    return sorted(rows or (), key=lambda row: json.dumps(row, sort_keys=True))
