"""`pipeline stream`: goes on where it was, names what expired, and is refused where it cannot be meant."""

from __future__ import annotations

import json
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow.parquet import ParquetFile

import fixtures
from fixtures.builder import HandmadeLog
from rmqtool.api import open_store, scan
from rmqtool.errors import ExitCode
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

SEGMENT = 32768


def stream(*words: Any) -> Any:
    return rmq("pipeline", "stream", "--once", "--json", *words)


def local(root: Path) -> list[int]:
    batches = scan(open_store(root), columns=("physical_offset",))
    return [one for batch in batches for one in batch["physical_offset"].to_pylist()]


def written(spark: SparkSession, to: Path) -> list[int]:
    return sorted(row.physical_offset for row in spark.read.parquet(str(to)).collect())


def segment(root: Path, number: int) -> Path:
    return root / "commitlog" / f"{number * SEGMENT:020d}"


@pytest.mark.full
def test_goes_on_and_names_what_expired(
    spark: SparkSession, fresh_golden: Callable[[str], fixtures.Golden], tmp_path: Path
) -> None:
    root, aside, to = fresh_golden("v498-basic").path, tmp_path / "aside", tmp_path / "lake"
    every = local(root)
    aside.mkdir()
    for number in (2, 3):
        shutil.move(segment(root, number), aside)
    first = stream(root, "--to", to, "--partition", "topic,day", "--max-bytes", "40000")
    assert first.exit_code == 0, first.stderr
    reported = json.loads(first.stdout)
    head = [one for one in every if one < 2 * SEGMENT]
    assert (reported["messages"], reported["complete"]) == (len(head), True)
    assert reported["batches"] == 2
    assert written(spark, to) == head
    assert any(path.name.startswith("day=") for path in to.glob("topic=TopicA/*"))
    # the segment that comes next is gone before it was read
    shutil.move(aside / segment(root, 3).name, segment(root, 3))
    failed = stream(root, "--to", to, "--partition", "topic,day")
    assert failed.exit_code == ExitCode.INTERNAL
    gone = f"physical offsets {2 * SEGMENT} to {3 * SEGMENT} are gone"
    assert gone in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert written(spark, to) == head
    skipped = stream(root, "--to", to, "--partition", "topic,day", "--expired", "skip")
    reported = json.loads(skipped.stdout)
    assert (skipped.exit_code, reported["complete"]) == (3, False)
    assert gone in reported["not_covered"][0]["error"]
    assert written(spark, to) == [one for one in every if not 2 * SEGMENT <= one < 3 * SEGMENT]
    for other in (("--partition", "topic"), ("--format", "ndjson", "--partition", "topic,day")):
        refused = rmq("pipeline", "stream", "--once", root, "--to", to, *other)
        assert (refused.exit_code, "by topic,day" in refused.stderr) == (2, True)


def test_topics_too_long_for_the_name_of_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    """Whole in a column of its own: files do not have what Spark partitions by."""
    topics = ["L" * 300, "L" * 300 + "x", "ü" * 63, "L" * 200, "a/b"]
    log = HandmadeLog(segment_size=1 << 14)
    for topic in topics:
        log.put(topic, b"body")
    log.write(tmp_path / "store/commitlog")
    done = stream(tmp_path / "store", "--to", tmp_path / "lake", "--partition", "topic")
    assert done.exit_code == 0, done.stderr
    rows = spark.read.parquet(str(tmp_path / "lake")).select("topic", "whole_topic").collect()
    assert sorted(row.whole_topic or row.topic for row in rows) == sorted(topics)
    assert len({row.topic for row in rows}) == len(topics)
    assert {row.topic for row in rows if row.whole_topic is None} == {"L" * 200, "a/b"}
    once = rmq("pipeline", "export", tmp_path / "store", "--to", tmp_path / "out", "--partition", "topic")
    assert once.exit_code == 0, once.stderr
    files = (tmp_path / "out").rglob("*.parquet")
    whole = [topic for path in files for topic in ParquetFile(path).read(["topic"])[0].to_pylist()]
    assert sorted(whole) == sorted(topics)


def test_lines_of_several_stores(spark: SparkSession, goldens: dict[str, Path], tmp_path: Path) -> None:
    roots, to = [goldens["v498-basic"], goldens["v498-edge"]], tmp_path / "lines"
    columns = ("--columns", "store,topic,physical_offset,body")
    done = rmq("pipeline", "stream", "--once", *roots, "--to", to, "--format", "ndjson", *columns)
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for path in to.glob("*.json") for line in path.read_text().splitlines()]
    for root in roots:
        assert sorted(row["physical_offset"] for row in rows if row["store"] == str(root)) == local(root)


def test_refusals(goldens: dict[str, Path], tmp_path: Path) -> None:
    root, to = goldens["v498-basic"], tmp_path / "never"
    for words, text in (
        (("--to", to, "--start", "soon"), "'soon' must be one of: earliest"),
        (("--to", to, "--max-bytes", "0"), "a batch takes something"),
        (("--to", to, "--columns", "topics"), "no column topics"),
        (("--to", to, "--columns", "topic", "--partition", "day"), "needs the column store_time"),
        (("--to", root / "lake"), "lies in the store"),
        (("--to", to, "--topic", "\udcff"), "topic is not UTF-8 text"),
        (("--to", f"{to}\udcff"), "to is not UTF-8 text"),
        ((), "--to is missing"),
    ):
        refused = stream(root, *words)
        assert (refused.exit_code, text in refused.stderr) == (2, True), refused.stderr
    part = stream(next((root / "commitlog").iterdir()), "--to", to)
    assert (part.exit_code, "is a part of a store" in part.stderr) == (2, True)
    with tempfile.TemporaryDirectory() as place:
        dledger = stream(fixtures.open_golden("b533-dledger", place).path, "--to", to)
    assert (dledger.exit_code, "DLedger" in dledger.stderr) == (6, True)
    asked = rmq("pipeline", "sql", root, "select '\udcff'")
    assert (asked.exit_code, "SQL is not UTF-8 text" in asked.stderr) == (2, True)
    far = stream("memory://far/store", "--to", to)
    assert (far.exit_code, "takes stores in the file system only" in far.stderr) == (2, True)
    assert not to.exists()
