"""Files that another process cuts while a message store is read: an error, never zeros or fewer messages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message
from rmqtool.errors import StoreIOError
from rmqtool.store.mapped import MappedSource
from tests.messagestore.helpers import open_small
from tests.scan.conftest import compiled_kernels

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rmqtool import MessageStore
    from rmqtool.scan.events import Records
    from rmqtool.store.bytes import Window

SEGMENT = f"commitlog/{0:020d}"
QUEUE = f"consumequeue/T/0/{0:020d}"
COUNT = 200
SIZE = 1 << 20


def filled(root: Path) -> MessageStore:
    """A store with messages of 1,000 bytes in one queue, each with a key."""
    assert compiled_kernels().walk
    store = open_small(root, mappedFileSizeCommitLog=SIZE)
    for number in range(COUNT):
        store.put(Message("T", bytes([65 + number % 26]) * 1000, queue_id=0, keys=[f"k{number}"]))
    store.flush()
    return store


def cut_behind(patch: pytest.MonkeyPatch, name: str, path: Path, end: int) -> None:
    """The file is cut as soon as a window of its mapping is handed out."""
    real = MappedSource.window

    def window(source: MappedSource, offset: int, length: int) -> Window:
        found = real(source, offset, length)
        if source.name == name and source.zero_copy:
            os.truncate(path, end)
        return found

    patch.setattr(MappedSource, "window", window)


ASKED: dict[str, Callable[[MessageStore, int], Any]] = {
    "get": lambda store, at: store.get("T", 0, COUNT - 1).messages[0].body,
    "sql92": lambda store, at: store.get("T", 0, COUNT - 1, sql92="KEYS = 'k199'").messages[0].body,
    "message_at": lambda store, at: store.message_at(at).body,  # type: ignore[union-attr]
    "table": lambda store, at: store.get_table("T", 0, COUNT - 1).column("body")[0].as_py(),
    "key": lambda store, at: store.query_key("T", f"k{COUNT - 1}")[0].body,
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_cut_is_an_error(tmp_path: Path, asked: str) -> None:
    with filled(tmp_path) as store:
        at = store.get("T", 0, COUNT - 1).messages[0].physical_offset
        assert ASKED[asked](store, at) == b"R" * 1000
        store._mapped_pulls.forget(SEGMENT)
        store._keys.forget(SEGMENT)  # so that it asks for its window once more
        with pytest.MonkeyPatch.context() as patch:
            # within the page of a record no fault says it, in front of it one does
            cut_behind(patch, SEGMENT, tmp_path / SEGMENT, at + 150 if asked == "get" else 4096)
            with pytest.raises(StoreIOError, match="another process cut it"):
                ASKED[asked](store, at)
        # what is still there is read
        assert store.get("T", 0, 0, 1).messages[0].body == b"A" * 1000
        os.truncate(tmp_path / SEGMENT, SIZE)


def test_views_of_what_was_cut_before_are_an_error(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        assert len(store.get_raw("T", 0, COUNT - 1).records) == 1
        os.truncate(tmp_path / SEGMENT, 4096)
        with pytest.raises(StoreIOError, match="another process cut it"):
            store.get_raw("T", 0, COUNT - 1)
        assert len(store.get_raw("T", 0, 0, 1).records) == 1
        os.truncate(tmp_path / SEGMENT, SIZE)


def test_a_queue_file_that_is_cut_is_an_error(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        store.get("T", 0, 0)
        os.truncate(tmp_path / QUEUE, 7)
        with pytest.raises(StoreIOError, match=f"{QUEUE}: another process cut it"):
            store.get("T", 0, 0)


def test_what_is_cut_while_it_is_dispatched_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    store.offsets("T", 0)  # all is dispatched
    dispatcher = store._start.dispatcher
    real = dispatcher.take

    def take(run: Records, base: int) -> None:
        os.truncate(tmp_path / SEGMENT, 4096)
        real(run, base)

    monkeypatch.setattr(dispatcher, "take", take)
    store.put(Message("T", b"x", queue_id=0))
    for _ in range(2):
        with pytest.raises(StoreIOError, match="another process cut it"):
            store.offsets("T", 0)
    with pytest.raises(StoreIOError, match="another process cut it"):
        store.close()
    assert (tmp_path / "abort").exists()


def test_an_index_file_is_not_read_through_a_link(tmp_path: Path) -> None:
    root, there = tmp_path / "store", tmp_path / "there"
    with open_small(root, maxIndexNum=20) as store:
        for number in range(60):
            store.put(Message("T", b"x", keys=[f"k{number}"]))
        store.offsets("T", 0)  # all is dispatched
        index = min((root / "index").iterdir())
        index.rename(there)
        index.symlink_to(there)
        with pytest.raises(StoreIOError, match=r"index/\d+: "):
            store.query_key("T", "k1")
