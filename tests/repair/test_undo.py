"""What an undo does when somebody has written since."""

from __future__ import annotations

import os

import pytest

from rmqtool.errors import NewerFormatError, PlanRefusedError, StoreIOError, UsageError
from rmqtool.repair.undo import plan_undo
from tests.helpers import rmq
from tests.repair.carrying import apply, put_back
from tests.repair.smallstore import QUEUE, SECOND, SEGMENT, STRAY, tree

NEW = "consumequeue/U/0/00000000000000000000"


@pytest.fixture
def backup(root, tmp_path):
    apply(root, tmp_path / "backup")
    return tmp_path / "backup"


def append(path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def write_at(path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def keep_time(path, work) -> None:
    before = path.stat()
    work()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def reasons(backup) -> dict[str, str]:
    return {one.key: one.changed for one in plan_undo(str(backup)).changed}


def test_appended_data_is_named_and_stays(root, backup):
    append(root / SECOND, b"appended")
    append(root / NEW, b"more")
    append(root / "checkpoint", b"xx")
    found = reasons(backup)
    assert found[f"{SECOND}@9000"] == "8 bytes were appended since, they stay"
    assert found[NEW] == "4 bytes were appended since, they stay"
    assert found["checkpoint@40"] == "2 bytes were appended since, they stay"
    with pytest.raises(PlanRefusedError, match="--partial restores the rest"):
        put_back(root, backup)
    put_back(root, backup, partial=True)
    assert (root / SECOND).read_bytes().endswith(b"appended")
    assert (root / NEW).read_bytes() == b"unit" * 5 + b"more"
    assert (root / "checkpoint").stat().st_size == 42


def test_only_what_would_be_restored_is_compared(root, backup, tmp_path):
    keep_time(root / SEGMENT, lambda: write_at(root / SEGMENT, 50000, b"by a broker"))
    (root / "config" / "new.json").write_text("{}")
    assert reasons(backup) == {}
    put_back(root, backup)
    data = (root / SEGMENT).read_bytes()
    assert data[100:109] == b"A" * 9
    assert data[50000:50011] == b"by a broker"
    assert (root / "config" / "new.json").exists()


def test_a_region_that_was_written_since_is_left_and_the_rest_restored(root, backup):
    before = (root / SEGMENT).read_bytes()
    write_at(root / SEGMENT, 102, b"X")
    written = (root / SEGMENT).stat().st_mtime_ns
    assert reasons(backup) == {f"{SEGMENT}@100": "was written since"}
    put_back(root, backup, partial=True)
    after = (root / SEGMENT).read_bytes()
    assert after[100:109] == before[100:102] + b"X" + before[103:109]
    assert after[40000:40006] == b"A" * 6
    assert (root / SEGMENT).stat().st_mtime_ns == written
    assert (root / STRAY).exists()


def test_a_file_that_came_back_or_went_is_named(root, backup):
    (root / STRAY).write_bytes(b"new")
    (root / QUEUE).unlink()
    assert reasons(backup) == {STRAY: "something of this name is there again", QUEUE: "is gone since"}
    put_back(root, backup, partial=True)
    assert (root / STRAY).read_bytes() == b"new"
    assert (root / "abort").exists()


def test_a_file_written_elsewhere_since_is_named(root, backup):
    write_at(root / SEGMENT, 60000, b"X")
    assert reasons(backup) == {SEGMENT: "was written elsewhere since"}
    put_back(root, backup, partial=True)
    assert (root / SEGMENT).read_bytes()[100:109] == b"A" * 9


def test_a_journal_that_lost_bytes_restores_nothing(root, backup):
    after = tree(root)
    saved = next((backup / "ranges").rglob("*@100"))
    saved.write_bytes(b"Z" * 9)
    with pytest.raises(StoreIOError, match="is not what was saved there; nothing was changed"):
        put_back(root, backup)
    assert tree(root) == after


@pytest.mark.parametrize("lost", [False, True], ids=["changed", "lost"])
def test_a_plan_is_not_shown_for_bytes_that_are_not_those_saved(root, backup, lost):
    """`undo` without `--apply` promised to restore what `--apply` then refused."""
    saved = next((backup / "ranges").rglob("*@100"))
    saved.unlink() if lost else saved.write_bytes(b"Z" * 9)
    answer = rmq("undo", backup)
    assert answer.exit_code == 4
    assert answer.stderr.startswith(f"rmqtool: {saved}{':' if lost else ' is not what was saved there'}")
    assert not answer.stdout


def test_undo_done_twice_does_nothing(root, backup):
    put_back(root, backup)
    (root / STRAY).write_bytes(b"by a broker")
    assert plan_undo(str(backup)).nothing
    put_back(root, backup)
    assert (root / STRAY).read_bytes() == b"by a broker"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not an undo journal"),
        ("not json", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"schema": "rmqtool.plan/1"}', "schema 'rmqtool.plan/1'"),
        ('{"schema": "rmqtool.journal/1"}', "journal_id"),
    ],
)
def test_what_is_no_journal_is_reported(tmp_path, content, message):
    if content is not None:
        (tmp_path / "journal.json").write_text(content)
    with pytest.raises(UsageError, match=message):
        plan_undo(str(tmp_path))


def test_a_journal_of_a_later_release_is_not_guessed_at(tmp_path):
    (tmp_path / "journal.json").write_text('{"schema": "rmqtool.journal/2"}')
    with pytest.raises(NewerFormatError):
        plan_undo(str(tmp_path))


def test_the_store_of_a_journal_must_be_there(root, backup, tmp_path):
    root.rename(tmp_path / "moved")
    with pytest.raises(UsageError, match="is not there"):
        plan_undo(str(backup))


def test_what_a_partial_undo_left_is_not_done(root, backup):
    append(root / NEW, b"x")
    assert rmq("undo", backup, "--apply", "--partial").exit_code == 1
    for more in ([], ["--apply"]):
        again = rmq("undo", backup, *more)
        assert (again.exit_code, "left by --partial" in again.stderr) == (1, True)
