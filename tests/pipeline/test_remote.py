"""The jobs on an object store say what they say of the same store in a directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest

from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def far(bucket: str, goldens: dict[str, Path], damaged_stores: dict[str, Path]) -> dict[str, Path]:
    """Address → the same store here."""
    import s3fs

    system = s3fs.S3FileSystem()
    every = [*goldens.values(), *damaged_stores.values()]
    chosen = sorted(every, key=lambda root: sum(1 for _ in root.rglob("*")))[:2]
    chosen.insert(0, goldens["v498-basic"])
    found: dict[str, Path] = {}
    for number, root in enumerate(chosen):
        place = f"{bucket}/broker-{number}/store"
        for path in root.rglob("*"):
            if path.is_file():
                system.pipe_file(f"{place}/{path.relative_to(root).as_posix()}", path.read_bytes())
        for marker in ("", "commitlog/", "consumequeue/"):  # as a console makes them for directories
            put(bucket, f"broker-{number}/store/{marker}", b"")
        put(bucket, f"broker-{number}/store10/commitlog/{0:020d}", b"foreign")
        found[f"s3://{place}"] = root
    return found


def put(bucket: str, key: str, data: bytes) -> None:
    """An object under any key; s3fs has a mind of its own about some."""
    import s3fs

    s3fs.S3FileSystem().call_s3("put_object", Bucket=bucket, Key=key, Body=data)


def rows_of(done: Any, *drop: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in done.rows[:-1]:
        kept = {name: value for name, value in row.items() if name not in {"store", *drop}}
        found.setdefault(row["store"], []).append(kept)
    return found


def test_verify_and_stats(spark: SparkSession, far: dict[str, Path]) -> None:
    """A pattern names them all."""
    for words in (("verify", "--fail-on", "note"), ("stats", "--by", "topic,tag")):
        name, *options = words
        done = rmq("pipeline", name, "s3://stores/broker-*/store", "--format", "ndjson", *options)
        found = rows_of(done)
        for address, root in far.items():
            local = rmq(name, root, "--format", "ndjson", *options)
            assert found.get(address, []) == local.rows[:-1], (name, address)


def test_export_and_keys(spark: SparkSession, far: dict[str, Path], tmp_path: Path) -> None:
    address, root = next(iter(far.items()))
    done = rmq("pipeline", "export", address, "--to", tmp_path / "far", "--part-size", "8192")
    assert done.exit_code == 0, done.stderr
    assert rmq("export", root, "--to", tmp_path / "near.parquet").exit_code == 0
    tables = [ds.dataset(tmp_path / name).to_table() for name in ("far", "near.parquet")]
    assert tables[0].sort_by("physical_offset").equals(tables[1].select(tables[0].column_names))
    keys = [one for one in tables[1]["keys"].to_pylist() if one][:3]
    words = [word for key in keys for word in ("--key", key[0])]
    near, there = (
        [json.loads(line) for line in done.stdout.splitlines()][:-1]
        for done in (
            rmq("pipeline", "query-key", place, *words, "--format", "ndjson") for place in (root, address)
        )
    )
    assert len(near) > 0
    assert [one["physical_offset"] for one in there] == [one["physical_offset"] for one in near]


@pytest.mark.full
def test_table(spark: SparkSession, far: dict[str, Path]) -> None:
    address, root = next(iter(far.items()))
    read = spark.read.format("rocketmq")
    assert read.load(address).count() == read.load(str(root)).count() > 0
    assert read.option("table", "segments").load(address).count() == 4


@pytest.mark.parametrize(
    "statement",
    [
        "select topic, count(*) as n, max(body_length) as b from messages group by topic order by topic",
        pytest.param(
            "select c.topic, c.queue_id, slot, m.tags from consumequeue c join messages m"
            " on c.physical_offset = m.physical_offset where m.queue_offset < 3 order by 1, 2, 3",
            marks=pytest.mark.full,
        ),
        pytest.param(
            "select path, number, key_hash from index_items where number < 5 order by path, number",
            marks=pytest.mark.full,
        ),
    ],
)
def test_sql(spark: SparkSession, far: dict[str, Path], statement: str) -> None:
    address, root = next(iter(far.items()))
    done = rmq("pipeline", "sql", address, statement, "--format", "ndjson", "--part-size", "8192")
    assert done.exit_code == 0, done.stderr
    assert done.rows[:-1] == rmq("sql", root, statement, "--format", "ndjson").rows[:-1]
    assert len(done.rows) > 1


@pytest.mark.full
def test_sql_over_several_addresses(spark: SparkSession, far: dict[str, Path]) -> None:
    """What is damaged there is named with its address."""
    statement = "select store, count(body) as n from messages group by store order by store"
    done = rmq("pipeline", "sql", "s3://stores/broker-*/store", statement, "--format", "ndjson")
    counts, lacking = {}, []
    for address, root in far.items():
        local = rmq("sql", root, "select count(body) as n from messages", "--format", "ndjson")
        counts[address] = local.rows[0]["n"]
        lacking += [row | {"store": address} for row in local.rows[-1].get("not_covered", ())]
    assert {row["store"]: row["n"] for row in done.rows[:-1]} == {k: n for k, n in counts.items() if n}
    assert sorted(map(str, done.rows[-1].get("not_covered", ()))) == sorted(map(str, lacking))


def test_what_is_not_there(spark: SparkSession, bucket: str) -> None:
    for place, text in (
        (f"s3://{bucket}/none", "no such file or directory"),
        (f"s3://{bucket}/none-*/store", "matches nothing"),
        ("s3://no-such-bucket-at-all/store", "no such file or directory"),
        ("nowhere://x/store", "nowhere:// addresses cannot be read here"),
    ):
        done = rmq("pipeline", "verify", place)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
        assert text in done.stderr
    assert rmq("verify", "s3://stores/x").exit_code == 2


def test_keys_that_are_no_paths(spark: SparkSession, bucket: str, goldens: dict[str, Path]) -> None:
    """Named, not read; the others are the store, whatever is in their names."""
    root, place = goldens["v498-basic"], "strange/a b%2f#c\u202e/store"
    for path in root.rglob("*"):
        if path.is_file():
            put(bucket, f"{place}/{path.relative_to(root).as_posix()}", path.read_bytes())
    segment = (root / "commitlog" / f"{0:020d}").read_bytes()
    strange = ("commitlog//0", "../commitlog/0", "commitlog/../../0", f"commitlog/{0:020d}?versionId=1")
    for key in strange:
        put(bucket, f"{place}/{key}", segment)
    done = rmq("pipeline", "stats", f"s3://{bucket}/{place}", "--format", "ndjson")
    assert done.rows[:-1] == rmq("stats", root, "--format", "ndjson").rows[:-1]
    assert done.exit_code == 3
    assert [row["path"] for row in done.rows[-1]["not_covered"]] == [strange[-1]]
    for key in strange:
        assert f"{key}: its key is not a path" in done.stderr
    assert "\u202e" not in done.stdout + done.stderr
