"""Queues, batch queues, extensions, index files and checkpoints of the API goldens against Java's answers."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

import fixtures
from tests.golden.comparison import index_hash, split_keys
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Open = Callable[[str], fixtures.Golden]

PRE_BLANK_SIZE = 2**31 - 1
ROLLBACK = 0xC
SLOTS = 100
LMQ = "%LMQ%"

CHECKPOINT = {
    "physicMsgTimestamp": "physic_msg_timestamp",
    "logicsMsgTimestamp": "logics_msg_timestamp",
    "indexMsgTimestamp": "index_msg_timestamp",
    "masterFlushedOffset": "master_flushed_offset",
    "confirmPhyOffset": "confirm_physical_offset",
}

UNCLEAN = ("v470-unclean", "v498-unclean", "v533-unclean")
IN_ROCKSDB = ("v533-rocksdb", "v533-rocksdb-unclean")
CLEAN = [name for name in fixtures.golden_names("api") if name not in UNCLEAN + IN_ROCKSDB]
"""RocksDB queues are another format; of an unclean store Java reports what its recovery made of them."""


def queue_directories(opened: fixtures.Golden) -> Iterator[tuple[dict[str, Any], Path]]:
    for queue in opened.expected["cqUnits"]:
        for kind in ("consumequeue", "batchconsumequeue"):
            directory = opened.path / kind / queue["topic"] / str(queue["queue"])
            if directory.is_dir():
                yield queue, directory


def dump(path: Path) -> list[dict[str, Any]]:
    result = rmq("dump", path, "--format", "ndjson")
    assert result.exit_code == 0, result.stderr
    assert result.rows[-1]["type"] == "summary"
    return result.rows[:-1]


@pytest.mark.share
@pytest.mark.parametrize("name", CLEAN)
def test_units_are_java_s(golden: Open, store_unchanged: Callable[[Path], Path], name: str) -> None:
    opened = golden(name)
    store_unchanged(opened.path)
    compared = 0
    for queue, directory in queue_directories(opened):
        if directory.parts[-3] == "batchconsumequeue":
            continue
        units = {row["slot"]: row for row in dump(directory) if row["type"] == "unit"}
        for unit in queue["units"]:
            row = units[unit[0]]
            assert [row["physical_offset"], row["size"]] == unit[1:3]
            assert (row["state"] == "pre_blank") == (unit[2] == PRE_BLANK_SIZE)
            extension = unit[4] if isinstance(unit[-1], dict) else None
            if extension is None or opened.release < "5":
                assert row["tags_code"] == unit[3]
            if extension is not None:
                assert row["ext_tags_code"] == extension["tagsCode"]
            compared += 1
    assert compared == sum(len(queue["units"]) for queue in on_disk(opened, "consumequeue"))


def on_disk(opened: fixtures.Golden, kind: str) -> list[dict[str, Any]]:
    return [queue for queue, directory in queue_directories(opened) if directory.parts[-3] == kind]


@pytest.mark.parametrize("name", CLEAN)
def test_no_unit_is_invented(golden: Open, name: str) -> None:
    opened = golden(name)
    first = {(q["topic"], q["queue"]): q["min"] for q in opened.expected["queues"]}
    for queue, directory in queue_directories(opened):
        if directory.parts[-3] == "batchconsumequeue":
            continue
        known = {unit[0] for unit in queue["units"] if unit[2] != PRE_BLANK_SIZE}
        lowest = first[queue["topic"], queue["queue"]]
        rows = dump(directory)
        beyond = [
            row["slot"]
            for row in rows
            if row["type"] == "unit" and row["state"] not in {"zero", "pre_blank"} and row["slot"] >= lowest
        ]
        assert set(beyond) == known


@pytest.mark.parametrize("name", UNCLEAN)
def test_units_of_an_unclean_store_are_a_part_of_what_java_recovers(golden: Open, name: str) -> None:
    opened = golden(name)
    for queue, directory in queue_directories(opened):
        recovered = {unit[0]: unit[:4] for unit in queue["units"]}
        rows = [row for row in dump(directory) if row["type"] == "unit" and row["state"] == "ok"]
        assert 0 < len(rows) <= len(recovered)
        for row in rows:
            found = [row["slot"], row["physical_offset"], row["size"], row["tags_code"]]
            assert found == recovered[row["slot"]]


def test_batch_units_are_java_s(golden: Open) -> None:
    opened = golden("v533-batchcq")
    compared = 0
    for queue, directory in queue_directories(opened):
        if directory.parts[-3] != "batchconsumequeue":
            continue
        rows = {row["base_offset"]: row for row in dump(directory) if row.get("size", 0) > 0}
        stored = {r["physicalOffset"]: r["storeTimestamp"] for r in opened.expected["records"]}
        assert list(rows) == [unit[0] for unit in queue["units"]]
        for base, physical_offset, size, tags_code, batch_size, _ in queue["units"]:
            row = rows[base]
            found = row["physical_offset"], row["size"], row["tags_code"], row["batch_size"]
            assert found == (physical_offset, size, tags_code, batch_size)
            assert row["store_timestamp"] == stored[physical_offset]
            compared += 1
    assert compared == sum(len(queue["units"]) for queue in on_disk(opened, "batchconsumequeue")) > 0


@pytest.mark.parametrize("name", ["v498-cqext", "v533-cqext"])
def test_extension_units_are_java_s(golden: Open, name: str) -> None:
    opened = golden(name)
    for queue in opened.expected["cqUnits"]:
        directory = opened.path / "consumequeue_ext" / queue["topic"] / str(queue["queue"])
        expected = [unit[4] for unit in queue["units"] if isinstance(unit[-1], dict)]
        rows = [row for row in dump(directory) if row["type"] == "ext_unit"]
        assert [row["tags_code"] for row in rows] == [unit["tagsCode"] for unit in expected]
        assert [row["store_timestamp"] for row in rows] == [unit["msgStoreTime"] for unit in expected]
        assert [row["size"] for row in rows] == [unit["size"] for unit in expected]
        assert [row["bit_map_hex"] or None for row in rows] == [unit["bitMap"] for unit in expected]


def unchanged_index_files(opened: fixtures.Golden) -> dict[str, dict[str, Any]]:
    """Java's index headers of the files that loading the copy left as they were."""
    changed = opened.expected["filesChangedByReload"] or {}
    files = {"index/" + header["file"]: header for header in opened.expected["indexFiles"]}
    return {
        path: header
        for path, header in files.items()
        if path not in changed and (opened.path / path).exists()
    }


@pytest.mark.parametrize("name", fixtures.golden_names("api"))
def test_index_headers_are_java_s(golden: Open, name: str) -> None:
    opened = golden(name)
    rows = {row["path"]: row for row in dump(opened.path / "index") if row["type"] == "index_header"}
    expected = unchanged_index_files(opened)
    assert set(expected) <= set(rows)
    assert expected or name in UNCLEAN
    for path, header in expected.items():
        row = rows[path]
        assert (row["begin_timestamp"], row["end_timestamp"]) == (
            header["beginTimestamp"],
            header["endTimestamp"],
        )
        offsets = row["begin_physical_offset"], row["end_physical_offset"]
        assert offsets == (header["beginPhyOffset"], header["endPhyOffset"])
        assert row["hash_slot_count"] == header["hashSlotCount"]
        assert max(row["index_count"], 1) == header["indexCount"]  # IndexHeader#load makes 1 of 0


def index_entries(records: list[dict[str, Any]]) -> Iterator[tuple[int, int, int]]:
    """Key hash, physical offset, store time of every index item that a dispatcher makes of these records."""
    for record in records:
        if record["sysFlag"] & ROLLBACK == ROLLBACK:
            continue
        keys = [record["uniqKey"]] if record["uniqKey"] else []
        for key in keys + split_keys(record["keys"]):
            yield index_hash(record["topic"], key), record["physicalOffset"], record["storeTimestamp"]


@pytest.mark.parametrize("name", [name for name in CLEAN if "expired" not in name] + ["v533-rocksdb"])
def test_index_items_follow_from_java_s_records(golden: Open, name: str) -> None:
    opened = golden(name)
    rows = dump(opened.path / "index")
    begin = {row["path"]: row["begin_timestamp"] for row in rows if row["type"] == "index_header"}
    items = [row for row in rows if row["type"] == "index_item"]
    entries = list(index_entries(opened.expected["records"]))
    assert [(row["key_hash"], row["physical_offset"]) for row in items] == [entry[:2] for entry in entries]
    chains: dict[tuple[str, int], int] = defaultdict(int)
    for row, (key_hash, _, stored) in zip(items, entries, strict=True):
        assert row["slot"] == key_hash % SLOTS
        assert row["time_diff"] == (stored - begin[row["path"]]) // 1000
        assert row["prev"] == chains[row["path"], row["slot"]]
        chains[row["path"], row["slot"]] = row["number"]


@pytest.mark.parametrize(
    "name", [name for name in fixtures.golden_names("api") if not name.endswith("unclean")]
)
def test_the_checkpoint_is_the_one_java_had_at_shutdown(golden: Open, name: str) -> None:
    opened = golden(name)
    expected = opened.expected["checkpointAtShutdown"]
    (row,) = dump(opened.path / "checkpoint")
    assert row["type"] == "checkpoint"
    assert {theirs: row[CHECKPOINT[theirs]] for theirs in expected} == expected
