"""What is not a regular file, in the place of an input: only a pipe that the user named is read."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from fixtures.builder import HandmadeLog
from rmqtool.cli.commands import COMMANDS, load_command
from tests.cli.dumping import assert_one_line
from tests.fuzz.commands import tree
from tests.helpers import ROOT, rmq

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FINE = "2023-11-15 06:13:20 INFO main - load commitLog OK"
TAKES_WORDS = {
    "query-key": ["T", "k1"], "query-id": ["0" * 32], "query-offset": ["T", "0", "0"],
    "query-time": ["T", "0", "0"], "export": ["--to", "out.ndjson"], "sql": ["select 1"], "show": ["0"],
    "salvage": ["--output", "out"], "checkpoint set": ["--physic", "0"], "explain": ["x", "--store", "store"],
}  # fmt: skip


def inputs() -> Iterator[tuple[str, str]]:
    """Every command with the options, and `positional`, that name a file or directory."""
    for verb in COMMANDS:
        for one in load_command(verb).params if not verb.startswith("pipeline ") else ():
            if any(word in (one.metavar or "") for word in ("FILE", "DIR", "STORE", "PATH", "JOURNAL")):
                yield verb, one.opts[0] if getattr(one, "is_flag", None) is not None else "positional"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store, a FIFO and a socket."""
    log = HandmadeLog(segment_size=4096)
    log.put("T", b"x", {"KEYS": "k1"})
    log.write(tmp_path / "store/commitlog")
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        yield tmp_path


@contextmanager
def written(fifo: Path, data: bytes) -> Iterator[Path]:
    """The FIFO, while somebody writes `data` into it."""
    writer = threading.Thread(target=fifo.write_bytes, args=(data,))
    writer.start()
    yield fifo
    writer.join()


@pytest.mark.timeout(120)
def test_nothing_but_a_regular_file_is_opened(place: Path) -> None:
    """Each is refused in one line, at once, and is there as it was."""
    for verb, name in inputs():
        for special in ("fifo", "socket", "/dev/zero"):
            if special == "fifo" and (verb, name) in {("query-key", "--keys-file"), ("explain", "LINE")}:
                continue
            more = TAKES_WORDS.get(verb, []) if name not in {"--to", "--output", "--keys-file"} else []
            words = [*verb.split(), special, *more]
            if name != "positional":
                words = [*verb.split(), *(["store"] if verb != "explain" else []), *more, name, special]
                words += ["--apply"] if name in {"--backup", "--output"} and verb != "salvage" else []
                words += ["--in-place"] if name == "--backup" else []
            assert_one_line(rmq(*words), 2)
    assert sorted(path.name for path in place.iterdir()) == ["fifo", "socket", "store"]


@pytest.mark.timeout(120)
def test_an_address_is_no_path_of_this_machine(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the system it is a relative path, and who unpacks an archive runs commands where that may lie."""
    address = "s3://anna:hush@bucket/store"
    shutil.copytree(place / "store", place / "s3:/anna:hush@bucket/store")
    before = tree(place)
    monkeypatch.setenv("RMQTOOL_STORE", address)
    for verb, name in [*inputs(), ("info", "-"), ("store put", "--body")]:
        more = TAKES_WORDS.get(verb, []) if name not in {"--to", "--output", "--keys-file"} else []
        words = [*verb.split(), "-" if name == "-" else address, *more]
        if name.startswith("--"):
            words = [*verb.split(), *(["store"] if verb != "explain" else []), *more, name, address]
        if verb == "store put":
            words = ["store", "put", "store", "T", "--body", f"@{address}"] if name == "--body" else words
        refused = rmq(*words)
        assert_one_line(refused, 2)
        assert "hush" not in refused.stderr
        assert tree(place) == before


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_that_was_named_is_explained(place: Path, pack: type[bytes]) -> None:
    with written(place / "fifo", pack(f"{FINE}\n".encode() * 9)) as fifo:
        rows = rmq("explain", fifo, "--format", "ndjson").rows
    assert (rows[0]["count"], rows[0]["place"]) == (9, f"{fifo}:1")


def test_keys_come_out_of_a_pipe_that_was_named(place: Path) -> None:
    with written(place / "fifo", b"k0\nk1\n") as fifo:
        found = rmq("query-key", "store", "T", "--keys-file", fifo, "--format", "ndjson")
    assert [row["keys"] for row in found.of_type("message")] == [["k1"]]


def test_what_lies_in_a_directory_of_logs_is_no_pipe(place: Path) -> None:
    (place / "logs").mkdir()
    (place / "fifo").rename(place / "logs/store.log")
    assert_one_line(rmq("explain", place / "logs"), 2)
    (place / "logs/broker.log").write_text(f"{FINE}\n")
    assert rmq("explain", place / "logs").exit_code == 0


@pytest.mark.parametrize("words", [["explain", "fifo"], ["query-key", "store", "T", "--keys-file", "fifo"]])
def test_waiting_for_who_writes_is_interrupted(place: Path, words: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "rmqtool", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        end = None
        while end is None:  # nobody reads it yet
            with suppress(OSError):
                end = os.open("fifo", os.O_WRONLY | os.O_NONBLOCK)
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        os.close(end)
