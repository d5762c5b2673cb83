"""What others may change is not trusted, wherever on the way it lies."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from rmqtool.errors import UsageError
from rmqtool.store.trust import foreign_component, refuse_foreign_temporary

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user, which only root may")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    os.chmod(tmp_path, 0o700)
    made = tmp_path / "a" / "b"
    made.mkdir(parents=True)
    (made / "file").write_bytes(b"")
    return made


def test_own_directories_are_trusted(place: Path) -> None:
    assert foreign_component(place) is None
    assert foreign_component(place / "file") is None
    assert foreign_component(place / "not there" / "yet") is None
    assert foreign_component("/") is None


@pytest.mark.parametrize("mode", [0o777, 0o722, 0o702])
def test_what_everybody_may_write_is_not(place: Path, mode: int) -> None:
    place.parent.chmod(mode)
    assert foreign_component(place) == foreign_component(place / "new") == str(place.parent)


def test_a_sticky_directory_is_a_way_but_no_end(place: Path) -> None:
    place.parent.chmod(0o1777)
    assert foreign_component(place) is None
    assert foreign_component(place.parent) == str(place.parent)


@as_root
def test_what_belongs_to_others_is_not(place: Path) -> None:
    for one in (place / "file", place, place.parent):
        os.chown(one, NOBODY, NOBODY)
        assert foreign_component(place / "file") == str(one)


@as_root
def test_a_group_with_others_in_it(place: Path) -> None:
    place.chmod(0o770)
    os.chown(place, -1, NOBODY)
    assert foreign_component(place) == str(place)


def test_links_are_followed(place: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("a/b")
    (tmp_path / "circle").symlink_to("circle")
    assert foreign_component(link / "file") is None
    assert foreign_component(tmp_path / "circle") == str(tmp_path / "circle")
    place.chmod(0o777)
    assert foreign_component(link / "file") == str(place)


@as_root
def test_a_link_of_another_user(place: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(place)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    assert foreign_component(link / "file") == str(link)


@as_root
def test_root_keeps_no_temporary_files_where_others_rename(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    refuse_foreign_temporary()
    place.chmod(0o1777)
    refuse_foreign_temporary()
    for mode, owner in ((0o777, 0), (0o700, NOBODY)):
        place.chmod(mode)
        os.chown(place, owner, owner)
        with pytest.raises(UsageError, match="TMPDIR"):
            refuse_foreign_temporary()
