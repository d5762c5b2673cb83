"""Directories that are held: what becomes of their names makes no difference."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.store.writing import Folder, open_directory, shown_path, way_to

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user, which only root may")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "place"
    made.mkdir()
    return made


def swap(place: Path, victim: Path) -> None:
    place.rename(f"{place}.moved")
    place.symlink_to(victim)


def test_a_held_directory_stays_itself(place: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    with Folder.open(str(place)) as folder, folder.make("inner") as inner:
        swap(place, tmp_path / "victim")
        inner.write("file", b"x")
        Path(inner.here, "by-path").write_bytes(b"y")
        os.close(open_directory(inner.here))
        inner.rename("file", "taken", into=folder)
        assert shown_path(f"{inner.here}/by-path") == f"{place}.moved/inner/by-path"
    assert list((tmp_path / "victim").iterdir()) == []
    moved = tmp_path / "place.moved"
    assert {one.name for one in moved.rglob("*")} == {"inner", "taken", "by-path"}
    assert stat.S_IMODE((moved / "inner").stat().st_mode) == 0o700
    with pytest.raises(OSError, match="link lies on the way"):
        open_directory(str(place / "inner"))


def test_errors_name_the_directory(place: Path) -> None:
    with pytest.raises(StoreIOError, match=f"^{place}/x: full$"), Folder.open(str(place)) as folder:
        raise StoreIOError(f"{folder.here}/x: full")


def test_what_goes_may_be_deep(place: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    inner, name = open_directory(str(place)), "top"
    for _ in range(1200):  # more than Python recurses
        os.mkdir(name, dir_fd=inner)
        outer, inner, name = inner, os.open(name, os.O_DIRECTORY, dir_fd=inner), "d"
        os.close(outer)
        os.symlink(tmp_path / "kept", "link", dir_fd=inner)
    os.close(inner)
    (tmp_path / "kept" / "file").touch()
    with Folder.open(str(place)) as folder:
        folder.remove_made("top", "d")
        folder.remove_made("top", "d")
        assert folder.names() == []
    assert (tmp_path / "kept" / "file").exists()


def test_what_took_the_place_of_a_directory_that_goes_stays(place: Path) -> None:
    """Who owns a directory may give any name to what of others lies in it."""
    (place / "precious").mkdir()
    (place / "precious" / "file").touch()
    with Folder.open(str(place)) as folder, folder.make("work") as work:
        work.write("file", b"")
        (place / "work").rename(place / "moved")
        (place / "precious").rename(place / "work")
        with pytest.raises(OSError, match="not empty"):
            folder.remove_held("work", work)
        with pytest.raises(OSError, match="not empty"):
            folder.remove("work")
        assert (work.names(), os.listdir(place / "work")) == ([], ["file"])


def test_a_way_tells_what_is_not_there(place: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("place")
    folder, missing = way_to(tmp_path / "link" / "a" / "b", "--to")
    with folder:
        assert (folder.path, missing) == (str(place), ["a", "b"])
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(UsageError, match="round"):
        way_to(tmp_path / "round" / "a", "--to")
    (place / "file").touch()
    with pytest.raises(UsageError, match="not a directory"):
        way_to(place / "file" / "a", "--to")


@as_root
def test_root_follows_no_link_that_another_user_may_change(place: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place)
    way_to(tmp_path / "link" / "x", "--to")[0].close()
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(UsageError, match="link is a link that another user may change"):
        way_to(tmp_path / "link" / "x", "--to")


@as_root
def test_only_what_this_user_left_is_gone_on_with(place: Path, tmp_path: Path) -> None:
    (place / "file").write_bytes(b"")
    (place / "part").mkdir()
    with Folder.open(str(place)) as folder:
        os.close(folder.again("file"))
        folder.enter("part").close()
        os.link(place / "file", place / "second")
        for foreign in ("second", "part"):
            os.chown(place / foreign, NOBODY, NOBODY)
        with pytest.raises(PermissionError):
            folder.again("second")
        with pytest.raises(PermissionError):
            folder.enter("part")
        (place / "link").symlink_to("/etc/passwd")
        with pytest.raises(OSError, match="symbolic"):
            folder.again("link")
        with pytest.raises(FileExistsError):
            folder.create("link")


def test_what_is_replaced_was_made_for_it(place: Path) -> None:
    for name in ("empty", "made", "other"):
        (place / name).mkdir()
    (place / "made" / "mark").touch()
    (place / "other" / "file").touch()
    with Folder.open(str(place)) as folder:
        for name in ("empty", "made", "gone"):
            folder.remove_made(name, "mark")
        with pytest.raises(FileExistsError):
            folder.remove_made("other", "mark")
        assert folder.names() == ["other"]
