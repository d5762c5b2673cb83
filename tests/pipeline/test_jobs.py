"""Each job answers what the local command answers, over real and over damaged stores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool.output.export.target import MARKER
from tests.helpers import rmq
from tests.pipeline.comparing import Differences

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    import fixtures

SMALL = ("--part-size", "20000")
"""pieces that cut even the segments of the fixtures"""


def without(summary: dict[str, Any]) -> dict[str, Any]:
    """What a job over several stores has of each."""
    names = {"seconds", "store", "schema", "type"}
    return {name: value for name, value in summary.items() if name not in names}


def by_store(done: Any) -> tuple[dict[str, list[Any]], dict[str, dict[str, Any]]]:
    """Rows and summary of each store out of the NDJSON of a job over several."""
    *rows, summary = done.rows
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.pop("store"), []).append(row)
    return found, {part["store"]: part for part in summary["stores"]}


@pytest.fixture(scope="module")
def stores(goldens: dict[str, Path], damaged_stores: dict[str, Path]) -> list[Path]:
    return [*goldens.values(), *damaged_stores.values()]


def test_verify(spark: SparkSession, stores: list[Path]) -> None:
    done = rmq("pipeline", "verify", *stores, "--format", "ndjson", "--fail-on", "note")
    rows, summaries = by_store(done)
    codes, differences = set(), Differences()
    for store in stores:
        local = rmq("verify", store, "--format", "ndjson", "--fail-on", "note")
        *expected, summary = local.rows
        differences.compare(store, "rows", rows.get(str(store), []), expected)
        differences.compare(store, "summary", without(summaries[str(store)]), without(summary))
        codes.add(local.exit_code)
    differences.none()
    assert done.exit_code == (3 if 3 in codes else max(codes))


def test_stats(spark: SparkSession, stores: list[Path]) -> None:
    same_statistics(stores, "--by", "topic,hour,tag", "--inflate")
    same_statistics(stores[:2], "--by", "group")
    same_statistics(stores[:2], "--retention")


def test_stats_without_a_segment(
    spark: SparkSession, fresh_golden: Callable[[str], fixtures.Golden], goldens: dict[str, Path]
) -> None:
    path = fresh_golden("v498-basic").path
    sorted((path / "commitlog").iterdir())[1].unlink()
    same_statistics([path, goldens["v498-edge"]])


def same_statistics(stores: list[Path], *options: str, cut: tuple[str, ...] = SMALL) -> None:
    done = rmq("pipeline", "stats", *stores, *options, "--format", "ndjson", *cut)
    rows, summaries = by_store(done)
    differences = Differences()
    for store in stores:
        local = rmq("stats", store, *options, "--format", "ndjson")
        *expected, summary = local.rows
        differences.compare(store, "rows", rows.get(str(store), []), expected)
        differences.compare(store, "summary", without(summaries[str(store)]), without(summary))
    differences.none()


def test_export_ndjson(spark: SparkSession, stores: list[Path], tmp_path: Path) -> None:
    same_lines([store for store in stores if any((store / "commitlog").iterdir())], tmp_path)


def same_lines(every: list[Path], tmp_path: Path, cut: tuple[str, ...] = SMALL) -> None:
    to = tmp_path / "out"
    done = rmq("pipeline", "export", *every, "--to", to, "--format", "ndjson", *cut)
    reported = json.loads((to / "_rmqtool-export.json").read_text())
    parts = {part["store"]: part for part in reported["stores"]}
    folders = {json_store(folder): folder for folder in to.iterdir() if folder.is_dir()}
    codes, differences = set(), Differences()
    for number, store in enumerate(every):
        single = tmp_path / f"{number}.ndjson"
        local = rmq("export", store, "--to", single, "--format", "ndjson", "--quiet")
        codes.add(local.exit_code)
        *expected, summary = single.read_text().splitlines()
        folder = folders.get(str(store))
        files = sorted(folder.rglob("*.ndjson")) if folder is not None else []
        found = [line for file in files for line in file.read_text().splitlines()]
        differences.compare(store, "lines", found, expected)
        differences.compare(store, "summary", without(parts[str(store)]), without(json.loads(summary)))
    differences.none()
    assert done.exit_code == max(codes)


def json_store(folder: Path) -> str:
    from urllib.parse import unquote

    return unquote(folder.name.removeprefix("store="))


def test_export_parquet_by_topic_and_day(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path
) -> None:
    import pyarrow.dataset as ds

    store = goldens["v533-compressed"]
    for command, place in ((("export",), "local"), (("pipeline", "export"), "spark")):
        options = SMALL if place == "spark" else ()
        done = rmq(
            *command,
            store,
            "--to",
            tmp_path / place,
            "--format",
            "parquet",
            "--partition",
            "topic,day",
            *options,
        )
        assert done.exit_code == 0, done.stderr
    tables = [
        ds.dataset(tmp_path / place, format="parquet", partitioning="hive", exclude_invalid_files=True)
        .to_table()
        .sort_by("physical_offset")
        for place in ("local", "spark")
    ]
    assert tables[0].equals(tables[1])
    assert tables[0].num_rows


def test_export_again_is_the_same_and_never_over_what_is_there(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path
) -> None:
    to = tmp_path / "out"
    command = ("pipeline", "export", goldens["v498-basic"], "--to", to, *SMALL)
    (tmp_path / "out.part" / "_attempts").mkdir(parents=True)  # what a killed run leaves
    (tmp_path / "out.part" / "part-00000-00000.parquet").write_bytes(b"old")
    (tmp_path / "out.part" / MARKER).touch()
    assert rmq(*command).exit_code == 0
    before = {path.relative_to(to): path.read_bytes() for path in to.rglob("*") if path.is_file()}
    assert len(before) > 2
    refused = rmq(*command)
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert rmq(*command, "--force").exit_code == 0
    assert {path.relative_to(to): path.read_bytes() for path in to.rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
