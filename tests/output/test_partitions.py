"""Partitioned Parquet: every row in its file, in order; memory and open files within bounds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog
from rmqtool.output.export import parquet, parquet_files, partitions
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = 23
DAY = 86_400_000


@pytest.fixture
def log(tmp_path: Path) -> HandmadeLog:
    """Small topics in turn, and one in between that has every third message."""
    log = HandmadeLog(segment_size=1 << 20)
    for number in range(600):
        topic = "Large" if number % 3 == 0 else f"T{number % TOPICS}"
        size = 2000 if number % 3 == 0 else number % 90
        log.put(topic, b"x" * size, store_timestamp=FIRST_TIME + number // 300 * DAY)
    log.write(tmp_path / "store/commitlog")
    return log


class Watch:
    """Counts open writers and bytes that wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = self.most_open = self.most_waiting = 0
        watch, usual, add = self, pq.ParquetWriter, partitions.Waiting.add

        class Writer(usual):  # type: ignore[misc, valid-type]
            def __init__(self, *given: Any, **options: Any) -> None:
                super().__init__(*given, **options)
                watch.open += 1
                watch.most_open = max(watch.most_open, watch.open)

            def close(self) -> None:
                watch.open -= self.is_open
                super().close()

        def added(waiting: partitions.Waiting, batch: Any) -> None:
            add(waiting, batch)
            watch.most_waiting = max(watch.most_waiting, waiting.bytes - batch.nbytes)

        monkeypatch.setattr(pq, "ParquetWriter", Writer)
        monkeypatch.setattr(partitions.Waiting, "add", added)


def export(tmp_path: Path, *options: str) -> list[tuple[Any, ...]]:
    """What readers find in the partitions: offset, topic and day, by offset."""
    result = rmq("export", tmp_path / "store", "--to", tmp_path / "lake", *options, "--quiet")
    assert result.exit_code == 0, result.stderr
    table = ds.dataset(tmp_path / "lake", format="parquet", partitioning="hive").to_table(
        columns=["physical_offset", "topic", "day"]
    )
    return sorted(zip(*(table[name].to_pylist() for name in table.schema.names), strict=True))


def expected(log: HandmadeLog) -> list[tuple[Any, ...]]:
    days = ("2023-11-14", "2023-11-15")
    return [
        (one.physical_offset, "Large" if n % 3 == 0 else f"T{n % TOPICS}", days[n // 300])
        for n, one in enumerate(log.records)
    ]


@pytest.mark.share
@pytest.mark.parametrize(("held", "files"), [(1, 3), (1 << 17, 1), (1 << 18, 5), (1 << 30, 100)])
def test_rows_are_in_their_partitions(
    tmp_path: Path, log: HandmadeLog, monkeypatch: pytest.MonkeyPatch, held: int, files: int
) -> None:
    monkeypatch.setattr(parquet, "HELD_BYTES", held)
    monkeypatch.setattr(parquet_files, "OPEN_FILES", files)
    monkeypatch.setattr("rmqtool.scan.parts.BATCH_BYTES", 1 << 15)
    watch = Watch(monkeypatch)
    assert export(tmp_path, "--partition", "topic,day") == expected(log)
    assert watch.most_open <= files
    assert watch.most_waiting <= held
    for path in (tmp_path / "lake").rglob("*.parquet"):
        offsets = pq.read_table(path, columns=["physical_offset"])["physical_offset"].to_pylist()
        assert offsets == sorted(offsets)


def test_the_largest_partitions_go_first_and_small_ones_wait(
    tmp_path: Path, log: HandmadeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "HELD_BYTES", 1 << 18)
    monkeypatch.setattr("rmqtool.scan.parts.BATCH_BYTES", 1 << 15)
    export(tmp_path, "--partition", "topic,day")
    groups = {
        path.parent.parent.name: pq.read_metadata(path).num_row_groups
        for path in (tmp_path / "lake").rglob("*.parquet")
    }
    assert groups.pop("topic=Large") > 1
    assert set(groups.values()) == {1}


def test_row_groups_have_a_bound(tmp_path: Path, log: HandmadeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "GROUP_ROWS", 70)
    assert export(tmp_path, "--partition", "topic,day") == expected(log)
    for path in (tmp_path / "lake").rglob("*.parquet"):
        metadata = pq.read_metadata(path)
        rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        assert max(rows) <= 70
        assert len(rows) == -(-sum(rows) // 70)


def test_topics_too_long_for_the_name_of_a_directory(tmp_path: Path) -> None:
    """Each has a directory of its own, and the column has it whole."""
    topics = ["L" * 300, "L" * 300 + "x", "ü" * 63, "L" * 200, "a/b"]
    log = HandmadeLog(segment_size=1 << 14)
    for topic in topics:
        log.put(topic, b"body")
    log.write(tmp_path / "store/commitlog")
    result = rmq("export", tmp_path / "store", "--to", tmp_path / "lake", "--partition", "topic", "--quiet")
    assert result.exit_code == 0, result.stderr
    found = {}
    for path in (tmp_path / "lake").rglob("*.parquet"):
        (topic,) = pq.ParquetFile(path).read(["topic"])["topic"].to_pylist()
        found[topic] = path.parent.name
    assert sorted(found) == sorted(topics)
    assert len(set(found.values())) == len(topics)
    assert found["L" * 200] == "topic=" + "L" * 200
    assert re.fullmatch("topic=L{200}~[0-9a-f]{32}", found["L" * 300])
    assert re.fullmatch("topic=(%C3%BC){33}~[0-9a-f]{32}", found["ü" * 63])
    assert ds.dataset(tmp_path / "lake", format="parquet", partitioning="hive").count_rows() == len(topics)
