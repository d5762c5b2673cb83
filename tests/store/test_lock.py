from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time

import pytest

from rmqtool.store import lock
from rmqtool.store.access import open_source
from rmqtool.store.bytes import MemorySource
from tests.disks import refuse
from tests.helpers import ROOT, held

TRY = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    print("free")
except OSError:
    print("held")
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "lock").write_bytes(b"lock")
    return tmp_path


@pytest.fixture
def holder(root):
    """Another process with a lock on byte 0, as the Java broker takes it."""
    with held(root) as process:
        yield process


@pytest.fixture
def own_lock(root):
    """The lock of this very process, in the registry."""
    descriptor = os.open(root / "lock", os.O_RDWR)
    lock.register(root, descriptor)
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    yield descriptor
    lock.unregister(descriptor)
    os.close(descriptor)


def seen_from_outside(root) -> str:
    done = subprocess.run(
        [sys.executable, "-c", TRY, root / "lock"], capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout.strip()


def test_free_lock_file(root):
    assert lock.probe(root) == lock.LockState(False, None, "not locked")
    assert lock.probe(root / "lock").held is False


def test_no_lock_file(tmp_path):
    assert lock.probe(tmp_path) == lock.LockState(False, None, "no lock file")
    assert lock.probe(tmp_path / "nowhere").held is False
    assert list(tmp_path.iterdir()) == []


def test_held_by_another_process(root, holder):
    state = lock.probe(root)
    assert state.held is True
    assert state.pid == holder.pid


def test_probing_takes_nothing(root, holder):
    for _ in range(3):
        lock.probe(root)
    assert seen_from_outside(root) == "held"
    holder.stdin.close()
    holder.wait(10)
    assert lock.probe(root).held is False
    assert seen_from_outside(root) == "free"


def test_an_own_lock_survives_the_probe(root, own_lock):
    assert lock.probe(root) == lock.LockState(True, os.getpid(), "held by this process")
    assert lock.held_roots() == (str(root),)
    assert seen_from_outside(root) == "held"


def test_without_the_registry_the_probe_would_drop_the_lock(root):
    """The reason for the registry: closing any descriptor of the file drops the lock of the process."""
    descriptor = os.open(root / "lock", os.O_RDWR)
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    assert seen_from_outside(root) == "held"
    lock.probe(root)
    assert seen_from_outside(root) == "free"
    os.close(descriptor)


def test_an_own_lock_survives_reading_the_file(root, own_lock):
    for path in (root / "lock", root / "." / "lock"):
        with open_source(path) as source:
            assert isinstance(source, MemorySource)
            assert source.window(0, 10).tobytes() == b"lock"
    link = root / "other"
    link.hardlink_to(root / "lock")
    with open_source(link) as source:
        assert source.size == 4
    assert seen_from_outside(root) == "held"


def test_a_child_does_not_inherit_the_lock(root, own_lock):
    """After a fork the registry is there, but the lock is the parent's."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        state = lock.probe(root)
        os.write(writer, f"{state.held} {state.pid} {lock.held_roots()}".encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader) as stream:
        answer = stream.read()
    assert status == 0
    assert answer == f"True {os.getpid()} ()"
    assert seen_from_outside(root) == "held"


def test_registering_twice(root, own_lock):
    other = os.open(root.parent / root.name / "lock", os.O_PATH)
    with pytest.raises(ValueError, match="already holds"):
        lock.register(root, other)


def test_a_hole_of_a_tib_is_not_read(root, own_lock):
    os.truncate(root / "lock", 1 << 40)
    assert len(lock.held_content(root / "lock")) == 4097


def test_unregistered_file_is_opened_again(root, own_lock):
    lock.unregister(own_lock)
    assert lock.held_content(root / "lock") is None
    assert lock.held_roots() == ()
    lock.register(root, own_lock)


def test_odd_lock_files(tmp_path):
    os.mkfifo(tmp_path / "lock")
    begun = time.monotonic()
    state = lock.probe(tmp_path)
    assert time.monotonic() - begun < 30
    assert (state.held, state.reason) == (None, "lock is not a regular file")


def test_lock_that_may_not_be_opened(root, monkeypatch):
    refuse(monkeypatch, "open")
    state = lock.probe(root)
    assert (state.held, state.pid) == (None, None)
    assert "Permission denied" in state.reason


def test_other_platforms_say_that_they_cannot_know(root, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    state = lock.probe(root)
    assert state.held is None
    assert "darwin" in state.reason


def test_network_file_systems(root, monkeypatch):
    assert lock.network_filesystem(root) in (None, "9p", "virtiofs")
    device = os.stat(root).st_dev
    line = f"36 35 {os.major(device)}:{os.minor(device)} / /mnt rw - nfs4 server:/x rw\n"
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_args, **_kwargs: line)
    assert lock.network_filesystem(root) == "nfs4"
    assert "nfs4" in lock.probe(root).reason


def test_the_package_itself_imports_nothing_heavy():
    code = "import sys, rmqtool.store; print(*(name in sys.modules for name in ('pydantic', 'numpy')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "False"]
