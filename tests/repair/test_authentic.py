"""A journal that somebody else made or changed restores nothing."""

from __future__ import annotations

import json
import os
import stat

import pytest

from rmqtool.errors import UsageError
from rmqtool.repair.in_place import check_backup_place
from rmqtool.repair.undo import plan_undo
from rmqtool.store.layout import Store
from tests.repair.carrying import apply, put_back
from tests.repair.smallstore import OWNER, QUEUE, STRAY, tree

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user, which only root may")


@pytest.fixture
def backup(root, tmp_path):
    apply(root, tmp_path / "backup")
    return tmp_path / "backup"


def forge(backup, change) -> None:
    path = backup / "journal.json"
    journal = json.loads(path.read_text())
    change(journal)
    path.write_text(json.dumps(journal))


def entry(journal: dict, path: str) -> dict:
    return next(one for one in journal["entries"] if one["path"] == path)


NEW = "consumequeue/U/0/00000000000000000000"


@pytest.mark.parametrize(
    "change",
    [
        lambda journal, place: entry(journal, NEW).update(location=place),
        lambda journal, place: entry(journal, NEW).update(path="../victim", location=place),
        lambda journal, place: entry(journal, NEW).update(path=place, location=place),
        lambda journal, place: entry(journal, NEW).update(path="a/../../victim", location=place),
        lambda journal, _: entry(journal, NEW).update(path="notes", location=f"{journal['store']}/notes"),
        lambda journal, place: entry(journal, "checkpoint").update(location=place),
        lambda journal, place: journal.update(store=os.path.dirname(place)),
        lambda journal, place: journal.update(marker_directory=os.path.dirname(place)),
        lambda journal, place: journal.update(further_markers=["relative"]),
        lambda journal, place: journal["directories"].update(
            {os.path.dirname(place): next(iter(journal["directories"].values()))}
        ),
    ],
)
def test_a_place_outside_the_store_is_refused(root, backup, tmp_path, change):
    victim = tmp_path / "victim"
    victim.write_bytes(b"unit" * 5)
    before = tree(root)
    forge(backup, lambda journal: change(journal, str(victim)))
    with pytest.raises(
        UsageError,
        match=r"is not, or no longer, a place of its store|, the store of this journal, is not a store",
    ):
        put_back(root, backup)
    assert (victim.read_bytes(), tree(root)) == (b"unit" * 5, before)


def test_a_directory_that_is_no_store_is_refused(root, backup, tmp_path):
    """Root owns what it unpacks: a journal in a mailed archive could name any directory for its store."""
    victim = tmp_path / "etc"
    (victim / "cron.d").mkdir(parents=True)
    forge(backup, lambda journal: journal.update(store=str(victim), marker_directory=f"{victim}/commitlog"))
    with pytest.raises(UsageError, match="the store of this journal, is not a store"):
        plan_undo(str(backup))
    (victim / "commitlog").mkdir()
    with pytest.raises(UsageError, match="is not, or no longer, a place of its store"):
        plan_undo(str(backup))
    assert sorted(one.name for one in victim.rglob("*")) == ["commitlog", "cron.d"]


@pytest.mark.parametrize("linked", [True, False])
def test_a_directory_without_segments_is_no_commit_log(root, backup, tmp_path, linked):
    (tmp_path / "cron.d").mkdir()
    (tmp_path / "cron.d" / "job").touch()
    if linked:
        (root / "commitlog").rename(tmp_path / "moved")
        (root / "commitlog").symlink_to(tmp_path / "cron.d")
        forge(backup, lambda journal: journal.update(marker_directory=str(tmp_path / "cron.d")))
    else:
        forge(backup, lambda journal: journal.update(further_markers=[str(tmp_path / "cron.d")]))
    with pytest.raises(UsageError, match=r"cron\.d, which is not"):
        plan_undo(str(backup))


def test_a_link_on_the_way_that_came_since_is_refused(root, backup, tmp_path):
    folder = (root / QUEUE).parent
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    before = tree(tmp_path / "moved")
    with pytest.raises(UsageError, match="--follow-links"):
        put_back(root, backup)
    assert tree(tmp_path / "moved") == before


def test_set_uid_and_set_gid_bits_do_not_come_back(root, backup):
    forge(backup, lambda journal: entry(journal, STRAY)["before"].update(mode=0o6755))
    put_back(root, backup)
    assert stat.S_IMODE((root / STRAY).stat().st_mode) == 0o755


@pytest.mark.parametrize("place", ["", "journal.json", "state.json", "ranges"])
def test_what_others_may_write_is_no_journal(root, backup, place):
    (backup / place).chmod((backup / place).stat().st_mode | 0o022)
    with pytest.raises(UsageError, match=r"another user may change|is not from this user or root"):
        plan_undo(str(backup))


@as_root
@pytest.mark.parametrize("place", ["", "journal.json", "state.json", "ranges", "files"])
def test_what_another_user_owns_is_no_journal(root, backup, place):
    os.chown(backup / place, OWNER, OWNER)
    with pytest.raises(UsageError, match=r"another user may change|is not from this user or root"):
        plan_undo(str(backup))


def test_a_link_in_a_journal_is_refused(root, backup, tmp_path):
    saved = backup / "files" / STRAY
    saved.rename(tmp_path / "elsewhere")
    saved.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is not from this user or root"):
        plan_undo(str(backup))


def test_a_backup_that_others_could_change_is_refused_before_anything_is_read(root, tmp_path):
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(0o777)
    store = Store.open(root)
    with pytest.raises(UsageError, match="another user may change"):
        check_backup_place(store, str(place / "backup"))
