"""What every command that changes a store promises, shown with `checkpoint set`."""

from __future__ import annotations

import errno
import json
import os

import pytest

from rmqtool.repair import in_place
from rmqtool.repair.marker import find_marker
from tests.disks import refuse
from tests.helpers import held, rmq
from tests.repair.smallstore import StopsAt, failing, tree


@pytest.fixture
def golden_store(fresh_golden):
    return fresh_golden("v533-basic")


@pytest.fixture
def root(golden_store):
    return golden_store.path


@pytest.fixture
def change(golden_store, root, tmp_path):
    conf = golden_store.config_path

    def run(*args):
        return rmq("checkpoint", "set", root, "--store-config", conf, "--as-version", "5.3.3", *args)

    return run


@pytest.fixture
def holder(root):
    with held(root) as process:
        yield process


def in_place_args(tmp_path, name="backup"):
    return ("--in-place", "--backup", tmp_path / name, "--apply")


def test_without_apply_the_plan_is_printed_and_nothing_done(change, root, store_unchanged):
    store_unchanged(root)
    done = change("--format", "ndjson")
    assert done.exit_code == 1
    assert [one["action"] for one in done.of_type("change")] == ["write"]
    summary = done.of_type("summary")[0]
    assert (summary["schema"], summary["applied"], summary["changes"]) == (
        "rmqtool.checkpoint-set/1",
        False,
        1,
    )


def test_in_place_then_undo(change, root, tmp_path):
    before = tree(root)
    done = change(*in_place_args(tmp_path), "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["journal"] == str(tmp_path / "backup")
    assert tree(root)["checkpoint"][4] != before["checkpoint"][4]
    again = change()
    assert (again.exit_code, "Nothing to change" in again.stdout) == (0, True)
    assert rmq("undo", tmp_path / "backup").exit_code == 1
    assert rmq("undo", tmp_path / "backup", "--apply").exit_code == 0
    assert tree(root) == before
    assert rmq("undo", tmp_path / "backup", "--apply").exit_code == 0


def test_output_leaves_the_store_alone(change, root, tmp_path, store_unchanged):
    store_unchanged(root)
    done = change("--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    assert "takes" in done.stderr
    assert tree(tmp_path / "out").keys() == tree(root).keys()
    assert find_marker(tmp_path / "out") is None


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--apply"], "--apply needs --output DIR, or --in-place --backup DIR"),
        (["--in-place"], "--in-place needs --backup"),
        (["--backup", "{}/b"], "--backup is for --in-place"),
        (["--output", "{}/o", "--in-place", "--backup", "{}/b"], "cannot be combined"),
        (["--plan", "{}/p", "--save-plan", "{}/q"], "cannot be combined"),
        (["--in-place", "--backup", "{}/v533-basic/store/b"], "lies inside the store"),
        (["--output", "{}/v533-basic/store/o"], "lies in the store"),
        (["--output", "{}"], "lies in the store, or around it"),
        (["--save-plan", "{}/v533-basic/store/p"], "lies inside the store"),
        (["--plan", "{}/absent"], "/absent: no such file or directory"),
        (["--plan", "{}"], "is a directory, not a file"),
        (["--plan", "/dev/null"], "is a character device, not a regular file"),
        (["--physic", "nonsense"], "--physic"),
    ],
)
def test_what_cannot_be_meant(change, root, tmp_path, args, words, store_unchanged):
    store_unchanged(root)
    done = change(*(one.format(root.parent.parent) for one in args))
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


@pytest.mark.parametrize(
    "how", [[], ["--output", "{}/o", "--apply"], ["--in-place", "--backup", "{}/b", "--apply"]]
)
def test_a_held_lock_is_exit_5_with_the_pid(change, root, tmp_path, holder, how, store_unchanged):
    store_unchanged(root)
    done = change(*(one.format(tmp_path) for one in how))
    assert done.exit_code == 5
    assert f"process {holder.pid}" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "o").exists()
    assert not (tmp_path / "b").exists()


def test_undo_of_a_held_store_is_exit_5(change, root, tmp_path):
    change(*in_place_args(tmp_path))
    after = tree(root)
    with held(root) as process:
        done = rmq("undo", tmp_path / "backup", "--apply")
    assert (done.exit_code, f"process {process.pid}" in done.stderr) == (5, True)
    assert tree(root) == after


def test_an_existing_output_is_refused(change, root, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").touch()
    done = change("--output", tmp_path / "out", "--apply")
    assert (done.exit_code, "exists and is not empty" in done.stderr) == (2, True)


def test_a_read_only_file_system_is_reported(change, root, tmp_path, monkeypatch, store_unchanged):
    store_unchanged(root)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    inside = f"{root}/"

    def is_inside(path: str, how: int, *_: int) -> bool:
        return bool(how & writing) and os.path.realpath(path).startswith(inside)

    refuse(monkeypatch, "open", errno.EROFS, is_inside)
    done = change(*in_place_args(tmp_path))
    assert done.exit_code == 4
    assert done.stderr.splitlines()[-1].endswith("lock: cannot be opened for the lock: Read-only file system")
    assert not (tmp_path / "backup").exists()


@pytest.mark.parametrize("what", ["itself", "nowhere", "directory", "fifo"])
def test_a_lock_that_is_no_file_is_in_the_way(change, root, tmp_path, what):
    lock = root / "lock"
    lock.unlink()
    if what in {"itself", "nowhere"}:
        lock.symlink_to("lock" if what == "itself" else "gone")
    else:
        lock.mkdir() if what == "directory" else os.mkfifo(lock)
    before = tree(root)
    done = change(*in_place_args(tmp_path))
    assert done.exit_code == 1, done.stderr
    assert "move it away; nothing was changed" in done.stderr
    assert tree(root) == before
    assert not (tmp_path / "backup").exists()


@pytest.mark.share
@pytest.mark.parametrize("end", ["", ".part"])
@pytest.mark.parametrize("what", ["itself", "directory", "fifo", "text"])
def test_a_marker_that_is_none_is_in_the_way(change, root, tmp_path, what, end):
    marker = root / "commitlog" / f"rmqtool-apply-in-progress{end}"
    if what == "text":
        if end:
            return  # a marker that was not finished may hold anything
        marker.write_text("{}")
    elif what == "itself":
        marker.symlink_to(marker.name)
    else:
        marker.mkdir() if what == "directory" else os.mkfifo(marker)
    before = tree(root)
    for done in (change(), change(*in_place_args(tmp_path)), change("--output", tmp_path / "new", "--apply")):
        assert done.exit_code == 1, done.stderr
        assert marker.name in done.stderr
    assert tree(root) == before
    assert not (tmp_path / "backup").exists()
    assert not (tmp_path / "new").exists()
    assert rmq("info", root).exit_code in {0, 3}


def test_a_lock_behind_a_link_is_taken_as_a_broker_takes_it(change, root, tmp_path):
    (root / "lock").rename(tmp_path / "elsewhere")
    (root / "lock").symlink_to(tmp_path / "elsewhere")
    assert change(*in_place_args(tmp_path)).exit_code == 0


def stopped_in_the_middle(change, root, tmp_path, monkeypatch):
    """An apply that fails once the marker is there."""
    for number in range(100):
        disk = StopsAt(number, failing(errno.ENOSPC))
        monkeypatch.setattr(in_place, "Disk", lambda disk=disk: disk)
        done = change(*in_place_args(tmp_path))
        monkeypatch.undo()
        if find_marker(root) is not None:
            return done
    raise AssertionError


def test_a_full_disk_half_way_leaves_marker_and_journal(change, root, tmp_path, monkeypatch):
    before = tree(root)
    done = stopped_in_the_middle(change, root, tmp_path, monkeypatch)
    assert done.exit_code == 4
    assert "No space left on device; the store is half changed" in done.stderr
    for refused in (
        change(),
        change("--output", tmp_path / "o", "--apply"),
        change(*in_place_args(tmp_path, "c")),
    ):
        assert refused.exit_code == 1
        assert f"rmqtool undo {tmp_path / 'backup'} --apply" in refused.stderr
    assert rmq("undo", tmp_path / "backup", "--apply").exit_code == 0
    assert tree(root) == before


def test_every_command_says_that_an_apply_was_stopped(change, root, tmp_path):
    reported = {"schema": "rmqtool.marker/1", "journal": str(tmp_path / "j"), "journal_id": "1"}
    (root / "commitlog" / "rmqtool-apply-in-progress").write_text(json.dumps(reported))
    undo = f"rmqtool undo {tmp_path / 'j'}"
    for command in (["verify"], ["info"], ["dump"], ["checkpoint", "show"]):
        assert f"{undo} --apply puts it back" in rmq(*command, root).stderr, command
    done = change()
    assert (done.exit_code, done.stderr.count(undo)) == (1, 1)
    advice = json.loads(rmq("doctor", root, "--json").stdout)["advice"]
    assert advice[0]["command"] == undo
    assert not any(one["command"].startswith("rmqtool recover") for one in advice)


def test_the_same_command_again_completes_it(change, root, tmp_path, monkeypatch):
    before = tree(root)
    stopped_in_the_middle(change, root, tmp_path, monkeypatch)
    done = change(*in_place_args(tmp_path))
    assert done.exit_code == 0, done.stderr
    assert "put back and starts over" in done.stderr
    assert find_marker(root) is None
    assert change().exit_code == 0
    assert rmq("undo", tmp_path / "backup", "--apply").exit_code == 0
    assert tree(root) == before


def test_ctrl_c_says_how_the_store_stands(change, root, tmp_path, monkeypatch):
    def interrupt(what: str, path: str) -> None:
        raise KeyboardInterrupt

    for number in range(100):
        disk = StopsAt(number, interrupt)
        monkeypatch.setattr(in_place, "Disk", lambda disk=disk: disk)
        done = change(*in_place_args(tmp_path))
        monkeypatch.undo()
        assert done.exit_code == 130
        if find_marker(root) is not None:
            break
        assert "interrupted: the store was not changed" in done.stderr
    assert "interrupted: the store is half changed and no broker starts on it" in done.stderr


@pytest.fixture
def saved(change, tmp_path):
    plan = tmp_path / "plan.json"
    assert change("--save-plan", plan).exit_code == 1
    return plan


def test_a_saved_plan_is_done_exactly(change, root, tmp_path, saved):
    content = json.loads(saved.read_text())
    assert content["schema"] == "rmqtool.plan/1"
    assert all(len(one["sha256"]) == 64 for one in content["inputs"])
    assert content["changes"][0]["sha256"]
    assert change("--plan", saved).exit_code == 1
    assert change("--plan", saved, *in_place_args(tmp_path)).exit_code == 0
    assert change().exit_code == 0


def edited(saved, **facts) -> None:
    saved.write_text(json.dumps({**json.loads(saved.read_text()), **facts}))


@pytest.mark.parametrize("same_time", [True, False])
def test_a_saved_plan_is_refused_when_an_input_changed(change, root, tmp_path, saved, same_time):
    segment = min((root / "commitlog").iterdir())
    facts = segment.stat()
    with segment.open("r+b") as file:
        file.seek(60)
        file.write(b"X")
    if same_time:
        os.utime(segment, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    after = tree(root)
    done = change("--plan", saved, *in_place_args(tmp_path))
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"commitlog/{segment.name} has changed since the plan was saved" in done.stderr
    assert tree(root) == after


@pytest.mark.share
@pytest.mark.parametrize(
    ("facts", "code", "words"),
    [
        ({"schema": "rmqtool.plan/2"}, 6, "newer than this rmqtool knows"),
        ({"schema": "other/1"}, 2, "is not a saved plan"),
        ({"changes": 1}, 2, "is not a saved plan: changes"),
        ({"store": "/other"}, 2, "is for the store /other"),
        ({"tool_version": "0.0.1"}, 2, "was made by rmqtool 0.0.1"),
        ({"command": "rebuild"}, 2, "is a plan of rmqtool rebuild"),
        ({"changes": []}, 1, "planning again gives other changes"),
        ({"inputs": []}, 1, "came or went since the plan was saved"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(
    change, root, tmp_path, saved, facts, code, words, store_unchanged
):
    store_unchanged(root)
    edited(saved, **facts)
    done = change("--plan", saved, "--output", tmp_path / "out", "--apply")
    assert (done.exit_code, done.stdout, words in done.stderr) == (code, "", True), done.stderr


def test_options_that_contradict_a_saved_plan_are_refused(change, saved):
    done = change("--plan", saved, "--physic", "1700000000000")
    assert (done.exit_code, "--plan says values" in done.stderr) == (2, True)


def test_a_part_of_a_store_is_refused(root):
    done = rmq("checkpoint", "set", root / "commitlog")
    assert (done.exit_code, "the store root is probably" in done.stderr) == (2, True)


def test_undo_lists_what_changed_since(change, root, tmp_path):
    change(*in_place_args(tmp_path))
    with (root / "checkpoint").open("r+b") as file:
        file.write(b"broker")
    done = rmq("undo", tmp_path / "backup", "--format", "ndjson", "--apply")
    assert done.exit_code == 1
    rows = done.of_type("restore")
    assert (rows[0]["path"], rows[0]["restorable"], rows[0]["reason"]) == (
        "checkpoint",
        False,
        "was written since",
    )
    assert rmq("undo", tmp_path / "backup", "--apply", "--partial").exit_code == 1
    assert (root / "checkpoint").read_bytes().startswith(b"broker")


def test_what_is_next_can_be_copied(change, golden_store, root, tmp_path):
    """The plan ends with whole commands; what was applied with Done and the command that looks at it."""
    conf, plan, out = golden_store.config_path, tmp_path / "plan.json", tmp_path / "out"
    typed = f"rmqtool checkpoint set {root} --store-config {conf} --as-version 5.3.3"
    page = change("--save-plan", plan).stdout
    assert f"  {typed} --plan {plan} --output DIR --apply\n" in page
    assert f"  {typed} --plan {plan} --in-place --backup DIR --apply\n" in page
    assert " ".join(page.split()).count("new or empty") == 1
    assert f"  {typed} --output {out} --apply\n" in change("--output", out).stdout
    done = change("--output", out, "--apply").stdout
    assert f"in {out}." in done[done.index("\nDone: ") :]
    assert f"  rmqtool doctor {out} --store-config {conf}\n" in done
    assert "Do next" not in done
    done = change(*in_place_args(tmp_path)).stdout
    assert f"  rmqtool undo {tmp_path / 'backup'} --apply\n" in done[done.index("\nDone: ") :]
