"""Tables in config/ and their .bak: which a broker loads, and what can be had of both."""

from __future__ import annotations

import json
from itertools import product

import pytest

from rmqtool.store.config_json import parse_config
from tests.helpers import rmq
from tests.tiers import sampled

TOPICS = "config/topics.json"


@pytest.fixture
def store(fresh_golden):
    return fresh_golden("b533-full").path


def checked(root, *args):
    done = rmq("config", "check", root, "--format", "ndjson", *args)
    return done.exit_code, {row["path"]: row for row in done.rows[:-1]}


def data(root, path):
    return parse_config((root / path).read_bytes()).data


def test_a_healthy_store(store, store_unchanged):
    store_unchanged(store)
    code, rows = checked(store)
    assert code == 0
    assert {(row["primary"], row["loads"], row["entries_lost"]) for row in rows.values()} == {
        ("ok", "primary", 0)
    }
    done = rmq("config", "salvage", store, "--json")
    assert (done.exit_code, json.loads(done.stdout)["summary"]["changes"]) == (0, 0)


STATES = {
    "good": lambda raw: raw,
    "empty": lambda raw: b"",
    "zeros": lambda raw: bytes(400),
    "cut": lambda raw: raw[: len(raw) // 2],
    "trailing": lambda raw: raw + b"}old}",
    "brace": lambda raw: b"{",
    "missing": None,
}
BEST = ("good", "cut", "trailing")


@pytest.mark.share
@pytest.mark.parametrize(
    ("name", "primary", "bak"),
    sampled(
        product(["topics.json", "consumerOffset.json"], STATES, ["good", "empty", "cut", "missing"]),
        kind=lambda one: one[:2],
        each=2,
        unpack=True,
    ),
)
def test_all_states_of_a_table_and_its_bak(store, tmp_path, name, primary, bak):
    """F33: what is salvaged has every entry that either file still shows, and a broker loads it."""
    path = store / "config" / name
    raw = path.read_bytes()
    for one, state in ((path, primary), (path.with_name(f"{name}.bak"), bak)):
        one.unlink(missing_ok=True)
        if STATES[state] is not None:
            one.write_bytes(STATES[state](raw))
    code, rows = checked(store)
    row = rows.get(f"config/{name}")
    out = tmp_path / "out"
    done = rmq("config", "salvage", store, "--table", name, "--output", out, "--apply", "--json")
    after_code, after_rows = checked(out)
    assert done.exit_code == after_code, done.stderr
    assert json.loads(done.stdout)["summary"]["not_salvaged"] == [f"config/{name}"] * after_code
    if row is None:  # no file of it at all
        assert (primary, bak) == ("missing", "missing")
    elif primary == "good":
        assert (code, row["loads"], row["entries_lost"]) == (0, "primary", 0)
    elif row["entries_lost"]:
        assert code == 1
    after = after_rows.get(f"config/{name}")
    if name == "topics.json" or {primary, bak} & set(BEST):
        assert after["loads"] in {"primary", "bak"}
        assert after["entries_lost"] == 0
    key = {"topics.json": "topicConfigTable", "consumerOffset.json": "offsetTable"}[name]
    if primary in {"good", "trailing"} or bak == "good":
        source = f"config/{name}{'.bak' if after['loads'] == 'bak' else ''}"
        assert data(out, source)[key] == parse_config(raw).data[key]
    again = rmq("config", "salvage", out, "--table", name, "--json")
    assert json.loads(again.stdout)["summary"]["changes"] == 0


def test_a_table_that_is_misspelt_is_an_error(store):
    (store / "config/topics.json").write_text('{"topicConfigTable":{"A":{"top')
    done = rmq("config", "salvage", store, "--table", "topic.json")
    assert done.exit_code == 2
    assert "there is no config/topic.json; there is " in done.stderr
    assert "topics.json" in done.stderr.partition("there is ")[2]


def test_an_entry_whose_name_has_no_quotes_is_salvaged_with_them(store, tmp_path):
    """No broker loads the table; the entry itself is whole."""
    for path in (store / TOPICS, store / f"{TOPICS}.bak"):
        path.write_text(
            '{"dataVersion":{"counter":1},"topicConfigTable":{7:{"perm":6,"topicName":"7"},"A":{"perm":4}}}'
        )
    code, rows = checked(store)
    assert (code, rows[TOPICS]["primary"], rows[TOPICS]["loads"]) == (1, "unparsable", "refuses")
    done = rmq("config", "salvage", store, "--table", "topics.json", "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    made = data(tmp_path / "out", TOPICS)["topicConfigTable"]
    assert made == {"7": {"perm": 6, "topicName": "7"}, "A": {"perm": 4}}
    assert checked(tmp_path / "out")[1][TOPICS]["loads"] == "primary"


@pytest.mark.parametrize("bak", ["another table's", "a directory"])
def test_a_table_that_stays_as_no_broker_loads_or_saves_it_is_not_done(store, tmp_path, store_unchanged, bak):
    table = store / "config/subscriptionGroup.json"
    backup = table.with_name(f"{table.name}.bak")
    backup.unlink(missing_ok=True)
    if bak == "a directory":
        backup.mkdir()
    else:
        table.write_bytes(b"{")
        backup.write_bytes((store / "config/consumerOffset.json").read_bytes())
    store_unchanged(store)
    for way in ((), ("--output", tmp_path / "out", "--apply")):
        done = rmq("config", "salvage", store, *way, "--json")
        summary = json.loads(done.stdout)["summary"]
        assert (done.exit_code, summary["not_salvaged"]) == (1, ["config/subscriptionGroup.json"])
        assert any("config/subscriptionGroup.json" in note for note in summary["notes"])
    assert (tmp_path / "out/config" / table.name).read_bytes() == table.read_bytes()
    assert checked(tmp_path / "out")[0] == 1
    assert rmq("config", "salvage", store, "--table", "topics.json").exit_code == 0


def test_what_both_files_have_is_united_and_the_younger_wins(store, tmp_path):
    offsets = store / "config" / "consumerOffset.json"
    offsets.write_text('{"own":1,"offsetTable":{"A@g":{0:5,1:6},"B@g":{0:1,1')
    offsets.with_name("consumerOffset.json.bak").write_text(
        '{"offsetTable":{"A@g":{0:4,2:9},"C@g":{0:3}},"kept":{"x":[1]}}'
    )
    _, rows = checked(store)
    row = rows["config/consumerOffset.json"]
    assert (row["primary"], row["bak"], row["loads"]) == ("unparsable", "ok", "bak")
    assert row["entries_lost"] == 3  # A 0 and 1, B 0
    done = rmq("config", "salvage", store, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    made = data(tmp_path / "out", "config/consumerOffset.json")
    table = {"A@g": {"0": 5, "1": 6, "2": 9}, "B@g": {"0": 1}, "C@g": {"0": 3}}
    assert made == {"own": 1, "kept": {"x": [1]}, "offsetTable": table}


def test_a_lost_topic_table_is_made_from_the_data_and_called_a_guess(store, tmp_path):
    """F34."""
    before = data(store, TOPICS)["topicConfigTable"]
    for end in ("", ".bak"):
        (store / f"{TOPICS}{end}").unlink()
    done = rmq("config", "salvage", store, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    (row,) = [row for row in document["rows"] if row["path"] == TOPICS]
    made = data(tmp_path / "out", TOPICS)["topicConfigTable"]
    assert row["why"] == "topics-guessed"
    assert set(row["guessed"]) == set(made)
    assert any(
        "mqadmin updateTopic" in note and "TopicBasic" in note for note in document["summary"]["notes"]
    )
    assert made["TopicBasic"]["readQueueNums"] == before["TopicBasic"]["readQueueNums"]
    assert made["SCHEDULE_TOPIC_XXXX"]["writeQueueNums"] == 18


def test_a_topic_without_an_entry_gets_one_when_it_is_named(store, tmp_path, store_unchanged):
    store_unchanged(store)
    before = data(store, TOPICS)
    del before["topicConfigTable"]["TopicBasic"]
    copy = tmp_path / "copy"
    assert rmq("config", "salvage", store, "--topic", "Nothing*", "--output", copy, "--apply").exit_code == 0
    (copy / TOPICS).write_text(json.dumps(before))
    done = rmq("config", "salvage", copy, "--topic", "TopicB*", "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    made = data(tmp_path / "out", TOPICS)
    assert made["topicConfigTable"].keys() - before["topicConfigTable"].keys() == {"TopicBasic"}
    assert {key: made[key] for key in made if key != "topicConfigTable"} == {
        key: before[key] for key in before if key != "topicConfigTable"
    }


@pytest.mark.share
@pytest.mark.parametrize("junk", [b"\xff" * 300, b"[" * 5000, b'{"a":' * 5000, b"null", b'"x"', b"{}{}{}"])
def test_hostile_tables_end_in_an_answer(store, junk):
    for path in (store / "config").iterdir():
        if path.name.endswith((".json", ".bak")):
            path.write_bytes(junk)
    for words in (["check"], ["salvage"], ["salvage", "--topic", "*"]):
        done = rmq("config", words[0], store, *words[1:])
        assert done.exit_code in {0, 1, 3}, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kept", [True, False])
def test_a_directory_in_the_place_of_a_table_is_never_saved(store, kept):
    (store / TOPICS).unlink()
    (store / TOPICS).mkdir()
    if not kept:
        (store / f"{TOPICS}.bak").unlink()
    code, rows = checked(store)
    assert (code, rows[TOPICS]["primary"], rows[TOPICS]["loads"]) == (
        1,
        "unparsable",
        "bak" if kept else "empty",
    )
    assert "is a directory" in rows[TOPICS]["detail"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("consumerOffset.json", b'"offsetTable"', b'"uffsetTable"'),
        ("topics.json", b'"topicConfigTable"', b'"subscriptionGroupTable"'),
        ("topics.json", b'"order":false', b'"order":falsE'),
        ("subscriptionGroup.json", b'"consumeEnable"', b"&consumeEnable"),
    ],
)
@pytest.mark.parametrize("backup", ["good", "gone"])
def test_a_table_that_brokers_do_not_load_is_not_safe(store, name, old, new, backup):
    """One letter of a field is another, or the file is another table's; a word that is no word."""
    path = store / "config" / name
    raw = path.read_bytes()
    bak = path.with_name(f"{name}.bak")
    bak.write_bytes(raw) if backup == "good" else bak.unlink(missing_ok=True)
    path.write_bytes(raw.replace(old, new, 1))
    assert path.read_bytes() != raw
    for release in ("4.9.8", "5.3.3"):
        done = rmq("doctor", store, "--json", "--as-version", release)
        found = json.loads(done.stdout)
        assert (done.exit_code, found["safe_to_start"]) == (1, False)
        codes = {one["code"] for one in found["consequences"] if f"config/{name}" in one["paths"]}
        assert codes & {"DR-CONFIG-EMPTY", "DR-CONFIG-BAK", "DR-REFUSE-CONFIG"}
    assert rmq("verify", store).exit_code == 1
    code, rows = checked(store)
    assert code == 1
    assert rows[f"config/{name}"]["loads"] != "primary"
    if backup == "good":
        salvaged = rmq("config", "salvage", store, "--in-place", "--backup", store.parent / "kept", "--apply")
        assert salvaged.exit_code == 0, salvaged.stderr
        table = next(
            key for key in data(store, f"config/{name}") if key not in ("dataVersion", "groupTopicMap")
        )
        assert data(store, f"config/{name}")[table].keys() == parse_config(raw).data[table].keys()
