from __future__ import annotations

import errno
import os
import stat
from types import SimpleNamespace

import pytest

from rmqtool.errors import PlanRefusedError, StoreIOError, UsageError
from rmqtool.repair.content import FromFile
from rmqtool.repair.keep.away import directory_away
from rmqtool.repair.marker import find_marker
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.repair.to_copy import apply_to_copy, prepare_copy
from rmqtool.repair.tree import tree_of
from rmqtool.store.layout import Store
from tests.disks import replace
from tests.repair.carrying import apply
from tests.repair.smallstore import (
    SECOND,
    SEGMENT,
    STRAY,
    StopsAt,
    failing,
    make_store,
    plan_of,
    planner,
    tree,
    without_times,
)


def copy(root, target, disk=None, *, edits=None, quarantine=None, **how) -> None:
    store = Store.open(root, **how)
    planned = planner(store, {}, "") if edits is None else plan_of(store, edits)
    apply_to_copy(store, planned, prepare_copy(store, planned, str(target)), disk=disk, quarantine=quarantine)


def test_a_copy_without_changes_is_the_store(root, tmp_path, store_unchanged):
    copy(store_unchanged(root), tmp_path / "out", edits=[])
    assert tree(tmp_path / "out") == tree(root)


def test_a_changed_copy_is_the_store_changed_in_place(root, tmp_path, store_unchanged):
    other = make_store(tmp_path / "other")
    apply(other, tmp_path / "backup")
    copy(store_unchanged(root), tmp_path / "out")
    assert without_times(tree(tmp_path / "out")) == without_times(tree(other))
    files = {path: facts for path, facts in tree(tmp_path / "out").items() if facts[4] is not None}
    fresh = "consumequeue/U/0/00000000000000000000"
    assert all(facts[3] == tree(other)[path][3] for path, facts in files.items() if path != fresh)


def test_an_empty_directory_may_be_the_target(root, tmp_path):
    (tmp_path / "out").mkdir()
    copy(root, tmp_path / "out", edits=[])
    assert tree(tmp_path / "out") == tree(root)


def test_holes_stay_holes(root, tmp_path):
    size = 64 << 20
    os.truncate(root / SECOND, size)
    copy(root, tmp_path / "out", edits=[])
    facts = (tmp_path / "out" / SECOND).stat()
    assert facts.st_size == size
    assert facts.st_blocks * 512 < 1 << 20


def test_a_commitlog_that_is_a_link_is_followed(root, tmp_path):
    (root / "commitlog").rename(tmp_path / "elsewhere")
    (root / "commitlog").symlink_to(tmp_path / "elsewhere")
    (root / "dangling").symlink_to("nowhere")
    (root / "loop").symlink_to(".")
    copy(root, tmp_path / "out")
    out = tmp_path / "out"
    assert stat.S_ISDIR((out / "commitlog").lstat().st_mode)
    assert (out / SEGMENT).read_bytes()[100:109] == b"tombstone"
    assert os.readlink(out / "dangling") == "nowhere"
    assert os.readlink(out / "loop") == "."
    assert (tmp_path / "elsewhere" / "00000000000000000000").read_bytes() == b"A" * 65536


def test_segments_of_further_roots_come_together(root, tmp_path):
    second = tmp_path / "disk2" / "commitlog"
    second.mkdir(parents=True)
    (second / "00000000000000196608").write_bytes(b"F" * 65536)
    copy(root, tmp_path / "out", edits=[], commitlog_roots=[second])
    assert (tmp_path / "out/commitlog/00000000000000196608").read_bytes() == b"F" * 65536


def test_what_the_copy_lacks_is_kept_beside_it(root, tmp_path, store_unchanged):
    copy(store_unchanged(root), tmp_path / "out", quarantine=str(tmp_path / "out.quarantine"))
    kept = tmp_path / "out.quarantine"
    assert (kept / "files" / STRAY).read_bytes() == b"C" * 4096
    assert (kept / "files" / STRAY).stat().st_mtime_ns == (root / STRAY).stat().st_mtime_ns
    assert (kept / "ranges" / f"{SEGMENT}@100").read_bytes() == b"A" * 9
    assert (kept / "ranges" / "checkpoint@40").stat().st_size == 4056
    assert (kept / "plan.json").exists()


def test_what_was_built_for_the_plan_may_be_moved(root, tmp_path):
    built = tmp_path / "built"
    built.write_bytes(b"unit" * 100)
    inode = built.stat().st_ino
    change = Change(action=Action.PUT, path="index/x", length=400, size=400, why="test", message="-")
    folder = Change(action=Action.MAKE_DIRECTORY, path="index", why="test", message="-")
    edits = [Edit(folder), Edit(change, FromFile(str(built), 0, 400, movable=True))]
    copy(root, tmp_path / "out", edits=edits)
    assert (tmp_path / "out/index/x").stat().st_ino == inode
    assert (tmp_path / "out/index/x").stat().st_uid == root.stat().st_uid


@pytest.mark.parametrize("place", ["full", "file", "store/inside", "."])
def test_a_target_that_cannot_be_one_is_refused(root, tmp_path, place, store_unchanged):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").touch()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        copy(store_unchanged(root), tmp_path / place)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_leaves_no_half_copy(root, tmp_path, code, store_unchanged):
    counting = StopsAt(-1, None)
    copy(store_unchanged(root), tmp_path / "whole", counting)
    for number in range(0, counting.steps, 3):
        with pytest.raises(StoreIOError, match=f"{os.strerror(code)}; the store was not touched"):
            copy(
                root,
                tmp_path / "out",
                StopsAt(number, failing(code)),
                quarantine=str(tmp_path / f"q{number}"),
            )
        assert not (tmp_path / "out").exists(), number


def test_a_copy_that_was_killed_has_the_marker(root, tmp_path):
    child = os.fork()
    if child == 0:
        copy(root, tmp_path / "out", StopsAt(30, lambda what, path: os.kill(os.getpid(), 9)))
        os._exit(0)
    os.waitpid(child, 0)
    assert find_marker(tmp_path / "out").journal is None
    with pytest.raises(UsageError, match="not empty"):
        copy(root, tmp_path / "out")


def test_too_little_room_is_told_before(root, tmp_path, monkeypatch):
    full = SimpleNamespace(f_bfree=10, f_bavail=10, f_frsize=100)
    replace(monkeypatch, "statvfs", lambda directory: full)
    with pytest.raises(StoreIOError, match="bytes are needed there and 1000 are free; nothing was changed"):
        copy(root, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_store_that_is_written_while_it_is_copied_gives_no_copy(root, tmp_path):
    def write(what: str, path: str) -> None:
        (root / SEGMENT).write_bytes(b"other")

    with pytest.raises(PlanRefusedError, match="was changed while the store was copied"):
        copy(root, tmp_path / "out", StopsAt(30, write))
    assert not (tmp_path / "out").exists()


def test_links_that_multiply_are_copied_once(root, tmp_path):
    """What a link leads to that is copied already becomes a link in the copy."""
    names = [f"d{number}" for number in range(14)]
    for name in names:
        (root / "odd" / name).mkdir(parents=True)
        (root / "odd" / name / "file").write_bytes(name.encode())
        for other in names:
            (root / "odd" / name / f"to-{other}").symlink_to(f"../{other}")
    store, out = Store.open(root), tmp_path / "out"
    planned = plan_of(store, [])
    copy = prepare_copy(store, planned, str(out))
    assert len(copy.tree.directories) < 80
    apply_to_copy(store, planned, copy)
    for one in names:
        for other in names:
            assert (out / "odd" / one / f"to-{other}" / "file").read_bytes() == other.encode()
            assert str((out / "odd" / one / f"to-{other}").resolve()).startswith(str(out))


def test_links_that_lead_nowhere_are_copied_as_they_are(root, tmp_path):
    for name, target in (("round", "round"), ("nowhere", "gone/away"), ("consumequeue/again", "again")):
        (root / name).symlink_to(target)
    out = tmp_path / "out"
    copy(root, out, edits=[])
    for name in ("round", "nowhere", "consumequeue/again"):
        assert os.readlink(out / name) == os.readlink(root / name)


def test_what_no_broker_looks_for_is_not_copied_from_out_of_the_store(root, tmp_path):
    """Also with `--follow-links`: nobody listed it. It is named."""
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere" / "file").touch()
    (root / "odd").symlink_to(tmp_path / "elsewhere")
    (root / "commitlog" / "odd").symlink_to(tmp_path / "elsewhere")
    tree = tree_of(Store.open(root), follow_links=True)
    assert sorted(tree.left_out) == ["commitlog/odd/inner", "odd"]
    assert tree.skipped == []
    assert "commitlog/odd/file" in {one.path for one in tree.files}


def test_a_directory_that_is_not_copied_need_not_be_removed(root, tmp_path):
    """One among queue files behind a link out of the store, where older brokers refuse it."""
    queue = tmp_path / "elsewhere" / "Orders" / "0"
    (queue / "old").mkdir(parents=True)
    (queue / "kept").mkdir()
    (queue / "kept" / "file").touch()
    (root / "consumequeue" / "Orders").symlink_to(queue.parent)
    store, out = Store.open(root), tmp_path / "out"
    edits = [
        edit
        for name in ("old", "kept")
        for edit in directory_away(store, f"consumequeue/Orders/0/{name}", "stray-directory", "refused")
    ]
    assert [edit.change.path for edit in edits] == ["consumequeue/Orders/0/old"], "not listed, thus not ours"
    planned = plan_of(store, edits)
    apply_to_copy(store, planned, prepare_copy(store, planned, str(out), follow_links=True))
    assert os.listdir(out / "consumequeue" / "Orders" / "0") == []
    with pytest.raises(UsageError, match="without --follow-links"):
        prepare_copy(store, planned, str(tmp_path / "other"))
