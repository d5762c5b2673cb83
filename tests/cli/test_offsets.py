"""Stored offsets: checked against their queues, clamped, merged and compared; everything else stays."""

from __future__ import annotations

import json

import pytest

from rmqtool.store.config_json import parse_config
from tests.helpers import rmq

GROUP, TOPIC = "CG_delay", "TopicDelay"


@pytest.fixture
def store(fresh_golden):
    return fresh_golden("b533-full").path


def table(root, name="consumerOffset.json"):
    return parse_config((root / "config" / name).read_bytes()).data


def rewrite(root, old, new, name="consumerOffset.json"):
    path = root / "config" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def wrong(store):
    """F35 and F37: an offset beyond max, two of queues that do not exist, a level ahead."""
    rewrite(store, '"TopicDelay@CG_delay":{0:2', '"TopicDelay@CG_delay":{0:7000,99:5')
    rewrite(store, '"TopicTx@CG_tx":{', '"Gone@CG_tx":{0:3\n\t\t},\n\t\t"TopicTx@CG_tx":{')
    rewrite(store, "2:1", "2:6012", "delayOffset.json")
    return store


def audited(root, *args):
    done = rmq("offsets", "audit", root, "--format", "ndjson", *args)
    rows = done.rows
    return done.exit_code, {
        (row["kind"], row["group"], row["topic"], row["queue_id"]): row for row in rows[:-1]
    }


def test_a_healthy_store_has_nothing_to_correct(store, store_unchanged):
    store_unchanged(store)
    code, rows = audited(store)
    assert code == 0
    assert {row["state"] for row in rows.values()} == {"ok"}
    row = rows["delay", None, "SCHEDULE_TOPIC_XXXX", 16]
    assert (row["level"], row["offset"], row["min_offset"], row["max_offset"], row["lag"]) == (17, 0, 0, 1, 1)
    assert row["deliver_timestamp"] == row["next_timestamp"] + 3_600_000


def test_every_state_has_its_name(wrong, store_unchanged):
    store_unchanged(wrong)
    code, rows = audited(wrong)
    assert code == 1
    bad = {place[1:]: (row["state"], row["lag"]) for place, row in rows.items() if row["state"] != "ok"}
    assert bad == {
        (GROUP, TOPIC, 0): ("beyond_max", -6998),
        (GROUP, TOPIC, 99): ("unknown_queue", None),
        ("CG_tx", "Gone", 0): ("unknown_queue", None),
        (None, "SCHEDULE_TOPIC_XXXX", 1): ("beyond_max", -6011),
    }


def test_what_was_delivered_and_has_no_offset_is_a_problem(store):
    (store / "config" / "delayOffset.json").unlink()
    (store / "config" / "delayOffset.json.bak").unlink(missing_ok=True)
    code, rows = audited(store, "--kind", "delay")
    missing = [row["level"] for row in rows.values() if row["state"] == "missing"]
    assert (code, missing) == (1, [1, 2, 17, 18])
    done = rmq("offsets", "audit", store, "--kind", "delay", "--json")
    assert json.loads(done.stdout)["summary"]["wrong"] == 2  # levels 17 and 18 are not due yet


def test_expired_messages(golden):
    """The head of the log is gone: an offset in front of it has missed what was there."""
    found = golden("v533-expired-head")
    _, rows = audited(found.path)
    assert all(row["state"] != "below_min" or row["offset"] < row["min_offset"] for row in rows.values())


@pytest.mark.share
@pytest.mark.parametrize(
    ("to", "offset"), [("nearest", 2), ("max", 2), ("min", 0), ("1970-01-02T00:00:00", 0)]
)
def test_clamp_moves_what_is_outside_and_nothing_else(wrong, tmp_path, to, offset):
    before, delays = table(wrong), table(wrong, "delayOffset.json")
    backup = tmp_path / "backup"
    done = rmq("offsets", "clamp", wrong, "--to", to, "--in-place", "--backup", backup, "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    before["offsetTable"][f"{TOPIC}@{GROUP}"]["0"] = offset
    assert table(wrong) == before
    assert table(wrong, "delayOffset.json")["offsetTable"]["2"] == (1 if to in {"nearest", "max"} else 0)
    assert table(wrong, "delayOffset.json")["dataVersion"] == delays["dataVersion"]
    again = rmq("offsets", "clamp", wrong, "--to", to, "--json")
    assert (again.exit_code, json.loads(again.stdout)["summary"]["changes"]) == (0, 0)


def test_clamp_is_a_plan_until_it_is_applied_and_can_be_undone(wrong, tmp_path, store_unchanged):
    old = {
        name: (wrong / "config" / name).read_bytes() for name in ("consumerOffset.json", "delayOffset.json")
    }
    plan, backup = tmp_path / "plan.json", tmp_path / "backup"
    done = rmq("offsets", "clamp", wrong, "--save-plan", plan)
    assert done.exit_code == 1
    assert "7000 to 2 (max)" in done.stdout
    assert "there is no such queue, offset 5 stays" in done.stdout
    assert {name: (wrong / "config" / name).read_bytes() for name in old} == old
    done = rmq("offsets", "clamp", wrong, "--plan", plan, "--in-place", "--backup", backup, "--apply")
    assert done.exit_code == 0, done.stderr
    assert rmq("undo", backup, "--apply").exit_code == 0
    assert {name: (wrong / "config" / name).read_bytes() for name in old} == old


def test_a_clamp_of_one_group_leaves_the_others(wrong, tmp_path):
    out = tmp_path / "out"
    done = rmq("offsets", "clamp", wrong, "--group", "CG_d*", "--output", out, "--apply")
    assert done.exit_code == 0, done.stderr
    assert table(out)["offsetTable"][f"{TOPIC}@{GROUP}"]["0"] == 2
    assert table(out, "delayOffset.json") == table(wrong, "delayOffset.json")


MERGED = {"max": 9, "min": 4, "prefer-a": 4, "prefer-b": 9}


@pytest.mark.parametrize("policy", MERGED)
def test_merge_takes_each_entry_by_the_policy(store, tmp_path, policy):
    """F36: two tables with crossing values."""
    other = tmp_path / "slave.json"
    other.write_text('{"offsetTable":{"TopicOrder@CG_orderly":{0:9,1:1},"New@CG_new":{3:7}},"extra":1}')
    done = rmq("offsets", "merge", store, other, "--policy", policy, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    after = table(tmp_path / "out")
    order = after["offsetTable"]["TopicOrder@CG_orderly"]
    assert order["0"] == MERGED[policy]
    assert order["1"] == {"max": 4, "min": 1, "prefer-a": 4, "prefer-b": 1}[policy]
    assert order["2"] == 4
    assert after["offsetTable"]["New@CG_new"] == {"3": 7}
    assert after["groupTopicMap"]["CG_new"] == ["New"]
    assert after["dataVersion"] == table(store)["dataVersion"]
    assert "extra" not in after


def test_a_damaged_table_is_salvaged_first(store, tmp_path):
    path = store / "config" / "consumerOffset.json"
    path.write_bytes(path.read_bytes()[:-200])
    other = tmp_path / "b.json"
    other.write_text('{"offsetTable":{"T@g":{0:1}}}')
    done = rmq("offsets", "merge", store, other)
    assert done.exit_code == 1
    assert "config salvage" in done.stderr


def test_diff_says_who_is_ahead(store, tmp_path, store_unchanged):
    store_unchanged(store)
    other = tmp_path / "b.json"
    data = table(store)
    data["offsetTable"]["TopicOrder@CG_orderly"] = {"0": 3, "1": 6, "7": 1}
    other.write_text(json.dumps(data))
    done = rmq("offsets", "diff", store, other, "--kind", "consumer", "--format", "ndjson")
    assert done.exit_code == 1
    assert [(row["queue_id"], row["state"], row["ahead"]) for row in done.rows[:-1]] == [
        (0, "a_ahead", -1),
        (1, "b_ahead", 2),
        (2, "only_a", None),
        (7, "only_b", None),
    ]
    assert rmq("offsets", "diff", store, store).exit_code == 0


@pytest.mark.share
@pytest.mark.parametrize(
    "text",
    [
        '{"offsetTable":{"T":{0:1},"@":{1:2},"@@":{0:-9223372036854775808},"a@b":{4294967295:1}}}',
        '{"offsetTable":{"T@g":{-5:9223372036854775807,2147483647:1}}}',
        '{"offsetTable":[]}',
        '{"offsetTable":{"a@b":5}}',
        '{"offsetTable":{"%LMQ%x@%LMQ%x":{0:1}},"lmqOffsetTable":{"%LMQ%a@%LMQ%a":7,"x":1}}',
        "{",
        "",
    ],
)
@pytest.mark.parametrize("name", ["consumerOffset.json", "lmqConsumerOffset.json", "delayOffset.json"])
def test_hostile_tables_end_in_an_answer(store, tmp_path, text, name):
    for end in ("", ".bak"):
        (store / "config" / f"{name}{end}").write_text(text)
    for words in (["audit"], ["clamp"], ["diff", store], ["merge", store]):
        done = rmq("offsets", words[0], store, *words[1:])
        assert done.exit_code in {0, 1, 2, 3}, done.stderr
        assert "Traceback" not in done.stderr


def test_a_table_that_is_none_is_wrong_usage(store, tmp_path):
    other = tmp_path / "x.json"
    other.write_text('{"topicConfigTable":{}}')
    done = rmq("offsets", "diff", store, other)
    assert (done.exit_code, "offsetTable" in done.stderr) == (2, True)
    assert rmq("offsets", "audit", store, "--kind", "consumers").exit_code == 2
