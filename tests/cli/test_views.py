"""Messages that wait, were given back or died, and one over its copies, as a real broker left them."""

from __future__ import annotations

import json

import pytest

from rmqtool import Message, MessageStore
from tests.helpers import rmq
from tests.messagestore.helpers import SMALL

COMMANDS = ("delayed", "half", "retry", "dlq")


@pytest.fixture
def store(golden):
    return golden("b533-full").path


def listed(*words):
    done = rmq(*words, "--format", "ndjson")
    assert "Traceback" not in done.stderr
    *rows, summary = done.rows
    return done.exit_code, rows, summary


def test_delayed_messages_that_the_broker_had_not_delivered(store):
    code, rows, summary = listed("delayed", store, "--at", "2026-11-21T11:24:16.600Z")
    assert code == 0
    assert [(row["level"], row["keys"], row["topic"], row["overdue_ms"]) for row in rows] == [
        (17, ["delay-1h"], "TopicDelay", 3_600_004),
        (18, ["delay-2h"], "TopicDelay", 1),
        (18, ["delay-99"], "TopicDelay", 0),
    ]
    assert all(row["deliver_timestamp"] - row["store_timestamp"] in {3_600_000, 7_200_000} for row in rows)
    assert (summary["overdue"], summary["next_timestamp"]) == (2, rows[0]["deliver_timestamp"])
    assert [(one["level"], one["offset"], one["messages"]) for one in summary["by_level"]] == [
        (17, 0, 1),
        (18, 0, 2),
    ]


def test_levels_of_the_configuration(store, tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("messageDelayLevel=" + " ".join(["1s"] * 16 + ["2s", "3d"]) + "\n")
    _, rows, _ = listed("delayed", store, "--store-config", conf)
    assert [row["deliver_timestamp"] - row["store_timestamp"] for row in rows] == [
        2000,
        3 * 86_400_000,
        3 * 86_400_000,
    ]


def test_every_transaction_of_that_store_has_ended(store):
    code, rows, summary = listed("half", store)
    assert (code, rows, summary["open"], summary["halves"]) == (0, [], 0, 10)


def test_open_halves_and_ops_without_half(tmp_path):
    root = tmp_path / "s"
    with MessageStore.open(root, create=True, release="5.3.3", config=SMALL) as made:
        open_one = made.transaction(Message("Orders", b"open", keys=("k",)), "PG")
        made.transaction(Message("Orders", b"done"), "PG").commit()
        made.transaction(Message("Orders", b"back"), "PG").rollback()
    code, rows, summary = listed("half", root)
    assert (code, len(rows), summary["open"], summary["by_group"]) == (0, 1, 1, {"PG": 1})
    (row,) = rows
    assert (row["type"], row["topic"], row["group"], row["checks"]) == ("half", "Orders", "PG", 0)
    assert row["transaction_id"] == open_one.id
    assert 0 <= row["age_ms"] < 3_600_000
    with MessageStore.open(root, release="5.3.3", config=SMALL) as made:
        made.put(Message("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"0,7,", queue_id=0, tags="d"))
    _, rows, summary = listed("half", root)
    assert summary["open"] == 0
    assert [(row["type"], row["queue_offset"]) for row in rows] == [("op_without_half", 7)]


@pytest.mark.parametrize("kind", ["retry", "dlq"])
def test_what_was_given_back_goes_to_the_topic_it_came_from(kind, store, tmp_path):
    target, root = tmp_path / "again.replay", tmp_path / "new"
    _, rows, summary = listed(kind, store, "--to", target, "--to-origin")
    assert summary["exported"]["messages"] == len(rows) > 0
    again = rmq("dump", target, "--format", "ndjson", "--body", "base64").of_type("message")
    first = {
        row["uniq_key"]: row
        for row in rmq(
            "dump", store, "--topic", "TopicRetry", "--format", "ndjson", "--body", "base64"
        ).of_type("message")
    }
    assert [one["uniq_key"] for one in again] == [row["uniq_key"] for row in rows]
    for one in again:
        sent = first[one["uniq_key"]]
        assert one["topic"] == sent["topic"] == "TopicRetry"
        assert one["body_base64"] == sent["body_base64"]
        assert one["reconsume_times"] == 0
        assert not {"RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "DELAY", "REAL_TOPIC"} & set(one["properties"])
    with MessageStore.open(root, create=True, release="5.3.3", config=SMALL):
        pass
    assert rmq("store", "load", root, target).exit_code == 0
    assert {row["topic"] for row in rmq("dump", root, "--format", "ndjson").of_type("message")} == {
        "TopicRetry"
    }
    assert rmq("verify", root).exit_code == 0
    assert rmq(kind, store, "--to-origin").exit_code == 2


def test_one_that_does_not_say_where_it_came_from_is_left_out(tmp_path):
    root, target = tmp_path / "s", tmp_path / "again.replay"
    with MessageStore.open(root, create=True, release="5.3.3", config=SMALL) as made:
        made.put(Message("%DLQ%G", b"lost", queue_id=0))
        made.put(Message("%DLQ%G", b"known", queue_id=0, properties={"DLQ_ORIGIN_TOPIC": "Orders"}))
    done = rmq("dlq", root, "--to", target, "--to-origin", "--json")
    assert (done.exit_code, "left out" in done.stderr) == (3, True)
    (one,) = rmq("dump", target, "--format", "ndjson").of_type("message")
    assert (one["topic"], one["queue_id"]) == ("Orders", 0)


def test_each_topic_has_its_queues_in_turn(tmp_path):
    root, target = tmp_path / "s", tmp_path / "again.replay"
    with MessageStore.open(root, create=True, release="5.3.3", config=SMALL) as made:
        for topic in ("One", "Two"):
            made.topics.set(topic, read_queues=2, write_queues=2)
        for number in range(8):
            origin = {"DLQ_ORIGIN_TOPIC": ("One", "Two")[number % 2]}
            made.put(Message("%DLQ%G", b"dead", queue_id=0, properties=origin))
    assert rmq("dlq", root, "--to", target, "--to-origin").exit_code == 0
    sent = rmq("dump", target, "--format", "ndjson").of_type("message")
    assert sorted((one["topic"], one["queue_id"]) for one in sent) == [
        (topic, queue) for topic in ("One", "Two") for queue in (0, 0, 1, 1)
    ]


def test_what_was_given_back_and_what_died(store, tmp_path):
    _, rows, summary = listed("retry", store)
    assert [(row["group"], row["origin_topic"], row["reconsume_times"], row["consumed"]) for row in rows] == [
        ("CG_retry", "TopicRetry", 1, True),
        ("CG_retry", "TopicRetry", 1, True),
        ("CG_retry", "TopicRetry", 2, True),
    ]
    target = tmp_path / "dead.replay"
    _, (dead,), summary = listed("dlq", store, "--group", "CG_*", "--to", target)
    assert dead["origin_msg_id"] == rows[-1]["origin_msg_id"]
    assert (dead["keys"], dead["reconsume_times"]) == (["retry-dead"], 3)
    assert summary["exported"]["messages"] == 1
    (again,) = rmq("dump", target, "--format", "ndjson").of_type("message")
    assert again["keys"] == ["retry-dead"]
    assert again["topic"] == "%DLQ%CG_retry"
    assert rmq("dlq", store, "--to", target).exit_code == 2  # exists
    assert rmq("dlq", store, "--to", store / "x").exit_code == 2
    assert listed("dlq", store, "--group", "nobody")[2]["messages"] == 0


STAGES = {
    "retry-dead": ["store", "schedule", "retry", "schedule", "retry", "dlq"],
    "tx-never": ["half"] * 5,
    "tx-unknown-rollback": ["half", "half", "rollback"],
    "tx-commit": ["half", "commit"],
    "delay-1s": ["schedule", "deliver"],
    "delay-1h": ["schedule"],
}


@pytest.mark.share
@pytest.mark.parametrize("source", ["auto", "scan"])
@pytest.mark.parametrize("key", STAGES)
def test_a_message_over_its_copies(store, key, source):
    code, rows, summary = listed("trace", store, key, "--source", source)
    assert (code, [row["stage"] for row in rows]) == (0, STAGES[key])
    times = [row["store_timestamp"] for row in rows]
    assert times == sorted(times)
    assert len(summary["uniq_keys"]) == 1
    by_id = listed("trace", store, summary["uniq_keys"][0])[1]
    assert by_id == rows


def test_who_has_come_past_it(store):
    rows = listed("trace", store, "retry-dead")[1]
    assert rows[0]["consumed_by"] == ["CG_retry"]
    assert (rows[-1]["consumed_by"], rows[-1]["not_consumed_by"]) == ([], [])


def test_trace_records_about_it(store):
    _, rows, summary = listed("trace", store, "trace-0")
    contexts = [row for row in rows if row["type"] == "trace"]
    assert [(row["trace_type"], row["group"], row["topic"]) for row in contexts] == [
        ("Pub", "PG_trace", "TopicTrace")
    ]
    assert contexts[0]["msg_id"] == summary["uniq_keys"][0]
    assert "client: Pub" in rmq("trace", store, "trace-0").stdout


def test_a_key_that_nothing_has(store):
    code, rows, _ = listed("trace", store, "no such key")
    assert (code, rows) == (1, [])


@pytest.mark.share
@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize("command", COMMANDS)
def test_other_forms_and_an_untouched_store(store, store_unchanged, command, form):
    store_unchanged(store)
    done = rmq(command, store, "--format", form)
    assert done.exit_code == 0, done.stderr
    if form == "json":
        assert json.loads(done.stdout)["summary"]["schema"] == f"rmqtool.{command}/1"


@pytest.mark.share
@pytest.mark.parametrize("seed", range(3))
def test_hostile_records_end_in_an_answer(fresh_golden, seed):
    import random

    root = fresh_golden("b533-full").path
    chance = random.Random(seed)
    for file in (root / "commitlog").iterdir():
        raw = bytearray(file.read_bytes())
        for _ in range(300):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        file.write_bytes(raw)
    for words in (*([one] for one in COMMANDS), ["trace"]):
        done = rmq(words[0], root, *(["retry-dead"] if words == ["trace"] else []))
        assert done.exit_code in {0, 1, 3}, done.stderr
        assert "Traceback" not in done.stderr


ASSIGNED = {
    "AVG": {"a": [0, 1], "b": [2], "c": [3]},
    "AVG_BY_CIRCLE": {"a": [0, 3], "b": [1], "c": [2]},
}


@pytest.mark.parametrize("strategy", ASSIGNED)
def test_who_gets_which_queue(store, strategy):
    words = ("assign", store, "TopicBasic", "--strategy", strategy)
    code, rows, summary = listed(*words, "--clients", "c,a", "--clients", "b")
    assert code == 0
    assert {row["client"]: row["queue_ids"] for row in rows} == ASSIGNED[strategy]
    assert (summary["queues"], summary["moves"]) == (4, 0)


def test_the_vector_of_consistent_hashing(golden):
    """Known answers of RocketMQ: queues 0 to 3 of TopicTest on broker-a."""
    root = golden("b533-full").path
    words = ("assign", root, "TopicTest", "--clients", "c1,c2", "--strategy", "CONSISTENT_HASH")
    done = rmq(*words)
    assert done.exit_code in {0, 2}
    from rmqtool.query.assignment.queues import MessageQueue
    from rmqtool.query.assignment.strategies import STRATEGIES, assign

    queues = [MessageQueue("TopicTest", "broker-a", number) for number in range(4)]
    found = assign(STRATEGIES["CONSISTENT_HASH"], queues, ["c1", "c2"])
    assert {client: [one.queue_id for one in own] for client, own in found.items()} == {
        "c1": [0, 3],
        "c2": [1, 2],
    }


def test_what_moves_when_somebody_joins_or_leaves(store):
    words = ("assign", store, "TopicBasic", "--clients", "a,b,c")
    _, rows, _ = listed(*words, "--leave", "b")
    assert {row["client"]: row["queue_ids"] for row in rows if row["type"] == "assignment"} == {
        "a": [0, 1],
        "c": [2, 3],
    }
    assert [(row["queue_id"], row["from"], row["to"]) for row in rows if row["type"] == "move"] == [
        (2, "b", "c")
    ]
    _, rows, _ = listed(*words, "--join", "d", "--join", "e")
    assert [row["client"] for row in rows if row["type"] == "assignment" and not row["queue_ids"]] == ["e"]
    assert rmq(*words, "--leave", "x").exit_code == 2
    assert rmq("assign", store, "NoTopic", "--clients", "a").exit_code == 2


def test_rooms(store):
    words = ("assign", store, "TopicBasic", "--clients", "r1@a,r2@b", "--broker", "r1@x", "--broker", "r2@y")
    _, rows, _ = listed(*words, "--strategy", "MACHINE_ROOM_NEARBY")
    assert [set(row["brokers"]) for row in rows] == [{"r1@x"}, {"r2@y"}]
    _, rows, summary = listed(*words, "--strategy", "MACHINE_ROOM", "--room", "r1")
    assert [len(row["queue_ids"]) for row in rows] == [2, 2]
    assert len(summary["unassigned_queue_ids"]) == 4


def test_the_next_message_is_not_consumed(tmp_path):
    root = tmp_path / "s"
    with MessageStore.open(root, create=True, release="5.3.3", config=SMALL) as made:
        for number in range(3):
            made.put(Message("T", b"x", queue_id=0, keys=(f"k{number}",)))
        made.commit_offset("G", "T", 0, 1)
        made.commit_offset("H", "T", 0, 3)
    (row,) = listed("trace", root, "k1")[1]
    assert (row["stage"], row["consumed_by"], row["not_consumed_by"]) == ("store", ["H"], ["G"])


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(store, monkeypatch, width):
    """And what finds no room is said."""
    from rmqtool.output import text_style

    monkeypatch.setattr(text_style, "terminal_size", lambda _stream: (width, 40))
    for words in (
        *([one, store] for one in COMMANDS),
        ["trace", store, "retry-dead"],
        ["trace", store, "trace-0"],
        ["assign", store, "TopicBasic", "--clients", "a,b", "--leave", "b"],
        ["diff", store, store],
        ["offsets", "audit", store],
        ["config", "check", store],
    ):
        done = rmq(*words, "--color", "never")
        lines = done.stdout.splitlines()
        assert max(map(len, lines), default=0) <= width, (words, lines)
        assert (
            width > 80
            or words[0] not in {"retry", "delayed", "trace"}
            or "left out at 80" in done.stdout
            or ("trace-0" in words)
        )
