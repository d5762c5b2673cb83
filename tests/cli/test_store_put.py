"""`rmqtool store init|put`: forms, exit codes, lines that are not messages, stops and closed pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rmqtool import MessageStore
from tests.cli.dumping import assert_one_line
from tests.cli.screens import screen
from tests.cli.test_interrupt import DRIVER
from tests.helpers import ROOT, held, rmq

NDJSON = ("--format", "ndjson")
SNAPSHOTS = Path(__file__).with_name("snapshots")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    config = tmp_path / "broker.conf"
    config.write_text("mappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue=2000\nbrokerIP1=10.0.0.1\n")
    root = tmp_path / "store"
    assert rmq("store", "init", root, "--store-config", config, *NDJSON).rows[0]["root"] == str(root)
    return root


def line(number: int, **more: Any) -> str:
    row = {"topic": "T", "queue_id": 0, "body_utf8": f"body {number}", "uniq_key": f"id-{number}"}
    return json.dumps(row | more) + "\n"


def bodies(root: Path) -> list[bytes]:
    with MessageStore.open(root) as store:
        table = store.get_table("T", 0, columns=("body",))
        return [bytes(body) for body in table["body"].to_pylist()]


def config_of(root: Path) -> tuple[str, Path]:
    return "--store-config", root.with_name("broker.conf")


def test_init_is_for_nothing_but_an_empty_directory(store: Path, tmp_path: Path) -> None:
    assert_one_line(rmq("store", "init", store), 2)
    (tmp_path / "empty").mkdir()
    assert rmq("store", "init", tmp_path / "empty").exit_code == 0
    assert rmq("verify", tmp_path / "empty").exit_code == 0


def test_a_text_with_spaces_is_several_keys_in_every_form(store: Path) -> None:
    put = ("store", "put", store, *NDJSON, *config_of(store))
    assert rmq(*put, "T", "--body", "x", "--keys", "a b", "--queue", 0).exit_code == 0
    lines = '{"topic":"T","body_utf8":"x","keys":["a b"],"queue_id":0}'
    assert rmq(*put, stdin=lines).exit_code == 0
    assert rmq(*put, "--input", "csv", stdin="topic,body_utf8,keys,queue_id\nT,x,a b,0").exit_code == 0
    assert rmq(*put, "T", "--body", "x", "--keys", " ").exit_code == 2
    found = rmq("query-key", store, "b", "--topic", "T", *NDJSON).of_type("message")
    assert [row["keys"] for row in found] == [["a", "b"]] * 3


def test_one_message(store: Path) -> None:
    (store.parent / "body").write_bytes(b"\0\xff")
    given = ("--tags", "A", "--keys", "k1", "--keys", "k2", "--property", "x=y=z", "--queue", "3")
    result = rmq(
        "store", "put", store, "T", "--body", f"@{store.parent}/body", *given, *NDJSON, *config_of(store)
    )
    (ack,) = result.of_type("ack")
    assert result.exit_code == 0
    assert (ack["status"], ack["queue_id"], ack["queue_offset"], ack["physical_offset"]) == (
        "PUT_OK",
        3,
        0,
        0,
    )
    assert ack["offset_msg_id"] == "0A00000100002A9F0000000000000000"
    assert result.rows[-1] == {
        "type": "summary", "schema": "rmqtool.store-put/1", "messages": 1, "bytes": 2, "refused": 0,
        "by_status": {"PUT_OK": 1}, "complete": True,
    }  # fmt: skip
    with MessageStore.open(store) as opened:
        one = opened.message_at(0)
    assert one is not None
    assert (one.body, one.tags, one.keys, one.properties["x"]) == (b"\0\xff", "A", ["k1", "k2"], "y=z")
    assert one.uniq_key == ack["uniq_key"]


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_lines_are_answered_in_their_order(store: Path, flush: str) -> None:
    bad = ["nope\n", "\n", line(1, tag="A"), line(2, topic="x" * 300), line(3, queue_id=9)]
    text = line(0) + "".join(bad) + line(4).rstrip()
    result = rmq("store", "put", store, "--flush", flush, "-", *NDJSON, *config_of(store), stdin=text)
    acks = result.of_type("ack")
    assert result.exit_code == 1
    assert [one["status"] for one in acks] == ["PUT_OK", *["MESSAGE_ILLEGAL"] * 4, "PUT_OK"]
    assert [one.get("line") for one in acks] == [None, 2, 4, 5, 6, None]
    assert all(one["message"] and one["queue_offset"] is None for one in acks[1:5])
    assert (result.rows[-1]["messages"], result.rows[-1]["refused"]) == (2, 4)
    assert bodies(store) == [b"body 0", b"body 4"]


def test_csv_in_and_out(store: Path) -> None:
    text = '\ufefftopic,queue_id,body_utf8\r\nT,0,"a\n""b"""\r\nT,x,c\r\nT,0,d\r\n'
    result = rmq("store", "put", store, "--input", "csv", "--format", "csv", *config_of(store), stdin=text)
    shown = [row.split(",")[:4] for row in result.stdout.splitlines()]
    assert shown[1:] == [
        ["ack", "PUT_OK", "T", "0"],
        ["ack", "MESSAGE_ILLEGAL", "", ""],
        ["ack", "PUT_OK", "T", "0"],
    ]
    assert ",4,queue_id is not a whole number" in result.stdout
    assert bodies(store) == [b'a\n"b"', b"d"]


def test_a_line_without_an_end_takes_no_memory(store: Path) -> None:
    conf = store.with_name("broker.conf")
    conf.write_text(conf.read_text() + "maxMessageSize=1000\n")
    text = line(0) + '{"topic": "' + "x" * 3_000_000 + "\n" + line(1)
    result = rmq("store", "put", store, *NDJSON, *config_of(store), stdin=text)
    assert [row["status"] for row in result.of_type("ack")] == ["PUT_OK", "MESSAGE_ILLEGAL", "PUT_OK"]
    assert "longer than a message" in result.stdout


def test_a_line_that_is_too_long_is_said_before_its_end(store: Path) -> None:
    conf = store.with_name("broker.conf")
    conf.write_text(conf.read_text() + "maxMessageSize=1000\n")
    process = put_process(store)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(b"x" * (1 << 21))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["status"] == "MESSAGE_ILLEGAL"
        rest, error = process.communicate(b"y" * (1 << 21), timeout=60)
    finally:
        process.kill()
    assert (process.returncode, error) == (1, b"")
    assert [json.loads(one)["type"] for one in rest.splitlines()] == ["summary"]


def test_table_at_80_columns(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = line(0) + "nope\n" + line(1)
    shown = rmq("store", "put", store, *config_of(store), stdin=text)
    assert shown.stdout + shown.stderr == (SNAPSHOTS / "store-put.txt").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("T",),
        ("T", "--body", "x", "--input", "csv"),
        ("--body", "x"),
        ("-", "--queue", "0"),
        ("T", "--body", "x", "--queue", "-1"),
        ("T", "--body", "x", "--property", "x"),
        ("T", "--body", "x", "--tags", ""),
        ("T", "--body", "x", "--flush", "never"),
    ],
)
def test_what_cannot_be_meant_is_refused(store: Path, arguments: tuple[str, ...]) -> None:
    assert_one_line(rmq("store", "put", store, *arguments), 2)


def test_a_csv_header_that_names_nothing_known(store: Path) -> None:
    assert_one_line(rmq("store", "put", store, "--input", "csv", stdin="a,b\n1,2\n"), 2)


def test_settings_are_the_brokers(store: Path) -> None:
    conf = store.with_name("other.conf")
    conf.write_text("deleteWhne=04\n")
    assert_one_line(rmq("store", "put", store, "T", "--body", "x", "--store-config", conf), 2)
    conf.write_text("fooBar=1\n")
    result = rmq("store", "put", store, "T", "--body", "x", "--store-config", conf)
    assert (result.exit_code, "warning: fooBar" in result.stderr) == (0, True)


def test_a_store_that_somebody_has_is_exit_5(store: Path) -> None:
    with held(store):
        assert_one_line(rmq("store", "put", store, "T", "--body", "x"), 5)


def put_process(root: Path, *more: str, out: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    command = ["store", "put", str(root), "--flush", "sync", *NDJSON, *map(str, config_of(root)), *more]
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, *command],
        stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_a_stop_ends_with_a_summary_and_a_clean_store(store: Path, sent: str) -> None:
    """Answers come while the input is open: nobody waits for its end."""
    process = put_process(store)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for number in range(3):
            process.stdin.write(line(number).encode())
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["queue_offset"] == number
        process.stdin.write(line(3)[:-9].encode())
        process.stdin.flush()
        time.sleep(0.1)
        process.send_signal(getattr(signal, sent))
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    summary = json.loads(out.splitlines()[-1])
    assert (process.returncode, err) == (130, b"")
    assert (summary["messages"], summary["incomplete_reason"]) == (3, "interrupted")
    assert not (store / "abort").exists()
    assert bodies(store) == [b"body 0", b"body 1", b"body 2"]


def test_a_closed_pipe_is_silent_and_the_store_is_closed(store: Path) -> None:
    reading, writing = os.pipe()
    process = put_process(store, out=writing)
    os.close(writing)
    os.close(reading)
    _, err = process.communicate("".join(map(line, range(50))).encode(), timeout=60)
    assert (process.returncode, err) == (141, b"")
    assert not (store / "abort").exists()
    assert len(bodies(store)) == 50


def test_a_pipe_without_end_is_left_at_the_size_of_a_message(store: Path) -> None:
    conf, fifo = store.with_name("broker.conf"), store.with_name("fifo")
    conf.write_text(conf.read_text() + "maxMessageSize=100000\n")
    os.mkfifo(fifo)
    taken = []

    def write() -> None:
        with suppress(BrokenPipeError), fifo.open("wb", buffering=0) as pipe:
            taken.extend(pipe.write(bytes(1 << 16)) for _ in range(512))

    writer = threading.Thread(target=write)
    writer.start()
    refused = rmq("store", "put", store, "T", "--body", f"@{fifo}", *config_of(store))
    writer.join(60)
    assert_one_line(refused, 2)
    assert "longer than maxMessageSize, 100000 bytes" in refused.stderr
    assert sum(taken) < 1 << 20
    body = store.with_name("body")
    body.write_bytes(bytes(100_000))
    small = rmq("store", "put", store, "T", "--body", f"@{body}", *config_of(store), *NDJSON)
    assert [one["status"] for one in small.of_type("ack")] == ["MESSAGE_ILLEGAL"]


def test_a_body_is_read_from_files_and_pipes_alone(tmp_path):
    root, long = tmp_path / "store", tmp_path / "long"
    assert rmq("store", "init", root).exit_code == 0
    with long.open("wb") as file:
        file.truncate(1 << 40)
    for place, said in (
        ("/dev/zero", "is a character device, neither a file nor a pipe"),
        (long, "is longer"),
        (tmp_path / "none", "no such file or directory"),
    ):
        refused = rmq("store", "put", root, "T", "--body", f"@{place}")
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
        assert refused.stderr.replace(":", "").startswith(f"rmqtool --body {place} {said}")


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_the_whole_reason(store: Path, width: int) -> None:
    topic = "A_rather_long_topic_name_of_a_team"
    code, shown = screen(width, "store", "put", store, topic, "--body", "x", "--queue", 77)
    assert code == 1
    assert f"topic {topic} has 4 write queues, not 77" in shown
    assert max(map(len, shown.splitlines())) <= width
