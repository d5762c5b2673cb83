from __future__ import annotations

import os
from functools import partial

import pytest

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.repair.in_place import check_backup
from rmqtool.repair.marker import find_marker
from rmqtool.repair.undo import plan_undo
from rmqtool.store.layout import Store
from tests.repair.carrying import apply, put_back
from tests.repair.smallstore import (
    QUEUE,
    SECOND,
    SEGMENT,
    STRAY,
    StopsAt,
    failing,
    make_store,
    tree,
    without_times,
)


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


def test_a_kill_at_every_step_can_be_undone_or_completed(tmp_path):
    steps = steps_of(lambda disk: apply(make_store(tmp_path / "s"), tmp_path / "b", disk))
    wanted = without_times(tree(tmp_path / "s"))
    assert steps > 80
    for number in range(steps):
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


def test_a_kill_at_every_step_of_an_undo_is_made_good_by_another(tmp_path):
    root = make_store(tmp_path / "s")
    apply(root, tmp_path / "b")
    steps = steps_of(lambda disk: put_back(root, tmp_path / "b", disk))
    for number in range(steps):
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


@pytest.mark.parametrize("code", [28, 5])
def test_a_disk_that_fails_at_any_step_leaves_what_undo_needs(tmp_path, code):
    steps = steps_of(lambda disk: apply(make_store(tmp_path / "s"), tmp_path / "b", disk))
    for number in range(0, steps, 1 if code == 28 else 7):
        root, backup = make_store(tmp_path / f"store-{number}"), tmp_path / f"backup-{number}"
        before = tree(root)
        with pytest.raises(StoreIOError, match=os.strerror(code)) as error:
            apply(root, backup, StopsAt(number, failing(code)))
        if find_marker(root) is not None:
            assert "half changed" in str(error.value)
            assert f"rmqtool undo {backup} --apply" in str(error.value)
        if (backup / "journal.json").exists():
            put_back(root, backup)
        assert tree(root) == before, number
