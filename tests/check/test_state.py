"""Checkpoint, markers, configuration, consumer offsets, topic table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fixtures
from fixtures import DamageCase, Golden
from fixtures.mutators import MUTATORS
from fixtures.stores import healthy_store
from rmqtool.check.findings import Finding, Severity
from rmqtool.check.state import LogEnd, QueueEnds, check_state
from rmqtool.query.queue_ends import file_ends
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Store
from tests.helpers import held

Fresh = Callable[[str], Golden]


def queue_ends(store: Store) -> dict[tuple[str, int], QueueEnds]:
    found: dict[tuple[str, int], QueueEnds] = {}
    for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
        for queue in store.queues(kind):
            used = [ends for file in queue.files if (ends := file_ends(file)).last is not None]
            if queue.topic is not None and queue.queue_id is not None:
                ends = (
                    QueueEnds(used[0].min_offset or 0, used[-1].max_offset or 0) if used else QueueEnds(0, 0)
                )
                found[queue.topic, queue.queue_id] = ends
    return found


def log_end(store: Store) -> LogEnd | None:
    if len(store.dledger_segments):
        return None
    end, last = 0, None
    for segment in store.segments:
        with segment.open() as source:
            active = store.segments.is_active(segment)
            for event in SegmentScan(source, segment.base, active=active, kernels=choose_kernels(0)):
                if isinstance(event, Records):
                    row = event.rows[-1]
                    end = segment.base + int(row[Field.POSITION] + row[Field.STORE_SIZE])
                    last = max(last or 0, int(event.rows[:, Field.STORE_TIMESTAMP].max()))
    return LogEnd(end, last)


def state_of(root: Path) -> list[Finding]:
    store = Store.open(root)
    return list(check_state(store, queues=queue_ends(store), log_end=log_end(store)))


@pytest.mark.share
@pytest.mark.parametrize("name", fixtures.golden_names())
def test_goldens_have_notes_only(name: str, golden: Callable[[str], Golden]) -> None:
    for root in golden(name).stores.values():
        assert [one for one in state_of(root) if one.severity is not Severity.NOTE] == []
        bare = list(check_state(Store.open(root)))
        assert [one for one in bare if one.severity is not Severity.NOTE] == []


CHECKPOINT = [one for one in fixtures.damage_cases() if one.cls == "checkpoint"]
HEALTHY_TOO = {"confirm-low"}


@pytest.mark.share
@pytest.mark.parametrize("case", CHECKPOINT, ids=lambda case: case.id)
def test_checkpoint_damage_is_at_its_place(case: DamageCase, damaged: Callable[[DamageCase], Path]) -> None:
    found = state_of(damaged(case))
    late = {one.code for one in found if one.severity is not Severity.NOTE}
    assert late == ({"CP-FUTURE"} if "future" in case.variant else set())
    here = [one for one in found if one.path == "checkpoint"]
    assert bool(here) == (case.variant not in HEALTHY_TOO)
    for spot in case.damaged["checkpoint"]:
        if isinstance(spot, str) or not here:
            continue
        start, length = spot
        assert any(
            one.position is not None and start <= one.position and one.position + 8 <= start + length
            for one in here
        )


def test_a_checkpoint_that_a_broker_writes_meanwhile_may_be_ahead(tmp_path: Path) -> None:
    store = healthy_store().write(tmp_path / "store")
    next(one for one in MUTATORS if one.code == "CP-FUTURE").apply(store)
    with held(store.root):
        found = [one for one in state_of(store.root) if one.code == "CP-FUTURE"]
    assert [one.severity for one in found] == [Severity.NOTE]


@pytest.mark.parametrize("variant", ["short", "long", "missing", "zero-length"])
def test_checkpoint_sizes(variant: str, damaged: Callable[[str], Path]) -> None:
    found = {one.code for one in state_of(damaged(f"v533-checkpoint-{variant}-clean"))}
    assert ("CP-MISSING" if variant == "missing" else "CP-SIZE") in found


def test_markers(damaged: Callable[[str], Path], fresh_golden: Fresh) -> None:
    codes = {one.code: one for one in state_of(damaged("v498-marker-abort-dir-clean"))}
    assert codes["CP-ABORT-DIRECTORY"].severity is Severity.WARNING
    root = fresh_golden("v533-basic").path
    (root / "abort").write_text("4711")
    (one,) = (one for one in state_of(root) if one.code == "CP-ABORT")
    assert one.severity is Severity.NOTE
    assert "4711" in one.message


DELAY = [one for one in fixtures.damage_cases() if one.cls == "delayoffset"]


@pytest.mark.share
@pytest.mark.parametrize("case", DELAY, ids=lambda case: case.id)
def test_delay_offsets_as_the_broker_loaded_them(
    case: DamageCase, damaged: Callable[[DamageCase], Path]
) -> None:
    found = [one for one in state_of(damaged(case)) if one.code.startswith("CFG-")]
    refused = any(one.code == "CFG-REFUSED" for one in found)
    assert refused == (case.result["load"] != "ok")
    primary, backup = case.variant.split("-")
    loud = [one for one in found if one.severity is not Severity.NOTE]
    assert all(one.path == "config/delayOffset.json" for one in loud)
    assert bool(loud) == (
        primary != "good" and (primary, backup) not in {("absent", "nobak"), ("absent", "emptybak")}
    )


@pytest.mark.parametrize("release", ["4.9.7", "5.3.3"])
def test_config_files_as_the_broker_loaded_them(release: str, tmp_path: Path) -> None:
    for number, case in enumerate(fixtures.config_cases(release)):
        root = tmp_path / str(number)
        (root / "commitlog").mkdir(parents=True)
        (root / "config").mkdir()
        for suffix, content in (("", case["main"]), (".bak", case["bak"])):
            if content is not None:
                (root / "config" / (case["file"] + suffix)).write_bytes(bytes.fromhex(content))
        found = [one for one in check_state(Store.open(root)) if one.code.startswith("CFG-")]
        codes = {one.code for one in found}
        if any(word in case["id"] for word in ("-spaces-", "-wrong-type-")):
            continue  # releases and managers differ here: some load nothing, some refuse
        assert ("CFG-REFUSED" in codes) == (case["result"]["load"] is False), case["id"]
        if "-good-bak" in case["id"]:
            assert codes & {"CFG-LOST", "CFG-NOTHING", "CFG-ODD", "CFG-PRIMARY", "CFG-REFUSED"} == set()


def edit(root: Path, name: str, change: Callable[[Any], object]) -> None:
    path = root / "config" / name
    data = Store.open(root).config_pair(name).data
    change(data)
    path.write_text(json.dumps(data))


def test_offsets_outside_of_their_queues(fresh_golden: Fresh) -> None:
    root = fresh_golden("b533-full").path
    ends = queue_ends(Store.open(root))
    (topic, queue), one = next(
        (key, one) for key, one in sorted(ends.items()) if one.max_offset > 2 and not key[0].startswith("%")
    )

    def change(data: Any) -> None:
        data["offsetTable"] = {
            f"{topic}@beyond": {queue: one.max_offset + 1},
            f"{topic}@below": {queue: -1},
            f"{topic}@end": {queue: one.max_offset},
            f"{topic}@text": {queue: str(one.max_offset)},
            f"{topic}@queue": {99: 5},
            "NoSuchTopic@g": {0: 1},
        }

    edit(root, "consumerOffset.json", change)
    found = {one.part: one for one in state_of(root) if one.code.startswith("CFG-OFFSET")}
    assert {part: (one.code, one.severity.value) for part, one in found.items()} == {
        f"{topic}@beyond": ("CFG-OFFSET-BEYOND", "warning"),
        f"{topic}@below": ("CFG-OFFSET-BELOW", "note"),
        f"{topic}@text": ("CFG-OFFSET-VALUE", "note"),
        f"{topic}@queue": ("CFG-OFFSET-QUEUE", "note"),
        "NoSuchTopic@g": ("CFG-OFFSET-TOPIC", "note"),
    }
    beyond = found[f"{topic}@beyond"]
    assert (beyond.expected, beyond.found) == (one.max_offset, one.max_offset + 1)
    assert (beyond.topic, beyond.queue_id) == (topic, queue)


@pytest.mark.parametrize("name", ["b497-full", "b533-full"])
def test_queues_that_a_shrunk_topic_left_behind(name: str, golden: Callable[[str], Golden]) -> None:
    store = Store.open(golden(name).path)
    ends = queue_ends(store)
    found = [one for one in state_of(golden(name).path) if one.code == "CFG-UNREACHABLE"]
    shrunk = {one.queue_id: one.found for one in found if one.topic == "TopicShrunk"}
    assert shrunk == {
        queue: one.max_offset - one.min_offset
        for (topic, queue), one in ends.items()
        if topic == "TopicShrunk" and queue >= 2 and one.max_offset > one.min_offset
    }
    assert shrunk
    perms = {one.topic for one in state_of(golden(name).path) if one.code == "CFG-PERM"}
    assert "TopicReadOnly" in perms


def test_topic_table_against_disk(fresh_golden: Fresh) -> None:
    root = fresh_golden("b533-full").path

    def change(data: Any) -> None:
        table = data["topicConfigTable"]
        del table["TopicAuto"], table["RMQ_SYS_TRANS_HALF_TOPIC"]
        table["TopicShrunk"] |= {"writeQueueNums": 4, "readQueueNums": 2}
        table["TopicReadOnly"] |= {"writeQueueNums": 2, "readQueueNums": 4}
        table["TopicWithoutQueue"] = dict(table["TopicShrunk"], topicName="TopicWithoutQueue")

    edit(root, "topics.json", change)
    found = state_of(root)
    assert all(one.severity is Severity.NOTE for one in found)
    reported = {(one.code, one.topic) for one in found}
    assert {
        ("CFG-NO-TOPIC", "TopicAuto"),
        ("CFG-WRITE-MORE", "TopicShrunk"),
        ("CFG-READ-MORE", "TopicReadOnly"),
        ("CFG-NO-QUEUE", None),
    } <= reported
    assert {topic for code, topic in reported if code == "CFG-NO-TOPIC"} == {"TopicAuto"}  # no broker's own


def test_nothing_is_said_about_queues_in_rocksdb(golden: Callable[[str], Golden]) -> None:
    found = {one.code for one in state_of(golden("b533-rocksdb").path)}
    assert found <= {"CP-ZERO"}
