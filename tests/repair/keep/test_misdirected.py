"""Records that lie at another place of the log than they state come back to where they belong."""

from __future__ import annotations

import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures import strict
from formats.commitlog import MESSAGE_MAGIC_CODE
from rmqtool.repair.keep.frames import BLANK
from rmqtool.repair.keep.misdirected import misdirected
from rmqtool.repair.keep.model import Hole
from rmqtool.repair.keep.placing import PlacedSegment
from rmqtool.store.files import StoreFile
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Store
from tests.repair.keep.laws import kept, problems, repair
from tests.repair.keep.seven import RELEASE, SEGMENT, SETTINGS

if TYPE_CHECKING:
    from pathlib import Path

    from fixtures.strict import Record
    from rmqtool.repair.keep.logbytes import LogBytes

SECTORS = 8192
MAGIC = MESSAGE_MAGIC_CODE.to_bytes(4, "big", signed=True)


def path_of(root: Path, place: int) -> Path:
    return root / f"commitlog/{place // SEGMENT * SEGMENT:020d}"


def read(root: Path, place: int, length: int) -> bytes:
    return path_of(root, place).read_bytes()[place % SEGMENT :][:length]


def overwrite(root: Path, place: int, data: bytes) -> None:
    with path_of(root, place).open("r+b") as file:
        file.seek(place % SEGMENT)
        file.write(data)


def left(root: Path) -> dict[int, Record]:
    """Whole records at their own places, then those that lie elsewhere, by what they state."""
    found = strict.carve(root)
    for base, data in strict.segments(root):
        for at, one in strict.wherever(data):
            if base + at != one.offset:
                found.setdefault(one.offset, one)
    return {at: one for at, one in found.items() if one.placed}


@pytest.mark.share
@pytest.mark.parametrize(
    ("meant", "went"),
    [
        (SEGMENT + 8192, SEGMENT + 32768),
        (SEGMENT + 8192, SEGMENT + 12288),
        (SEGMENT + 16384, SEGMENT + 12288),
        (SEGMENT, 3 * SEGMENT + 512),
        (2 * SEGMENT - SECTORS, 512),
        (3 * SEGMENT - SECTORS, 3 * SEGMENT),
        (0, 6 * SEGMENT + 512),
    ],
)
@pytest.mark.parametrize("content", ["zeros", "older"])
def test_what_a_misdirected_write_left_elsewhere_comes_back(
    meant: int, went: int, content: str, base: Path, tmp_path: Path
) -> None:
    """560578: counted as lost and overwritten, though the tool said that every intact record is kept."""
    data = read(base, meant, SECTORS)
    overwrite(base, meant, bytes(SECTORS) if content == "zeros" else read(base, 5 * SEGMENT, SECTORS))
    overwrite(base, went, data)
    must = left(base)
    assert must.keys() - strict.carve(base).keys()
    repair(base, RELEASE, tmp_path / "repaired", SETTINGS)
    assert problems(tmp_path / "repaired", must, RELEASE, SETTINGS) == []
    assert kept(tmp_path / "repaired", RELEASE, SETTINGS).changes == ()


def test_a_copy_of_records_that_are_at_their_place_is_not_counted(base: Path) -> None:
    """Only what it lies over is lost."""
    log, _ = strict.walk(base)
    places = sorted(log)
    source, target = places[40], places[20]
    overwrite(base, target, log[source].raw)
    lost = log.keys() - strict.carve(base).keys()
    assert kept(base, RELEASE, SETTINGS).lost.messages == len(lost)


def test_the_last_record_in_front_of_a_blank_that_moved_with_it(base: Path, tmp_path: Path) -> None:
    """710309: one bit away, it was taken for a record with a wrong offset, and the one in front changed."""
    log, _ = strict.walk(base)
    behind = 3 * SEGMENT
    last = max(at for at in log if at < behind)
    shift = next(1 << bit for bit in range(9, 12) if last >> bit & 1)
    first = max(at for at in log if at <= last - shift)
    path = path_of(base, last)
    data = path.read_bytes()
    path.write_bytes(data[: last % SEGMENT - shift] + data[last % SEGMENT :])
    shutil.rmtree(base / "consumequeue")
    repair(base, RELEASE, tmp_path / "repaired", SETTINGS)
    found = strict.carve(tmp_path / "repaired")
    assert all(found[at].raw == one.raw for at, one in log.items() if at < first or at >= last)


def test_records_of_the_last_segment_that_lie_elsewhere_in_it(base: Path, tmp_path: Path) -> None:
    """520109: no record was at its place, the segment was to be removed, and the plan refused."""
    last = 6 * SEGMENT
    log, end = strict.walk(base)
    own = [at for at in sorted(log) if at >= last]
    data = bytearray(read(base, last, SEGMENT))
    data[32768 : 32768 + own[4] - last] = data[: own[4] - last]
    for at in own:
        data[at - last + 88] ^= 0xFF
    overwrite(base, last, bytes(data))
    assert end - last < 32768
    repair(base, RELEASE, tmp_path / "repaired", SETTINGS)
    must = {at: one for at, one in log.items() if one.placed and at < own[4]}
    assert problems(tmp_path / "repaired", must, RELEASE, SETTINGS) == []


@pytest.mark.parametrize("by", [-1, 1])
def test_a_record_of_another_time_is_not_taken(by: int, base: Path, tmp_path: Path) -> None:
    """It was cut off the log, which went on with others at that place."""
    log, _ = strict.walk(base)
    chosen = sorted(log)[30]
    stored = log[chosen].store_timestamp + by * 10**9
    other = log[chosen].raw[:56] + stored.to_bytes(8, "big") + log[chosen].raw[64:]
    overwrite(base, chosen, bytes(len(other)))
    overwrite(base, 6 * SEGMENT + 32768, other)
    repair(base, RELEASE, tmp_path / "repaired", SETTINGS)
    assert strict.carve(tmp_path / "repaired")[chosen].body != log[chosen].body


@pytest.mark.share
@pytest.mark.parametrize("queues", [True, False])
@pytest.mark.parametrize(("number", "off"), [(200, 0), (200, 100), (25, 4), (25, 100)])
def test_a_record_that_states_a_wrong_offset_stays_where_it_is(
    queues: bool, number: int, off: int, base: Path, tmp_path: Path
) -> None:
    """Its bits were flipped: where it says that it belongs, others were lost, long before it or with it."""
    log, _ = strict.walk(base)
    places = sorted(log)
    lost, lying = places[20], places[number]
    overwrite(base, lost, bytes(places[25] - lost))
    overwrite(base, lying + 28, (lost + off).to_bytes(8, "big"))
    if not queues:
        shutil.rmtree(base / "consumequeue")
    repair(base, RELEASE, tmp_path / "repaired", SETTINGS)
    now = strict.carve(tmp_path / "repaired")
    assert now[lying].body == log[lying].body
    assert [at for at, one in now.items() if one.body == log[lying].body] == [lying]


def test_a_single_record_comes_back_to_where_its_entry_points(base: Path, tmp_path: Path) -> None:
    log, _ = strict.walk(base)
    places = sorted(log)
    lost, chosen = places[20], places[25]
    overwrite(base, lost, bytes(places[30] - lost))
    overwrite(base, places[200] + 5, log[chosen].raw)
    repair(base, RELEASE, tmp_path / "repaired", SETTINGS)
    assert strict.carve(tmp_path / "repaired")[chosen].raw == log[chosen].raw


class Window:
    """`LogBytes` of bytes at hand."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, place: int, length: int) -> bytes:
        return self.data[place : place + length]


@pytest.fixture(scope="module")
def no_queues(tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("store")
    (root / "commitlog").mkdir()
    return Store.open(root)


FILE = StoreFile("commitlog/0", "/nowhere", FileKind.COMMITLOG, 4096, 4096, 0, 0)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4000), st.integers(0, 4000), st.integers(0, 5000), st.sampled_from([MAGIC, BLANK])
        ),
        max_size=30,
    ),
    st.lists(st.integers(1, 4000), min_size=1, max_size=6, unique=True),
)
def test_parts_lie_in_holes_and_do_not_overlap(
    no_queues: Store, headers: list[tuple[int, int, int, bytes]], cuts: list[int]
) -> None:
    """Whatever headers state: what is read for all parts together is no more than the holes."""
    data = bytearray(5000)
    for at, stated, size, magic in headers:
        raw = size.to_bytes(4, "big") + magic + bytes(20) + stated.to_bytes(8, "big")
        data[at : at + len(raw)] = raw
    placed = PlacedSegment(0, 4096, FILE.path, FILE)
    holes = [Hole(placed, start, end) for start, end in pairwise([0, *sorted(cuts), 4096])][::2]
    taken: set[int] = set()
    for part in misdirected(no_queues, holes, cast("LogBytes", Window(bytes(data)))):
        places = range(part.start - part.base, part.end - part.base)
        assert any(one.start <= places.start and places.stop <= one.end for one in holes)
        assert taken.isdisjoint(places)
        assert places
        taken.update(places)
