"""Root writes in a directory of another user, who puts links in the place of everything in it."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqtool.errors import StoreIOError
from rmqtool.messagestore.messages import Message
from tests.cli.writing import IN_PLACE, MAKING, words
from tests.helpers import rmq
from tests.messagestore.helpers import open_small, traffic
from tests.repair.smallstore import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root may")

OTHER = 1234


@contextmanager
def swapping(place: Path, victim: Path) -> Iterator[None]:
    """Another user at work in `place` and below: names go away, and links and files of `victim` come."""
    child = os.fork()
    if child == 0:
        os.chdir(place)  # no other user gets below pytest's directory by its path
        os.setgroups([])
        os.setgid(OTHER)
        os.setuid(OTHER)
        number = 0
        while True:
            number = _swap(os.curdir, str(victim), number)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _swap(place: str, victim: str, number: int) -> int:
    for folder, folders, files in os.walk(place):
        for name in (*folders, *files):
            number += 1
            if ".gone-" in name or number % 3:
                continue
            path = os.path.join(folder, name)
            try:
                os.rename(path, f"{path}.gone-{number}")
                os.symlink(victim, path)
            except OSError:
                continue
    return number


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Names that commands make are there, so that a followed link leads on."""
    made = tmp_path / "victim"
    for name in ("commitlog", "config", "consumequeue", "index", "made", "_work", "work", "topic=T"):
        (made / name).mkdir(parents=True)
    (made / "checkpoint").write_bytes(b"root's")
    return made


SLOW = ("parquet", "salvage", "rebuild", "recover")


@pytest.mark.share
@pytest.mark.parametrize(
    ("name", "times"),
    [(name, 1) for name in MAKING if name not in SLOW]
    + [pytest.param(name, 10, marks=pytest.mark.full) for name in MAKING],
)
def test_nothing_is_written_where_another_user_leads(fresh_golden, tmp_path, victim, name, times):
    golden, theirs = fresh_golden("v533-basic"), tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, OTHER, OTHER)
    tmp_path.chmod(0o711)
    before = tree(victim)
    with swapping(theirs, victim):
        for number in range(times):
            done = rmq(*words(MAKING[name], golden, theirs / f"out{number}"))
            assert done.exit_code != 4 or done.stderr.count("\n") <= 3, done.stderr
            assert "/proc/self" not in done.stderr
    assert tree(victim) == before


def test_nothing_is_written_where_the_owner_of_a_store_leads(fresh_golden, tmp_path, victim):
    golden = fresh_golden("v533-basic")
    for place in (golden.path, *golden.path.rglob("*")):
        os.chown(place, OTHER, OTHER)
    for place in golden.path.glob("consumequeue/*/*/*"):
        place.write_bytes(bytes(place.stat().st_size))
    tmp_path.chmod(0o711)
    before = tree(victim)
    with swapping(golden.path, victim):
        rmq(*words(IN_PLACE["rebuild"], golden, tmp_path / "backup"))
        rmq("undo", str(tmp_path / "backup"), "--apply")
    assert tree(victim) == before


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.full)])
def test_nothing_is_written_where_the_owner_of_an_open_message_store_leads(tmp_path, victim, times):
    """Segments, files of queues and index, tables, checkpoint and counters come to be and go meanwhile."""
    tmp_path.chmod(0o711)
    for name in ("Topic0", "Topic1", "0", "1"):
        (victim / name).mkdir()
    before = tree(victim)
    for number in range(times):
        root = tmp_path / f"store{number}"
        with open_small(root) as store:
            store.put_many(traffic(0, 60))
        for place in (root, *root.rglob("*")):
            os.chown(place, OTHER, OTHER)
        with suppress(StoreIOError), open_small(root, fileReservedTime=0) as store, swapping(root, victim):
            for first in range(60, 900, 60):
                for work in (
                    partial(store.put_many, traffic(first, 60)),
                    partial(store.put, Message("Topic0", b"x", queue_id=0)),
                    partial(store.topics.set, f"New{first}"),
                    store.flush,
                    store.expire,
                ):
                    with suppress(StoreIOError):
                        work()
    assert tree(victim) == before
