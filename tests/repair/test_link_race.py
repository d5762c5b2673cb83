"""Whoever owns a directory puts a link in its place while root writes: root writes nowhere else."""

from __future__ import annotations

import os
import signal
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.repair.disk import Disk
from rmqtool.repair.marker import NAME
from rmqtool.repair.to_copy import apply_to_copy, check_output, prepare_copy
from rmqtool.store.layout import Store
from tests.repair.carrying import apply, put_back
from tests.repair.smallstore import OWNER, QUEUE, SEGMENT, planner, tree

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user, which only root may")
NEW = "consumequeue/U/0/00000000000000000000"


@pytest.fixture
def victim(tmp_path):
    place = tmp_path / "victim"
    place.mkdir()
    return place


class Swaps(Disk):
    """Puts a link to `victim` in the place of a directory ahead of one step."""

    def __init__(self, what: str, path: Path, folder: Path, victim: Path) -> None:
        self._at, self._folder, self._victim = (what, str(path)), folder, victim
        self.done = False

    def before(self, what: str, path: str) -> None:
        if not self.done and (what, path) == self._at:
            self.done = True
            self._folder.rename(f"{self._folder}.moved")
            self._folder.symlink_to(self._victim)


def copy(root: Path, target: Path, disk: Disk | None = None) -> None:
    store = Store.open(root)
    planned = planner(store, {}, "")
    apply_to_copy(store, planned, prepare_copy(store, planned, str(target)), disk=disk)


def test_a_copy_follows_no_link_that_comes_on_the_way(root, tmp_path, victim):
    out = tmp_path / "out"
    (victim / "0").mkdir()
    disk = Swaps("mkdir", out / "consumequeue/T/0", out / "consumequeue/T", victim)
    with pytest.raises(StoreIOError, match="link"):
        copy(root, out, disk)
    assert disk.done
    assert sorted(victim.rglob("*")) == [victim / "0"]


@pytest.mark.parametrize("step", ["open", "create", "unlink", "opened", "utime", "rename"])
def test_no_step_of_a_disk_follows_a_link(tmp_path, victim, step):
    (victim / "file").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(victim)
    (tmp_path / "end").symlink_to(victim / "file")
    before, disk = tree(victim), Disk()
    steps = {
        "open": lambda path: os.close(disk.open(path)),
        "create": lambda path: os.close(disk.create(path + ".new")),
        "unlink": disk.unlink,
        "opened": lambda path: disk.opened(path).__enter__(),
        "utime": lambda path: disk.set_mtime(path, 5),
        "rename": lambda path: disk.rename(path, str(tmp_path / "taken")),
    }
    with pytest.raises(OSError, match="link lies on the way"):
        steps[step](str(tmp_path / "link" / "file"))
    with pytest.raises(OSError, match="link"), disk.opened(str(tmp_path / "end")) as link:
        disk.set_mode(link, 0o666, "end")
    with pytest.raises(OSError, match="symbolic links"):
        disk.open(str(tmp_path / "end"))
    assert tree(victim) == before


def test_a_change_in_place_follows_no_link_that_comes_on_the_way(root, tmp_path, victim):
    (victim / Path(QUEUE).name).write_bytes(b"other")
    before = tree(victim)
    disk = Swaps(
        "rename",
        root / Path(QUEUE).parent / f".rmqtool-part-{Path(QUEUE).name}",
        (root / QUEUE).parent,
        victim,
    )
    with pytest.raises(StoreIOError, match="link"):
        apply(root, tmp_path / "backup", disk)
    assert disk.done
    assert tree(victim) == before


def test_an_undo_follows_no_link_that_comes_on_the_way(root, tmp_path, victim):
    (victim / Path(NEW).name).write_bytes(b"unit" * 5)
    before = tree(victim)
    apply(root, tmp_path / "backup")
    disk = Swaps("unlink", root / NEW, (root / NEW).parent, victim)
    with pytest.raises(StoreIOError, match="link"):
        put_back(root, tmp_path / "backup", disk)
    assert disk.done
    assert tree(victim) == before


@as_root
def test_a_copy_is_nobody_elses_before_it_is_whole(root, tmp_path):
    out, seen = tmp_path / "out", []

    class Looks(Disk):
        def before(self, what: str, path: str) -> None:
            if what == "unlink" and path.endswith(NAME):
                seen.extend((out.stat().st_uid, stat.S_IMODE(out.stat().st_mode)))
            elif not seen and out.exists():
                assert (out.stat().st_uid, stat.S_IMODE(out.stat().st_mode)) == (0, 0o700), what

    copy(root, out, Looks())
    assert seen == [0, 0o700]
    assert {one.lstat().st_uid for one in (out, *out.rglob("*"))} == {OWNER}


@as_root
def test_the_owner_of_a_store_cannot_lead_its_copy_elsewhere(root, tmp_path, victim):
    for number in range(300):
        (root / "config" / f"{number}.json").write_bytes(b"{}")
        os.chown(root / "config" / f"{number}.json", OWNER, OWNER)
    tmp_path.chmod(0o711)
    out = tmp_path / "out"
    child = os.fork()
    if child == 0:
        os.chdir(tmp_path)  # no other user gets below pytest's directory by its path
        os.setgid(OWNER)
        os.setuid(OWNER)
        while True:
            _swap_all(Path(out.name), victim)
    try:
        copy(root, out)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert list(victim.iterdir()) == []


def _swap_all(out: Path, victim: Path) -> None:
    for name in ("config", "consumequeue", "commitlog"):
        try:
            os.rename(out / name, out / f"{name}.moved")
            os.symlink(victim, out / name)
        except OSError:
            continue


@as_root
@pytest.mark.parametrize("how", ["put", "mkdir"])
def test_what_takes_the_place_of_a_new_file_gets_no_owner(root, tmp_path, how):
    """Who owns a directory may move into it any file that lies in another one of his."""
    queue = root / Path(QUEUE).parent
    name = queue / f".rmqtool-part-{Path(QUEUE).name}" if how == "put" else root / "consumequeue/U"
    secret = tmp_path / "secret"
    (secret if how == "mkdir" else tmp_path).mkdir(exist_ok=True)
    (secret / "file" if how == "mkdir" else secret).write_bytes(b"root's")
    secret.chmod(0o700)
    before, written = tree(secret), secret.stat().st_mtime_ns

    class Replaces(Disk):
        done = False

        def before(self, what: str, path: str) -> None:
            if not self.done and what in {"chown", "utime"} and path == str(name):
                self.done = True
                name.rename(f"{name}.moved")
                secret.rename(name)

    disk = Replaces()
    with suppress(StoreIOError):
        apply(root, tmp_path / "backup", disk)
    assert disk.done
    found = name if name.exists() else root / QUEUE
    assert tree(found) == before or (how == "put" and found.stat().st_uid == 0)
    assert found.stat().st_mtime_ns == written


@as_root
def test_a_further_name_of_a_file_of_another_user_is_not_written(root, tmp_path):
    passwd = tmp_path / "passwd"
    passwd.write_bytes((root / SEGMENT).read_bytes())
    (root / SEGMENT).unlink()
    os.link(passwd, root / SEGMENT)
    before = passwd.read_bytes()
    with pytest.raises(StoreIOError, match="hard link to a file of another user"):
        apply(root, tmp_path / "backup")
    assert passwd.read_bytes() == before
    assert not (tmp_path / "backup").exists()
    os.chown(passwd, OWNER, OWNER)  # a snapshot of hard links
    apply(root, tmp_path / "backup")
    assert passwd.read_bytes() != before


@as_root
def test_a_link_of_another_user_is_no_output(root, tmp_path, victim):
    (tmp_path / "link").symlink_to(victim)
    store = Store.open(root)
    check_output(store, str(tmp_path / "link" / "out"))
    os.chown(tmp_path / "link", OWNER, OWNER, follow_symlinks=False)
    with pytest.raises(UsageError, match="is a link that another user may change"):
        check_output(store, str(tmp_path / "link" / "out"))
