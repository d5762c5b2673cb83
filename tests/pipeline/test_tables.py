"""What docs/pipeline.md says of the data source, sentence by sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.builder import HandmadeLog
from formats.commitlog import encode_message
from rmqtool.api import open_store, scan
from rmqtool.errors import UsageError
from rmqtool.pipeline.options import parse_options
from rmqtool.pipeline.planning import LogPartition
from rmqtool.pipeline.source import FilteredReader, StoreReader
from rmqtool.pipeline.types import TABLES, chosen_schema, default_columns, struct_of
from rmqtool.scan import table
from rmqtool.scan.table import COLUMNS
from rmqtool.scan.times import TIMES
from rmqtool.store.segments import Segment
from tests.helpers import ROOT, rmq
from tests.pipeline.conftest import QUICK_JAVA
from tests.project.test_table_page import documented

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def write_odd(root: Path) -> None:
    """Records that tables have trouble with: topics, properties, times and hosts of all kinds."""
    log = HandmadeLog(segment_size=4096)
    log.put("Plain", b"body", {"TAGS": "a", "KEYS": "k l", "UNIQ_KEY": "u"})
    for topic in (b"\xff\xfeopic.", b"T\xc3\xa4\xe2\x82\xac."):
        data = encode_message("TOPIC..", b"", b"a\x01b\x02", physical_offset=log.end_offset)
        log.put_raw(data.replace(b"TOPIC..", topic))
    for properties in (
        b"k\x01first\x02k\x01second\x02TAGS\x01x\x02TAGS\x01y\x02",
        b"bad\x01\xff\xfe\x02ok\x01\xc3\xa4\x02",
        b"novalue\x02\x01nokey\x02",
        b"",
    ):
        log.put_raw(encode_message("Odd", b"\0\xff", properties, physical_offset=log.end_offset))
    for millis in (-1, 0, 1 << 60, -(1 << 60)):
        log.put("Times", b"", store_timestamp=millis, born_timestamp=millis)
    log.put("Hosts", b"", born_host=(bytes(range(16)), 1), store_host=(bytes(16), 65535))
    log.write(root / "commitlog")


def test_every_column_of_odd_records(spark: SparkSession, tmp_path: Path) -> None:
    """Undecodable topics, equal names of properties, moments that no timestamp holds: as read locally."""
    write_odd(tmp_path)
    names = [name for name in TABLES["messages"].names if name not in {"store", *TIMES}]
    reader = spark.read.format("rocketmq").option("columns", ",".join(names)).option("part_bytes", "300")
    found = [row.asDict() for row in reader.load(str(tmp_path)).orderBy("physical_offset").collect()]
    local = [row for batch in scan(open_store(tmp_path), columns=names) for row in batch.to_pylist()]
    assert len(found) == len(local) == 12
    for mine, theirs in zip(found, local, strict=True):
        theirs["properties"] = None if theirs["properties"] is None else dict(theirs["properties"])
        assert {k: bytes(v) if isinstance(v, bytearray) else v for k, v in mine.items()} == theirs
    assert [row["topic"] for row in found][:3] == ["Plain", None, "Tä€."]
    assert found[1]["topic_hex"] == b"\xff\xfeopic.".hex()
    assert (found[3]["properties"]["k"], found[3]["tags"]) == ("second", "y")


def test_the_schema_is_the_documented_one(tmp_path: Path) -> None:
    """docs/table.md, and the two columns of time; what Spark has no type for was none of it."""
    spark_types = {
        "string": "string", "int64": "bigint", "int32": "int", "binary": "binary", "bool": "boolean",
        "list&lt;string&gt;": "array<string>", "map&lt;string, string&gt;": "map<string,string>",
    }  # fmt: skip
    struct = struct_of(chosen_schema("messages", TABLES["messages"].names))
    reported = {field.name: field.dataType.simpleString() for field in struct}
    assert {reported.pop(name) for name in TIMES} == {"timestamp"}
    assert reported == {name: spark_types[kind] for name, kind in documented().items()}
    assert list(reported) == list(COLUMNS)
    assert "body" in default_columns("messages")
    assert "record" not in default_columns("messages")


def test_several_stores_by_list_pattern_and_address(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a", "b c", "d"):
        write_odd(tmp_path / name / "store")
    stores = [str(tmp_path / name / "store") for name in ("a", "b c", "d")]
    read = spark.read.format("rocketmq").option("columns", "store")

    def reported(*paths: str) -> dict[str, int]:
        return {row.store: row["count"] for row in read.load(list(paths)).groupBy("store").count().collect()}

    assert reported(f"{tmp_path}/*/store") == dict.fromkeys(stores, 12)
    addresses = [f"file://{stores[1].replace(' ', '%20')}", f"file:{stores[0]}", stores[0]]
    assert reported(*addresses) == dict.fromkeys(stores[:2], 12)
    assert spark.read.format("rocketmq").option("path", stores[2]).load().count() == 12
    for words in (("verify",), ("stats",), ("sql", "select count(*) from messages")):
        mine, same = (
            rmq("pipeline", words[0], place, *words[1:], "--format", "ndjson").rows
            for place in (f"file://{stores[0]}", stores[0])
        )
        assert [row | {"seconds": 0} for row in mine] == [row | {"seconds": 0} for row in same]


@pytest.mark.share
@pytest.mark.parametrize("name", ["consumequeue", "index_items", "findings", "segments"])
def test_columns_of_other_tables(spark: SparkSession, goldens: dict[str, Path], name: str) -> None:
    """By option, and by `.schema`; rows and order of columns are those asked for."""
    read = spark.read.format("rocketmq").option("table", name)
    some = TABLES[name].names[4:1:-1]
    stores = [str(goldens["v533-batchcq"]), str(goldens["v498-basic"])]
    whole = read.load(stores)
    chosen = read.schema(whole.select(*some).schema).load(stores)
    assert chosen.columns == some
    key = repr
    assert sorted(chosen.collect(), key=key) == sorted(whole.select(*some).collect(), key=key)


def test_filters_spare_opening_and_decoding(
    goldens: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted: segments that are opened, and records that become rows of a table."""
    from datetime import UTC, datetime, timedelta

    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, LessThan

    opened: set[int] = set()
    made: list[int] = []
    usual, batches = Segment.open, table.to_batch
    monkeypatch.setattr(Segment, "open", lambda self, *how: (opened.add(self.base), usual(self, *how))[1])
    monkeypatch.setattr(
        table, "to_batch", lambda records, **how: (made.append(len(records.rows)), batches(records, **how))[1]
    )

    def counted(*filters: Any, **options: str) -> tuple[list[dict[str, Any]], set[int], int]:
        parsed = parse_options({"path": str(goldens["v498-basic"]), **options})
        struct = struct_of(chosen_schema("messages", ["topic", "physical_offset", "store_timestamp", "body"]))
        reader = FilteredReader(parsed, struct)
        assert list(reader.pushFilters(list(filters))) == list(filters)  # Spark looks once more
        parts = reader.partitions()
        opened.clear()
        made.clear()
        reader_rows = [
            row for part in parts if isinstance(part, LogPartition)
            for batch in reader.read(part) for row in batch.to_pylist()
        ]  # fmt: skip
        return reader_rows, set(opened), sum(made)

    rows, segments, decoded = counted()
    assert segments == {0, 32768, 65536, 98304}
    assert decoded == len(rows)
    late = [row for row in rows if row["physical_offset"] >= 98304]
    for filters, options in (
        ([GreaterThanOrEqual(("physical_offset",), 98304)], {}),
        ([], {"offset_range": "98304:"}),
        ([GreaterThanOrEqual(("physical_offset",), 98304)], {"part_bytes": "8192"}),
    ):
        assert counted(*filters, **options) == (late, {98304}, len(late))
    moment = rows[len(rows) // 3]["store_timestamp"]
    early = [row for row in rows if row["store_timestamp"] < moment]
    time = datetime.fromtimestamp(moment / 1000, UTC)
    found, _, decoded = counted(LessThan(("store_time",), time))
    assert found[: len(early)] == early
    assert decoded <= len(early) + 1  # a filter of Spark is a bound, which Spark makes exact
    # clocks may have been set, and the active segment may still grow
    assert counted(LessThan(("store_time",), time - timedelta(hours=1))) == ([], {98304}, 0)
    topic = [row for row in rows if row["topic"] == "TopicA"]
    assert 0 < len(topic) < len(rows)
    assert counted(EqualTo(("topic",), "TopicA"))[::2] == (topic, len(topic))
    assert counted(topic="TopicA")[::2] == (topic, len(topic))


def test_spark_hands_filters_to_the_reader(spark: SparkSession, goldens: dict[str, Path]) -> None:
    """Tasks of segments in front of the offset asked for refuse to work; without filters they are asked."""
    from rmqtool.pipeline.source import RocketMQSource
    from tests.pipeline.failing import OnlyLast

    try:
        spark.dataSource.register(OnlyLast)
        path, late = str(goldens["v498-basic"]), "physical_offset >= 98304 and queue_id >= 0"
        read = spark.read.format("rocketmq")
        with pytest.raises(Exception, match="in front"):
            read.load(path).where(late).count()
        read = read.option("pushdown", "true")
        assert read.load(path).where(late).count() > 0
        with pytest.raises(Exception, match="in front"):
            read.load(path).count()
    finally:
        spark.dataSource.register(RocketMQSource)


def test_filters_of_one_query_are_not_those_of_another(spark: SparkSession, goldens: dict[str, Path]) -> None:
    """Spark keeps one reader for all that comes of a `load`."""
    found = spark.read.format("rocketmq").load(str(goldens["v498-basic"])).select("physical_offset")
    late, early = found.where("physical_offset >= 98304"), found.where("physical_offset < 98304")
    counts = [late.count(), found.count(), early.count(), late.union(early).count()]
    assert counts[0] + counts[2] == counts[1] == counts[3]
    assert min(counts) > 0


FOREIGN = """
import json, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
key, path = "spark.sql.python.filterPushdown.enabled", sys.argv[1]
reported = {}

def count(name, **options):
    read = spark.read.format("rocketmq").options(**options).schema("topic string, queue_id int")
    reported[name] = read.load(path).where("topic = 'TopicA'").count()

count("without pushdown")
count("by options", topic="TopicA")
spark.conf.set(key, "true")
count("with pushdown and option", pushdown="true")
count("with pushdown and no option")
reported["whole"] = spark.read.format("rocketmq").load(path).count()
reported["pandas"] = "pandas" in sys.modules
print(json.dumps(reported))
"""


def test_the_module_that_spark_looks_for() -> None:
    from rmqtool.pipeline.pyspark_rocketmq import DefaultSource

    assert (DefaultSource.name(), DefaultSource.__module__) == ("rocketmq", "rmqtool.pipeline.source")


@pytest.mark.full
def test_sessions_of_others(goldens: dict[str, Path], tmp_path: Path) -> None:
    """As installed: nothing is registered, Spark finds the module; with and without its switch."""
    import json

    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    module = tmp_path / "pyspark_rocketmq"  # where pyproject.toml puts it in the wheel
    module.mkdir()
    shutil.copy(ROOT / "rmqtool" / "pipeline" / "pyspark_rocketmq.py", module / "__init__.py")
    own = {name: value for name, value in os.environ.items() if not name.startswith(("RMQTOOL_", "PYSPARK_"))}
    own |= {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}", "PYSPARK_PYTHON": sys.executable, **QUICK_JAVA}
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN, str(goldens["v498-basic"])],
        env=own, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    reported = json.loads(done.stdout)
    store = open_store(goldens["v498-basic"])
    topics = [t for batch in scan(store, columns=["topic"]) for t in batch["topic"].to_pylist()]
    assert reported.pop("whole") == len(topics)
    assert reported.pop("pandas") is False
    assert set(reported.values()) == {topics.count("TopicA")}
    assert len(reported) == 4


def test_a_schema_that_is_not_ours_is_refused() -> None:
    from pyspark.sql.types import StringType, StructField, StructType

    for name, words in (("queue_id", "is int32, not string"), ("queue", "no column queue")):
        schema = StructType([StructField(name, StringType())])
        with pytest.raises(UsageError, match=words):
            StoreReader(parse_options({"path": "/"}), schema)
