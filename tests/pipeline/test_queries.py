"""`pipeline sql` answers what the local command answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SMALL = ("--part-size", "20000")


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
    ],
)
def test_sql(spark: SparkSession, goldens: dict[str, Path], statement: str) -> None:
    store = goldens["v533-compressed"]
    done = rmq("pipeline", "sql", store, statement, "--format", "ndjson", *SMALL)
    local = rmq("sql", store, statement.replace("* except (store)", "*"), "--format", "ndjson")
    assert done.exit_code == local.exit_code == 0, done.stderr
    assert done.rows[:-1] == local.rows[:-1]
    assert len(done.rows) > 1


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
