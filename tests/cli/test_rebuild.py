"""`rmqtool rebuild`: what is planned, what is written, and what is said about the log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fixtures import golden_names
from fixtures.builder import HandmadeLog
from formats.batch import encode_client_message
from formats.consumequeue import PRE_BLANK
from rmqtool.scan.units import BATCH_UNIT, UNIT
from tests.build.building import files_of, same
from tests.disks import break_blocks
from tests.helpers import Entry, Result, differences, rmq, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from fixtures import Golden

OTHERWISE = ("dledger", "unclean", "cqext", "rocksdb", "rocksdb-double", "expired-all", "expired-head")
QUICK = ("v470-basic", "v498-lmq", "v498-preblank", "v533-batchcq", "v533-edge", "b497-full", "b533-lmq")
IN_ORDER = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.full)
    for name in golden_names()
    if not name.endswith(OTHERWISE)
]
EXPIRED = [name for name in golden_names() if name.endswith(("expired-all", "expired-head"))]
TOPIC = "consumequeue/TopicA/0/00000000000000000000"


def rebuild(golden: Golden, *args: object, root: Path | None = None) -> Result:
    given = ("--store-config", golden.config_path, "--as-version", golden.release)
    return rmq("rebuild", root or golden.path, *given, *args)


def summary(result: Result) -> dict[str, Any]:
    (found,) = result.of_type("summary")
    return found


@pytest.mark.parametrize("name", IN_ORDER)
def test_a_store_in_good_order_has_nothing_to_change(
    golden: Callable[[str], Golden], name: str, store_unchanged: Callable[[Path], Path]
) -> None:
    one = golden(name)
    store_unchanged(one.path)
    result = rebuild(one)
    assert (result.exit_code, "Nothing to change" in result.stdout) == (0, True), result.stdout


@pytest.mark.share
@pytest.mark.parametrize("name", ["v498-basic", "v533-basic", "b533-full", "v533-batchcq"])
def test_output_has_all_derived_files_and_nothing_else(
    golden: Callable[[str], Golden], name: str, store_unchanged: Callable[[Path], Path], tmp_path: Path
) -> None:
    one, out = golden(name), tmp_path / "out"
    store_unchanged(one.path)
    assert rebuild(one, "--output", out).exit_code == 1
    assert not out.exists()
    done = rebuild(one, "--output", out, "--apply")
    assert (done.exit_code, done.stdout.count("put")) != (1, 0), done.stderr
    assert same(files_of(one.path), files_of(out)) == []
    assert {path.name for path in out.iterdir()} <= {"consumequeue", "batchconsumequeue", "index"}
    assert [one.name for one in sorted((out / "index").iterdir())] == [
        path.name for path in sorted((one.path / "index").iterdir())
    ]


def test_files_get_the_time_of_their_last_message(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    one, out = golden("v533-basic"), tmp_path / "out"
    assert rebuild(one, "--output", out, "--apply").exit_code == 0
    times = {record["storeTimestamp"] for record in one.expected["records"]}
    for path in [*out.rglob("consumequeue/*/*/*"), *out.rglob("index/*")]:
        assert path.stat().st_mtime_ns // 1_000_000 in times


def test_in_place_brings_back_what_was_lost_and_undo_takes_it_away(
    fresh_golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    one, backup = fresh_golden("v498-basic"), tmp_path / "backup"
    whole = files_of(one.path)
    shutil.rmtree(one.path / "consumequeue" / "TopicA" / "0")
    damaged = bytearray((one.path / "consumequeue/TopicB/0/00000000000000000000").read_bytes())
    damaged[20:40] = bytes(20)
    (one.path / "consumequeue/TopicB/0/00000000000000000000").write_bytes(damaged)
    index = max((one.path / "index").iterdir())
    index.write_bytes(index.read_bytes()[:100])
    before = snapshot(one.path)
    assert rebuild(one).exit_code == 1
    assert differences(before, snapshot(one.path)) == []
    done = rebuild(one, "--in-place", "--backup", backup, "--apply")
    assert done.exit_code == 0, done.stderr
    assert same(files_of(one.path), whole) == []
    assert rebuild(one).exit_code == 0
    assert rmq("undo", backup, "--apply").exit_code == 0
    assert restorable(snapshot(one.path)) == restorable(before)


def restorable(taken: dict[str, Entry]) -> dict[str, tuple[object, ...]]:
    """What undo promises of each path; times of change and inodes are the system's."""
    return {name: (one.mode, one.size, one.mtime_ns, one.sha256) for name, one in taken.items()}


def test_a_saved_plan_is_done_exactly_or_refused(
    fresh_golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    one, plan = fresh_golden("v533-basic"), tmp_path / "plan.json"
    whole = files_of(one.path)
    (one.path / TOPIC).unlink()
    assert rebuild(one, "--topic", "TopicA", "--save-plan", plan).exit_code == 1
    written = json.loads(plan.read_text())
    assert [change["path"] for change in written["changes"]] == [TOPIC]
    assert written["changes"][0]["sha256"]
    done = rebuild(one, "--plan", plan, "--in-place", "--backup", tmp_path / "backup", "--apply")
    assert done.exit_code == 0, done.stderr
    assert same(files_of(one.path), whole) == []
    refused = rebuild(one, "--plan", plan, "--in-place", "--backup", tmp_path / "again", "--apply")
    assert refused.exit_code == 1
    assert "changed" in refused.stderr


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--topic", "Topic?"), {"TopicA", "TopicB"}),
        (("--topic", "TopicB", "--queue", "1"), {"TopicB"}),
        (("--queue", "*", "--topic", "T"), {"T"}),
        (("--what", "index"), set()),
    ],
)
def test_one_topic_or_queue_or_the_index_alone(
    golden: Callable[[str], Golden], tmp_path: Path, args: tuple[str, ...], expected: set[str]
) -> None:
    one, out = golden("v533-basic"), tmp_path / "out"
    assert rebuild(one, *args, "--output", out, "--apply").exit_code == 0
    built = files_of(out)
    assert {name.split("/")[1] for name in built if name.startswith("consumequeue")} == expected
    assert bool(files_of(out, "index")) == (not expected)
    assert all(files_of(one.path)[name] == data for name, data in built.items())
    if "--queue" in args and "*" not in args:
        assert {name.split("/")[2] for name in built} == {"1"}


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("--what", "cqs"), "--what"),
        (("--what", ""), "--what"),
        (("--what", "index", "--topic", "A"), "--topic"),
        (("--queue", "-1"), "--queue"),
        (("--apply",), "--output"),
        (("--in-place",), "--backup"),
    ],
)
def test_senseless_options_are_refused(
    golden: Callable[[str], Golden], args: tuple[str, ...], word: str
) -> None:
    result = rebuild(golden("v533-basic"), *args)
    assert result.exit_code == 2
    assert word in result.stderr


@pytest.mark.share
@pytest.mark.parametrize("name", EXPIRED)
def test_units_of_expired_messages_are_kept_when_asked(
    golden: Callable[[str], Golden], name: str, tmp_path: Path
) -> None:
    one = golden(name)
    dropped = rebuild(one, "--what", "cq", "--format", "ndjson")
    assert dropped.exit_code == 1
    assert summary(dropped)["kept_units"] == 0
    kept = rebuild(one, "--what", "cq", "--keep-expired", "--format", "ndjson")
    assert (kept.exit_code, summary(kept)["changes"]) == (0, 0)
    assert summary(kept)["kept_units"] > 50
    out = tmp_path / "out"
    assert rebuild(one, "--what", "cq", "--keep-expired", "--output", out, "--apply").exit_code == 0
    assert same(files_of(one.path, "consumequeue"), files_of(out)) == []


def test_a_queue_without_a_message_in_the_log_stays(golden: Callable[[str], Golden]) -> None:
    result = rebuild(golden("v498-expired-all"), "--format", "ndjson")
    assert summary(result)["queues_without_records"] == [{"topic": "TopicGone", "queue_id": 0}]
    assert not [one for one in result.of_type("change") if "TopicGone" in one["path"]]
    assert "TopicGone/0" in result.stderr


def test_queues_of_deleted_topics_are_left_out_and_named(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    one = golden("b533-full")
    result = rebuild(one, "--format", "ndjson")
    assert (result.exit_code, summary(result)["deleted_topics"]) == (0, ["TopicDeleted"])
    assert "TopicDeleted" in result.stderr
    out = tmp_path / "out"
    assert rebuild(one, "--deleted-topics", "--output", out, "--apply").exit_code == 0
    assert (out / "consumequeue" / "TopicDeleted").is_dir()


@pytest.mark.parametrize("name", [name for name in golden_names() if name.endswith("dledger")])
def test_a_dledger_log_is_refused(golden: Callable[[str], Golden], name: str) -> None:
    result = rebuild(golden(name))
    assert result.exit_code == 2
    assert "DLedger" in result.stderr


def test_queues_in_rocksdb_are_refused_their_index_is_not(golden: Callable[[str], Golden]) -> None:
    one = golden("v533-rocksdb")
    refused = rebuild(one)
    assert refused.exit_code == 2
    assert "RocksDB" in refused.stderr
    assert rebuild(one, "--what", "index").exit_code == 0


def test_damage_is_told_and_what_lies_behind_it_is_built(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=4096)
    for number in range(20):
        log.put("TopicTest", b"x" * 100, {"KEYS": f"k{number}"})
    (path, *_) = log.write(tmp_path / "store" / "commitlog")
    data = bytearray(path.read_bytes())
    lost, bad = log.records[3], log.records[5]
    data[lost.physical_offset : lost.end] = b"x" * len(lost.data)
    data[data.index(b"x" * 100, bad.physical_offset)] ^= 1
    path.write_bytes(data)
    (tmp_path / "broker.conf").write_text("maxHashSlotNum=10\nmaxIndexNum=50\n")
    given = ("--store-config", tmp_path / "broker.conf", "--as-version", "5.3.3", "--format", "ndjson")
    before = snapshot(tmp_path / "store")
    result = rmq("rebuild", tmp_path / "store", *given, "--output", tmp_path / "out", "--apply")
    assert result.exit_code == 1
    reported = summary(result)
    assert (reported["records"], reported["units"], reported["blank_units"], reported["bad_bodies"]) == (
        19,
        19,
        1,
        1,
    )
    assert (reported["applied"], reported["complete"], reported["incomplete_reason"]) == (
        True,
        False,
        "damage",
    )
    assert [row["physical_offset"] for row in reported["not_covered"]] == [lost.physical_offset]
    assert str(bad.physical_offset) in result.stderr
    assert differences(before, snapshot(tmp_path / "store")) == []


def test_bytes_that_cannot_be_read_are_exit_3(
    golden: Callable[[str], Golden], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, out = golden("v533-basic"), tmp_path / "out"
    break_blocks(monkeypatch, {one.path / "commitlog" / f"{0:020d}": [2]})
    result = rebuild(one, "--safe-io", "--output", out, "--apply", "--format", "ndjson")
    assert (result.exit_code, summary(result)["incomplete_reason"]) == (3, "unreadable")
    assert summary(result)["blank_units"] > 0
    old, new = files_of(one.path, "consumequeue"), files_of(out, "consumequeue")
    assert len(same(old, new)) in range(1, 12)
    for name in same(old, new):
        units = zip(*(np.frombuffer(files[name], UNIT) for files in (old, new)), strict=True)
        assert all(before == after or after.tobytes() == PRE_BLANK for before, after in units)


def test_a_commitlog_directory_alone_is_enough_for_output(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    one, out = golden("v533-basic"), tmp_path / "out"
    given = ("--output", out, "--apply")
    assert rebuild(one, *given, root=one.path / "commitlog").exit_code == 0
    assert same(files_of(one.path), files_of(out)) == []
    assert rebuild(one, root=one.path / "commitlog").exit_code == 2


def test_an_output_that_is_not_empty_is_refused(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_bytes(b"mine")
    result = rebuild(golden("v533-basic"), "--output", tmp_path / "out", "--apply")
    assert (result.exit_code, (tmp_path / "out" / "mine").read_bytes()) == (2, b"mine")


@pytest.mark.parametrize("name", ["v498-lmq", "v533-lmq"])
def test_records_of_a_bare_log_tell_that_light_queues_are_wanted(
    fresh_golden: Callable[[str], Golden], name: str, tmp_path: Path
) -> None:
    one = fresh_golden(name)
    whole = files_of(one.path, "consumequeue")
    sizes = tmp_path / "sizes.conf"
    sizes.write_text("mappedFileSizeConsumeQueue=1000\n")
    for kind in ("consumequeue", "index"):
        shutil.rmtree(one.path / kind)
    given = ("--store-config", sizes, "--as-version", one.release, "--deleted-topics")
    rmq("rebuild", one.path, *given, "--output", tmp_path / "out", "--apply")
    assert same(files_of(tmp_path / "out", "consumequeue"), whole) == []
    sizes.write_text("mappedFileSizeConsumeQueue=1000\nenableMultiDispatch=false\n")
    rmq("rebuild", one.path, *given, "--output", tmp_path / "off", "--apply")
    assert not list((tmp_path / "off" / "consumequeue").glob("%LMQ%*"))


def test_batch_units_of_expired_messages_are_kept_when_asked(fresh_golden: Callable[[str], Golden]) -> None:
    one = fresh_golden("v533-batchcq")
    min((one.path / "commitlog").iterdir()).unlink()
    dropped = rebuild(one, "--what", "cq", "--topic", "TopicBCQ", "--format", "ndjson")
    assert (dropped.exit_code, summary(dropped)["kept_units"]) == (1, 0)
    kept = rebuild(one, "--what", "cq", "--topic", "TopicBCQ", "--keep-expired", "--format", "ndjson")
    assert (kept.exit_code, summary(kept)["changes"]) == (0, 0), kept.of_type("change")
    assert summary(kept)["kept_units"] > 10


@pytest.mark.parametrize("late", [False, True])
def test_a_bare_log_tells_of_batch_queues(tmp_path: Path, *, late: bool) -> None:
    """No topic table says which topics have them; late: one that nobody could tell from a plain one yet."""
    log = HandmadeLog()
    kinds = ["S", "x", "B", "S"] if late else ["B", "S", "B"]
    log.put("Plain", b"body", {"INNER_MULTI_DISPATCH": "T", "INNER_MULTI_QUEUE_OFFSET": "5"})
    for kind in kinds:
        base = log.queue_offsets["T", 0]
        if kind == "B":
            inner = {"INNER_BASE": str(base), "INNER_NUM": "3"}
            body = encode_client_message(b"part") * 3
            log.put("T", body, inner, queue_offset=base, sys_flag=0x80)
            log.queue_offsets["T", 0] = base + 3
        else:
            placed = log.put("T" if kind == "S" else "Plain", b"body")
            if kind == "x":
                (lost,) = [placed]
    log.write(tmp_path / "bare/commitlog")
    if late:
        path = tmp_path / "bare/commitlog/00000000000000000000"
        data = bytearray(path.read_bytes())
        data[lost.physical_offset + 4 : lost.physical_offset + 8] = b"lost"
        path.write_bytes(data)
    given = ("--as-version", "5.3.3", "--what", "cq", "--apply", "--apply-unproven", "--quiet")
    rmq("rebuild", tmp_path / "bare", "--output", tmp_path / "out", *given)
    (made,) = files_of(tmp_path / "out", "batchconsumequeue").values()
    units = np.frombuffer(made, BATCH_UNIT)
    counts = [{"S": 1, "B": 3}[kind] for kind in kinds if kind != "x"]
    assert units["batch_size"][: len(counts) + 1].tolist() == [*counts, 0]
    assert units["base_offset"][: len(counts)].tolist() == np.cumsum([0, *counts[:-1]]).tolist()
    assert {path.split("/")[1] for path in files_of(tmp_path / "out", "consumequeue")} == {"Plain"}


def test_a_deleted_topic_comes_back_with_its_queues_and_its_entry(fresh_golden, tmp_path):
    """It was deleted on the broker that wrote the store: no entry, no queues, messages in the log."""
    store = fresh_golden("b533-full").path
    assert not (store / "consumequeue" / "TopicDeleted").exists()
    table = store / "config" / "topics.json"
    before = json.loads(table.read_text())["topicConfigTable"]
    words = ("rebuild", store, "--topic", "TopicDel*", "--restore-topics")
    done = rmq(*words, "--in-place", "--backup", tmp_path / "kept", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert any(note.startswith("guess: mqadmin updateTopic") for note in summary["notes"])
    after = json.loads(table.read_text())["topicConfigTable"]
    assert after.keys() - before.keys() == {"TopicDeleted"}
    entry = after["TopicDeleted"]
    assert (entry["readQueueNums"], entry["writeQueueNums"], entry["perm"]) == (2, 2, 6)
    assert {name: after[name] for name in before} == before
    found = rmq("query-offset", store, "TopicDeleted", "1", "min", "-n", "9", "--format", "ndjson")
    assert found.exit_code == 0
    assert found.of_type("message")
    again = rmq(*words, "--json")
    assert json.loads(again.stdout)["summary"]["changes"] == 0
    assert rmq("undo", tmp_path / "kept", "--apply").exit_code == 0
    assert json.loads(table.read_text())["topicConfigTable"] == before
    assert not (store / "consumequeue" / "TopicDeleted").exists()
