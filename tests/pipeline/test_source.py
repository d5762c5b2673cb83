"""`spark.read.format("rocketmq")`: the tables are the local ones, and what is not wanted is not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rmqtool.api import open_store, scan
from rmqtool.pipeline.options import parse_options
from rmqtool.pipeline.planning import LogPartition, partitions
from rmqtool.pipeline.pushdown import narrowed
from rmqtool.pipeline.types import TABLES, arrow_of, chosen_schema, default_columns, struct_of, to_spark
from rmqtool.query.message_filter import MessageFilter
from rmqtool.scan.table import DEFAULT_COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def frame(spark: SparkSession, *paths: Path, **options: str) -> DataFrame:
    return spark.read.format("rocketmq").options(**options).load([str(path) for path in paths])


def plain(value: Any, name: str) -> Any:
    if name == "properties":
        return dict(value)
    return bytes(value) if isinstance(value, bytearray) else value


def test_messages_are_the_record_table(spark: SparkSession, goldens: dict[str, Path]) -> None:
    """Duplicate properties, undecodable topics, IPv6 hosts, compressed bodies: every column of every row."""
    stores = [goldens["v498-edge"], goldens["v533-compressed"]]
    found = frame(spark, *stores, part_bytes="20000")
    assert found.columns == ["store", *[name for name in default_columns("messages") if name != "store"]]
    rows = [row.asDict() for row in found.drop("born_time", "store_time").collect()]
    expected = [
        {"store": str(path)} | {name: plain(value, name) for name, value in row.items()}
        for path in stores
        for batch in scan(open_store(path), columns=DEFAULT_COLUMNS)
        for row in batch.to_pylist()
    ]
    assert len(rows) == len(expected)
    key = lambda row: (row["store"], row["physical_offset"])  # noqa: E731
    for row, wanted in zip(sorted(rows, key=key), sorted(expected, key=key), strict=True):
        assert {name: plain(value, name) for name, value in row.items()} == wanted


def test_a_schema_narrows_and_filters_choose(spark: SparkSession, goldens: dict[str, Path]) -> None:
    reader = spark.read.format("rocketmq").schema("queue_offset long, topic string, store_time timestamp")
    found = reader.load(str(goldens["v498-basic"]))
    assert found.columns == ["queue_offset", "topic", "store_time"]
    counts = {row.topic: row["count"] for row in found.groupBy("topic").count().collect()}
    wanted = "topic = 'TopicA' and store_time > timestamp'2000-01-01' and queue_offset >= 0"
    assert found.where(wanted).count() == counts["TopicA"] > 0
    foreign = spark.read.format("rocketmq").option("pushdown", "false").load(str(goldens["v498-basic"]))
    assert foreign.where("topic = 'TopicA'").count() == counts["TopicA"]


@pytest.mark.parametrize("table", ["consumequeue", "index_items", "findings", "segments"])
def test_other_tables(spark: SparkSession, goldens: dict[str, Path], table: str) -> None:
    from tests.helpers import rmq

    path = goldens["v498-basic"]
    rows = [row.asDict() for row in frame(spark, path, table=table).collect()]
    assert list(rows[0]) == TABLES[table].names
    if table == "findings":
        local = rmq("verify", path, "--format", "ndjson").of_type("finding")
        assert [row["code"] for row in rows] == [row["code"] for row in local]
        assert [row["message"] for row in rows] == [row["message"] for row in local]
    elif table == "segments":
        local = rmq("dump", path, "--format", "ndjson").rows
        assert sum(row["messages"] for row in rows) == local[-1]["messages"]
        assert [row["end_offset"] for row in rows][-1] == local[-1]["end_offset"]
    else:
        statement = f"select * from {table} order by path, {'slot' if table == 'consumequeue' else 'number'}"
        local = rmq("sql", path, statement, "--format", "ndjson").of_type("row")
        key = "slot" if table == "consumequeue" else "number"
        rows.sort(key=lambda row: (row["path"], row[key]))
        names = [name for name in local[0] if name != "type"]
        assert [[row[name] for name in names] for row in rows] == [
            [row[name] for name in names] for row in local
        ]


def parts_of(path: Path, **options: str) -> list[int]:
    parsed = parse_options({"path": str(path), "part_bytes": "0", **options})
    found = partitions(parsed, parsed.wanted)
    return [one.part.segment.base for one in found if isinstance(one, LogPartition)]


def test_segments_outside_of_the_question_are_not_read(goldens: dict[str, Path]) -> None:
    path = goldens["v498-basic"]
    assert parts_of(path) == [0, 32768, 65536, 98304]
    assert parts_of(path, offset_range="40000:70000") == [32768, 65536]
    assert parts_of(path, offset_range="98304:") == [98304]
    # the active segment may still grow, so times never rule it out
    assert parts_of(path, to="2001-01-01") == [98304]
    assert parts_of(path, **{"from": "2001-01-01T00:00:00+00:00"}) == [0, 32768, 65536, 98304]


def test_filters_of_spark_are_bounds_and_sets() -> None:
    from datetime import UTC, datetime

    from pyspark.sql.datasource import EqualTo, GreaterThan, In, LessThanOrEqual, Not

    moment = datetime(2026, 11, 21, tzinfo=UTC)
    found = narrowed(
        MessageFilter(store_from=5),
        [
            GreaterThan(("store_time",), moment), LessThanOrEqual(("physical_offset",), 99),
            In(("topic",), ("a*b", "c")), EqualTo(("queue_id",), 3), Not(EqualTo(("tags",), "x")),
        ],
    )  # fmt: skip
    millis = int(moment.timestamp() * 1000)
    assert (found.store_from, found.offset_to, found.topics) == (millis, 100, ("a[*]b", "c"))
    assert (found.queues, found.tags) == (frozenset({3}), frozenset())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": "/nowhere"}, "no such file"), ({}, "no store given"), ({"table": "x"}, "must be one of"),
        ({"topics": "a"}, "option topics"), ({"from": "soon"}, "option from"), ({"offset_range": "1"}, "A:B"),
        ({"table": "findings", "topic": "a"}, "does not apply"), ({"unreadable": "maybe"}, "neither"),
        ({"path": "/nowhere*"}, "matches nothing"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_line(options: dict[str, str], words: str) -> None:
    from rmqtool.errors import UsageError

    with pytest.raises(UsageError, match=words) as raised:
        parse_options({"path": "/"} | options if options else {})
    assert "\n" not in str(raised.value)


def test_batches_of_other_types_become_those_of_spark() -> None:
    """The types that Spark refuses, and a column that is not there."""
    target = arrow_of(
        struct_of(chosen_schema("messages", ["topic", "queue_id", "tags", "body", "store_time"]))
    )
    batch = pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(["a", None, "a"]).dictionary_encode(),
            "queue_id": pa.array([1, 2, 3], pa.uint32()),
            "tags": pa.array(["x", "y", None], pa.large_string()),
            "store_time": pa.array([0, 1, 2], pa.timestamp("ms", tz="UTC")),
        }
    )
    made = to_spark(batch, target)
    assert made.schema.equals(target)
    assert made["topic"].to_pylist() == ["a", None, "a"]
    assert made["body"].null_count == 3
