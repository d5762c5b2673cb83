"""Segments under wrong names, and segments in front of the log that hold no record."""

from __future__ import annotations

import json
import shutil
import struct
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import strict
from fixtures.stores import HandmadeStore
from rmqtool.repair.keep.planner import KeepOptions, keep
from rmqtool.repair.plan import Action, Change, Edit, make_planned
from rmqtool.repair.prove.checks import check_keep
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

SEGMENT = 4096
UNALIGNED = bytes(100)
"""in front of records, which are then no copy of a segment"""


def filled(segments: int, more: int = 0) -> HandmadeStore:
    """Messages up to the first one of so many segments, and some more."""
    made = HandmadeStore()
    made.log.segment_size = SEGMENT
    while len(made.log.segments) < segments:
        made.put("Orders", b"o" * 100)
    for _ in range(more):
        made.put("Orders", b"o" * 100)
    return made


def reused(root: Path) -> dict[int, bytes]:
    """Zeros, and a second segment with few records and those of the first behind them; its name is wrong.

    The few, by their physical offsets.
    """
    made = filled(2, more=3)
    made.write(root)
    first, second = (root / f"commitlog/{base:020d}" for base in (0, SEGMENT))
    end = made.log.end_offset - SEGMENT
    second.write_bytes(second.read_bytes()[:end] + first.read_bytes()[end:])
    second.rename(root / f"commitlog/{5 * SEGMENT:020d}")
    first.write_bytes(bytes(SEGMENT))
    (root / "abort").touch()
    return {one.offset: one.placed.data for one in made.stored if one.offset >= SEGMENT}


def conf(root: Path) -> Path:
    made = root.parent / "broker.conf"
    made.write_text(f"mappedFileSizeCommitLog={SEGMENT}\n")
    return made


def test_a_file_that_was_used_before_goes_by_its_latest_use(tmp_path: Path) -> None:
    """What was left of the first segment were more records: all of the log was removed, with exit 0."""
    root, out = tmp_path / "store", tmp_path / "out"
    mine = reused(root)
    assert 1 < len(mine) < 8
    done = rmq("recover", root, "--store-config", conf(root), "--output", out, "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert mine.items() <= {offset: one.raw for offset, one in strict.carve(out).items()}.items()
    again = rmq("recover", out, "--store-config", conf(root), "--json")
    assert (again.exit_code, json.loads(again.stdout)["rows"]) == (0, [])


@pytest.mark.parametrize("name", [f"{5 * SEGMENT:020d}", "last.orig"])
def test_so_does_one_that_was_begun_with_a_single_record(name: str, tmp_path: Path) -> None:
    """The rest of the file has a whole segment of older records, which is there under its own name."""
    made = filled(3)
    made.write(tmp_path / "store")
    first, last = (tmp_path / f"store/commitlog/{base:020d}" for base in (0, 2 * SEGMENT))
    end = made.log.end_offset - 2 * SEGMENT
    last.write_bytes(last.read_bytes()[:end] + first.read_bytes()[end:])
    last.rename(last.with_name(name))
    (tmp_path / "store/abort").touch()
    done = rmq(
        "recover",
        tmp_path / "store",
        "--store-config",
        conf(tmp_path / "store"),
        "--output",
        tmp_path / "out",
        "--apply",
    )
    assert done.exit_code == 0, done.stderr
    assert {at: one.raw for at, one in strict.carve(tmp_path / "out").items() if one.placed} == {
        one.offset: one.placed.data for one in made.stored
    }


def test_a_plan_that_removes_what_has_only_a_wrong_name_is_refused(tmp_path: Path) -> None:
    """Only records at their own place were looked at: without any of them each plan was believed."""
    reused(tmp_path / "store")
    store = Store.open(tmp_path / "store")
    edits = [
        Edit(Change(action=Action.REMOVE, path=one.path, why="behind-end", message="-"))
        for one in store.files
        if one.path.startswith("commitlog/")
    ]
    planned = make_planned("recover", store, "5.3.3", {"policy": "keep"}, edits, inputs=store.files)
    checked = check_keep(store, planned, ReadOptions())
    assert any("intact record of Orders/0" in one for one in checked.problems)
    (tmp_path / "work").mkdir()
    right = keep(store, KeepOptions("5.3.3"), str(tmp_path / "work")).planned
    assert check_keep(store, right, ReadOptions()).proven


def test_what_lay_in_a_first_segment_of_zeros_is_lost(fresh_golden: Any) -> None:
    """It left the log, as if it had never been used, and nothing was said of its messages."""
    root = fresh_golden("v533-basic").path
    first, second, *_ = sorted((root / "commitlog").iterdir())
    gone = {at: one for at, one in strict.carve(root).items() if at < int(second.name) and one.placed}
    first.write_bytes(bytes(first.stat().st_size))
    summary = json.loads(rmq("recover", root, "--json").stdout)["summary"]
    assert (summary["lost"]["messages"], summary["lost"]["bytes"]) == (
        len(gone),
        sum(one.size for one in gone.values()),
    )
    assert f"in front of the log, which begins at {int(second.name)}, hold no record" in summary["notes"][0]


def test_so_is_what_lay_in_one_that_another_was_copied_over(tmp_path: Path) -> None:
    """500199: with the last segment of zeros the copy went there, and what it lay over was lost unsaid."""
    made, root = filled(4), tmp_path / "store"
    made.write(root)
    first, last = (root / f"commitlog/{base:020d}" for base in (0, 3 * SEGMENT))
    first.write_bytes(last.read_bytes())
    last.write_bytes(bytes(SEGMENT))
    summary = json.loads(rmq("recover", root, "--store-config", conf(root), "--json").stdout)["summary"]
    assert summary["lost"]["messages"] == sum(one.offset < SEGMENT for one in made.stored)
    shutil.rmtree(root / "consumequeue")
    summary = json.loads(rmq("recover", root, "--store-config", conf(root), "--json").stdout)["summary"]
    assert "hold no record (1 segment); no consume queue entry shows" in summary["notes"][0]


def test_a_queue_file_at_no_place_says_nothing_of_queue_offsets(tmp_path: Path) -> None:
    """320308: its entry, behind a name of 20, gave the only record of a queue the queue offset 1."""
    made = HandmadeStore()
    for number in range(40):
        made.put("Single" if number == 20 else "Orders", b"body")
    made.write(tmp_path / "store")
    queue = tmp_path / "store/consumequeue/Single/0"
    next(queue.iterdir()).rename(queue / f"{20:020d}")
    done = rmq("recover", tmp_path / "store", "--json")
    assert json.loads(done.stdout)["summary"]["checked"]["proven"]
    rows = json.loads(done.stdout)["rows"]
    assert [one["path"] for one in rows if one["path"].startswith("commitlog/")] == []
    assert {one["action"] for one in rows if one["path"].startswith("consumequeue/Single")} == {
        "put",
        "remove",
    }


@pytest.mark.parametrize("in_place", [False, True])
def test_a_copy_of_a_segment_gives_what_the_segment_lacks(in_place: bool, tmp_path: Path) -> None:
    """280025: the copy left the log, and with it the only whole record of a message, with exit 0."""
    made, root = filled(3), tmp_path / "store"
    made.write(root)
    second = root / f"commitlog/{SEGMENT:020d}"
    (root / f"commitlog/{7 * SEGMENT:020d}").write_bytes(second.read_bytes())
    broken = next(one for one in made.stored if one.offset > SEGMENT)
    data = bytearray(second.read_bytes())
    data[broken.offset - SEGMENT + 100] ^= 1
    second.write_bytes(data)
    way = ("--in-place", "--backup", tmp_path / "backup") if in_place else ("--output", tmp_path / "out")
    done = rmq("recover", root, "--store-config", conf(root), *way, "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["lost"]["messages"] == 0
    found = strict.carve(root if in_place else tmp_path / "out")
    assert {one.offset: one.placed.data for one in made.stored} == {at: one.raw for at, one in found.items()}


@pytest.mark.share
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_so_does_a_copy_over_another_segment(own: bool, in_place: bool, tmp_path: Path) -> None:
    """380063: also at the end of the log. It gets the tombstones of its own place behind that.

    390080: so does one that has records of its own behind the copied ones.
    """
    made, root = filled(3, more=9), tmp_path / "store"
    made.write(root)
    second, third = (root / f"commitlog/{base:020d}" for base in (SEGMENT, 2 * SEGMENT))
    data, end = third.read_bytes(), made.log.end_offset - 2 * SEGMENT
    second.write_bytes(data[:end] + second.read_bytes()[end:] if own else data)
    broken, *_, last = [one.offset - 2 * SEGMENT for one in made.stored if one.offset > 2 * SEGMENT]
    third.write_bytes(data[:broken] + bytes(8) + data[broken + 8 : last] + bytes(SEGMENT - last))
    way = ("--in-place", "--backup", tmp_path / "backup") if in_place else ("--output", tmp_path / "out")
    done = rmq("recover", root, "--store-config", conf(root), *way, "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    found = {at: one.raw for at, one in strict.carve(root if in_place else tmp_path / "out").items()}
    whole = {one.offset: one.placed.data for one in made.stored if one.offset // SEGMENT != 1}
    whole |= {one.offset: one.placed.data for one in made.stored if own and SEGMENT + end <= one.offset}
    assert whole.items() <= found.items()


def test_a_blank_that_lies_hides_no_records_of_a_file_under_a_wrong_name(tmp_path: Path) -> None:
    """200802: a file with the bytes that another use had left took its place."""
    made, root = filled(2), tmp_path / "store"
    made.write(root)
    first, second = (root / f"commitlog/{base:020d}" for base in (0, SEGMENT))
    data = bytearray(first.read_bytes())
    left = made.stored[10].offset
    second.write_bytes(bytes(left) + bytes(data[left:]))
    at = made.stored[1].offset
    data[at : at + 8] = struct.pack(">iI", SEGMENT - at, strict.BLANK)
    first.write_bytes(data)
    first.rename(root / f"commitlog/{20:020d}")
    out = tmp_path / "out"
    rmq("recover", root, "--store-config", conf(root), "--output", out, "--apply", "--json")
    found = {offset: one.raw for offset, one in strict.carve(out).items()}
    whole = {one.offset: one.placed.data for one in made.stored if one.offset < SEGMENT and one.offset != at}
    assert whole.items() <= found.items()


def test_a_copy_gives_what_it_has_on_both_sides_of_its_own_damage(tmp_path: Path) -> None:
    """370006: it gave records up to its first hole, and in the middle of a log none."""
    made, root, out = filled(3), tmp_path / "store", tmp_path / "out"
    made.write(root)
    second, copy = (root / f"commitlog/{base:020d}" for base in (SEGMENT, 7 * SEGMENT))
    first, *middle, last = [one for one in made.stored if SEGMENT < one.offset < 2 * SEGMENT][2:7]
    data = bytearray(second.read_bytes())
    for file, some in ((copy, [middle[1]]), (second, [first, *middle, last])):
        begin, end = some[0].offset - SEGMENT, some[-1].offset + some[-1].size - SEGMENT
        file.write_bytes(bytes(data[:begin]) + bytes(end - begin) + bytes(data[end:]))
    done = rmq("recover", root, "--store-config", conf(root), "--output", out, "--apply", "--json")
    assert json.loads(done.stdout)["summary"]["lost"]["messages"] == 1
    found = {at: one.raw for at, one in strict.carve(out).items()}
    whole = {one.offset: one.placed.data for one in made.stored if one != middle[1]}
    assert whole.items() <= found.items()


def test_a_segment_with_a_name_that_is_no_number_is_named_right(tmp_path: Path) -> None:
    """Its bytes were put under the right name, the wrong one stayed, and the plan was refused for that."""
    made, root, out = filled(3), tmp_path / "store", tmp_path / "out"
    made.write(root)
    first = root / f"commitlog/{0:020d}"
    first.rename(first.with_name(first.name + ".bak"))
    done = rmq("recover", root, "--store-config", conf(root), "--output", out, "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert sorted(one.name for one in (out / "commitlog").iterdir()) == [
        f"{base:020d}" for base in (0, SEGMENT, 2 * SEGMENT)
    ]
    assert {one.offset for one in made.stored} == set(strict.carve(out))


def test_a_copy_gives_no_blank_that_lies(tmp_path: Path) -> None:
    """It gave the blank for the record under it, as one record, and that was then put right a second time."""
    made, root = filled(2), tmp_path / "store"
    made.write(root)
    first = root / f"commitlog/{0:020d}"
    data, at = bytearray(first.read_bytes()), made.stored[2].offset
    data[at : at + 8] = struct.pack(">iI", SEGMENT - at, strict.BLANK)
    for file in (first, root / f"commitlog/{7 * SEGMENT:020d}"):
        file.write_bytes(data)
    rows = json.loads(rmq("recover", root, "--store-config", conf(root), "--json").stdout)["rows"]
    assert [one["why"] for one in rows if one["path"] == f"commitlog/{0:020d}"] == ["restored-record"]


def test_the_record_behind_tells_of_a_copy_whose_front_is_gone(tmp_path: Path) -> None:
    """Dense 1000080: the tail of a file that was used before had five records, and gave none."""
    made, root, out = filled(3), tmp_path / "store", tmp_path / "out"
    made.write(root)
    second, copy = (root / f"commitlog/{base:020d}" for base in (SEGMENT, 7 * SEGMENT))
    first, *_, last = some = [one for one in made.stored if SEGMENT < one.offset < 2 * SEGMENT][2:7]
    data, left = second.read_bytes(), some[3].offset - SEGMENT
    copy.write_bytes(bytes(left) + data[left:])
    begin, end = first.offset - SEGMENT, last.offset + last.size - SEGMENT
    second.write_bytes(data[:begin] + bytes(end - begin) + data[end:])
    done = rmq("recover", root, "--store-config", conf(root), "--output", out, "--apply", "--json")
    assert json.loads(done.stdout)["summary"]["lost"]["messages"] == 3
    found = {at: one.raw for at, one in strict.carve(out).items()}
    assert {
        one.offset: one.placed.data for one in made.stored if one not in some[:3]
    }.items() <= found.items()


def test_each_copy_of_a_segment_is_asked(tmp_path: Path) -> None:
    """Of several copies one was."""
    made, root, out = filled(3), tmp_path / "store", tmp_path / "out"
    made.write(root)
    second = root / f"commitlog/{SEGMENT:020d}"
    data, some = second.read_bytes(), [one for one in made.stored if SEGMENT < one.offset < 2 * SEGMENT]
    damaged = {second: some[1:6:2], root / f"commitlog/{7 * SEGMENT:020d}": some[1:2]}
    damaged[root / f"commitlog/{8 * SEGMENT:020d}"] = some[3:4]
    for file, gone in damaged.items():
        now = bytearray(data)
        for one in gone:
            now[one.offset - SEGMENT + 100] ^= 1
        file.write_bytes(now)
    done = rmq("recover", root, "--store-config", conf(root), "--output", out, "--apply", "--json")
    assert json.loads(done.stdout)["summary"]["lost"]["messages"] == 0
    assert {one.offset for one in made.stored} == set(strict.carve(out))


def test_a_log_of_which_no_file_has_a_number_for_its_name_is_named_right(tmp_path: Path) -> None:
    made = filled(4, more=3)
    made.write(tmp_path / "store")
    for file in (tmp_path / "store/commitlog").iterdir():
        file.rename(file.with_name(f"segment-{int(file.name) // SEGMENT}"))
    command = "recover", tmp_path / "store", "--output", tmp_path / "out", "--apply"
    unknown = rmq(*command)
    assert (unknown.exit_code, "mappedFileSizeCommitLog" in unknown.stderr) == (2, True)
    done = rmq(*command, "--store-config", conf(tmp_path / "store"))
    assert done.exit_code == 0, done.stderr
    assert strict.carve(tmp_path / "out").keys() == {one.offset for one in made.stored}


def test_a_file_of_another_length_gives_all_that_it_has(tmp_path: Path) -> None:
    """Two segments in one: only the first of them was asked for."""
    made = filled(4, more=3)
    made.write(tmp_path / "store")
    log = tmp_path / "store/commitlog"
    files = [log / f"{number * SEGMENT:020d}" for number in (1, 2)]
    (log / "both").write_bytes(b"".join(file.read_bytes() for file in files))
    files[1].write_bytes(bytes(SEGMENT))
    done = rmq("recover", tmp_path / "store", "--output", tmp_path / "out", "--apply", "--json")
    assert (done.exit_code, json.loads(done.stdout)["summary"]["checked"]["remains"]) == (0, [])
    assert strict.carve(tmp_path / "out").keys() == {one.offset for one in made.stored}


@pytest.mark.parametrize("name", ["both", f"{9 * SEGMENT:020d}"])
@pytest.mark.parametrize("needed", [True, False])
def test_records_that_only_a_file_of_another_length_has_are_reported(
    needed: bool, name: str, tmp_path: Path
) -> None:
    """A plan said that every intact record is in the result, and took away the only file that had some."""
    made = filled(4, more=3)
    made.write(tmp_path / "store")
    log = tmp_path / "store/commitlog"
    files = [log / f"{number * SEGMENT:020d}" for number in (1, 2)]
    (log / name).write_bytes(UNALIGNED + b"".join(file.read_bytes() for file in files))
    if needed:
        files[1].write_bytes(bytes(SEGMENT))
    done = rmq("recover", tmp_path / "store", "--output", tmp_path / "out", "--apply", "--json")
    remains = json.loads(done.stdout)["summary"]["checked"]["remains"]
    lost = [one.offset for one in made.stored if one.offset // SEGMENT == 2]
    words = (
        f"commitlog/{name} has {len(lost)} whole records that the result lacks, the first of physical offset"
    )
    assert [one.partition(f" {lost[0]}: ")[0] for one in remains] == [words] * needed
    assert done.exit_code == needed


def test_a_file_with_more_of_them_is_not_looked_at_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its report says so, and gives no number that is too low."""
    monkeypatch.setattr("rmqtool.repair.prove.beside.MOST", 3)
    made = filled(4, more=3)
    made.write(tmp_path / "store")
    log = tmp_path / "store/commitlog"
    files = [log / f"{number * SEGMENT:020d}" for number in (1, 2)]
    (log / "both").write_bytes(UNALIGNED + b"".join(file.read_bytes() for file in files))
    files[1].write_bytes(bytes(SEGMENT))
    done = rmq("recover", tmp_path / "store", "--json")
    (remains,) = json.loads(done.stdout)["summary"]["checked"]["remains"]
    assert remains.startswith("commitlog/both has more than 3 whole records that differ from the result")
    assert "3 of them are missing from it" in remains


@pytest.mark.parametrize("name", [f"{5 * SEGMENT:020d}", "last.orig"])
def test_a_record_of_a_moved_file_may_get_its_own_place_back(name: str, tmp_path: Path) -> None:
    """460141: it stated another offset, far behind the log, and the plan that puts it right was refused."""
    made = filled(3, more=5)
    made.write(tmp_path / "store")
    lying = made.stored[-3]
    path, at = made.segment(lying.offset)
    made.patch(path, at + 28, (lying.offset + (1 << 28)).to_bytes(8, "big"))
    (tmp_path / "store" / path).rename(tmp_path / "store/commitlog" / name)
    command = "recover", tmp_path / "store", "--store-config", conf(tmp_path / "store"), "--json"
    done = rmq(*command, "--output", tmp_path / "out", "--apply")
    assert (done.exit_code, json.loads(done.stdout)["summary"]["checked"]["remains"]) == (0, [])
    assert strict.carve(tmp_path / "out").keys() == {one.offset for one in made.stored}


@pytest.mark.share
@pytest.mark.parametrize("name", [20, 50 * SEGMENT])
@pytest.mark.parametrize("which", [1, 3])
def test_a_file_with_another_name_whose_records_have_moved_up(which: int, name: int, tmp_path: Path) -> None:
    """710153: a copy had left out the first blocks; under its own name its records had come back.

    740707: the place of another segment counts as little, where records of an older use are left of it.
    """
    made = filled(4, more=8)
    made.write(tmp_path / "store")
    path = tmp_path / f"store/commitlog/{which * SEGMENT:020d}"
    data = path.read_bytes()
    path.unlink()
    old = (tmp_path / f"store/commitlog/{0:020d}").read_bytes()[-512:] if name >= SEGMENT else b""
    path.with_name(f"{which * SEGMENT + name:020d}").write_bytes(data[512:] + old)
    command = "recover", tmp_path / "store", "--store-config", conf(tmp_path / "store"), "--json"
    done = rmq(*command, "--output", tmp_path / "out", "--apply")
    assert (done.exit_code, json.loads(done.stdout)["summary"]["checked"]["remains"]) == (0, [])
    gone = {one.offset for one in made.stored if which * SEGMENT <= one.offset < which * SEGMENT + 512}
    found = strict.carve(tmp_path / "out")
    assert all(found[one.offset].raw == one.placed.data for one in made.stored if one.offset not in gone)


def test_records_that_have_moved_in_the_last_segment_behind_one_of_noise(tmp_path: Path) -> None:
    """720103: both files were to go, as the log ends where a file has no record; that was refused."""
    made = filled(4, more=3)
    made.write(tmp_path / "store")
    noise, last = (tmp_path / f"store/commitlog/{number * SEGMENT:020d}" for number in (2, 3))
    noise.write_bytes(b"\xa5" * SEGMENT)
    last.write_bytes(last.read_bytes()[512:])
    command = "recover", tmp_path / "store", "--store-config", conf(tmp_path / "store"), "--json"
    done = rmq(*command, "--output", tmp_path / "out", "--apply")
    assert (done.exit_code, json.loads(done.stdout)["summary"]["checked"]["remains"]) == (0, [])
    found = strict.carve(tmp_path / "out")
    intact = [one for one in made.stored if one.offset < 2 * SEGMENT or one.offset >= 3 * SEGMENT + 512]
    assert intact[-1].offset > 3 * SEGMENT
    assert all(found[one.offset].raw == one.placed.data for one in intact)
