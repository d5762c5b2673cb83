from __future__ import annotations

import json

import pytest

from fixtures import apply_case, damage_case
from formats.checkpoint import Checkpoint, parse_checkpoint
from tests.helpers import rmq


@pytest.fixture
def store(fresh_golden):
    return fresh_golden("v533-basic")


def ask(store, *args, release="5.3.3", verb="show"):
    return rmq(
        "checkpoint", verb, store.path, "--store-config", store.config_path, "--as-version", release, *args
    )


def shown(store, **how):
    done = ask(store, "--json", **how)
    return done.exit_code, json.loads(done.stdout)


def stored(root):
    return parse_checkpoint((root / "checkpoint").read_bytes())


def test_the_proof_is_what_the_broker_says_of_the_store(store, store_unchanged):
    store_unchanged(store.path)
    code, found = shown(store)
    assert (code, found["schema"], found["complete"]) == (0, "rmqtool.checkpoint-show/1", True)
    records = sorted(store.expected["records"], key=lambda one: one["physicalOffset"])
    last = records[-1]
    proof = found["proof"]
    assert proof["last_physical_offset"] == last["physicalOffset"]
    assert proof["last_store_timestamp"] == last["storeTimestamp"]
    assert proof["log_end"] == last["physicalOffset"] + last["storeSize"]
    assert proof["undispatched_messages"] == 0
    assert found["fields"]["physic_msg_timestamp"]["safe"] == last["storeTimestamp"]


def test_the_page_has_every_field(store):
    done = ask(store)
    assert done.exit_code == 0
    for words in ("physic_msg_timestamp", "confirm_physical_offset", "valid log ends at", "in segment"):
        assert words in done.stdout


def test_a_checkpoint_that_is_too_young_is_a_problem(store):
    values = stored(store.path)
    values["logics_msg_timestamp"] += 1
    (store.path / "checkpoint").write_bytes(Checkpoint.build(values))
    code, found = shown(store)
    assert (code, found["fields"]["logics_msg_timestamp"]["too_late"]) == (1, True)


def test_a_queue_that_lags_bounds_the_time(store):
    before = shown(store)[1]["fields"]["logics_msg_timestamp"]["safe"]
    for file in (store.path / "consumequeue").rglob("*"):
        if file.is_file():
            file.unlink()
    found = shown(store)[1]
    assert found["proof"]["undispatched_messages"] > 0
    assert found["proof"]["oldest_undispatched_timestamp"] < before
    assert found["fields"]["logics_msg_timestamp"]["safe"] == found["proof"]["oldest_undispatched_timestamp"]
    assert found["abnormal_start"]["safe"]["start_segment"] == 0


def test_a_missing_checkpoint_is_made_whole(store, tmp_path):
    (store.path / "checkpoint").unlink()
    assert shown(store)[1]["exists"] is False
    done = ask(store, "--output", tmp_path / "out", "--apply", verb="set")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "out" / "checkpoint").stat().st_size == 4096
    assert int(stored(tmp_path / "out").physic_msg_timestamp) > 0


def test_a_release_without_a_confirm_offset_keeps_what_is_there(store, tmp_path):
    values = stored(store.path)
    values["confirm_physical_offset"] = 77
    (store.path / "checkpoint").write_bytes(Checkpoint.build(values))
    ask(store, "--output", tmp_path / "out", "--apply", verb="set", release="4.9.8")
    assert int(stored(tmp_path / "out").confirm_physical_offset) == 77


def test_given_values_are_taken_and_late_ones_named(store, tmp_path):
    done = ask(store, "--physic", "1700000000000", "--index", "9999999999999", "--json", verb="set")
    summary = json.loads(done.stdout)["summary"]
    assert any("index_msg_timestamp 9999999999999 is later" in note for note in summary["notes"])
    row = json.loads(done.stdout)["rows"][0]
    assert row["physic_msg_timestamp"]["to"] == 1700000000000


def test_damage_is_said(tmp_path):
    root = apply_case(damage_case("v533-record-magic-flip-middle-first-abort0"), tmp_path / "store")
    done = rmq("checkpoint", "set", root, "--as-version", "5.3.3", "--format", "ndjson")
    notes = done.of_type("summary")[0]["notes"]
    assert any("the log is damaged at" in note and "recover it first" in note for note in notes)


def test_stores_whose_queues_are_not_modelled_are_refused(golden):
    done = rmq("checkpoint", "show", golden("v533-rocksdb").path)
    assert (done.exit_code, "RocksDB" in done.stderr) == (2, True)


def test_a_store_that_a_broker_refuses_has_no_proof(store):
    (store.path / "commitlog" / "stray").write_text("x")
    done = ask(store)
    assert (done.exit_code, "recover the store first" in done.stderr) == (1, True)
    done = rmq("checkpoint", "show", store.path, "--json")
    (reported,) = done.rows
    assert done.exit_code == 1
    assert "commitlog/stray" in reported["refusal"]
    assert (reported["complete"], reported["incomplete_reason"], reported["proof"]) == (False, "damage", None)
    assert reported["fields"]["logics_msg_timestamp"]["stored"] > 0


def test_a_folder_with_segments_has_no_checkpoint_to_show(store):
    done = rmq("checkpoint", "show", store.path / "commitlog")
    assert (done.exit_code, "not a store root" in done.stderr) == (2, True)


@pytest.mark.parametrize("target", ["checkpoint", "nowhere"])
def test_a_link_that_leads_to_no_file_is_one_line(store, target):
    path = store.path / "checkpoint"
    path.unlink()
    path.symlink_to(target)
    for verb in ("show", "set"):
        done = rmq("checkpoint", verb, store.path)
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
        assert "checkpoint is not a regular file" in done.stderr
