"""Half messages are committed, rolled back, asked about, given up; and once, also behind a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formats import properties as props
from formats.commitlog import SysFlag
from formats.system_topics import CHECK_MAX_TOPIC, HALF_TOPIC, OP_HALF_TOPIC, TRANSACTION_GROUP
from rmqtool import Message, MessageStore
from rmqtool.errors import NoTransactionError, UsageError
from rmqtool.messagestore.messages import PutStatus, StoredMessage
from tests.messagestore.helpers import RELEASES, bodies, copy_of_open, open_small
from tests.messagestore.services.test_schedule import Clock

NOW = {"transactionOpBatchInterval": 0}


def message(number: int = 0) -> Message:
    return Message("T", b"%d" % number, queue_id=1, tags="A", keys=[f"k{number}"], flag=number)


def ops(store: MessageStore) -> list[bytes]:
    return bodies(store, OP_HALF_TOPIC, 0)


@pytest.mark.parametrize("release", RELEASES)
def test_the_end_of_the_block_commits(tmp_path: Path, release: str) -> None:
    with open_small(tmp_path, release, **NOW) as store:
        with store.transaction(message(5), "PG") as tx:
            assert (tx.ack.status, tx.ack.topic, bodies(store, "T", 1)) == (PutStatus.PUT_OK, HALF_TOPIC, [])
            (half,) = store.get(HALF_TOPIC, 0, 0).messages
            expected = {"TRAN_MSG": "true", "PGROUP": "PG", "REAL_TOPIC": "T", "REAL_QID": "1"}
            assert {name: half.properties[name] for name in expected} == expected
            assert (half.properties.get(props.TRANSACTION_ID) == tx.id) == (release == "5.3.3")
        (found,) = store.get("T", 1, 0).messages
        assert (found.body, found.tags, found.keys, found.flag, found.uniq_key) == (
            b"5",
            "A",
            ["k5"],
            5,
            tx.id,
        )
        assert found.sys_flag & SysFlag.TRANSACTION_MASK == SysFlag.COMMIT
        assert found.header["prepared_transaction_offset"] == half.physical_offset
        assert found.properties[props.TRAN_MSG] == "true"
        (op,) = store.get(OP_HALF_TOPIC, 0, 0).messages
        assert (op.body, op.tags) == (b"0," if release == "5.3.3" else b"0", "d")
        assert store.open_transactions() == []
    with open_small(tmp_path, release) as store:
        assert store.committed_offset(TRANSACTION_GROUP, HALF_TOPIC, 0) == 1
        assert store.committed_offset(TRANSACTION_GROUP, OP_HALF_TOPIC, 0) == 1


def test_an_exception_rolls_back(tmp_path: Path) -> None:
    with open_small(tmp_path, **NOW) as store:
        with pytest.raises(ValueError, match="no"), store.transaction(message()):
            raise ValueError("no")
        assert (bodies(store, "T", 1), ops(store), store.open_transactions()) == ([], [b"0,"], [])
        with store.transaction(message()) as tx:
            tx.rollback()
        with store.transaction(message(2)) as tx:
            tx.commit()
            with pytest.raises(NoTransactionError):
                tx.commit()
        assert bodies(store, "T", 1) == [b"2"]


def test_later_by_its_id(tmp_path: Path) -> None:
    with open_small(tmp_path) as store:
        ids = [store.transaction(message(number)).id for number in range(3)]
    with open_small(tmp_path) as store:
        assert [one.transaction_id for one in store.open_transactions()] == ids
        assert store.commit_transaction(ids[1]).topic == "T"
        store.rollback_transaction(ids[0])
        for one in (*ids[:2], "none"):
            with pytest.raises(NoTransactionError):
                store.commit_transaction(one)
    with open_small(tmp_path) as store:
        assert [one.transaction_id for one in store.open_transactions()] == [ids[2]]
        assert store.committed_offset(TRANSACTION_GROUP, HALF_TOPIC, 0) == 2
        assert bodies(store, "T", 1) == [b"1"]


@pytest.mark.parametrize(("release", "forms"), [
    ("4.9.8", [b"0", b"1", b"2", b"3"]), ("5.0.0", [b"0", b"1", b"2", b"3"]), ("5.3.3", [b"0,1,2,3,"]),
])  # fmt: skip
def test_op_messages_have_the_form_of_the_release(tmp_path: Path, release: str, forms: list[bytes]) -> None:
    with open_small(tmp_path, release) as store:
        for number in range(4):
            with store.transaction(message(number)):
                pass
    with open_small(tmp_path, release) as store:
        assert ops(store) == forms


def test_op_messages_have_a_length(tmp_path: Path) -> None:
    with open_small(tmp_path, transactionOpMsgMaxSize=4) as store:
        for number in range(5):
            with store.transaction(message(number)):
                pass
    with open_small(tmp_path) as store:
        assert ops(store) == [b"0,1,", b"2,", b"3,4,"]


def test_what_no_store_takes_is_no_transaction(tmp_path: Path) -> None:
    with open_small(tmp_path) as store:
        with pytest.raises(UsageError):
            store.transaction(Message("a/b", b"x"))
        with pytest.raises(UsageError):
            store.transaction(Message("T", b"x" * 5000))


def test_a_delayed_transaction_waits_twice(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, clock=clock, deliver=False) as store:
        with store.transaction(Message("T", b"x", queue_id=0, properties={"DELAY": "2"})):
            pass
        assert bodies(store, "T", 0) == []
        clock.now += 5000
        assert (store.deliver_due(), bodies(store, "T", 0)) == (1, [b"x"])


@pytest.mark.parametrize("release", RELEASES)
def test_stale_halves_are_asked_about(tmp_path: Path, release: str) -> None:
    clock = Clock()
    answers: dict[str, bool | None] = {}
    asked: list[tuple[str, str]] = []

    def listener(half: StoredMessage) -> bool | None:
        asked.append((half.body.decode(), half.properties[props.TRANSACTION_CHECK_TIMES]))
        return answers.get(half.body.decode())

    with open_small(tmp_path, release, clock=clock, transactionTimeOut=6000, **NOW) as store:
        for number in range(3):
            store.transaction(message(number), "PG")
        clock.now += 6000
        assert store.check_transactions(listener) == 0
        clock.now += 1
        assert store.check_transactions(listener) == 3
        assert asked == [("0", "1"), ("1", "1"), ("2", "1")]
        answers.update({"0": True, "1": False})
        clock.now += 1
        asked.clear()
        assert store.check_transactions(listener) == 3
        assert sorted(asked) == [("0", "2"), ("1", "2"), ("2", "2")]
        assert bodies(store, "T", 1) == [b"0"]
        assert [one.flag for one in store.get("T", 1, 0).messages] == [0]
        (left,) = store.open_transactions()
        assert store.message_at(left.physical_offset).body == b"2"  # type: ignore[union-attr]
        assert store.committed_offset(TRANSACTION_GROUP, HALF_TOPIC, 0) == left.queue_offset


def test_what_was_checked_too_often_goes_elsewhere(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, clock=clock, transactionCheckMax=2, **NOW) as store:
        store.transaction(message(1))
        found = []
        for _ in range(4):
            clock.now += 7000
            found.append(store.check_transactions(lambda half: None))
        assert (found, store.open_transactions()) == ([1, 1, 0, 0], [])
        assert bodies(store, CHECK_MAX_TOPIC, 0) == [b"1"]
        store.transaction(message(2))
        clock.now += 73 * 3_600_000
        assert store.check_transactions(lambda half: True) == 0
        assert bodies(store, CHECK_MAX_TOPIC, 0) == [b"1", b"2"]


def test_own_immunity_counts(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, clock=clock, **NOW) as store:
        store.transaction(Message("T", b"x", properties={props.CHECK_IMMUNITY_TIME_IN_SECONDS: "60"}))
        clock.now += 60_000
        assert store.check_transactions(lambda half: True) == 0
        clock.now += 1
        assert store.check_transactions(lambda half: True) == 1


def test_a_listener_that_fails_is_asked_again(tmp_path: Path) -> None:
    clock = Clock()

    def fails(half: StoredMessage) -> bool:
        raise RuntimeError(half.body)

    with open_small(tmp_path, clock=clock, **NOW) as store:
        store.transaction(message(1))
        clock.now += 7000
        assert store.check_transactions(fails) == 1
        clock.now += 7000
        assert store.check_transactions(lambda half: True) == 1
        assert bodies(store, "T", 1) == [b"1"]


def test_a_thread_asks(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"transactionTimeOut": 1, "transactionCheckInterval": 10}
    with open_small(tmp_path, **settings) as store:
        store.listen_to_transactions(lambda half: True)
        store.transaction(Message("T", b"x", queue_id=0))
        assert store.get("T", 0, 0, wait=30).messages[0].body == b"x"


@pytest.mark.parametrize("release", RELEASES)
def test_a_kill_commits_nothing_twice(tmp_path: Path, release: str) -> None:
    """Op messages that were not written are told by the committed messages."""
    clock = Clock()
    with open_small(tmp_path / "a", release, clock=clock, deliver=False) as store:
        for number in range(6):
            tx = store.transaction(message(number))
            if number % 2:
                tx.commit()
        copy_of_open(tmp_path / "a", tmp_path / "b")
    clock.now += 7000
    with open_small(tmp_path / "b", release, clock=clock, deliver=False) as store:
        assert store.check_transactions(lambda half: True) == 3
        assert sorted(bodies(store, "T", 1)) == [b"%d" % number for number in range(6)]


def test_a_kill_between_a_check_and_its_op_leaves_one_half(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path / "a", clock=clock, deliver=False) as store:
        store.transaction(message(1))
        clock.now += 7000
        store.check_transactions(lambda half: copy_of_open(tmp_path / "a", tmp_path / "b"))  # type: ignore[func-returns-value]
    with open_small(tmp_path / "b", clock=clock, deliver=False) as store:
        assert store.offsets(HALF_TOPIC, 0) == (0, 2)
        assert len(store.open_transactions()) == 1
