"""`rmqtool store get|topic`: messages of a queue, those that follow, and the settings of topics."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pytest

from rmqtool import Message, MessageStore
from rmqtool.broker.get_message import GetMessageStatus, pull
from rmqtool.query.served_queue import find_queue, first_there, read_rules, served_queue
from rmqtool.store.layout import Store
from tests.cli.dumping import assert_one_line
from tests.cli.test_interrupt import DRIVER
from tests.helpers import ROOT, held, rmq
from tests.messagestore.helpers import SMALL

NDJSON = ("--format", "ndjson")


def message(number: int, tags: str = "A") -> Message:
    return Message("T", b"%d" % number, queue_id=0, tags=tags)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with MessageStore.open(tmp_path / "store", create=True, config=SMALL) as store:
        store.put_many([message(number, "AB"[number % 2]) for number in range(100)])
    return tmp_path / "store"


def test_from_an_offset_on(store: Path, store_unchanged: object) -> None:
    store_unchanged(store)  # type: ignore[operator]
    result = rmq("store", "get", store, "T", 0, *NDJSON)
    assert (result.exit_code, [row["slot"] for row in result.of_type("message")]) == (0, list(range(32)))
    assert (result.rows[-1]["schema"], result.rows[-1]["incomplete_reason"]) == (
        "rmqtool.store-get/1",
        "limit",
    )
    some = rmq("store", "get", store, "T", 0, 90, "-n", 50, "--filter", "B", *NDJSON)
    assert [row["body_utf8"] for row in some.of_type("message")] == ["91", "93", "95", "97", "99"]
    assert [row["slot"] for row in rmq("store", "get", store, "T", 0, "max", *NDJSON).rows[:-1]] == [99]


def test_nothing_there_is_exit_1(store: Path) -> None:
    assert rmq("store", "get", store, "T", 0, 100).exit_code == 1
    assert rmq("store", "get", store, "Absent", 0).exit_code == 1
    assert_one_line(rmq("store", "get", store, "../config", 0), 2)
    assert_one_line(rmq("store", "get", store, "T", 0, "-n", 0), 2)


@pytest.mark.parametrize("offset", ["min", "0", "25"])
def test_it_begins_with_what_has_not_expired(store: Path, offset: str) -> None:
    """Queues lag behind the log while its segments expire: none of their first file is there any more."""
    for segment in sorted((store / "commitlog").iterdir())[:2]:
        segment.unlink()
    result = rmq("store", "get", store, "T", 0, offset, "-n", 100, "--body", *NDJSON)
    slots = [row["slot"] for row in result.of_type("message")]
    assert result.exit_code == 0, result.stderr
    assert slots == list(range(slots[0], 100))
    assert 25 < slots[0] < 75
    assert [row["body_utf8"] for row in result.of_type("message")] == [str(slot) for slot in slots]


def test_a_file_that_expires_before_it_is_opened(store: Path) -> None:
    seen = Store.open(store)
    assert len(seen.segments) > 2
    assert find_queue(seen, "T", 0).files
    (store / "commitlog" / f"{0:020}").unlink()
    (store / "consumequeue" / "T" / "0" / f"{0:020}").unlink()
    with served_queue(seen, "T", 0, read_rules(seen, None)) as view:
        first = first_there(view)
        assert (view.max_offset, view.log.low) == (100, 4096)
        assert 20 <= first < 40
        assert pull(view, first, 1).status is GetMessageStatus.FOUND


def test_what_its_writer_has_not_dispatched_yet_is_no_damage(store: Path) -> None:
    with MessageStore.open(store, config=SMALL) as writer:
        writer.put(Message("U", b"", queue_id=0))
    last = max((store / "consumequeue" / "T" / "0").iterdir())
    with last.open("r+b") as file:
        file.seek(19 * 20)
        file.write(bytes(20))
    with held(store):
        result = rmq("store", "get", store, "T", 0, "max", *NDJSON)
    assert result.exit_code == 0, result.rows
    assert [row["slot"] for row in result.of_type("message")] == [98]
    assert rmq("store", "get", store, "T", 0, "max", *NDJSON).rows[-1]["incomplete_reason"] == "damage"


def follow(root: Path, topic: str, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, "store", "get", str(root), topic, "0", "-f", *NDJSON, *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_what_is_put_follows_soon_across_files(store: Path) -> None:
    """Also for a filter, and beyond the file of the queue that was there at first."""
    process = follow(store, "T", "98", "--filter", "A")
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline())["slot"] == 98
        seconds = []
        with MessageStore.open(store, config=SMALL) as writer:
            for number in range(100, 145):
                time.sleep(0.01)
                writer.put(message(number, "AB"[number % 2]))
                began = time.monotonic()
                if not number % 2:
                    row = json.loads(process.stdout.readline())
                    assert (row["slot"], row["body_utf8"]) == (number, str(number))
                    seconds.append(time.monotonic() - began)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    summary = json.loads(out.splitlines()[-1])
    assert (summary["messages"], summary["incomplete_reason"]) == (24, "interrupted")
    assert median(seconds) < 2  # 50 ms, and what a busy machine adds to most of them


def test_a_queue_that_is_not_there_yet_and_a_limit(store: Path) -> None:
    process = follow(store, "New", "-n", "2")
    try:
        with MessageStore.open(store, config=SMALL) as writer:
            for number in range(4):
                writer.put(Message("New", b"%d" % number, queue_id=0))
            out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    rows = [json.loads(one) for one in out.splitlines()]
    assert [row.get("body_utf8") for row in rows] == ["0", "1", None]
    assert rows[-1]["incomplete_reason"] == "limit"


def test_waiting_costs_next_to_nothing(store: Path) -> None:
    process = follow(store, "T", "max")
    assert process.stdout is not None
    try:
        process.stdout.readline()
        until = time.monotonic() + 60
        used = 1.0
        while used > 0.03 and time.monotonic() < until:  # at first it is still starting
            before = cpu_seconds(process.pid)
            time.sleep(1)
            used = cpu_seconds(process.pid) - before
    finally:
        process.kill()
        process.communicate()
    assert used <= 0.03


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def topic(root: Path, *more: object) -> tuple[int, list[object]]:
    result = rmq("store", "topic", root, "T", *more, *NDJSON)
    rows = result.of_type("topic") if result.stdout else []
    keys = ("read_queues", "write_queues", "perm", "state")
    return result.exit_code, [row[key] for row in rows for key in keys]


def test_topics_are_shown_changed_and_deleted(store: Path) -> None:
    assert topic(store) == (0, [4, 4, 6, "shown"])
    assert topic(store, "--write-queues", 8, "--read-queues", 8, "--perm", 4) == (0, [8, 8, 4, "changed"])
    refused = rmq("store", "put", store, "T", "--body", "x", *NDJSON)
    assert (refused.exit_code, refused.rows[0]["status"]) == (1, "MESSAGE_ILLEGAL")
    assert topic(store, "--delete") == (0, [8, 8, 4, "deleted"])
    assert topic(store) == (1, [])
    assert topic(store, "--delete") == (1, [])
    assert topic(store, "--perm", 6) == (0, [4, 4, 6, "made"])


def test_read_queues_with_messages_in_them_stay(store: Path) -> None:
    assert topic(store, "--read-queues", 1) == (0, [1, 4, 6, "changed"])
    assert_one_line(rmq("store", "topic", store, "T", "--read-queues", 0), 2)
    (store / "config" / "consumerOffset.json").write_text('{"offsetTable":{"T@g":{"0":99}}}')
    assert topic(store, "--read-queues", 0)[0] == 2
    (store / "config" / "consumerOffset.json").write_text('{"offsetTable":{"T@g":{"0":100}}}')
    assert topic(store, "--read-queues", 0) == (0, [0, 4, 6, "changed"])
    assert topic(store, "--read-queues", 1, "--force") == (0, [1, 4, 6, "changed"])
    (store / "config" / "consumerOffset.json").unlink()
    assert topic(store, "--read-queues", 0, "--force") == (0, [0, 4, 6, "changed"])


def test_a_topic_in_memory(store: Path) -> None:
    """It is marked, and who puts into it from the shell is told what becomes of that."""
    made = rmq("store", "topic", store, "M", "--memory", *NDJSON)
    assert (made.rows[0]["memory"], made.rows[0]["state"]) == (True, "made")
    assert rmq("store", "topic", store, "M", *NDJSON).rows[0]["memory"] is True
    assert rmq("store", "topic", store, "T", *NDJSON).rows[0]["memory"] is False
    assert_one_line(rmq("store", "topic", store, "T", "--memory"), 2)
    put = rmq("store", "put", store, "M", "--body", "x", *NDJSON)
    assert (put.rows[0]["status"], put.exit_code) == ("PUT_OK", 0)
    assert "1 message of a topic in memory: gone when this command ends" in put.stderr
    assert "memory" not in rmq("store", "put", store, "T", "--body", "x", *NDJSON).stderr
    assert rmq("store", "get", store, "M", 0).exit_code == 1


@pytest.mark.parametrize(
    "more", [("--perm", "5"), ("--delete", "--perm", "6"), ("--force",), ("--read-queues", "-1")]
)
def test_what_no_topic_can_be(store: Path, more: tuple[str, ...]) -> None:
    assert_one_line(rmq("store", "topic", store, "T", *more), 2)
