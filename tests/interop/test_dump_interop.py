"""A store made this minute by the real Java store: its dump against what Java itself reads from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.golden.comparison import DUMP_OPTIONS, record_differences
from tests.helpers import rmq, rmq_process, snapshot
from tests.interop.traffic import varied

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.interop.javastore import JavaStore

    OpenStore = Callable[..., JavaStore]

pytestmark = pytest.mark.interop

SEGMENT = 16384
SETTINGS = {"mappedFileSizeCommitLog": SEGMENT, "mappedFileSizeConsumeQueue": 600}


def make(java_store: OpenStore, root: Path, **settings: object) -> dict[str, Any]:
    """A varied store, shut down cleanly, and Java's answers about it."""
    with java_store(root, **SETTINGS, **settings) as store:
        count = varied(store)
        store.call("drain")
        truth = {
            "records": store.records(),
            "blanks": store.blanks(),
            "bounds": store.call("bounds"),
            "queues": {(q["topic"], q["queue"]): q for q in store.call("queues")},
        }
        truth["units"] = {
            (topic, queue): store.call("get", topic=topic, queue_id=queue) for topic, queue in truth["queues"]
        }
    assert len(truth["records"]) == count
    assert truth["blanks"]
    return truth


def test_dump_agrees_with_java(java_store: OpenStore, release: str, tmp_path: Path) -> None:
    root = tmp_path / "store"
    truth = make(java_store, root)
    before = snapshot(root)
    result = rmq_process("dump", root, *DUMP_OPTIONS)
    assert (result.exit_code, result.stderr) == (0, "")
    messages = result.of_type("message")
    assert [row["physical_offset"] for row in messages] == [r["physicalOffset"] for r in truth["records"]]
    for row, record in zip(messages, truth["records"], strict=True):
        assert record_differences(row, record, release) == []
    assert [(row["physical_offset"], row["length"]) for row in result.of_type("blank")] == truth["blanks"]
    summary = result.rows[-1]
    assert summary["type"] == "summary"
    assert (summary["first_offset"], summary["end_offset"]) == (
        truth["bounds"]["min"],
        truth["bounds"]["max"],
    )
    assert (summary["messages"], summary["gaps"], summary["complete"]) == (len(truth["records"]), 0, True)
    _compare_units(root, truth)
    assert snapshot(root) == before


def _compare_units(root: Path, truth: dict[str, Any]) -> None:
    """Units against what getMessage delivered, slot by slot; a delayed one's tags code is its due time."""
    assert len(truth["queues"]) >= 12
    for (topic, queue), bounds in truth["queues"].items():
        result = rmq("dump", root / "consumequeue" / topic / str(queue), "--format", "ndjson")
        assert result.exit_code == 0, result.stderr
        units = {row["slot"]: row for row in result.of_type("unit") if row["state"] != "zero"}
        assert sorted(units) == list(range(bounds["min"], bounds["max"])), (
            f"{topic}/{queue} {bounds}: {result.rows[-4:]}"
        )
        for message in truth["units"][topic, queue]:
            row = units[message["queueOffset"]]
            expected = message["physicalOffset"], message["size"], message["tagsCode"]
            assert (row["physical_offset"], row["size"], row["tags_code"]) == expected


def test_a_store_cut_off_in_the_middle_dumps_all_that_java_recovers(
    java_store: OpenStore, release: str, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    killed = java_store(root, **SETTINGS)
    varied(killed, count=60)
    killed.kill()
    result = rmq_process("dump", root, *DUMP_OPTIONS)
    assert (result.exit_code, result.of_type("gap")) == (0, [])
    with java_store(root, **SETTINGS) as recovered:
        records = recovered.records()
    messages = result.of_type("message")
    assert len(messages) == len(records)
    for row, record in zip(messages, records, strict=True):
        assert record_differences(row, record, release) == []


@pytest.mark.parametrize("release", ["5.3.3"], indirect=True)
def test_a_crc_trailer_changes_nothing_else(java_store: OpenStore, release: str, tmp_path: Path) -> None:
    root = tmp_path / "store"
    truth = make(java_store, root, enabledAppendPropCRC=True)
    assert all("__CRC32#" in record["properties"] for record in truth["records"])
    messages = rmq_process("dump", root, *DUMP_OPTIONS).of_type("message")
    assert len(messages) == len(truth["records"])
    for row, record in zip(messages, truth["records"], strict=True):
        assert record_differences(row, record, release) == []
