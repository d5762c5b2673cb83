"""`rmqtool recover` as people and scripts meet it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from fixtures import broker_conf, damage_case, strict
from fixtures.stores import HandmadeStore
from tests.helpers import rmq
from tests.repair.smallstore import tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.helpers import Result

BODY = "v533-record-body-middle-first-abort0"


@pytest.fixture
def recover(damaged: Callable[[str], Path], tmp_path: Path) -> Callable[..., tuple[Path, Result]]:
    """Case id and options → the damaged store and what the command said."""

    def run(case_id: str, *options: object) -> tuple[Path, Result]:
        conf = tmp_path / "broker.conf"
        conf.write_text(broker_conf(damage_case(case_id).settings))
        root = tmp_path / case_id
        if not root.exists():
            root = damaged(case_id)
        return root, rmq("recover", root, "--store-config", conf, "--as-version", "5.3.3", *options)

    return run


def test_the_plan_is_printed_and_nothing_done(
    recover: Callable[..., tuple[Path, Result]], damaged: Callable[[str], Path]
) -> None:
    root = damaged(BODY)
    before = tree(root)
    _, done = recover(BODY, "--json")
    assert tree(root) == before
    assert done.exit_code == 1
    reported = json.loads(done.stdout)
    assert reported["summary"]["schema"] == "rmqtool.recover/1"
    assert reported["summary"]["applied"] is False
    assert reported["summary"]["lost"]["messages"] == 1
    assert reported["summary"]["saved"]["messages"] > 1
    [change] = [one for one in reported["rows"] if one["why"] == "tombstone"]
    [tombstone] = change["tombstones"]
    assert set(tombstone) == {"topic", "queue_id", "queue_offset", "count", "physical_offset", "length"}


def test_a_copy_is_repaired_and_what_it_lacks_is_kept(
    recover: Callable[..., tuple[Path, Result]], tmp_path: Path
) -> None:
    root, done = recover(BODY, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "out.quarantine" / "plan.json").is_file()
    intact = strict.carve(root)
    repaired, _ = strict.walk(tmp_path / "out")
    assert intact.items() <= repaired.items()
    assert len(repaired) == len(intact) + 1
    again = rmq("recover", tmp_path / "out", "--as-version", "5.3.3")
    assert (again.exit_code, "Nothing to change" in again.stdout) == (0, True)


def test_in_place_and_undone(recover: Callable[..., tuple[Path, Result]], tmp_path: Path) -> None:
    root, _ = recover(BODY)
    before = tree(root)
    _, done = recover(BODY, "--in-place", "--backup", tmp_path / "backup", "--apply")
    assert done.exit_code == 0, done.stderr
    assert tree(root) != before
    assert not (root / "abort").exists()
    assert rmq("undo", tmp_path / "backup", "--apply").exit_code == 0
    assert tree(root) == before


def test_swapped_segments_change_places_in_place(
    recover: Callable[..., tuple[Path, Result]], tmp_path: Path
) -> None:
    case_id = "v533-layout-swapped-segments-abort0"
    root, done = recover(case_id, "--in-place", "--backup", tmp_path / "backup", "--apply")
    assert done.exit_code == 0, done.stderr
    whole, _ = strict.walk(root)
    assert len(whole) == 1279


def test_in_place_does_what_was_planned(damaged: Callable[[str], Path], tmp_path: Path) -> None:
    """The lock that is held meanwhile does not make the store look like that of a running broker."""
    root = damaged("v498-index-newest-deleted-abort")
    planned = json.loads(rmq("recover", root, "--json").stdout)
    done = rmq("recover", root, "--in-place", "--backup", tmp_path / "backup", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == planned["rows"]
    assert any(one["path"].startswith("index/") for one in planned["rows"])
    assert rmq("recover", root).exit_code == 0


def test_both_ways_of_applying_give_the_same_files(damaged: Callable[[str], Path], tmp_path: Path) -> None:
    root = damaged("v498-checkpoint-negative-abort")
    assert rmq("recover", root, "--output", tmp_path / "out", "--apply").exit_code == 0
    assert rmq("recover", root, "--in-place", "--backup", tmp_path / "backup", "--apply").exit_code == 0
    copied, repaired = tmp_path / "out" / "checkpoint", root / "checkpoint"
    assert copied.read_bytes() == repaired.read_bytes()
    assert copied.stat().st_mtime_ns == repaired.stat().st_mtime_ns


def test_the_page_names_what_is_lost(recover: Callable[..., tuple[Path, Result]]) -> None:
    _, done = recover(BODY, "--json")
    [row] = [one for one in json.loads(done.stdout)["rows"] if one["why"] == "tombstone"]
    [lost] = row["tombstones"]
    place = f"{lost['topic']}/{lost['queue_id']} loses queue offset {lost['queue_offset']}, "
    assert place in recover(BODY)[1].stdout


@pytest.mark.parametrize("policy", ["keep", "broker"])
def test_what_a_broker_gives_up_is_not_lost_for_good(
    recover: Callable[..., tuple[Path, Result]], policy: str
) -> None:
    _, done = recover(BODY, "--policy", policy)
    assert ("Lost under any policy" in done.stdout) == (policy == "keep")
    assert ("Given up, as a broker does" in done.stdout) == (policy == "broker")


def test_a_directory_behind_a_link_belongs_to_the_store(
    recover: Callable[..., tuple[Path, Result]], tmp_path: Path
) -> None:
    root, _ = recover(BODY)
    (root / "commitlog").rename(tmp_path / "elsewhere")
    (root / "commitlog").symlink_to(tmp_path / "elsewhere")
    before = (tree(root), tree(tmp_path / "elsewhere"))
    inside = tmp_path / "elsewhere" / "x"
    for options in (
        ("--in-place", "--backup", inside, "--apply"),
        ("--output", inside, "--apply"),
        ("--save-plan", inside),
    ):
        _, done = recover(BODY, *options)
        assert (done.exit_code, "the store" in done.stderr) == (2, True), options
    assert (tree(root), tree(tmp_path / "elsewhere")) == before


def test_a_plan_is_saved_in_a_directory_that_is_there(
    recover: Callable[..., tuple[Path, Result]], tmp_path: Path
) -> None:
    place = tmp_path / "none" / "plan"
    _, done = recover(BODY, "--save-plan", place)
    assert done.exit_code == 2
    assert done.stderr == f"rmqtool: --save-plan {place}: there is no such directory\n"
    assert not done.stdout


def test_hard_links_are_told_before_they_change(
    recover: Callable[..., tuple[Path, Result]], tmp_path: Path
) -> None:
    root, planned = recover(BODY, "--json")
    path = json.loads(planned.stdout)["rows"][0]["path"]
    (tmp_path / "snapshot").hardlink_to(root / path)
    _, done = recover(BODY, "--in-place", "--backup", tmp_path / "backup", "--apply")
    assert done.exit_code == 0
    assert f"{path}: has further names (hard links)" in done.stderr


def test_a_damaged_body_may_stay(recover: Callable[..., tuple[Path, Result]], tmp_path: Path) -> None:
    root, done = recover(BODY, "--damaged-body", "keep", "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    [change] = [one for one in json.loads(done.stdout)["rows"] if one["why"] == "restored-record"]
    at = change["restored"][0]["physical_offset"]
    segment = f"commitlog/{at // 65536 * 65536:020d}"
    was, now = (root / segment).read_bytes(), (tmp_path / "out" / segment).read_bytes()
    place = at % 65536
    assert [n - place for n in range(len(was)) if was[n] != now[n]] == [8, 9, 10, 11]
    assert at in strict.walk(tmp_path / "out")[0]


def test_a_donor_gives_what_is_damaged_here(
    recover: Callable[..., tuple[Path, Result]], damaged: Callable[[str], Path], tmp_path: Path
) -> None:
    replica = damaged("v533-none-healthy-clean")
    _, done = recover(BODY, "--donor", replica, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    reported = json.loads(done.stdout)
    assert "donor" in {one["why"] for one in reported["rows"]}
    assert reported["summary"]["lost"]["messages"] == 0
    assert strict.walk(tmp_path / "out") == strict.walk(replica)


@pytest.mark.parametrize(
    ("options", "exit_code", "words"),
    [
        (("--apply",), 2, "--apply needs --output"),
        (("--policy", "broker", "--damaged-body", "keep"), 2, "--policy broker"),
        (("--donor", "/nowhere"), 2, "/nowhere: no such file or directory"),
        (("--plan", "/nowhere"), 2, "--plan /nowhere: no such file or directory"),
    ],
)
def test_refusals(
    recover: Callable[..., tuple[Path, Result]],
    options: tuple[str, ...],
    exit_code: int,
    words: str,
) -> None:
    _, done = recover(BODY, *options)
    assert done.exit_code == exit_code
    assert words in done.stderr


def test_without_a_log_there_is_nothing_to_recover(recover: Callable[..., tuple[Path, Result]]) -> None:
    _, done = recover("v533-layout-empty-commitlog-abort")
    assert done.exit_code == 1
    assert "is its disk mounted?" in done.stderr


def test_a_healthy_store_has_nothing_to_repair(recover: Callable[..., tuple[Path, Result]]) -> None:
    root, _ = recover("v533-none-healthy-clean")
    before = tree(root)
    _, done = recover("v533-none-healthy-clean")
    assert done.exit_code == 0
    assert "Nothing to change" in done.stdout
    assert tree(root) == before


def test_a_broker_that_refuses_is_a_result(tmp_path: Path) -> None:
    """Exit 1 with the reason, printed and applied, and the command that makes a store it starts on."""
    for number, damage in enumerate((_lock_directory, _stray_directory, _no_checkpoint)):
        root = tmp_path / str(number)
        store = HandmadeStore()
        for key in ("a", "b", "c"):
            store.put("Orders", b"body", keys=key)
        store.write(root)
        damage(root)
        asked = ("recover", root, "--policy", "broker", "--as-version", "4.9.8")
        page = rmq(*asked)
        assert page.exit_code == 1
        assert page.stdout.startswith("A broker 4.9.8 refuses this store: ")
        done = rmq(*asked, "--json", "--output", tmp_path / f"out-{number}", "--apply")
        assert done.exit_code == 1, done.stderr
        summary = json.loads(done.stdout)["summary"]
        assert (summary["applied"], bool(summary["refusal"])) == (True, True)
        assert any("recover without --policy broker" in note for note in summary["notes"])


def _lock_directory(root: Path) -> None:
    (root / "lock").unlink()
    (root / "lock").mkdir()


def _stray_directory(root: Path) -> None:
    (root / "commitlog" / "stray").mkdir()


def _no_checkpoint(root: Path) -> None:
    (root / "checkpoint").unlink()
    (root / "checkpoint").symlink_to("checkpoint")


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("checkpoint")], ids=["fifo", "link"]
)
def test_what_is_no_file_in_the_place_of_the_checkpoint(
    make: Callable[[Path], object], tmp_path: Path
) -> None:
    """Brokers refuse it; a copy gets a file in its place."""
    store = HandmadeStore()
    store.put("Orders", b"body")
    store.write(tmp_path / "store")
    (store.root / "checkpoint").unlink()
    make(store.root / "checkpoint")
    assert rmq("doctor", store.root).exit_code == 1
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stdout
    assert rmq("doctor", tmp_path / "out").exit_code == 0


def test_as_a_broker_would(recover: Callable[..., tuple[Path, Result]], tmp_path: Path) -> None:
    root, done = recover(BODY, "--policy", "broker", "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    assert len(strict.walk(tmp_path / "out")[0]) < len(strict.carve(root))


@pytest.mark.parametrize(
    ("saved", "typed", "words"),
    [
        (("--policy", "broker"), ("--policy", "keep"), "--plan says policy broker, the command line keep"),
        (
            ("--damaged-body", "keep"),
            ("--damaged-body", "tombstone"),
            "--plan says damaged-body keep, the command line tombstone",
        ),
    ],
)
def test_what_is_typed_beside_a_saved_plan_must_agree_with_it(
    recover: Callable[..., tuple[Path, Result]],
    tmp_path: Path,
    saved: tuple[str, ...],
    typed: tuple[str, ...],
    words: str,
) -> None:
    plan = tmp_path / "plan.json"
    recover(BODY, *saved, "--save-plan", plan)
    _, done = recover(BODY, "--plan", plan, *typed)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    _, done = recover(BODY, "--plan", plan, *saved)
    assert done.exit_code == 1, done.stderr


def test_a_plan_that_is_a_pipe_is_not_waited_for(
    recover: Callable[..., tuple[Path, Result]], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "plan")
    _, done = recover(BODY, "--plan", tmp_path / "plan")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "is a FIFO, not a regular file" in done.stderr
