"""`rmqtool store load`."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from typing import TYPE_CHECKING, Any

import pytest

from formats import replay
from rmqtool.messagestore.store import MessageStore
from tests.cli.test_interrupt import DRIVER
from tests.helpers import ROOT, rmq
from tests.messagestore.helpers import bodies, of_queue, open_small, traffic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    with open_small(tmp_path / "from") as store:
        store.put_many(traffic(0, 60))
    assert rmq("export", tmp_path / "from", "--to", tmp_path / "some.replay").exit_code == 0
    return tmp_path / "some.replay"


def test_every_message_comes_as_it_was_sent(tmp_path: Path, exported: Path) -> None:
    root = tmp_path / "to"
    with open_small(root) as store:
        store.put_many(traffic(60, 30))
    done = rmq("store", "load", root, exported, "--json")
    assert done.exit_code == 0, done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert (summary["messages"], summary["refused"], summary["complete"]) == (60, 0, True)
    assert summary["segments"] >= 1
    assert rmq("verify", root).exit_code == 0
    with open_small(root) as store:
        for topic, queue_id in store.queues():
            wanted = of_queue(traffic(60, 30), topic, queue_id) + of_queue(traffic(0, 60), topic, queue_id)
            assert bodies(store, topic, queue_id) == wanted
        assert len(store.query_key("Topic0", "key-4")) == 1


OF_BROKERS = ["v533-props-crc", "v498-tx", "v533-batchcq", "v533-lmq"]
KEPT = ("topic", "queue_id", "body_hex", "born_timestamp", "born_host", "reconsume_times", "flag", "tags")


def sent(root: Path) -> list[dict[str, Any]]:
    """What of the messages does not depend on the store that they lie in."""
    rows = json.loads(rmq("dump", root, "--json", "--body", "hex").stdout)["rows"]
    return [{key: row[key] for key in KEPT} for row in rows if row["type"] == "message"]


@pytest.mark.share
@pytest.mark.parametrize("name", OF_BROKERS)
def test_what_brokers_wrote_stays_what_it_was(
    golden: Callable[[str], Golden], tmp_path: Path, name: str
) -> None:
    source, root = golden(name).path, tmp_path / "to"
    assert rmq("export", source, "--to", tmp_path / "some.replay").exit_code == 0
    assert rmq("store", "init", root).exit_code == 0
    done = rmq("store", "load", root, tmp_path / "some.replay", "--json")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert rmq("verify", root).exit_code == 0
    assert sent(root) == sent(source)


def test_a_pipe_and_a_file_that_was_cut(tmp_path: Path, exported: Path) -> None:
    for number, (data, code) in enumerate([(exported.read_bytes(), 0), (exported.read_bytes()[:-50], 3)]):
        root = tmp_path / f"to{number}"
        assert rmq("store", "init", root).exit_code == 0
        done = subprocess.run(
            [sys.executable, "-m", "rmqtool", "store", "load", root, "--json"],
            input=data,
            check=False,
            capture_output=True,
        )
        assert done.returncode == code, done.stderr
        summary = json.loads(done.stdout)["summary"]
        assert (summary["messages"], summary["complete"]) == ((60, True), (59, False))[number]


def test_what_is_larger_than_a_message_is_passed_over(tmp_path: Path, exported: Path) -> None:
    root, whole = tmp_path / "to", exported.read_bytes()
    assert rmq("store", "init", root).exit_code == 0
    long = replay.entry(bytes(32 << 20))
    for data, code, reported in (
        (
            whole[:12] + long + whole[12:-24] + replay.end(61),
            1,
            ["the record is larger than maxMessageSize or a segment"],
        ),
        (whole[:12] + long[:-1], 3, []),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "rmqtool", "store", "load", root, "--json"],
            input=data,
            check=False,
            capture_output=True,
        )
        assert done.returncode == code, done.stderr
        assert [row["message"] for row in json.loads(done.stdout)["rows"]] == reported


def test_a_stop_while_it_waits_for_a_pipe(tmp_path: Path, exported: Path) -> None:
    root = tmp_path / "to"
    assert rmq("store", "init", root).exit_code == 0
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, "store", "load", root, "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdin is not None
    try:
        process.stdin.write(exported.read_bytes()[:50])
        process.stdin.flush()
        left = bytearray(4)
        while fcntl.ioctl(process.stdin, termios.FIONREAD, left) or any(left):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        out, error = process.communicate()
    finally:
        process.kill()
    assert (process.returncode, error) == (130, b"")
    summary = json.loads(out)["summary"]
    assert (summary["messages"], summary["incomplete_reason"]) == (0, "interrupted")
    assert not (root / "abort").exists()


def test_damage_and_what_fits_nowhere_is_refused_and_named(tmp_path: Path, exported: Path) -> None:
    root = tmp_path / "to"
    with open_small(root) as store:
        store.topics.set("Topic0", read_queues=2, write_queues=2)
        store.topics.set("Topic1", read_queues=4, write_queues=4, perm=4)
    done = rmq("store", "load", root, exported, "--format", "ndjson")
    *rows, summary = map(json.loads, done.stdout.splitlines())
    refused = [one for one in traffic(0, 60) if one.topic == "Topic1" or one.queue_id == 2]
    assert (done.exit_code, summary["refused"], summary["messages"]) == (1, len(refused), 60 - len(refused))
    assert summary["by_status"] == {"MESSAGE_ILLEGAL": len(refused), "PUT_OK": 60 - len(refused)}
    reported = [(row["topic"], row["queue_id"], row["status"]) for row in rows if row["type"] == "refused"]
    assert reported == [(one.topic, one.queue_id, "MESSAGE_ILLEGAL") for one in refused]


def test_what_is_no_replayable_file_is_wrong_usage(tmp_path: Path) -> None:
    MessageStore.open(tmp_path / "to", create=True).close()
    (tmp_path / "other").write_bytes(b"something else")
    assert rmq("store", "load", tmp_path / "to", tmp_path / "other").exit_code == 2
    assert rmq("store", "load", tmp_path / "to", tmp_path / "absent").exit_code == 2
