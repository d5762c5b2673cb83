from __future__ import annotations

import os
from functools import partial

import pytest

from rmqtool.errors import LockedError, PlanRefusedError, StoreIOError, UsageError
from rmqtool.repair.content import FromFile
from rmqtool.repair.disk import Disk
from rmqtool.repair.editing import check_order
from rmqtool.repair.in_place import apply_in_place, check_backup
from rmqtool.repair.marker import NAME, find_marker
from rmqtool.repair.places import inside
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.repair.undo import plan_undo
from rmqtool.store.holding import acquire_store_lock
from rmqtool.store.layout import Store
from rmqtool.store.lock import held_roots, probe
from tests.repair.carrying import apply, put_back
from tests.repair.smallstore import (
    QUEUE,
    SECOND,
    SEGMENT,
    STRAY,
    StopsAt,
    edit,
    failing,
    make_store,
    plan_of,
    planner,
    tree,
    without_times,
)

EVERY = [5, pytest.param(1, marks=pytest.mark.full)]
"""of so many steps one, and all of them"""


def test_every_action(root, tmp_path):
    before = tree(root)
    apply(root, tmp_path / "backup")
    after = tree(root)
    segment = (root / SEGMENT).read_bytes()
    assert segment[100:109] == b"tombstone"
    assert segment[40000:40006] == b"second"
    assert len(segment) == 65536
    second = (root / SECOND).read_bytes()
    assert second[8000:8009] == b"before it"
    assert second[9000:20000] == bytes(11000)
    assert second[20000:20018] == b"behind the old end"
    assert len(second) == 65536
    assert not (root / STRAY).exists()
    assert (root / QUEUE).read_bytes() == b"new unit" + bytes(5000)
    assert not (root / "consumequeue/T/1").exists()
    assert (root / "consumequeue/U/0/00000000000000000000").read_bytes() == b"unit" * 5
    assert (root / "checkpoint").stat().st_size == 40
    assert find_marker(root) is None
    for path in (SEGMENT, SECOND, "checkpoint", "config", "config/topics.json", "consumequeue/T/0"):
        assert after[path][3] == before[path][3], path
    assert after[QUEUE][3] == 1_700_000_000_000_000_000
    assert after[QUEUE][:3] == before[QUEUE][:3]
    assert after["consumequeue/U/0/00000000000000000000"][1:3] == before["."][1:3]
    assert after["consumequeue/U"][1:3] == before["."][1:3]


def test_tells_whether_owners_were_tried():
    if os.geteuid() != 0:
        pytest.skip("not root: owners of the store are those of the tests")


def test_undo_restores_the_identical_directory(root, tmp_path):
    before = tree(root)
    apply(root, tmp_path / "backup")
    assert plan_undo(str(tmp_path / "backup")).changed == ()
    put_back(root, tmp_path / "backup")
    assert tree(root) == before
    assert plan_undo(str(tmp_path / "backup")).nothing


def test_undo_takes_the_journal_file_too(root, tmp_path):
    before = tree(root)
    apply(root, tmp_path / "backup")
    put_back(root, tmp_path / "backup" / "journal.json")
    assert tree(root) == before


def steps_of(work) -> int:
    counting = StopsAt(-1, None)
    work(counting)
    return counting.steps


def dies(work) -> int:
    """Runs `work` in a child and returns the signal that ended it, 0 for its own end."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except Exception:  # noqa: BLE001 - the child has nobody to tell
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status)


def kill(what: str, path: str) -> None:
    os.kill(os.getpid(), 9)


@pytest.mark.parametrize("every", EVERY)
def test_a_kill_at_every_step_can_be_undone_or_completed(tmp_path, every):
    steps = steps_of(lambda disk: apply(make_store(tmp_path / "s"), tmp_path / "b", disk))
    wanted = without_times(tree(tmp_path / "s"))
    assert steps > 80
    for number in range(0, steps, every):
        for again in (True, False):
            root = make_store(tmp_path / f"store-{number}-{again}")
            backup = tmp_path / f"backup-{number}-{again}"
            before = tree(root)
            assert dies(partial(apply, root, backup, StopsAt(number, kill))) == -9
            if tree(root) != before and find_marker(root) is None:
                assert without_times(tree(root)) in (without_times(before), wanted), number
            if again:
                apply(root, backup)
                assert without_times(tree(root)) == wanted, number
            elif (backup / "journal.json").exists():
                put_back(root, backup)
                assert tree(root) == before, number
            else:
                assert tree(root) == before, number


@pytest.mark.parametrize("every", EVERY)
def test_a_kill_at_every_step_of_an_undo_is_made_good_by_another(tmp_path, every):
    root = make_store(tmp_path / "s")
    apply(root, tmp_path / "b")
    steps = steps_of(lambda disk: put_back(root, tmp_path / "b", disk))
    for number in range(0, steps, every):
        root, backup = make_store(tmp_path / f"store-{number}"), tmp_path / f"backup-{number}"
        before = tree(root)
        apply(root, backup)
        assert dies(partial(put_back, root, backup, StopsAt(number, kill))) == -9
        put_back(root, backup)
        assert tree(root) == before, number
        assert find_marker(root) is None


def test_backup_must_be_outside_and_empty(root, tmp_path):
    store = Store.open(root)
    with pytest.raises(UsageError, match="inside the store"):
        check_backup(store, str(root / "backup"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(UsageError, match="not empty"):
        check_backup(store, str(tmp_path / "full"))


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("code", [28, 5])
def test_a_disk_that_fails_at_any_step_leaves_what_undo_needs(tmp_path, code, every):
    steps = steps_of(lambda disk: apply(make_store(tmp_path / "s"), tmp_path / "b", disk))
    for number in range(code % every, steps, every):
        root, backup = make_store(tmp_path / f"store-{number}"), tmp_path / f"backup-{number}"
        before = tree(root)
        with pytest.raises(StoreIOError, match=os.strerror(code)) as error:
            apply(root, backup, StopsAt(number, failing(code)))
        if find_marker(root) is not None:
            assert "half changed" in str(error.value)
            assert f"rmqtool undo {backup} --apply" in str(error.value)
        if (backup / "journal.json").exists():
            put_back(root, backup)
        else:
            assert not backup.exists()
        assert tree(root) == before, number


def test_links_are_followed_kept_and_restored(root, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (root / "commitlog").rename(elsewhere)
    (root / "commitlog").symlink_to(elsewhere)
    (root / STRAY).rename(tmp_path / "stray")
    (root / STRAY).symlink_to(tmp_path / "stray")
    (root / QUEUE).rename(tmp_path / "queue")
    (root / QUEUE).symlink_to(tmp_path / "queue")
    (root / "checkpoint").rename(tmp_path / "checkpoint")
    (root / "checkpoint").symlink_to(tmp_path / "checkpoint")
    before, outside = tree(root), tree(elsewhere)
    with pytest.raises(UsageError, match="checkpoint leads out of the store by a link"):
        apply(root, tmp_path / "backup")
    assert (tree(root), tree(elsewhere)) == (before, outside)
    apply(root, tmp_path / "backup", follow_links=True)
    assert not (root / STRAY).is_symlink()
    assert (tmp_path / "stray").read_bytes() == b"C" * 4096
    assert not (root / QUEUE).is_symlink()
    assert (tmp_path / "queue").read_bytes() == b"D" * 2000
    assert (tmp_path / "checkpoint").stat().st_size == 40
    assert (elsewhere / "00000000000000000000").read_bytes()[100:109] == b"tombstone"
    put_back(root, tmp_path / "backup", follow_links=True)
    assert tree(root) == before
    assert tree(elsewhere) == outside
    assert (tmp_path / "checkpoint").stat().st_size == 4096


@pytest.mark.parametrize("missing", ["lock", "commitlog"])
def test_what_is_made_for_the_time_of_an_apply_goes_again(root, tmp_path, missing):
    place = root / missing
    facts = root.stat()
    if place.is_dir():
        for one in place.iterdir():
            one.unlink()
        place.rmdir()
    else:
        place.unlink()
    os.utime(root, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    before = tree(root)
    edits = [edit(Action.REMOVE, "config/topics.json")]
    with acquire_store_lock(root) as held:
        store = Store.open(root)
        apply_in_place(store, plan_of(store, edits), str(tmp_path / "backup"), held)
    assert missing not in tree(root)
    put_back(root, tmp_path / "backup")
    assert tree(root) == before


def test_another_process_cannot_take_the_lock_while_it_is_held(root):
    with acquire_store_lock(root):
        assert probe(root).pid == os.getpid()
        with pytest.raises(LockedError, match=f"process {os.getpid()}"), acquire_store_lock(root):
            pass
        assert held_roots() == (str(root),)
    assert probe(root).held is False
    assert (root / "lock").read_bytes() == b"lock"


@pytest.mark.parametrize("how", ["written", "appended", "touched", "gone"])
def test_a_store_that_is_written_behind_the_plan_is_left_alone(root, tmp_path, how):
    with acquire_store_lock(root) as held:
        store = Store.open(root)
        planned = planner(store, {}, "")
        if how == "gone":
            (root / SECOND).unlink()
        elif how == "touched":
            os.utime(root / SECOND)
        else:
            with (root / SECOND).open("r+b" if how == "written" else "ab") as file:
                file.write(b"x")
        before = tree(root)
        with pytest.raises(PlanRefusedError, match=rf"{SECOND} (has changed|is gone)"):
            apply_in_place(store, planned, str(tmp_path / "backup"), held)
        assert tree(root) == before
    assert not (tmp_path / "backup").exists()


def test_content_that_cannot_be_read_leaves_what_undo_needs(root, tmp_path):
    before = tree(root)
    gone = FromFile(str(tmp_path / "donor"), 0, 100)
    (tmp_path / "donor").write_bytes(b"x" * 50)
    change = Change(action=Action.WRITE, path=SEGMENT, position=0, length=100, why="test", message="-")
    with acquire_store_lock(root) as held:
        store = Store.open(root)
        with pytest.raises(StoreIOError, match="50 bytes less"):
            apply_in_place(store, plan_of(store, [Edit(change, gone)]), str(tmp_path / "backup"), held)
    assert find_marker(root) is not None
    put_back(root, tmp_path / "backup")
    assert tree(root) == before


@pytest.mark.parametrize(
    "edits",
    [
        [edit(Action.PUT, "a", b"x"), edit(Action.WRITE, "a", b"x", position=0)],
        [edit(Action.REMOVE, "a"), edit(Action.PUT, "a", b"x")],
        [edit(Action.RESIZE, "a", size=1), edit(Action.RESIZE, "a", size=2)],
        [edit(Action.PUT, "a")],
    ],
)
def test_edits_of_one_path_that_contradict_each_other_are_a_defect(edits):
    with pytest.raises(ValueError, match=r"^a"):
        check_order(edits)


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../b", ""])
def test_paths_that_lead_out_of_the_store_are_a_defect(path):
    with pytest.raises(ValueError, match="not a path inside"):
        inside(path)


def test_names_of_any_bytes_come_back(root, tmp_path):
    odd = os.fsdecode(b"config/\xff\\odd\n")
    (root / odd).write_bytes(b"odd")
    before = tree(root)
    with acquire_store_lock(root) as held:
        store = Store.open(root)
        shown = store.file(odd).display_path
        apply_in_place(store, plan_of(store, [edit(Action.REMOVE, shown)]), str(tmp_path / "backup"), held)
    assert not (root / odd).exists()
    put_back(root, tmp_path / "backup")
    assert tree(root) == before


def test_every_root_of_a_multi_path_store_has_the_marker(root, tmp_path):
    second = tmp_path / "disk2"
    second.mkdir()
    (second / "00000000000000196608").write_bytes(b"F" * 65536)
    os.utime(second, ns=(1, 1_300_000_000_000_000_000))
    before, elsewhere = tree(root), tree(second)
    seen = set()

    def look(what: str, path: str) -> None:
        seen.add((root / "commitlog" / NAME).exists() and (second / NAME).exists())

    class Looks(Disk):
        def before(self, what: str, path: str) -> None:
            if path.endswith("00000000000000196608"):
                look(what, path)

    store = Store.open(root, commitlog_roots=[second])
    path = next(one.display_path for one in store.files if one.root)
    with acquire_store_lock(root) as held:
        edits = [edit(Action.WRITE, path, b"x", position=5)]
        apply_in_place(store, plan_of(store, edits), str(tmp_path / "backup"), held, disk=Looks())
    assert seen == {True}
    assert (second / "00000000000000196608").read_bytes()[:7] == b"FFFFFxF"
    assert tree(second).keys() == elsewhere.keys()
    put_back(root, tmp_path / "backup")
    assert (tree(root), tree(second)) == (before, elsewhere)
