"""`pipeline sql` answers what the local command answers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.helpers import rmq
from tests.tiers import sampled

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.layout import Store

JSON = "--format=ndjson"
SMALL = ("--part-size", "20000")
ORDINARY = [
    "with m as (select * from messages where topic is not null) select count(*) as n from m",
    "select queue_id from (select topic, queue_id, queue_offset, body from messages) order by all",
    "select count(*) as n from (select * from messages) a",
    "select count(distinct body) as n from messages",
    "select topic, tags from messages union all select topic, path from messages order by all nulls last",
    "select count(*) as n from (select * from messages union all select * from messages)",
    "select count(*) as n from (select topic, tags from messages intersect select topic, path from messages)",
    (
        "select a.topic, count(*) as n from messages a join (select * from messages where queue_id = 1) b"
        " on a.physical_offset = b.physical_offset group by a.topic order by a.topic"
    ),
    "select topic, max(queue_offset) over (partition by topic, queue_id) as m from messages order by all",
    (
        "select topic from messages where exists (select 1 from consumequeue c where c.physical_offset ="
        " messages.physical_offset) order by topic"
    ),
    "select topic, (select count(*) from index_items) as n from messages order by all nulls last limit 3",
    (
        "with m as (select * from messages), n as (select * from m) select x.tags, y.body_length from m x"
        " join n y using (physical_offset) order by all nulls last"
    ),
    (
        "select t.perm, count(m.body) as n from topics t left join messages m using (topic) group by all"
        " order by all nulls last"
    ),
]
"""statements that name more, or less, than they use"""


@pytest.mark.parametrize(
    "statement",
    [
        (
            "select topic, count(*) as n, min(store_time) as first, sum(body_length) as b from messages"
            " where queue_id = 1 group by topic order by topic"
        ),
        (
            "select topic, queue_id, slot, m.tags from consumequeue c join messages m using (topic, queue_id)"
            " where c.physical_offset = m.physical_offset and m.queue_offset < 3 order by 1, 2, 3"
        ),
        "select path, number, key_hash, prev from index_items where number < 5 order by path, number",
        "select * except (store) from topics order by topic",
        (
            "select (select count(*) from messages where queue_id = 1) as a, (select max(body_length) from"
            " messages) as b, count(*) as n from messages where queue_offset < 3"
        ),
        (
            "with one as (select count(*) as n from messages where physical_offset < 9000), two as"
            " (select count(*) as m from messages where physical_offset >= 9000) select n, m from one, two"
        ),
        *sampled(ORDINARY, kind=lambda statement: ORDINARY.index(statement) // 4),
    ],
)
def test_sql(spark: SparkSession, goldens: dict[str, Path], statement: str) -> None:
    store = goldens["v533-compressed"]
    done = rmq("pipeline", "sql", store, statement, "--format", "ndjson", *SMALL)
    local = rmq("sql", store, statement.replace("* except (store)", "*"), "--format", "ndjson")
    assert done.exit_code == local.exit_code == 0, done.stderr
    assert done.rows[:-1] == local.rows[:-1]
    assert len(done.rows) > 1


def test_all_columns_but_one(spark: SparkSession, goldens: dict[str, Path]) -> None:
    """Spark's form of it; the columns are those of the local table, in its order, and `store`."""
    store = goldens["v498-basic"]
    done = rmq(
        "pipeline", "sql", store, "select * except (body) from messages order by physical_offset", JSON
    )
    local = rmq("sql", store, "select * exclude (body) from messages order by physical_offset", JSON)
    assert done.exit_code == local.exit_code == 0, done.stderr
    spark_rows = [row for row in done.rows if row["type"] == "row"]
    assert [row.pop("store") for row in spark_rows] == [str(store)] * len(spark_rows)
    assert [row | {"type": "row"} for row in local.rows if row["type"] == "row"] == spark_rows


@pytest.mark.parametrize("table", ["topics", "consumer_offsets"])
def test_small_tables_of_stores_that_have_none(spark: SparkSession, tmp_path: Path, table: str) -> None:
    """A store without rows between others takes nothing from those behind it."""
    stores = [tmp_path / name for name in "abcd"]
    for number, store in enumerate(stores):
        (store / "commitlog").mkdir(parents=True)
        if number % 2 == 0:
            (store / "config").mkdir()
            (store / "config/topics.json").write_text('{"topicConfigTable":{"T":{"topicName":"T"}}}')
            (store / "config/consumerOffset.json").write_text('{"offsetTable":{"T@G":{0:7,1:8}}}')
    done = rmq("pipeline", "sql", *stores, f"select store, count(*) as n from {table} group by all", JSON)
    assert done.exit_code == 0, done.stderr
    found = {row["store"]: row["n"] for row in done.rows[:-1]}
    for store in stores:
        (local,) = rmq("sql", store, f"select count(*) as n from {table}", JSON).of_type("row")
        assert found.get(str(store), 0) == local["n"]
    assert found[str(stores[2])]


def test_a_store_that_vanishes(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gone between the listing and the query: it is named, the rest is answered, exit 3."""
    from rmqtool.cli.pipeline import spark as command_line

    gone = tmp_path / "gone"
    shutil.copytree(goldens["v498-basic"], gone)
    opened = command_line.opened

    def opened_then_gone(options: SourceOptions) -> dict[str, Store]:
        found = opened(options)
        shutil.rmtree(gone)
        return found

    monkeypatch.setattr(command_line, "opened", opened_then_gone)
    stores = [goldens["v498-edge"], gone, goldens["v533-batchcq"]]
    done = rmq("pipeline", "sql", *stores, "select store, count(*) as n from messages group by store", JSON)
    assert done.exit_code == 3, done.stderr
    assert {row["store"] for row in done.rows[:-1]} == {str(stores[0]), str(stores[2])}
    assert [(row["store"], row["reason"]) for row in done.rows[-1]["not_covered"]] == [
        (str(gone), "unreadable")
    ]


def test_sql_over_damage_says_so(spark: SparkSession, damaged_stores: dict[str, Path]) -> None:
    stores = list(damaged_stores.values())
    done = rmq("pipeline", "sql", *stores, "select count(*) from messages", "--format", "ndjson", *SMALL)
    lacking = []
    for store in stores:
        local = rmq("sql", store, "select count(body) from messages", "--format", "ndjson").rows[-1]
        lacking += [row | {"store": str(store)} for row in local.get("not_covered", ())]
    told = done.rows[-1].get("not_covered", [])
    key = str
    assert sorted(told, key=key) == sorted(lacking, key=key)
    assert done.exit_code == (3 if lacking else 0)


@pytest.mark.parametrize(
    "statement",
    [
        "drop table topics",
        "create table a as select 1",
        "select * from csv.`/etc`",
        "with a as (select * from text.`/etc/hostname`) select * from a",
        "select (select count(*) from text.`/etc/hostname`)",
        "nonsense",
    ],
)
def test_only_queries_of_the_stores(spark: SparkSession, goldens: dict[str, Path], statement: str) -> None:
    done = rmq("pipeline", "sql", goldens["v498-basic"], statement)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
