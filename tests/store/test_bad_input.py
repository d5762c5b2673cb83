"""Paths that are not a store: one clear line, never a hang, a traceback or a write."""

from __future__ import annotations

import os
import random
import socket
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rmqtool.errors import ExitCode, NotAStoreError, RmqtoolError, StoreIOError, UsageError
from rmqtool.store.bytes import MemorySource
from rmqtool.store.kinds import CONFIG_NAMES
from rmqtool.store.layout import FileKind, Store
from rmqtool.store.sniff import sniff
from tests.disks import refuse, replace

SEGMENT = "00000000000000000000"
PLACES = [
    f"commitlog/{SEGMENT}",
    f"consumequeue/T/0/{SEGMENT}",
    f"consumequeue_ext/T/0/{SEGMENT}",
    f"batchconsumequeue/T/0/{SEGMENT}",
    "index/20231114221320123",
    "checkpoint",
    "abort",
    "abort.bak",
    "lock",
    "timerwheel",
    "epochFileCheckpoint",
    "brokerIdentity",
    *(f"config/{name}" for name in sorted(CONFIG_NAMES)),
    "config/topics.json.bak",
    "config/timercheck",
    "config/timermetrics",
    f"timerlog/{SEGMENT}",
    f"compaction/compactionLog/T/0/{SEGMENT}",
    f"compaction/compactionCq/T/0/compacting/{SEGMENT}",
    "compaction/position-checkpoint",
    f"dledger-n0/data/{SEGMENT}",
    f"dledger-n0/index/{SEGMENT}",
    "dledger-n0/checkpoint",
    "dledger-n0/currterm",
    "config/rdb/CURRENT",
    "kvStore/000004.sst",
]
CONTENTS = [b"", b"1234567", bytes(4096), random.Random(1).randbytes(8440), b"{" * 300, b"\xff" * 92]


def one_line(error: RmqtoolError) -> bool:
    text = str(error)
    return bool(text) and "\n" not in text and not text.endswith(".") and len(text) < 400


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("content", CONTENTS, ids=["empty", "seven", "zeros", "random", "braces", "ff"])
def test_anything_under_any_name(tmp_path, place, content):
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    (tmp_path / "commitlog").mkdir(exist_ok=True)
    store = Store.open(tmp_path)
    assert [file.path for file in store.files] == [place]
    assert store.files[0].kind is not FileKind.UNKNOWN
    assert store.sizes
    assert store.release.guess
    _ = store.index_geometry, store.topics, store.segments.last_with_data(), store.segments.holes()
    (alone,) = Store.open(path).files
    assert alone.kind is store.files[0].kind


@pytest.mark.parametrize("content", CONTENTS, ids=["empty", "seven", "zeros", "random", "braces", "ff"])
def test_files_that_nothing_tells(tmp_path, content):
    path = tmp_path / "evidence.bin"
    path.write_bytes(content)
    if content == bytes(4096):
        assert Store.open(path).files[0].kind is FileKind.CHECKPOINT
        return
    with pytest.raises(NotAStoreError) as caught:
        Store.open(path)
    assert one_line(caught.value)
    assert "--as" in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE


def test_missing(tmp_path):
    for path in (tmp_path / "none", tmp_path / "a\x1b[2J\nb"):
        with pytest.raises(UsageError, match="no such file") as caught:
            Store.open(path)
        assert one_line(caught.value)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="not a directory"):
        Store.open(tmp_path / "file/commitlog")


def test_empty_directory(tmp_path):
    with pytest.raises(NotAStoreError, match="empty directory"):
        Store.open(tmp_path)


def test_empty_commitlog_directory(tmp_path):
    (tmp_path / "commitlog").mkdir()
    assert Store.open(tmp_path).files == ()


def test_a_directory_full_of_other_things(tmp_path):
    for name in ("a.txt", "b.json", "12"):
        (tmp_path / name).write_text("hello")
    (tmp_path / "sub/sub/sub").mkdir(parents=True)
    with pytest.raises(NotAStoreError, match="not a RocketMQ store") as caught:
        Store.open(tmp_path)
    assert one_line(caught.value)


def test_a_home_directory_with_a_config_folder_is_no_store(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/settings.json").write_text("{}")
    (tmp_path / "index").mkdir()
    (tmp_path / "index/page.html").write_text("x")
    for path in (tmp_path, tmp_path / "config", tmp_path / "index"):
        with pytest.raises(NotAStoreError):
            Store.open(path)


def test_link_loop(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(UsageError) as caught:
        Store.open(tmp_path / "a")
    assert one_line(caught.value)


def test_name_too_long(tmp_path):
    with pytest.raises(UsageError, match="too long"):
        Store.open(tmp_path / ("x" * 300))


def within(seconds, action):
    result: list[object] = []

    def run() -> None:
        try:
            result.append(action())
        except RmqtoolError as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "hangs"
    return result[0]


def test_special_files_as_store(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "sock"))
        for name, what in (("fifo", "a FIFO"), ("sock", "a socket")):
            error = within(10, lambda name=name: Store.open(tmp_path / name))
            assert isinstance(error, UsageError)
            assert what in str(error)
    assert isinstance(within(10, lambda: Store.open("/dev/zero")), UsageError)


def test_special_files_in_a_store(tmp_path):
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "index").mkdir()
    (tmp_path / "config").mkdir()
    fifos = [
        f"commitlog/{SEGMENT}",
        "index/20231114221320123",
        "checkpoint",
        "abort",
        "lock",
        "config/topics.json",
    ]
    for path in fifos:
        os.mkfifo(tmp_path / path)

    def everything() -> Store:
        store = Store.open(tmp_path)
        _ = store.sizes, store.index_geometry, store.release, store.topics, store.segments.last_with_data()
        return store

    store = within(20, everything)
    assert isinstance(store, Store)
    assert {file.path: (file.kind, file.note) for file in store.files} == dict.fromkeys(
        fifos, (FileKind.UNKNOWN, "a FIFO")
    )
    assert len(store.segments) == 0


def test_directory_without_permission(tmp_path, monkeypatch):
    (tmp_path / "secret").mkdir()
    refuse(monkeypatch, "scandir", when=lambda path: "secret" in path)
    with pytest.raises(StoreIOError, match="Permission denied") as caught:
        Store.open(tmp_path / "secret")
    assert caught.value.exit_code is ExitCode.INTERNAL
    assert one_line(caught.value)


def test_file_without_permission(tmp_path, monkeypatch):
    (tmp_path / "secret").write_bytes(b"x")
    refuse(monkeypatch, "open", when=lambda path, *_: "secret" in path)
    with pytest.raises(StoreIOError, match="Permission denied"):
        Store.open(tmp_path / "secret")


def test_unreadable_directory_inside_a_store(tmp_path, monkeypatch):
    (tmp_path / "commitlog").mkdir()
    (tmp_path / f"commitlog/{SEGMENT}").write_bytes(bytes(100))
    (tmp_path / "consumequeue/T/0").mkdir(parents=True)
    refuse(monkeypatch, "scandir", when=lambda path: "consumequeue/T" in path)
    store = Store.open(tmp_path)
    assert [(one.path, one.error) for one in store.directories if one.error] == [
        ("consumequeue/T", "Permission denied")
    ]
    assert store.notes == ("consumequeue/T: cannot be listed: Permission denied",)
    assert len(store.files) == 1


def test_unreadable_files_inside_a_store(golden, monkeypatch):
    """Listing, sizes and release still answer when no file can be opened."""
    root = golden("v533-basic").path
    refuse(monkeypatch, "open", when=lambda path, *_: str(root) in path)
    store = Store.open(root)
    assert len(store.files) > 20
    assert store.sizes[FileKind.COMMITLOG].value == 32768
    assert "5.3.3" in store.release.releases
    assert store.topics == {}
    geometry = store.index_geometry
    assert {one.slots for one in geometry.values()} == {None}


def test_a_file_that_vanishes_while_it_is_listed(tmp_path, monkeypatch):
    (tmp_path / "commitlog").mkdir()
    victim = tmp_path / f"commitlog/{SEGMENT}"
    victim.write_bytes(b"x")
    real = os.scandir

    class Listing:
        def __init__(self, path):
            self.entries = list(real(path))
            if os.fspath(path).endswith("commitlog"):
                listed.append(path)
                if len(listed) == 2:  # the first time only its names count: what STORE is
                    victim.unlink()

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *_):
            return None

        def __iter__(self):
            return iter(self.entries)

    listed: list[object] = []
    replace(monkeypatch, "scandir", Listing)
    store = Store.open(tmp_path)
    assert store.files == ()
    assert store.notes == (f"commitlog/{SEGMENT}: vanished while it was listed",)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=300), st.integers(0, 6))
def test_sniffing_survives_any_bytes(data, zeros):
    kind = sniff(MemorySource(data + bytes(zeros * 100)))
    assert kind is None or kind in set(FileKind)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([20, 46, 4096, 8440, 92 * 40]), st.integers(0, 1 << 30))
def test_random_bytes_are_hardly_ever_taken_for_a_file_of_a_store(size, seed):
    assert sniff(MemorySource(random.Random(seed).randbytes(size))) in (None, FileKind.CONSUMEQUEUE)
