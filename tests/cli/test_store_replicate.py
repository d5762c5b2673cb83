"""`store replicate`: both ends as processes, how they end, and what is refused."""

from __future__ import annotations

import json
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import MessageStore
from tests.helpers import rmq
from tests.messagestore.helpers import SMALL, open_small, traffic
from tests.messagestore.test_replication import log_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def settings(tmp_path: Path) -> str:
    """A file with small sizes and short heartbeats."""
    file = tmp_path / "broker.conf"
    given = SMALL | {"haSendHeartbeatInterval": 100}
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()), encoding="utf-8")
    return str(file)


def started(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rmqtool", "store", "replicate", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_from_one_process_to_another(tmp_path: Path, settings: str) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many(traffic(0, 20))
        end = store.end
    with started(tmp_path / "store", "--listen", 0, "--store-config", settings, "--json") as master:
        assert master.stderr is not None
        said = re.search(r"listening on (\S+):(\d+)", master.stderr.readline())
        assert said is not None
        address = f"{said[1]}:{said[2]}"
        copy = rmq(
            "store", "replicate", tmp_path / "copy", "--from", address, "--once",
            "--store-config", settings, "--format", "ndjson",
        )  # fmt: skip
        assert copy.exit_code == 0, copy.stderr
        row, summary = map(json.loads, copy.stdout.splitlines())
        assert (row["role"], row["address"], row["end_offset"]) == ("slave", address, end)
        assert summary["complete"]
        master.send_signal(signal.SIGINT)
        out, notes = master.communicate(timeout=30)
        assert (master.returncode, json.loads(out)["rows"][0]["role"]) == (0, "master")
        assert "is connected" in notes
    low = int(min(one.name for one in (tmp_path / "copy/commitlog").iterdir()))
    assert log_of(tmp_path / "copy", end) == log_of(tmp_path / "store", end)[low:]
    assert rmq("verify", tmp_path / "copy").exit_code == 0
    assert not (tmp_path / "store/abort").exists()


def test_another_log_is_exit_code_1(tmp_path: Path, settings: str) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many(traffic(0, 3))
        end = store.end
    before = log_of(tmp_path / "store", end)

    def answer() -> None:
        with suppress(ConnectionResetError), server.accept()[0] as peer:
            peer.recv(8)
            peer.sendall(struct.pack(">qi", 0, 5) + b"12345")
            peer.recv(8)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        done = rmq("store", "replicate", tmp_path / "store", "--from", address, "--store-config", settings)
    assert done.exit_code == 1
    assert f"sends from 0 on, and the log here ends at {end}" in done.stderr
    assert log_of(tmp_path / "store", end) == before


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "one of --from and --listen"),
        (["--from", "a:1", "--listen", "1"], "one of --from and --listen"),
        (["--listen", "1", "--once"], "--once goes with --from"),
        (["--from", "10912"], "is not HOST:PORT"),
        (["--from", "host:x"], "--from"),
        (["--listen", "70000"], "--listen"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], why: str) -> None:
    with open_small(tmp_path / "store"):
        pass
    done = rmq("store", "replicate", tmp_path / "store", *arguments)
    assert done.exit_code == 2
    assert why in done.stderr


def test_once_needs_a_master(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    done = rmq("store", "replicate", tmp_path / "copy", "--from", f"127.0.0.1:{port}", "--once")
    assert (done.exit_code, "Connection refused" in done.stderr) == (4, True)


def test_a_master_that_refuses_the_log_is_no_end(tmp_path: Path) -> None:
    """It ends the connection without a word: nothing has arrived."""
    with open_small(tmp_path / "short") as store, open_small(tmp_path / "long") as ahead:
        store.put_many(traffic(0, 2))
        ahead.put_many(traffic(0, 9))
        ahead.close()
        host, port = store.listen(port=0)
        done = rmq("store", "replicate", tmp_path / "long", "--from", f"{host}:{port}", "--once")
    assert (done.exit_code, "ended the connection" in done.stderr) == (4, True)


def test_interrupted_before_all_has_arrived(tmp_path: Path, settings: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        given = (tmp_path / "copy", "--from", address, "--once", "--store-config", settings, "--json")
        with started(*given) as slave, silent.accept()[0] as peer:
            assert peer.recv(8) == bytes(8)
            slave.send_signal(signal.SIGINT)
            out, _ = slave.communicate(timeout=30)
    assert (slave.returncode, json.loads(out)["summary"]["complete"]) == (130, False)


def test_beside_a_writer(tmp_path: Path) -> None:
    config: dict[str, Any] = SMALL
    with MessageStore.open(tmp_path / "store", create=True, config=config):
        done = rmq("store", "replicate", tmp_path / "store", "--listen", "0")
    assert done.exit_code == 5
