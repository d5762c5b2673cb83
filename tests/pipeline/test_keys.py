"""`pipeline query-key`: both joins answer what the local command answers."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import fixtures
from fixtures import strict
from rmqtool.pipeline.keys.fetching import ByStore, FetchHits, fetch
from rmqtool.pipeline.keys.key_request import KeyRequest
from rmqtool.pipeline.keys.query import BROADCAST_MOST
from rmqtool.pipeline.options import SourceOptions
from rmqtool.scan.picked import Missing, pick
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.pipeline.asking import MANY, key_file
from tests.pipeline.failing import DYING, DYING_TASKS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

SMALL = ("--part-size", "32768")


def same(stores: Sequence[Path], file: Path, *options: object, topic: str | None = None, join: str) -> Any:
    """Compares the answer over all stores with the local one of each; the closing summary."""
    given = ("--keys-file", file, *options, "--format", "ndjson")
    in_topic = () if topic is None else ("--key-topic", topic)
    done = rmq("pipeline", "query-key", *stores, *in_topic, *given, *SMALL, "--join", join)
    *rows, summary = done.rows
    assert summary["join"] == join
    reported = {part["store"]: part for part in summary["stores"]}
    codes = []
    for store in stores:
        local = rmq("query-key", store, topic or "-", *given)
        *expected, whole = local.rows
        mine = [without(row, "store") for row in rows if row["store"] == str(store)]
        assert mine == sorted(expected, key=lambda row: row["physical_offset"]), store
        part = reported[str(store)]
        names = set(whole) - {"schema", "type", "seconds", "not_found"}
        assert names == set(part) - {"store"}, store
        for name in sorted(names):
            assert settled(part[name]) == settled(whole[name]), (store, name)
        codes.append(local.exit_code)
    some = any(row["type"] == "message" for row in rows)
    assert done.exit_code == (3 if 3 in codes else 0 if some else 1), done.stderr
    return summary


def settled(value: Any) -> Any:
    return sorted(value, key=str) if isinstance(value, list) else value


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


@pytest.mark.full
@pytest.mark.parametrize("join", ["broadcast", "shuffle"])
def test_both_joins_answer_as_the_command(
    spark: SparkSession,
    goldens: dict[str, Path],
    damaged_stores: dict[str, Path],
    tmp_path: Path,
    join: str,
) -> None:
    stores = [goldens["v533-compressed"], *list(damaged_stores.values())[1:]]
    file = key_file(tmp_path, stores, absent=MANY if join == "shuffle" else 1)
    summary = same(stores, file, "--queue", "1", join=join)
    assert summary["messages"]
    assert summary["kept_back"]
    assert "absent-0" in summary["not_found"]


@pytest.mark.parametrize("join", ["broadcast", pytest.param("shuffle", marks=pytest.mark.full)])
def test_one_topic_read_from_the_log(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path, join: str
) -> None:
    stores = [goldens["v498-basic"]]
    rows = rmq("dump", stores[0], "--format", "ndjson").of_type("message")
    topic = rows[len(rows) // 2]["topic"]
    file = key_file(tmp_path, stores)
    summary = same(stores, file, "--source", "scan", topic=topic, join=join)
    assert 0 < summary["messages"] < len(rows)
    local = rmq("query-key", *stores, topic, "--keys-file", file, "--source", "scan", "--format", "ndjson")
    assert summary["not_found"] == local.rows[-1]["not_found"]


def test_a_few_keys_follow_chains_also_in_a_shuffle_join(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path
) -> None:
    stores = [goldens["v498-basic"]]
    assert same(stores, key_file(tmp_path, stores), "--source", "index", join="shuffle")["messages"]


@pytest.mark.parametrize("join", ["broadcast", pytest.param("shuffle", marks=pytest.mark.full)])
def test_of_many_places_without_a_record_the_first_are_named(
    spark: SparkSession, fresh_golden: Callable[[str], fixtures.Golden], tmp_path: Path, join: str
) -> None:
    """The driver holds and reads ten of a store, however many items lead to none."""
    store = fresh_golden("v498-basic").path
    file = key_file(tmp_path, [store], absent=MANY if join == "shuffle" else 1)
    segment = min((store / "commitlog").iterdir())
    with segment.open("r+b") as log:
        log.write(bytes(segment.stat().st_size // 2))
    part = same([store], file, "--source", "index", join=join)["stores"][0]
    rows = [row for row in part["not_covered"] if row["reason"] == "damage"]
    assert len(rows) == 11
    more = part["index_items_without_record"] - 10
    assert rows[-1]["error"] == f"{more} further places that the index knows hold no record"


@pytest.mark.parametrize("source", ["auto", pytest.param("index", marks=pytest.mark.full)])
@pytest.mark.parametrize("join", [pytest.param("broadcast", marks=pytest.mark.full), "shuffle"])
def test_records_that_lost_their_keys_alone(
    spark: SparkSession,
    fresh_golden: Callable[[str], fixtures.Golden],
    tmp_path: Path,
    join: str,
    source: str,
) -> None:
    """Bodies are right and no CRC covers properties: the index knows that keys were there."""
    store = fresh_golden("v498-basic").path
    file = key_file(tmp_path, [store], absent=MANY if join == "shuffle" else 1)
    records = [one for one in strict.walk(store)[0].values() if one.properties.get("KEYS")][4:8]
    for one in records:
        base = max(int(path.name) for path in (store / "commitlog").iterdir() if int(path.name) <= one.offset)
        with (store / f"commitlog/{base:020d}").open("r+b") as log:
            for name in ("UNIQ_KEY", "KEYS"):
                value = one.properties[name].encode()
                log.seek(one.offset - base + one.raw.index(value))
                log.write(b"z" * len(value))
    (part,) = same([store], file, "--source", source, join=join)["stores"]
    assert part["index_items_without_record"] > 2
    assert part["incomplete_reason"] == "damage"


@pytest.mark.full
def test_many_keys_are_shuffled_by_themselves(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert BROADCAST_MOST == 100_000
    monkeypatch.setattr("rmqtool.pipeline.keys.query.BROADCAST_MOST", 1000)
    store = goldens["v498-basic"]
    file = key_file(tmp_path, [store], absent=1000)
    done = rmq("pipeline", "query-key", store, "--keys-file", file, "--format", "ndjson")
    local = rmq("query-key", store, "-", "--keys-file", file, "--format", "ndjson")
    assert [without(row, "store") for row in done.rows[:-1]] == local.rows[:-1]
    summary = done.rows[-1]
    assert (summary["join"], summary["keys"]) == ("shuffle", local.rows[-1]["keys"])
    assert summary["not_found"] == local.rows[-1]["not_found"]


@pytest.mark.parametrize("source", ["auto", "index", "scan"])
@pytest.mark.parametrize("join", ["broadcast", "shuffle"])
@pytest.mark.full
@pytest.mark.timeout(600)
def test_both_joins_over_every_store(
    spark: SparkSession, every_log: list[Path], tmp_path: Path, join: str, source: str
) -> None:
    file = key_file(tmp_path, every_log[::6], absent=MANY if join == "shuffle" else 1)
    assert same(every_log, file, "--source", source, join=join)["messages"]


@pytest.fixture(scope="module")
def every_log(every_store: list[Path]) -> list[Path]:
    """A quarter of those of all stores that can be asked for keys."""
    return [path for path in every_store[::4] if rmq("query-key", path, "x").exit_code in {0, 1, 3}]


@pytest.mark.parametrize(
    ("join", "task"), [("broadcast", "KeyTask"), pytest.param("shuffle", "ScanTask", marks=pytest.mark.full)]
)
def test_tasks_that_die_are_named(
    spark: SparkSession,
    goldens: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    join: str,
    task: str,
) -> None:
    monkeypatch.setattr(f"rmqtool.pipeline.keys.{join}.{task}", DYING_TASKS[task])
    stores = [goldens["v533-batchcq"], goldens[DYING]]
    options = ("--keys-file", key_file(tmp_path, stores), "--source", "scan", "--format", "ndjson")
    done = rmq("pipeline", "query-key", *stores, *options, "--join", join, "--part-size", "0")
    *rows, summary = done.rows
    for store in stores:
        local = rmq("query-key", store, "-", *options).rows[:-1]
        there = [row["physical_offset"] for row in local if DYING not in str(store) or row["segment"]]
        found = [row["physical_offset"] for row in rows if row["store"] == str(store)]
        assert found == sorted(there), store
        assert there, store
    (lost,) = (row for row in summary["not_covered"] if row["reason"] == "unreadable")
    assert (lost["store"], lost["physical_offset"]) == (str(stores[1]), 0)
    assert done.exit_code == 3, done.stderr


def test_a_record_that_is_gone_when_it_is_fetched_is_named(
    spark: SparkSession, fresh_golden: Callable[[str], fixtures.Golden], tmp_path: Path
) -> None:
    store = fresh_golden("v498-basic").path
    options = SourceOptions((str(store),))
    path, rows = str(store), pa.record_batch({"store": [0], "physical_offset": [7], "matched_keys": [["a"]]})
    asked = SimpleNamespace(value=KeyRequest(columns=("topic",)))
    task = ByStore((path,), options, FetchHits(asked))
    note, row = (batch.to_pylist()[0] for batch in task([rows]))
    assert json.loads(note["note"])["not_covered"][0]["physical_offset"] == 7
    assert (row["matched_keys"], row["kept"]) == (["a"], False)
    shutil.rmtree(store)
    (batch,) = task([rows])
    assert "no such file" in batch["note"][0].as_py()


@pytest.mark.parametrize("step", [1, 2, 50])
def test_records_are_the_same_however_they_are_read(goldens: dict[str, Path], step: int) -> None:
    segments = Store.open(goldens["v498-basic"]).segments
    rows = rmq("dump", goldens["v498-basic"], "--format", "ndjson").of_type("message")
    offsets = np.array(sorted({row["physical_offset"] for row in rows}))[::step]
    columns = ("physical_offset", "topic", "properties", "body", "crc", "path")
    made = [one for one in fetch(segments, offsets, columns) if not isinstance(one, Missing)]
    picked = [one for one in pick(segments, offsets.tolist(), columns) if not isinstance(one, Missing)]
    assert pa.Table.from_batches(made).equals(pa.Table.from_batches(picked))
