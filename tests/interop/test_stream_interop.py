"""A stream of Spark follows a store that the real Java store writes: no message twice, none missing."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.test_live_interop import SEGMENT, SETTINGS, being_written
from tests.interop.traffic import varied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from tests.interop.javastore import JavaStore

pytestmark = pytest.mark.interop

SECONDS = 2


@contextmanager
def streaming(spark: SparkSession, root: Path, to: Path, **options: str) -> Iterator[StreamingQuery]:
    """A stream into Parquet; leaving the block stops it wherever it is."""
    reader = spark.readStream.format("rocketmq").options(columns="store,physical_offset,topic,body,crc")
    writer = reader.options(**options).load(str(root)).writeStream.format("parquet")
    query = (
        writer.option("path", str(to))
        .option("checkpointLocation", str(to) + ".state")
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    try:
        yield query
    finally:
        query.stop()


def caught_up(query: StreamingQuery, wanted: int) -> None:
    """Waits until a batch has ended that reaches the offset `wanted`."""
    import json

    until = time.monotonic() + 120
    while True:
        assert query.isActive, query.exception()
        progress = query.lastProgress
        reported = None if progress is None else progress["sources"][0]["endOffset"]
        ends = json.loads(reported) if isinstance(reported, str) else reported or {}
        if any(end >= wanted for end in ends.values()):
            return
        assert time.monotonic() < until, progress
        time.sleep(0.1)


def written(spark: SparkSession, to: Path) -> list[Any]:
    return sorted(spark.read.parquet(str(to)).select("physical_offset", "topic", "body", "crc").collect())


@pytest.mark.full
def test_every_message_once_over_restarts_and_rolls(
    java_store: Callable[..., JavaStore],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    root, to = tmp_path / "store", tmp_path / "lake"
    store = java_store(root, **SETTINGS)
    varied(store, count=66)
    with being_written(store):
        for _ in range(2):  # stopped in the middle of whatever it does, and started again
            with streaming(spark, root, to, part_bytes="32768"):
                time.sleep(SECONDS)
    with streaming(spark, root, to) as query:
        bounds = store.call("bounds")
        records = sorted(store.records(), key=lambda one: one["physicalOffset"])
        last = records[-1]["physicalOffset"]
        caught_up(query, last + 1)
    assert bounds["max"] > 4 * SEGMENT, "Java has not rolled while it was read"
    rows = written(spark, to)
    assert [row.physical_offset for row in rows] == [one["physicalOffset"] for one in records]
    assert [row.topic for row in rows] == [one["topic"] for one in records]
    assert {row.crc for row in rows} <= {"ok", "absent"}
    assert spark.read.parquet(str(to)).select("store").distinct().collect()[0][0] == str(root)


def roll(store: JavaStore) -> None:
    """Writes at least two segments full."""
    until = store.call("bounds")["max"] + 2 * SEGMENT
    while store.call("bounds")["max"] < until:
        varied(store, count=33)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_segments_that_expire(
    java_store: Callable[..., JavaStore], spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    root, to = tmp_path / "store", tmp_path / "lake"
    store = java_store(root, **SETTINGS)
    roll(store)
    known = {}

    def reached(query: StreamingQuery) -> None:
        """All records that Java has now are written."""
        records = store.records()
        caught_up(query, max(one["physicalOffset"] for one in records) + 1)
        known.update({one["physicalOffset"]: one["topic"] for one in records})

    with streaming(spark, root, to) as query:
        reached(query)
        assert store.call("expire") > 0  # what was read, below a stream that runs
        roll(store)
        reached(query)
    varied(store, count=33)
    with streaming(spark, root, to) as query:
        reached(query)
    assert [(row.physical_offset, row.topic) for row in written(spark, to)] == sorted(known.items())
    roll(store)
    while store.call("expire"):  # these go before they are read; Java may take them in more than one go
        pass
    assert store.call("bounds")["min"] > max(known) + SEGMENT
    with pytest.raises(StreamingQueryException, match="are gone before"), streaming(spark, root, to) as query:
        query.awaitTermination(120)
    with streaming(spark, root, to, expired="skip") as query:
        reached(query)
    assert [(row.physical_offset, row.topic) for row in written(spark, to)] == sorted(known.items())
    store.close()
