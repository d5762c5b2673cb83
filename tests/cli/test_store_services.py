"""`rmqtool store` with consumer groups, delayed messages and transactions."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from rmqtool import Message, MessageStore
from rmqtool.query.groups import committed_offset
from rmqtool.store.layout import Store
from tests.cli.dumping import assert_one_line
from tests.helpers import rmq
from tests.messagestore.helpers import SMALL

NDJSON = ("--format", "ndjson")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with MessageStore.open(tmp_path / "store", create=True, config=SMALL) as store:
        store.put_many([Message("T", b"%d" % one, queue_id=0, tags="AB"[one % 2]) for one in range(100)])
    return tmp_path / "store"


def listed(root: Path, *words: object) -> list[int]:
    result = rmq("store", "get", root, "T", 0, "--group", "G", *words, *NDJSON)
    assert result.exit_code in {0, 1}, result.stderr
    return [row["slot"] for row in result.of_type("message")]


def test_a_group_goes_on_where_it_was(store: Path) -> None:
    assert listed(store, "-n", 10) == list(range(10))
    assert committed_offset(Store.open(store), "G", "T", 0) == 10
    assert listed(store) == list(range(10, 42))
    assert listed(store, "-n", 100) == list(range(42, 100))
    assert listed(store) == []
    assert (
        "G" in json.loads((store / "config" / "subscriptionGroup.json").read_text())["subscriptionGroupTable"]
    )
    assert not (store / "abort").exists()


def test_what_a_filter_takes_is_committed(store: Path) -> None:
    assert listed(store, "-n", 5, "--filter", "B") == [1, 3, 5, 7, 9]
    assert listed(store, "-n", 1) == [10]


def test_a_group_that_may_not_consume(store: Path) -> None:
    assert rmq("store", "group", store, "G", "--consume", "no").exit_code == 0
    assert_one_line(rmq("store", "get", store, "T", 0, "--group", "G"), 2)
    for words in (("5", "--group", "G"), ("--recovery", "broker"), ("--group", "a b")):
        assert_one_line(rmq("store", "get", store, "T", 0, *words), 2)


def test_beside_a_writer_it_is_locked(store: Path) -> None:
    with MessageStore.open(store, config=SMALL):
        for words in (
            ("get", store, "T", 0, "--group", "G"), ("group", store, "G", "--retry-max", 3),
            ("commit", store, "none"), ("rollback", store, "none"),
            ("put", store, "T", "--body", "x", "--delay", 3),
        ):  # fmt: skip
            assert_one_line(rmq("store", *words), 5)
        assert rmq("store", "groups", store).exit_code == 0
        assert rmq("store", "group", store, "G").exit_code == 1


def test_a_group_is_shown_changed_and_deleted(store: Path) -> None:
    assert rmq("store", "group", store, "G").exit_code == 1
    made = rmq("store", "group", store, "G", "--retry-max", 3, "--retry-queues", 2, *NDJSON).rows[0]
    assert made == {
        "type": "group", "group": "G", "retry_max": 3, "retry_queues": 2, "consume": True, "broadcast": True,
        "state": "made",
    }  # fmt: skip
    assert rmq("store", "group", store, "G", "--consume", "yes", *NDJSON).rows[0]["state"] == "changed"
    assert rmq("store", "group", store, "G", *NDJSON).rows[0]["retry_max"] == 3
    for words in (
        ("--retry-max", -1),
        ("--retry-queues", "x"),
        ("--delete", "--consume", "no"),
        ("--consume", "maybe"),
    ):
        assert_one_line(rmq("store", "group", store, "G", *words), 2)
    assert rmq("store", "group", store, "G", "--delete", *NDJSON).rows[0]["state"] == "deleted"
    assert rmq("store", "group", store, "G", "--delete").exit_code == 1


def test_groups_and_their_lag(store: Path) -> None:
    listed(store, "-n", 10)
    with MessageStore.open(store, config=SMALL) as opened:
        opened.commit_offset("H", "Gone", 3, 7)
        opened.commit_offset("H", "T", 0, 101)
    result = rmq("store", "groups", store, *NDJSON)
    assert [tuple(row.values())[1:] for row in result.of_type("group")] == [
        ("G", "T", 0, 10, 100, 90), ("H", "Gone", 3, 7, None, None), ("H", "T", 0, 101, 100, -1),
    ]  # fmt: skip
    assert (result.rows[-1]["groups"], result.rows[-1]["queues"], result.rows[-1]["complete"]) == (2, 3, True)


def test_a_delayed_message_comes_later(store: Path) -> None:
    conf = store.parent / "broker.conf"
    conf.write_text("messageDelayLevel=1s 2s\n")
    more = ("--store-config", conf)
    (row, _) = rmq(
        "store", "put", store, "Later", "--body", "x", "--queue", 0, "--delay", 1, *more, *NDJSON
    ).rows
    assert (row["status"], row["topic"]) == ("PUT_OK", "SCHEDULE_TOPIC_XXXX")
    get = ("store", "get", store, "Later", 0, "--group", "G", *more, *NDJSON)
    until = time.monotonic() + 60
    while not (found := rmq(*get).of_type("message")):
        assert time.monotonic() < until
    assert [one["body_utf8"] for one in found] == ["x"]
    assert found[0]["store_timestamp"] - row_time(store, row) >= 1000
    for words in (
        ("--delay", 0),
        ("--delay", "x"),
        ("--delay", 1, "--transaction"),
        ("--producer-group", "P"),
    ):
        assert_one_line(rmq("store", "put", store, "T", "--body", "x", *words), 2)


def row_time(store: Path, row: dict[str, int]) -> int:
    (found,) = rmq("show", store, row["physical_offset"], *NDJSON).of_type("message")
    return int(found["store_timestamp"])


def test_lines_can_be_delayed_and_prepared(store: Path) -> None:
    lines = '{"topic":"T","body_utf8":"a"}\n{"topic":"T"}\n{"topic":"a/b","body_utf8":"x"}\n'
    result = rmq("store", "put", store, "-", "--delay", 18, *NDJSON, stdin=lines)
    assert [row["status"] for row in result.of_type("ack")] == [
        "PUT_OK",
        "MESSAGE_ILLEGAL",
        "MESSAGE_ILLEGAL",
    ]
    result = rmq("store", "put", store, "-", "--transaction", *NDJSON, stdin=lines)
    ids = [row.get("transaction_id") for row in result.of_type("ack")]
    assert (ids[0] is None, ids[1:]) == (False, [None, None])
    shown = rmq("store", "put", store, "T", "--body", "x", "--transaction")  # for a person
    wait = rmq("half", store, "--format", "table")
    assert wait.stdout.split()[-1] in shown.stdout.split()
    assert "2 open transactions, 2 half messages. Oldest " in wait.stderr.replace("\n", " ")


@pytest.mark.share
@pytest.mark.parametrize("form", [NDJSON, ("--format", "csv"), ()])
def test_a_transaction_is_ended_by_its_id(store: Path, form: tuple[str, ...]) -> None:
    ids = []
    for body in "abc":
        words = ("--body", body, "--queue", 0, "--transaction", "--producer-group", "PG")
        (row, _) = rmq("store", "put", store, "Tx", *words, *NDJSON).rows
        ids.append(row["transaction_id"])
        assert row["topic"] == "RMQ_SYS_TRANS_HALF_TOPIC"
    result = rmq("store", "commit", store, ids[1], *form)
    assert result.exit_code == 0
    if form == NDJSON:
        row = result.rows[0]
        assert (row["topic"], row["queue_offset"], row["transaction_id"], row["state"]) == (
            "Tx", 0, ids[1], "committed",
        )  # fmt: skip
    assert rmq("store", "rollback", store, ids[0], *form).exit_code == 0
    for verb in ("commit", "rollback"):
        assert_one_line(rmq("store", verb, store, ids[0]), 1)
    found = rmq("store", "get", store, "Tx", 0, *NDJSON).of_type("message")
    assert [one["body_utf8"] for one in found] == ["b"]
    with MessageStore.open(store, config=SMALL) as opened:
        assert [one.transaction_id for one in opened.open_transactions()] == [ids[2]]
