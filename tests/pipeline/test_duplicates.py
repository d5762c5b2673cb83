"""`pipeline stats --duplicates` tells what `stats --duplicates` tells, however the work is dealt out."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import fixtures
from fixtures.builder import HandmadeLog, damage_file, overwrite
from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.duplicates import deal_out, judge_keys
from rmqtool.pipeline.parts import log_parts
from rmqtool.query.duplicates.hashes import Repeated, Room
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.stats.report import LogStatistics
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

PlanSummary = tuple[list[dict[str, Any]], dict[str, Any]]
TASKS = 3
NAMES = ("key", "topic", "messages", "physical_offsets", "copies")
SUMS = ("duplicate_keys", "duplicate_messages", "copies_explained")


def locally(store: Store, wanted: MessageFilter, *, by_key: bool) -> PlanSummary:
    found = LogStatistics(store, wanted, (), ReadOptions(), repeated=Repeated(by_key))
    found.read()
    rows = list(found.duplicates())
    summary = found.summary()
    return rows, {name: summary[name] for name in SUMS}


def dealt_out(store: Store, wanted: MessageFilter, *, by_key: bool, size: int) -> PlanSummary:
    """What tasks find, in the places of Spark: parts of about `size`, three tasks that judge."""
    piles: dict[int, list[tuple[int, bytes]]] = {}
    for part in log_parts(store, size):
        for number, block in deal_out(part, wanted, by_key, TASKS):
            piles.setdefault(number, []).append((number, block))
    rows: list[dict[str, Any]] = []
    sums: dict[str, Any] = dict.fromkeys(SUMS, 0) | {"copies_explained": {}}
    for number in range(TASKS):
        *found, last = judge_keys(piles.get(number, []), SimpleNamespace(value=store.segments))
        rows += [dict(zip(NAMES, row, strict=False)) for row in found]
        reported = json.loads(last[-1])
        sums["duplicate_keys"] += reported["keys"]
        sums["duplicate_messages"] += reported["messages"]
        for kind, count in reported["explained"].items():
            sums["copies_explained"][kind] = sums["copies_explained"].get(kind, 0) + count
    return sorted(rows, key=lambda row: (row["key"], row["topic"] or "")), sums


def same(path: Path, wanted: MessageFilter | None = None, size: int = 8192) -> list[dict[str, Any]]:
    store = Store.open(path)
    found: list[dict[str, Any]] = []
    for by_key in (False, True):
        expected = locally(store, wanted or MessageFilter(), by_key=by_key)
        assert dealt_out(store, wanted or MessageFilter(), by_key=by_key, size=size) == expected
        found += expected[0]
    return found


def write_doubled(root: Path, damage: bool = False) -> None:
    """Keys that come again in other parts and segments, batches that borders part, copies of a broker."""
    log = HandmadeLog(segment_size=16384)
    for number in range(200):
        again = {"UNIQ_KEY": f"ID{number % 90:04}", "KEYS": f"order-{number % 7} k{number}"}
        log.put(f"T{number % 3}", bytes(40), again)
        if number % 10 == 0:
            for _ in range(3):
                log.put("B", bytes(100), {"UNIQ_KEY": f"BATCH{number}"}, born_timestamp=1_700_000_000_000)
            log.put("%RETRY%g", b"", again)
            log.put("T0", b"", {"UNIQ_KEY": f"ID{number:04}"}, sys_flag=4)
    paths = log.write(root / "commitlog")
    if damage:
        damage_file(paths[1], overwrite, 3000, b"\xff" * 500)


@pytest.mark.share
@pytest.mark.parametrize("size", [700, 4096, 20_000])
def test_keys_that_come_again_in_other_parts(tmp_path: Path, size: int) -> None:
    write_doubled(tmp_path)
    found = same(tmp_path, size=size)
    assert max(row["messages"] for row in found) == 10
    some = same(tmp_path, MessageFilter(topics=("T1", "B")), size)
    assert 0 < len(some) < len(found)


def test_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that fit into no pass are parted, as often as it takes; those of one key stay together."""
    monkeypatch.setattr("rmqtool.pipeline.duplicates.ROOM", Room(hashes=6, bytes=2000))
    write_doubled(tmp_path, damage=True)
    assert same(tmp_path)


@pytest.mark.share
@pytest.mark.parametrize("name", ["b533-full", "v498-basic", "v533-batchcq", "v498-edge"])
def test_real_stores(golden: Callable[[str], fixtures.Golden], name: str) -> None:
    same(golden(name).path)


@pytest.mark.share
@pytest.mark.parametrize("case", list(fixtures.damage_cases())[::270], ids=lambda case: case.id)
def test_damaged_stores(damaged: Callable[[fixtures.DamageCase], Path], case: fixtures.DamageCase) -> None:
    assert_same(damaged(case))


@pytest.mark.full
@pytest.mark.parametrize("case", list(fixtures.damage_cases()), ids=lambda case: case.id)
def test_every_damaged_store(
    damaged: Callable[[fixtures.DamageCase], Path], case: fixtures.DamageCase
) -> None:
    assert_same(damaged(case))


def assert_same(path: Path) -> None:
    try:
        Store.open(path)
    except RmqtoolError:
        pytest.skip("no store is left")
    same(path)


@pytest.mark.parametrize(
    "more", [("--by-key", "--topic", "T*"), pytest.param((), marks=pytest.mark.full)], ids=["key", "id"]
)
def test_the_command(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path, more: tuple[str, ...]
) -> None:
    write_doubled(tmp_path / "doubled")
    write_doubled(tmp_path / "damaged", damage=True)
    stores = [tmp_path / "doubled", goldens["v533-compressed"], tmp_path / "damaged"]
    options = ("--duplicates", "--by", "day", "--format", "ndjson", *more)
    done = rmq("pipeline", "stats", *stores, *options, "--part-size", "16384")
    assert done.exit_code == 3, done.stderr
    *rows, summary = done.rows
    for store, part in zip(stores, summary["stores"], strict=True):
        local = rmq("stats", store, *options)
        *expected, whole = local.rows
        mine = [row for row in rows if row["store"] == str(store)]
        assert [{k: v for k, v in row.items() if k != "store"} for row in mine] == expected
        assert {name: part[name] for name in (*SUMS, "messages", "complete")} == {
            name: whole[name] for name in (*SUMS, "messages", "complete")
        }
    single = rmq("pipeline", "stats", stores[0], "--duplicates")
    assert single.stdout == rmq("stats", stores[0], "--duplicates").stdout
    assert rmq("pipeline", "stats", stores[0], "--by-key").exit_code == 2


def test_a_job_that_fails_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.pipeline.failing import dying

    write_doubled(tmp_path)
    monkeypatch.setattr("rmqtool.pipeline.duplicates.judge_keys", dying)
    done = rmq("pipeline", "stats", tmp_path, "--duplicates", "--format", "ndjson")
    summary = done.rows[-1]
    assert (done.exit_code, summary["incomplete_reason"]) == (3, "unreadable")
    assert summary["not_covered"][-1]["error"].startswith("duplicates are not listed: ")
    assert "duplicate_keys" not in summary
    assert summary["messages"] > 0
