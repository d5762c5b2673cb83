"""Which file and which blank is believed: the order of the log tells, not a name and not eight bytes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from formats.commitlog import BLANK_MAGIC_CODE, encode_message
from rmqtool.repair.keep.blanks import open_unplaced
from rmqtool.repair.keep.model import Run, Survey
from rmqtool.repair.keep.placing import PlacedSegment
from rmqtool.repair.keep.room import Missing
from tests.repair.keep.laws import kept, problems, repair
from tests.repair.keep.seven import RELEASE, SEGMENT, SETTINGS, repaired

if TYPE_CHECKING:
    from pathlib import Path

LAST = 6 * SEGMENT


def segment(root: Path, base: int) -> Path:
    return root / f"commitlog/{base:020d}"


def blank_over(root: Path, at: int) -> None:
    """A blank that is right in every respect where a record begins."""
    path, position = segment(root, at // SEGMENT * SEGMENT), at % SEGMENT
    blank = (SEGMENT - position).to_bytes(4, "big") + BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True)
    data = path.read_bytes()
    path.write_bytes(data[:position] + blank + data[position + 8 :])


def starts(root: Path, base: int) -> list[int]:
    return [at for at in sorted(strict.carve(root)) if base <= at < base + SEGMENT]


@pytest.mark.parametrize("own", [1, 3, 12])
def test_the_last_segment_is_its_own_with_a_single_record(base: Path, tmp_path: Path, own: int) -> None:
    """The rest of the file holds an older segment: it was used before."""
    end = starts(base, LAST)[own] % SEGMENT
    old = segment(base, 2 * SEGMENT).read_bytes()
    segment(base, LAST).write_bytes(segment(base, LAST).read_bytes()[:end] + old[end:])
    shutil.rmtree(base / "consumequeue")
    assert repaired(base, tmp_path) == []


def test_exchanged_segments_of_which_one_was_used_before(base: Path, tmp_path: Path) -> None:
    """Most records of one file are where its name says, and the other file has them too."""
    one, last = segment(base, 2 * SEGMENT), segment(base, LAST)
    end = starts(base, LAST)[3] % SEGMENT
    old, live = one.read_bytes(), last.read_bytes()
    must = {at: record for at, record in strict.carve(base).items() if record.placed and at < LAST + end}
    one.write_bytes(live[:end] + old[end:])
    last.write_bytes(old)
    repair(base, RELEASE, tmp_path / "repaired", SETTINGS)
    assert problems(tmp_path / "repaired", must, RELEASE, SETTINGS) == []


@pytest.mark.share
@pytest.mark.parametrize("number", [0, 40])
@pytest.mark.parametrize("where", [2 * SEGMENT, LAST])
@pytest.mark.parametrize("with_queues", [True, False])
def test_a_blank_hides_records(
    base: Path, tmp_path: Path, where: int, number: int, with_queues: bool
) -> None:
    blank_over(base, starts(base, where)[number])
    if not with_queues:
        shutil.rmtree(base / "consumequeue")
    assert repaired(base, tmp_path) == []


def test_two_blanks_in_one_segment_and_one_in_the_next(base: Path, tmp_path: Path) -> None:
    for at in (*starts(base, 2 * SEGMENT)[30:90:50], starts(base, 3 * SEGMENT)[7]):
        blank_over(base, at)
    assert repaired(base, tmp_path) == []


def test_the_blank_of_a_copied_segment(base: Path, tmp_path: Path) -> None:
    """It is another segment's, and units point at what lay behind it."""
    shutil.copyfile(segment(base, 0), segment(base, 3 * SEGMENT))
    assert repaired(base, tmp_path) == []


def test_units_point_behind_a_blank_where_all_is_lost(base: Path, tmp_path: Path) -> None:
    at = starts(base, 3 * SEGMENT)[40]
    blank_over(base, at)
    path = segment(base, 3 * SEGMENT)
    data = path.read_bytes()[: at % SEGMENT + 8]
    path.write_bytes(data.ljust(SEGMENT, b"\0"))
    assert repaired(base, tmp_path) == []


class Log:
    """Segments of 4,096 bytes, written as a broker does; `back` is what recovery does to the log."""

    def __init__(self, root: Path) -> None:
        self.root, self.at, self.time = root / "commitlog", 0, 1_700_000_000_000
        self.slots: dict[int, int] = {}
        self.past: list[tuple[int, dict[int, int]]] = []
        self.root.mkdir(parents=True)

    def write(self, at: int, data: bytes) -> None:
        path = self.root / f"{at // 4096 * 4096:020d}"
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.truncate(4096)
            file.seek(at % 4096)
            file.write(data)

    def put(self, queue: int, body: bytes) -> None:
        self.past.append((self.at, dict(self.slots)))
        slot = self.slots.get(queue, 0)
        for _ in range(2):
            fields = {"queue_id": queue, "queue_offset": slot, "physical_offset": self.at}
            data = encode_message("T", body, b"K\x01v", store_timestamp=self.time, **fields)
            rest = 4096 - self.at % 4096
            if len(data) + 8 <= rest:
                break
            self.write(self.at, rest.to_bytes(4, "big") + BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True))
            self.at += rest
        self.write(self.at, data)
        self.at += len(data)
        self.time += 10
        self.slots[queue] = slot + 1

    def back(self, count: int) -> None:
        """The last records are given up; their bytes stay."""
        self.at, self.slots = self.past[-count]
        del self.past[-count:]
        self.time += 60_000


@pytest.mark.parametrize("behind", [0, 1, 9])
@pytest.mark.parametrize("queues", [1, 4])
@pytest.mark.parametrize("again", [1, 3, pytest.param(6, marks=pytest.mark.full)])
def test_what_an_earlier_life_left_behind_a_blank(
    tmp_path: Path, again: int, queues: int, behind: int
) -> None:
    """Whole records at their own place, older than what lies in front of the blank."""
    log = Log(tmp_path / "store")
    for number in range(28):
        log.put(number % queues, b"first life" * 4)
    log.back(again + 6)
    for number in range(again):
        log.put(number % queues, b"second life")
    before = {path.name: path.read_bytes() for path in log.root.iterdir()}
    log.put(0, b"too large for the rest" * 90)
    for number in range(behind):
        log.put(number % queues, b"in the next segment")
    assert len(before) < len(list(log.root.iterdir()))
    changes = kept(tmp_path / "store", RELEASE, {"mappedFileSizeCommitLog": 4096}).changes
    assert [one.path for one in changes if one.path.startswith("commitlog")] == []


@pytest.mark.parametrize(("first", "slot", "opened"), [(0, 4, True), (0, 5, False), (3, 1, False)])
def test_a_blank_gives_room_for_what_other_holes_do_not_take(first: int, slot: int, opened: bool) -> None:
    """620398: the next plan filled it. Not where the queue has the offset, or has no record in front."""
    placed = [PlacedSegment(base, 1200, f"{base}", None) for base in (0, 1200)]
    key = "T", 0
    runs = [Run(key, first, 3, 500, 900, 1000), Run(key, 5, 9, 1200, 2000, 2100)]
    survey = Survey(placed, {key: runs}, fillers={0: 1000})
    assert open_unplaced(survey, [Missing(key, slot, slot, 1000 if first < slot else 0, 1200)]) is opened
    assert [(one.start, one.end) for one in survey.holes] == [(1000, 1200)] * opened
