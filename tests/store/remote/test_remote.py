"""Stores behind fsspec: listed and read as the same store in a directory, in ranges."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, ClassVar

import fsspec
import pytest

import fixtures
from rmqtool.api import open_store, scan
from rmqtool.check.verify import ReadOptions, Verification
from rmqtool.errors import NotAStoreError, UnreadableError, UsageError, VanishedError
from rmqtool.pipeline.options import expand
from rmqtool.store.access import open_source
from rmqtool.store.live import is_live
from rmqtool.store.modes import readers_of
from rmqtool.store.remote import source as remote_source
from rmqtool.store.remote.address import address_of, is_remote, refused
from rmqtool.store.remote.facts import KnownFiles
from rmqtool.store.remote.listing import open_remote_store
from tests.helpers import held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def far() -> Iterator[Callable[[Path], str]]:
    """Directory → address of a copy of it in memory."""
    memory = fsspec.filesystem("memory")

    def put(root: Path) -> str:
        for path in root.rglob("*"):
            if path.is_file():
                memory.pipe_file(f"/{root.name}/{path.relative_to(root).as_posix()}", path.read_bytes())
        return f"memory://{root.name}"

    yield put
    for name in memory.ls("/", detail=False):
        memory.rm(name, recursive=True)


def reported(store: Any) -> list[dict[str, Any]]:
    return [one.row() for one in Verification(store, ReadOptions.of(store)).findings()]


@pytest.mark.parametrize("name", ["v498-basic", "v533-batchcq", "v533-expired-head"])
def test_a_store_far_away_is_the_store(
    golden: Callable[[str], fixtures.Golden], far: Callable[[Path], str], name: str
) -> None:
    near = open_store(golden(name).path)
    store = open_remote_store(far(golden(name).path))
    facts = lambda one: (one.path, one.kind, one.size, one.base_offset, one.topic, one.queue_id)  # noqa: E731
    assert list(map(facts, store.files)) == list(map(facts, near.files))
    assert store.topics == near.topics
    assert reported(store) == reported(near)
    batches = [list(scan(one, columns=("physical_offset", "body"))) for one in (store, near)]
    rows = [[row for batch in some for row in batch.to_pylist()] for some in batches]
    assert rows[0] == rows[1]


def test_damage_far_away(damaged: Callable[[Any], Path], far: Callable[[Path], str]) -> None:
    for case in list(fixtures.damage_cases())[::100]:
        root = damaged(case)
        if all(any(one.iterdir()) for one in root.rglob("*") if one.is_dir()):  # there are no empty ones
            assert reported(open_remote_store(far(root))) == reported(open_store(root)), case.id


def test_a_commit_log_alone(golden: Callable[[str], fixtures.Golden], far: Callable[[Path], str]) -> None:
    address = far(golden("v498-basic").path)
    store = open_remote_store(f"{address}/commitlog/")
    assert (store.form, store.scope, len(store.segments)) == ("commitlog", "commitlog", 4)
    with pytest.raises(NotAStoreError, match="no commitlog or config in it"):
        open_remote_store(f"{address}/consumequeue/TopicA")
    with pytest.raises(UsageError, match="memory://nowhere: no such file"):
        open_remote_store("memory://nowhere")


def test_only_what_is_needed_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = fsspec.filesystem("memory")
    data = bytes(range(256)) * 8192
    memory.pipe_file("/ranges/file", data)
    asked: list[tuple[int, int]] = []
    whole = type(memory).cat_file

    def cat_file(self: Any, path: str, start: int, end: int) -> bytes:
        asked.append((start, end))
        return whole(self, path, start=start, end=end)

    monkeypatch.setattr(type(memory), "cat_file", cat_file)
    block = remote_source.BLOCK_BYTES
    with open_source("memory://ranges/file") as source:
        assert (source.size, source.name) == (len(data), "memory://ranges/file")
        assert source.window(5 * block - 3, 6).tobytes() == data[5 * block - 3 : 5 * block + 3]
        assert asked == [(4 * block, 6 * block)]
        assert source.window(3 * block, 4 * block).tobytes() == data[3 * block : 7 * block]
        assert asked[1:] == [(3 * block, 4 * block), (6 * block, 7 * block)]
        assert source.window(len(data) - 2, 100).tobytes() == data[-2:]
        assert source.window(len(data), 1).size == source.window(0, 0).size == 0
    with pytest.raises(VanishedError, match="memory://ranges/none: no such file"):
        open_source("memory://ranges/none")


@pytest.mark.parametrize("size", [100, (3 << 20) - 1, 3 << 20, 4 << 20])
def test_a_file_that_was_replaced_is_not_read_as_what_it_was(size: int) -> None:
    """Shorter, of the same length, longer: an unreadable range, and nothing of it is kept."""
    memory = fsspec.filesystem("memory")
    old, new = b"a" * (3 << 20), b"b" * size
    memory.pipe_file(f"/replaced/{size}", old)
    with open_source(f"memory://replaced/{size}") as source:
        assert source.window(0, 10).tobytes() == old[:10]
        memory.pipe_file(f"/replaced/{size}", new)
        with pytest.raises(UnreadableError, match="replaced while it was read"):
            source.window(2 << 20, 10)
    with open_source(f"memory://replaced/{size}") as source:
        assert source.size == size
        assert source.window(0, 10).tobytes() == new[:10]
        assert source.window(2 << 20, 10).tobytes() == new[2 << 20 :][:10]


def test_a_store_whose_segment_is_replaced_is_not_complete(
    golden: Callable[[str], fixtures.Golden], far: Callable[[Path], str]
) -> None:
    address = far(golden("v498-basic").path)
    store = open_remote_store(address)
    first = store.segments[0].file
    fsspec.filesystem("memory").pipe_file(f"{address}/{first.path}", b"x" * 100)
    findings = reported(store)
    assert any("replaced" in one["message"] and one["path"] == first.path for one in findings), findings


@pytest.mark.share
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("change", ["gone", "empty", "shorter", "longer"])
@pytest.mark.parametrize("which", ["commitlog first", "commitlog last", "consumequeue last", "index last"])
def test_what_was_listed_is_read_or_none(
    golden: Callable[[str], fixtures.Golden],
    far: Callable[[Path], str],
    monkeypatch: pytest.MonkeyPatch,
    which: str,
    change: str,
    known: bool,
) -> None:
    """However long ago that was, and by another process (`known`: by this one, lately)."""
    address, memory = far(golden("v498-basic").path), fsspec.filesystem("memory")
    store = pickle.loads(pickle.dumps(open_remote_store(address)))
    kind, place = which.split()
    path = [one.path for one in store.files if one.path.startswith(f"{kind}/")][0 if place == "first" else -1]
    usual = memory.cat_file(f"{address}/{path}")
    if change == "gone":
        memory.rm_file(f"{address}/{path}")
    else:
        content = {"empty": b"", "shorter": usual[:-1], "longer": usual * 2}[change]
        memory.pipe_file(f"{address}/{path}", content)
    if not known:
        monkeypatch.setattr(remote_source, "known_files", KnownFiles())
    run = Verification(store, ReadOptions.of(store))
    lost = [one for one in run.findings() if one.code in {"DIR-UNREADABLE", "IDX-UNREADABLE"}]
    assert [one.path for one in lost] == [path]
    word = "removed" if change == "gone" else "replaced"
    assert f"the file was {word} while it was read" in lost[0].message
    summary = run.summary()
    assert (summary["complete"], summary["incomplete_reason"]) == (False, "unreadable")


def test_addresses() -> None:
    assert [is_remote(one) for one in ("s3://b/k", "s3:/b/k", "memory://x")] == [True] * 3
    assert [is_remote(one) for one in ("/s3:/b", "file:///b", "b/s3://k", "c:/x")] == [False] * 4
    assert address_of("S3:/b/k/") == address_of("s3://b/k") == "s3://b/k"
    with pytest.raises(UsageError, match="nowhere:// addresses cannot be read here"):
        open_source("nowhere://b/k")


class Bucket(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Objects under any key, as an object store has them: a listing knows no directories."""

    protocol = "bucket"
    objects: ClassVar[dict[str, bytes]] = {}
    read: ClassVar[list[str]] = []

    def find(self, path: str, **_: Any) -> dict[str, Any]:
        base = self._strip_protocol(path).rstrip("/") + "/"
        return {key: self.info(key) for key in self.objects if key.startswith(base)}

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        key = self._strip_protocol(path)
        if key not in self.objects:
            raise FileNotFoundError(key)
        return {"name": key, "type": "file", "size": len(self.objects[key])}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        key = self._strip_protocol(path)
        self.read.append(key)
        return self.objects[key][start:end]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("bucket://")


STRANGE = (
    "/commitlog/00000000000000000000", "commitlog//00000000000000262144", "../outside", "./checkpoint",
    "commitlog/..", "commitlog/../../../etc/passwd", "consumequeue/TopicA/../0/00000000000000000000",
    "commitlog/0?versionId=1", "config/../topics.json", "commitlog",
)  # fmt: skip
ODD = (
    "commitlog/a b",
    "commitlog/a\x1b[2J",
    "commitlog/%2e%2e%2f0",
    "commitlog/\u202ea",
    "commitlog/0#1",
    "commitlog/a?b",
)
"""names as any other"""


@pytest.fixture
def bucket(golden: Callable[[str], fixtures.Golden]) -> Iterator[tuple[Any, Path]]:
    """A store under the key `a/store`, which is also in a directory; foreign keys beside it."""
    root = golden("v498-basic").path
    fsspec.register_implementation("bucket", Bucket, clobber=True)
    for path in root.rglob("*"):
        if path.is_file():
            for name in ("a/store", "a/store10", "a/storey/store"):
                Bucket.objects[f"{name}/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    Bucket.objects["a/store10/commitlog/00000000000000262144"] = b"foreign"
    Bucket.read.clear()
    yield Bucket.objects, root
    Bucket.objects.clear()


def test_markers_of_directories_hide_nothing(bucket: tuple[dict[str, bytes], Path]) -> None:
    """Objects without bytes, as consoles make them for directories; an empty directory is one."""
    objects, root = bucket
    for name in ("", "/commitlog", "/consumequeue", "/config", "/consumequeue/TopicE/0"):
        objects[f"a/store{name}/"] = b""
    objects["a/store/index"] = b""
    store, near = open_remote_store("bucket://a/store"), open_store(root)
    assert [one.path for one in store.files] == [one.path for one in near.files]
    assert "consumequeue/TopicE/0" in {one.path for one in store.directories}
    assert not store.notes


def test_keys_that_are_no_paths_are_named_and_not_read(bucket: tuple[dict[str, bytes], Path]) -> None:
    objects, root = bucket
    for key in (*STRANGE, *ODD):
        objects[f"a/store/{key}"] = b"strange"
    store, near = open_remote_store("bucket://a/store"), open_store(root)
    strange = [one for one in store.files if not one.regular]
    assert sorted(one.path for one in strange) == sorted(STRANGE)
    assert {one.path for one in store.files} - {one.path for one in near.files} == {*STRANGE, *ODD}
    named = {key for key in STRANGE if any(note.startswith(f"{key}: ") for note in store.notes)}
    assert named == set(STRANGE)
    assert [one.base for one in store.segments] == [one.base for one in near.segments]
    rows = reported(store)
    known = {(row["code"], row["path"]) for row in reported(near)}
    new = {row["path"] for row in rows if (row["code"], row["path"]) not in known}
    assert new >= {
        one.display_path for one in store.files if one.path in {*STRANGE, *ODD} and one.path[0] == "c"
    }
    assert {key for key in Bucket.read if not key.startswith("a/store/")} == set()
    assert not {f"a/store/{key}" for key in STRANGE} & set(Bucket.read)


@pytest.mark.parametrize(
    "address",
    ["s3://", "s3:///", "s3://b//store", "s3://b/../store", "s3://b/./store", "s3://b/store/..", "s3://b/s?versionId=1"],
)  # fmt: skip
def test_an_address_is_that_of_one_directory(address: str) -> None:
    for ask in (open_remote_store, lambda place: expand([place])):
        with pytest.raises(UsageError, match="is not the address of one directory"):
            ask(address)


def test_a_password_in_an_address_is_not_shown() -> None:
    for ask in (open_remote_store, lambda place: expand([place])):
        with pytest.raises(UsageError) as found:
            ask("s3://AKIA:hush@b/store")
        assert "hush" not in str(found.value)
        assert "s3://***@b/store" in str(found.value)
    reported = refused(
        "s3://b/store", OSError("no connection to http://anna:hush@127.0.0.1:9/, secretKey=hush")
    )
    assert str(reported) == "s3://b/store: no connection to http://***@127.0.0.1:9/, secretKey=***"


def test_nothing_of_this_machine_is_taken_for_what_lies_far_away(
    golden: Callable[[str], fixtures.Golden],
    far: Callable[[Path], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even below a directory `memory:` where the command runs."""
    address = far(golden("v498-basic").path)
    below = tmp_path / "memory:" / address.partition("://")[2]
    below.mkdir(parents=True, mode=0o700)
    monkeypatch.chdir(tmp_path)
    with held(below):
        store = open_remote_store(address)
        assert not is_live(store)
        assert readers_of(store) == 0o777


def test_a_name_with_the_characters_of_a_pattern_is_itself() -> None:
    memory = fsspec.filesystem("memory")
    for name in ("x[ab]", "xa", "xb"):
        memory.pipe_file(f"/{name}/commitlog/0", b"x")
    assert expand(["memory://x[ab]"]) == ("memory://x[ab]",)
    assert expand(["memory://x?"]) == ("memory://xa", "memory://xb")
    for name in ("x[ab]", "xa", "xb"):
        memory.rm_file(f"/{name}/commitlog/0")
