"""`rmqtool info`: the inventory of real stores, and of things that are none."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from formats.commitlog import encode_message
from tests.disks import refuse
from tests.helpers import rmq

SNAPSHOTS = Path(__file__).with_name("snapshots")
CLEAN = [
    "v470-basic",
    "v490-basic",
    "v490-batch",
    "v498-basic",
    "v498-batch",
    "v498-compressed",
    "v498-cqext",
    "v498-edge",
    "v498-ipv6",
    "v498-lmq",
    "v498-tx",
    "v533-basic",
    "v533-batch",
    "v533-batchcq",
    "v533-compressed",
    "v533-cqext",
    "v533-edge",
    "v533-ipv6",
    "v533-lmq",
    "v533-props-crc",
    "v533-tx",
    "v533-v2",
]
BROKERS = [
    "b497-full",
    "b533-full",
    "b533-ha",
    "b533-lmq",
    "b533-pop",
    "b533-rocksdb-double",
    "b533-compaction",
]


def info(path, *options):
    result = rmq("info", path, "--json", *options)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def api_queues(expected):
    return {(one["topic"], one["queue"]): (one["min"], one["max"]) for one in expected["queues"]}


def broker_queues(expected):
    return {
        (topic, int(number)): (one["min"], one["max"])
        for topic, queues in expected["queues"].items()
        for number, one in queues.items()
    }


def found_queues(reported):
    return {
        (one["topic"], one["queue_id"]): (one["min_offset"], one["max_offset"])
        for one in reported["queues"]
        if one["kind"] != "consumequeue_ext"
    }


@pytest.mark.parametrize("name", CLEAN)
def test_clean_stores_are_described_as_java_does(golden, name):
    store = golden(name)
    reported = info(store.path)
    assert found_queues(reported) == api_queues(store.expected)
    assert reported["commitlog"]["min_offset"] == store.expected["minPhyOffset"]
    records = store.expected["records"]
    assert reported["commitlog"]["end_offset"] == records[-1]["physicalOffset"] + records[-1]["storeSize"]
    assert reported["commitlog"]["first_store_timestamp"] == records[0]["storeTimestamp"]
    assert reported["commitlog"]["last_store_timestamp"] == records[-1]["storeTimestamp"]
    for segment in reported["segments"]:
        low, high = segment["segment"], segment["segment"] + segment["size"]
        inside = [one for one in records if low <= one["physicalOffset"] < high]
        assert segment["first_physical_offset"] == inside[0]["physicalOffset"]
        assert segment["last_physical_offset"] == inside[-1]["physicalOffset"]
        assert segment["last_store_timestamp"] == inside[-1]["storeTimestamp"]
    assert reported["complete"] is True
    assert reported["unknown"] == []


@pytest.mark.parametrize("name", BROKERS)
def test_stores_of_brokers_have_the_queues_that_clients_saw(golden, name):
    store = golden(name)
    reported = found_queues(info(store.path))
    for place, span in broker_queues(store.expected).items():
        assert reported.get(place, (0, 0)) == span, place


@pytest.mark.parametrize(
    "name", ["v470-basic", "v490-basic", "v498-basic", "v533-basic", "b497-full", "b533-full"]
)
def test_the_release_is_among_those_inferred(golden, name):
    store = golden(name)
    release = info(store.path)["release"]
    first, last, real = (
        tuple(map(int, version.split("."))) for version in (release["first"], release["last"], store.release)
    )
    assert first <= real <= last
    assert release["evidence"]


def test_every_file_is_listed_with_its_size_and_blocks(golden):
    store = golden("b533-full")
    reported = info(store.path)
    listed = {one["path"]: one for one in reported["files"]}
    on_disk = {
        path.relative_to(store.path).as_posix(): path for path in store.path.rglob("*") if path.is_file()
    }
    assert listed.keys() == on_disk.keys()
    for name, path in on_disk.items():
        facts = path.stat()
        assert listed[name]["size"] == facts.st_size
        assert listed[name]["disk_bytes"] == facts.st_blocks * 512
        assert listed[name]["kind"] != "unknown"
    total = reported["totals"][-1]
    assert (total["kind"], total["files"]) == ("total", len(on_disk))
    assert total["bytes"] == sum(path.stat().st_size for path in on_disk.values())
    assert sum(one["files"] for one in reported["totals"][:-1]) == len(on_disk)


def test_index_files_have_header_and_geometry(golden):
    store = golden("v498-basic")
    reported = info(store.path)["index"]
    assert len(reported) == len(store.expected["indexFiles"]) == 3
    for one, expected in zip(reported, store.expected["indexFiles"], strict=True):
        assert (one["slots"], one["items"], one["geometry_source"]) == (100, 400, "inferred")
        assert one["begin_timestamp"] == expected["beginTimestamp"]
        assert one["end_physical_offset"] == expected["endPhyOffset"]
        assert one["index_count"] == expected["indexCount"]


def test_settings_that_are_given_are_said_to_be_given(golden):
    store = golden("v498-basic")
    sizes = {one["kind"]: one for one in info(store.path)["sizes"]}
    assert (sizes["consumequeue"]["size"], sizes["consumequeue"]["source"]) == (1000, "inferred")
    given = {one["kind"]: one for one in info(store.path, "--store-config", store.config_path)["sizes"]}
    assert (given["consumequeue"]["size"], given["consumequeue"]["source"]) == (1000, "given")


def test_marks_and_texts(golden):
    reported = info(golden("b533-controller").path)
    assert reported["epoch"][0]["valid"] is True
    assert reported["epoch"][0]["entries"][0] == {"epoch": 1, "start_offset": 0}
    assert reported["broker_identity"][0]["cluster"] == "DefaultCluster"
    assert reported["lock"]["held"] is False
    assert reported["abort"] == {"exists": False, "pid": None}
    config = {one["path"]: one for one in reported["config"]}
    assert config["config/consumerOffset.json"]["state"] == "fastjson"
    assert config["config/topics.json"]["loads"] == "primary"
    unclean = info(golden("b533-unclean").path)
    assert unclean["abort"]["exists"] is True
    assert isinstance(unclean["abort"]["pid"], int)
    checkpoint = golden("v498-basic")
    reported = info(checkpoint.path)["checkpoint"]
    assert reported["logics_msg_timestamp"] == checkpoint.expected["records"][-1]["storeTimestamp"]


def test_what_is_not_decoded_is_listed_and_said(golden):
    reported = info(golden("b533-rocksdb").path)
    assert any("rocksdb" in one for one in reported["not_looked_at"])
    assert any(one["kind"] == "rocksdb" for one in reported["files"])
    dledger = info(golden("b533-dledger").path)
    assert any("dledger_data" in one for one in dledger["not_looked_at"])
    assert dledger["commitlog"]["segments"] == 0


def test_expired_heads_and_fillers_are_marked(golden):
    expired = {
        (q["topic"], q["queue_id"]): q["expired_head"]
        for q in info(golden("v498-expired-head").path)["queues"]
    }
    assert expired["TopicB", 0] is True
    assert expired["TopicGone", 0] is False
    queues = {
        q["queue_id"]: q for q in info(golden("v498-preblank").path)["queues"] if q["topic"] == "TopicP"
    }
    assert (queues[0]["pre_blank"], queues[0]["min_offset"], queues[0]["max_offset"]) == (37, 37, 47)


def test_unknown_paths_holes_and_twins_are_reported(fresh_golden, store_unchanged):
    store = fresh_golden("v498-basic").path
    (store / "notes.txt").write_text("x")
    (store / "elsewhere").mkdir()
    segments = sorted((store / "commitlog").iterdir())
    segments[1].unlink()
    shutil.copyfile(segments[0], store / "commitlog" / "0")
    result = rmq("info", store_unchanged(store), "--json")
    assert result.exit_code == 0
    reported = json.loads(result.stdout)
    assert {one["path"] for one in reported["unknown"]} == {"notes.txt", "elsewhere/"}
    assert "2 unknown files or directories" in result.stderr
    assert reported["commitlog"]["holes"] == [{"physical_offset": 32768, "length": 32768}]
    assert reported["commitlog"]["twins"] == [["commitlog/0", "commitlog/00000000000000000000"]]


def test_several_roots(fresh_golden, tmp_path):
    store = fresh_golden("v498-basic").path
    other = tmp_path / "second"
    other.mkdir()
    last = max((store / "commitlog").iterdir())
    last.rename(other / last.name)
    reported = info(store, "--commitlog", other)
    assert [one["root"] for one in reported["segments"]][-1] == 1
    assert reported["commitlog"]["roots"] == [0, 1]
    assert reported["commitlog"]["holes"] == []


def test_a_live_store_is_said_to_be_live(fresh_golden):
    store = fresh_golden("v498-basic").path
    with (store / "lock").open("r+b") as file:
        pid = os.fork()
        if pid == 0:
            with (store / "lock").open("r+b") as held:
                fcntl.lockf(held, fcntl.LOCK_EX, 1, 0)
                time.sleep(60)
            os._exit(0)
        try:
            deadline = time.monotonic() + 20
            result = rmq("info", store, "--json")
            while not json.loads(result.stdout)["lock"]["held"] and time.monotonic() < deadline:
                time.sleep(0.05)
                result = rmq("info", store, "--json")
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        assert not file.closed
    assert json.loads(result.stdout)["lock"] == {
        "held": True,
        "pid": pid,
        "reason": "byte 0 of lock is locked",
    }
    assert f"process {pid} holds it" in result.stderr


def test_listing_forms(golden, store_unchanged):
    store = store_unchanged(golden("v533-batchcq").path)
    listed = rmq("info", store, "--format", "ndjson")
    assert listed.exit_code == 0
    kinds = [row["type"] for row in listed.rows]
    assert kinds[-1] == "summary"
    assert {"file", "segment", "topic", "queue", "index", "config", "total"} <= set(kinds)
    assert listed.rows[-1]["schema"] == "rmqtool.info/1"
    assert listed.rows[-1]["complete"] is True
    assert info(store)["schema"] == "rmqtool.info/1"
    table = rmq("info", store, "--format", "csv").stdout.splitlines()
    assert table[0].startswith("path,kind,size,disk_bytes")
    assert len(table) == 1 + len(listed.of_type("file"))


def test_a_commitlog_directory_and_a_single_file(golden):
    store = golden("v498-basic")
    records = store.expected["records"]
    reported = info(store.path / "commitlog")
    assert reported["form"] == "commitlog"
    assert reported["commitlog"]["last_store_timestamp"] == records[-1]["storeTimestamp"]
    one = info(store.path / "commitlog" / "00000000000000032768")
    assert [segment["segment"] for segment in one["segments"]] == [32768]


def test_the_page_fits_80_columns(golden):
    store = golden("b533-full").path
    result = rmq("info", store, "--tz", "UTC")
    assert result.exit_code == 0
    shown = result.stdout.replace(str(store), "STORE")
    page, _, files = shown.partition("\nFiles\n")
    assert max(map(len, page.splitlines())) <= 80
    assert "consumequeue/%DLQ%CG_retry/0/00000000000000000000" in files
    # What lies on disk depends on the file system, so the snapshot is of what the store says.
    start, end = page.index("\nRelease"), page.index("\nConfiguration")
    assert page[start + 1 : end] == (SNAPSHOTS / "info-b533-full.txt").read_text()


def test_control_characters_never_reach_the_terminal(tmp_path):
    record = encode_message("T", b"x")
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(record.ljust(4096, b"\0"))
    queue = tmp_path / "consumequeue" / "[x]\x1b[2J" / "0"
    queue.mkdir(parents=True)
    (queue / f"{0:020d}").write_bytes(bytes(200))
    for form in ("table", "csv", "json", "ndjson"):
        result = rmq("info", tmp_path, "--format", form)
        assert result.exit_code == 0
        assert "\x1b" not in result.stdout + result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_makes_it_incomplete(fresh_golden):
    store = fresh_golden("v498-basic").path
    (store / "commitlog" / "00000000000000000000").chmod(0)
    result = rmq("info", store, "--json")
    assert result.exit_code == 3


def test_what_cannot_be_read_makes_it_incomplete(golden, monkeypatch):
    lost = ("commitlog/00000000000000032768", "consumequeue/TopicA/0/")
    refuse(monkeypatch, "open", errno.EIO, lambda path, *_: any(one in path for one in lost))
    result = rmq("info", golden("v498-basic").path, "--json")
    assert result.exit_code == 3
    reported = json.loads(result.stdout)
    assert (reported["complete"], reported["incomplete_reason"]) == (False, "unreadable")
    assert "commitlog/00000000000000032768" in {one["path"] for one in reported["not_covered"]}
    assert found_queues(reported)["TopicA", 0] == (None, None)
    assert found_queues(reported)["TopicA", 1] == (0, 14)
    assert "warning: " in result.stderr
    assert "Traceback" not in result.stderr


def test_bad_input(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear all")
    for path in (tmp_path / "missing", empty, other, other / "letter.txt"):
        result = rmq("info", path)
        assert result.exit_code == 2, path
        assert len(result.stderr.splitlines()) == 1
        assert result.stdout == ""
    assert rmq("info").exit_code == 2


@pytest.mark.parametrize("size", [0, 1, 7, 40, 4096])
def test_files_of_any_size_under_known_names(tmp_path, size, store_unchanged):
    noise = bytes((number * 37 + 11) % 256 for number in range(size))
    for name in (
        f"commitlog/{0:020d}",
        f"consumequeue/T/0/{0:020d}",
        f"consumequeue_ext/T/0/{0:020d}",
        f"batchconsumequeue/T/0/{0:020d}",
        "index/20240101000000000",
        "checkpoint",
        "abort",
        "lock",
        "config/topics.json",
        "epochFileCheckpoint",
        "brokerIdentity",
        "timerwheel",
        f"commitlog/x{0:020d}",
    ):
        path = tmp_path / "s" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(noise)
    store = store_unchanged(tmp_path / "s")
    for form in ("table", "csv", "json", "ndjson"):
        result = rmq("info", store, "--format", form)
        assert result.exit_code == 0, result.stderr
