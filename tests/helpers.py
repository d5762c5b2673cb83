"""What several rooms' tests share: running commands and proving that a store was left alone."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Result:
    """What a command left: exit code and both streams as text."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Standard output read as NDJSON."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    def of_type(self, *types: str) -> list[dict[str, Any]]:
        """The NDJSON rows with one of these values in ``type``."""
        return [row for row in self.rows if row["type"] in types]


def assert_page_is_current(generator: str, *options: str) -> None:
    """A generator in `docs/` would write its pages as they are."""
    words = [sys.executable, f"docs/{generator}", "--check", *options]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def rmq(*args: object, stdin: str = "") -> Result:
    """Run a command in this process, through the same error boundary as the real one.

    Columns of tables are as wide as their first rows, however long a busy machine takes over those.
    """
    from rmqtool.cli.main import run

    out, err = _stream(), _stream()
    with (
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()))),
        mock.patch("rmqtool.output.tablerows.PATIENCE", math.inf),
    ):
        exit_code = run([str(argument) for argument in args])
        out.flush()
        err.flush()
    return Result(exit_code, _text(out), _text(err))


def rmq_process(*args: object, timeout: float = 120, **environment: str) -> Result:
    """Run a command as a process of its own, with ``environment`` on top of this one's."""
    done = subprocess.run(
        [sys.executable, "-m", "rmqtool", *map(str, args)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


_HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the store, as a broker does: a lock on byte 0 of its `lock` file."""
    lock = root / "lock"
    if not lock.exists():
        lock.write_bytes(b"lock")
    command = [sys.executable, "-c", _HOLDER, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.stdin.close()


_PLACE = os.getpid() % 500
_PORTS = cycle([*range(21011, 32700, 10)][_PLACE:] + [*range(21011, 32700, 10)][:_PLACE])


def free_port(*beside: int) -> int:
    """A port of the loopback where nobody listens, nor so far `beside` it; the next call gives another one.

    It is none of those that the system gives to connections: nobody takes it before it is listened on.
    """
    for port in islice(_PORTS, 1000):
        with suppress(OSError), ExitStack() as taken:
            for one in (0, *beside):
                taken.enter_context(socket.create_server(("127.0.0.1", port + one)))
            return port
    raise OSError("no free port")


@dataclass(frozen=True)
class Entry:
    """One path of a tree, with everything that a reader must not change. Access times are not part of it."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    sha256: str | None


def snapshot(root: Path) -> dict[str, Entry]:
    """Every path at and below ``root`` (a file or directory), links not followed."""
    paths = [root, *root.rglob("*")] if root.is_dir() else [root]
    return {path.relative_to(root).as_posix(): _entry(path) for path in paths}


def differences(before: dict[str, Entry], after: dict[str, Entry]) -> list[str]:
    """One line for every path that appeared, went or changed, with the facts that did."""
    lines = [f"{path}: new" for path in sorted(after.keys() - before.keys())]
    lines += [f"{path}: gone" for path in sorted(before.keys() - after.keys())]
    for path in sorted(before.keys() & after.keys()):
        was, now = before[path], after[path]
        changed = [name for name in Entry.__annotations__ if getattr(was, name) != getattr(now, name)]
        if changed:
            lines.append(f"{path}: {', '.join(changed)} changed")
    return lines


def _entry(path: Path) -> Entry:
    facts = path.lstat()
    digest = None
    if stat.S_ISREG(facts.st_mode) and os.access(path, os.R_OK):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = facts.st_size if stat.S_ISREG(facts.st_mode) else 0
    return Entry(facts.st_mode, size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, digest)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8")
