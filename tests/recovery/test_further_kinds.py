"""More than plain queues: compacted topics, lists of queues, half messages, batches and delayed messages."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from fixtures.stores import HandmadeStore
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.store.layout import Store
from tests.recovery.showing import codes, of, shows
from tests.recovery.stores import filled, patched, start, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden


@shows("DR-REFUSE-COMPACTION", "DR-COMPACTION-CUT", "DR-COMPACTION-LEFT-OUT", "DR-COMPACTION-DAMAGED")
def test_compaction_logs_that_are_damaged(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """What a real 5.3.3 did (`tests/interop/test_compaction_interop.py`); more in `test_compaction`."""
    log = "compaction/compactionLog/TopicCompact/0"
    queue = "compaction/compactionCq/TopicCompact/0"
    named = {"DR-REFUSE-COMPACTION": (log, Verdict.UNSAFE), "DR-COMPACTION-CUT": (queue, Verdict.UNSAFE)}
    named |= {"DR-COMPACTION-LEFT-OUT": (log, Verdict.UNSAFE)}
    named |= {"DR-COMPACTION-DAMAGED": (log, Verdict.DAMAGED)}
    for code, (path, verdict) in named.items():
        root = tmp_path / code
        shutil.copytree(golden("b533-compaction").path, root)
        file = root / path / f"{107640:020d}"
        if code in {"DR-REFUSE-COMPACTION", "DR-COMPACTION-CUT"}:
            file.unlink()
        elif code == "DR-COMPACTION-LEFT-OUT":
            file.write_bytes(file.read_bytes()[:-1])
        else:
            patched(file, 300, bytes(2000))
        found = simulate(Store.open(root), "5.3.3")
        assert {one for one in codes(found) if "COMPACTION" in one} == {code}
        assert found.verdict is verdict


@shows("DR-LMQ-SKIPPED", "DR-REFUSE-MULTI-DISPATCH", "DR-REFUSE-STUCK")
def test_lists_of_queues_that_do_not_fit(tmp_path: Path) -> None:
    log = filled(2)
    log.put("T", b"x", {"INNER_MULTI_DISPATCH": "%LMQ%b,plain", "INNER_MULTI_QUEUE_OFFSET": "4,"})
    on = {"enableMultiDispatch": "true", "enableLmq": "true"}
    (skipped,) = of(start(write(tmp_path, log), **on), "DR-LMQ-SKIPPED")
    assert skipped.facts == {"count": 1}
    log.put("T", b"x", {"INNER_MULTI_DISPATCH": "plain,%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": ",4"})
    (tmp_path / "second").mkdir()
    assert "DR-REFUSE-MULTI-DISPATCH" in codes(start(write(tmp_path / "second", log), **on))
    assert "DR-REFUSE-STUCK" in codes(start(tmp_path / "second", "4.9.8", **on))


@shows("DR-POISON-HALF")
def test_half_messages_that_no_check_gets_past(tmp_path: Path) -> None:
    log = filled(2)
    half = "RMQ_SYS_TRANS_HALF_TOPIC"
    log.put(half, b"plain", {"REAL_TOPIC": "T", "REAL_QID": "0"})
    bad = log.put(half, b"no zlib", {"REAL_TOPIC": "T", "REAL_QID": "0"}, sys_flag=1)
    log.put(half, b"no topic", {"REAL_QID": "0"})
    (found,) = of(start(write(tmp_path, log)), "DR-POISON-HALF")
    assert found.facts == {"count": 2, "offset": bad.physical_offset}


@shows("DR-BATCH-AS-PLAIN")
def test_batch_queues_under_a_release_that_knows_none(tmp_path: Path) -> None:
    """A real 4.9.8 gave twelve batches of two the places 0 to 11 of a plain queue."""
    store = HandmadeStore()
    for _ in range(12):
        store.put_batch("Batches", [b"a", b"b"])
    store.write(tmp_path / "store")
    outcome = simulate(Store.open(store.root), "4.9.8")
    (found,) = of(outcome, "DR-BATCH-AS-PLAIN")
    assert (found.facts, found.paths) == ({"count": 1}, ("batchconsumequeue/Batches",))
    (twice,) = of(outcome, "DR-OFFSETS-TWICE")
    assert (twice.facts["start"], twice.facts["end"]) == (12, 22)
    assert "DR-BATCH-AS-PLAIN" not in codes(simulate(Store.open(store.root), "5.3.3"))


@shows("DR-DELAYED-AT-ONCE")
def test_delayed_messages_that_recovery_dispatches(tmp_path: Path) -> None:
    """The real store of 4.9.8 writes the tags code 0 for them, that of 5.3.3 the time of delivery."""
    store = HandmadeStore()
    store.config["delayOffset"] = {"offsetTable": {3: 1}}
    store.put("Orders", b"body")
    for _ in range(3):
        store.put("SCHEDULE_TOPIC_XXXX", b"body", queue_id=2, properties={"DELAY": "3"})
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    assert "DR-DELAYED-AT-ONCE" not in codes(simulate(Store.open(store.root), "4.9.8"))
    (store.root / "abort").touch()
    (found,) = of(simulate(Store.open(store.root), "4.9.8"), "DR-DELAYED-AT-ONCE")
    facts = {"topic": "SCHEDULE_TOPIC_XXXX", "queue_id": 2, "count": 2, "start": 1}
    assert found.facts == facts
    assert "DR-DELAYED-AT-ONCE" not in codes(simulate(Store.open(store.root), "5.3.3"))
