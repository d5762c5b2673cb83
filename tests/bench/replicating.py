"""A slave that follows a master, beside a plain copy of the same bytes through a socket."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rmqtool import MessageStore
from rmqtool.messagestore.bench.work import SETTINGS, messages, table_of
from tests.bench.measure import Figure, in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BYTES = 400 << 20
BODY = 1024
SEGMENT = 1 << 29
_AT_ONCE = 1 << 20


def _sent(server: socket.socket, source: Path, end: int) -> None:
    with server.accept()[0] as peer, source.open("rb") as file:
        done = 0
        while done < end:
            done += os.sendfile(peer.fileno(), file.fileno(), done, min(_AT_ONCE, end - done))


def plain_copy(source: Path, target: Path, end: int) -> None:
    """`sendfile` on one side, on the other side what comes is written into a file that has room for it."""
    with socket.create_server(("127.0.0.1", 0)) as server, target.open("wb") as out:
        sender = threading.Thread(target=_sent, args=(server, source, end))
        sender.start()
        os.posix_fallocate(out.fileno(), 0, end)
        buffer, done = memoryview(bytearray(_AT_ONCE)), 0
        with socket.create_connection(server.getsockname()) as peer:
            while got := peer.recv_into(buffer):
                os.pwrite(out.fileno(), buffer[:got], done)
                done += got
        sender.join()
    target.unlink()


@contextmanager
def listening(root: Path) -> Iterator[tuple[str, int]]:
    """`store replicate --listen` as a process; its address."""
    command = [sys.executable, "-m", "rmqtool", "store", "replicate", str(root), "--listen", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "listening on" in line)
        host, _, port = line.split("listening on ")[1].split(";")[0].rpartition(":")
        yield host, int(port)
        process.send_signal(signal.SIGINT)
        process.communicate()


def against_plain_copy(directory: Path) -> Figure:
    """Both in turn, the master a process of its own; the log counts, which queues and index follow."""
    config = {**SETTINGS, "mappedFileSizeCommitLog": SEGMENT}
    table, number = table_of(messages(BODY, 20_000)), 0
    with MessageStore.open(directory / "master", create=True, config=config) as master:
        while master.end < BYTES:
            master.put_many(table)
        end = master.end
    source = next((directory / "master" / "commitlog").iterdir())
    with listening(directory / "master") as address:

        def ours() -> float:
            nonlocal number
            number += 1
            root, role = directory / f"slave-{number}", {"brokerRole": "SLAVE"}
            with MessageStore.open(root, create=True, config=config | role) as slave:
                began = time.perf_counter()
                following = slave.follow(*address)
                while slave.end < end and following.error is None:
                    time.sleep(0.0005)
                taken = time.perf_counter() - began
                if following.error is not None:
                    raise following.error
            shutil.rmtree(root)  # what is not written back yet would slow down the next one
            return taken

        taken = in_turn({"plain": lambda: plain_copy(source, directory / "copy", end), "ours": ours}, 5)
    plain, mine = taken["plain"], taken["ours"]
    note = f"{end / mine.best / 1e6:,.0f} MB/s, {end / plain.best / 1e6:,.0f} MB/s"
    return Figure("replication", "plain socket copy", plain.best / mine.best, 0.7, note=note)
