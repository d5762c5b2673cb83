"""Tables of a broker that are gone, empty or forgiven: what it takes for unknown, and begins again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fixtures.stores import HandmadeStore
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.recovery.showing import codes, of, shows
from tests.recovery.stores import filled, start, write

if TYPE_CHECKING:
    from pathlib import Path


@shows("DR-CONFIG-FORGIVEN")
def test_a_forgiven_configuration_file(tmp_path: Path) -> None:
    root = write(tmp_path, filled(3))
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_bytes(b'\xef\xbb\xbf{"offsetTable":{"T@g":{"0":1}}}')
    assert of(start(root), "DR-CONFIG-FORGIVEN")[0].facts["path"] == "config/consumerOffset.json"


@shows("DR-OFFSETS-UNKNOWN")
def test_a_broker_that_ran_has_written_offsets(tmp_path: Path) -> None:
    root = write(tmp_path, filled(3))
    (root / "config").mkdir()
    (root / "config" / "consumerFilter.json").write_text("{}")
    assert "DR-OFFSETS-UNKNOWN" not in codes(start(root))
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{},"dataVersion":{}}')
    (found,) = of(start(root), "DR-OFFSETS-UNKNOWN")
    assert (found.severity, found.paths) == ("note", ("config/consumerOffset.json",))
    (root / "config" / "lmqConsumerOffset.json.bak").write_text('{"offsetTable":{}}')
    assert "DR-OFFSETS-UNKNOWN" not in codes(start(root))


@shows("DR-DELAY-OFFSETS-UNKNOWN")
def test_delay_levels_without_offsets_begin_again(tmp_path: Path) -> None:
    log = filled(2)
    for number in range(3):
        log.put("SCHEDULE_TOPIC_XXXX", b"later", {"DELAY": "3", "REAL_TOPIC": "T", "REAL_QID": f"{number}"})
    root = write(tmp_path, log)
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{},"dataVersion":{}}')
    (found,) = of(start(root), "DR-DELAY-OFFSETS-UNKNOWN")
    assert (found.severity, found.facts["messages"]) == ("warning", 3)
    (root / "config" / "delayOffset.json.bak").write_text('{"offsetTable":{}}')
    assert "DR-DELAY-OFFSETS-UNKNOWN" not in codes(start(root))


def test_an_empty_table_counts_what_its_backup_would_have_had(tmp_path: Path) -> None:
    root = write(tmp_path, filled(3))
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_text("null")
    (root / "config" / "consumerOffset.json.bak").write_text('{"offsetTable":{"T@g":{"0":1},"T@h":{"0":2}}}')
    (found,) = of(start(root), "DR-CONFIG-EMPTY")
    assert (found.facts["what"], found.facts["entries"], found.severity) == ("consumer offsets", 2, "error")


@shows("DR-BATCH-TOPICS-UNKNOWN")
def test_batch_queues_without_a_topic_table(tmp_path: Path) -> None:
    """5.x takes topics that it does not know for such with plain queues; `recover` makes a table."""
    store = HandmadeStore()
    for _ in range(3):
        store.put_batch("Batches", [b"a", b"b"])
        store.put("Orders", b"body")
    store.write(tmp_path / "store")
    outcome = simulate(Store.open(store.root), "5.3.3")
    (found,) = of(outcome, "DR-BATCH-TOPICS-UNKNOWN")
    assert (found.facts, found.paths) == ({"count": 1}, ("batchconsumequeue/Batches",))
    assert outcome.verdict is Verdict.UNSAFE
    assert "DR-BATCH-TOPICS-UNKNOWN" not in codes(simulate(Store.open(store.root), "4.9.8"))
    done = rmq("recover", store.root, "--as-version", "5.3.3", "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stdout + done.stderr
    table = json.loads((tmp_path / "out/config/topics.json").read_text())["topicConfigTable"]
    assert table["Batches"]["attributes"] == {"queue.type": "BatchCQ"}
    assert table["Orders"]["readQueueNums"] == 1
    assert simulate(Store.open(tmp_path / "out"), "5.3.3").verdict is Verdict.SAFE


ENTRIES = {
    "consumerOffset.json": '{"offsetTable":{"T@g":{0:1}}}',
    "lmqConsumerOffset.json": '{"offsetTable":{"T@g":{0:1}},"lmqOffsetTable":{}}',
    "topics.json": '{"topicConfigTable":{"T":{"perm":6}},"dataVersion":{}}',
}
LMQ_ON, LMQ_OFF, DATABASE = {"enableLmq": True}, {"enableLmq": False}, {"configManagerVersion": "v2"}


def with_tables(root: Path, *names: str) -> Path:
    """A store with entries in these tables."""
    write(root, filled(3))
    (root / "config").mkdir()
    for name in names:
        (root / "config" / name).write_text(ENTRIES[name])
    return root


@shows("DR-TABLE-UNREAD")
@pytest.mark.parametrize(
    ("there", "settings", "release"),
    [
        (["consumerOffset.json"], LMQ_ON, "4.9.8"),
        (["lmqConsumerOffset.json"], LMQ_OFF, "5.3.3"),
        (["topics.json", "consumerOffset.json"], DATABASE, "5.3.3"),
    ],
)
def test_tables_that_settings_keep_a_broker_from(
    there: list[str], settings: dict[str, object], release: str, tmp_path: Path
) -> None:
    found = of(start(with_tables(tmp_path, *there), release, **settings), "DR-TABLE-UNREAD")
    assert [one.facts["path"] for one in found] == [f"config/{name}" for name in there]
    assert {one.severity for one in found} == {"error"}


@pytest.mark.parametrize(
    ("there", "settings", "release"),
    [
        (["consumerOffset.json"], LMQ_ON, "4.9.2"),
        (["consumerOffset.json", "lmqConsumerOffset.json"], LMQ_ON, "5.3.3"),
        (["lmqConsumerOffset.json"], {}, "5.3.3"),
        (["consumerOffset.json", "topics.json"], DATABASE, "5.3.1"),
    ],
)
def test_tables_that_are_read_with_these_settings(
    there: list[str], settings: dict[str, object], release: str, tmp_path: Path
) -> None:
    assert not of(start(with_tables(tmp_path, *there), release, **settings), "DR-TABLE-UNREAD")


def test_the_headline_says_which_table_is_not_read(tmp_path: Path) -> None:
    root = with_tables(tmp_path / "store", "consumerOffset.json")
    conf = tmp_path / "broker.conf"
    conf.write_text("enableLmq=true\nmappedFileSizeCommitLog=4096\n")
    done = rmq("doctor", root, "--as-version", "5.3.3", "--store-config", conf)
    assert done.exit_code == 1
    shown = " ".join(done.stdout.split())
    assert "DO NOT START: with enableLmq=true a broker does not read config/consumerOffset.json" in shown
