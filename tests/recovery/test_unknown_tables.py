"""Tables of a broker that are gone, empty or forgiven: what it takes for unknown, and begins again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

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
