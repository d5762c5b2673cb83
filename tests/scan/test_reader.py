"""A segment that is read in parts holds what it holds when it is read at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from fixtures import logs
from formats.commitlog import encode_message
from rmqtool.scan import kernels_python
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.reader import LogReader
from rmqtool.store.layout import Store
from tests.disks import break_blocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rmqtool.store.segments import Segment

    Damage = Callable[[bytearray, np.random.Generator], None]

SIZE = 96 << 10
PART = 8 << 10


class Run(NamedTuple):
    """What is kept of a run: positions, and sums of all fields."""

    rows: list[tuple[int, int]]
    nbytes: int = 0

    @classmethod
    def of(cls, segment: Segment, found: Records) -> Run:
        assert segment.size
        places = (found.rows[:, Field.POSITION], found.rows[:, : Field.TAGS_POSITION].sum(axis=1))
        return cls(list(zip(*(one.tolist() for one in places), strict=True)))


def read(root: Path, **options: Any) -> tuple[list[Any], int]:
    """All records one by one, and all other events; and how many bytes were said to be done."""
    done: list[int] = []
    reported: list[Any] = []
    how = ReadOptions(jobs=options.pop("jobs", 1), advance=done.append)
    segments = Store.open(root).segments
    reader = LogReader(
        segments, how, kernels_python, lambda one: partial(Run.of, one), false_blanks=True, **options
    )
    for segment, event in reader.events():
        reported += (
            [(segment.base, row) for row in event.rows] if isinstance(event, Run) else [(segment.base, event)]
        )
    return reported, sum(done)


def flips(data: bytearray, chance: np.random.Generator) -> None:
    for at in chance.integers(0, len(data), 12).tolist():
        data[at] ^= 0x55


def holes(data: bytearray, chance: np.random.Generator) -> None:
    for at in chance.integers(0, len(data), 4).tolist():
        data[at : at + 5000] = bytes(len(data[at : at + 5000]))


def garbage(data: bytearray, chance: np.random.Generator) -> None:
    at = int(chance.integers(0, len(data) - 20_000))
    data[at : at + 20_000] = chance.bytes(20_000)


def shifted(data: bytearray, chance: np.random.Generator) -> None:
    """The last records lie somewhat behind their places."""
    at = int(chance.integers(0, len(data)))
    data[at:] = (bytes(1000) + data[at:])[: len(data) - at]


def nested(data: bytearray, chance: np.random.Generator) -> None:
    """A record whose body holds whole records at their own places, over several cuts."""
    first = int(chance.integers(0, 100)) * 300
    inner = bytes(data[first + 600 : first + 600 + 100 * 300])
    head = len(encode_message("T", b"")) - 4
    body = bytes(600 - head) + inner
    outer = encode_message("T", body, physical_offset=first)
    data[first : first + len(outer)] = outer
    rest = -(first + len(outer)) % 300
    data[first + len(outer) : first + len(outer) + rest] = bytes(rest)


def stale(data: bytearray, chance: np.random.Generator) -> None:
    """The log was cut and went on: older records follow its end."""
    at = int(chance.integers(20, 200)) * 300
    data[at : at + 300] = bytes(300)
    times = np.frombuffer(data, np.uint8)
    for start in range(0, at, 300):
        times[start + 60] = 0x7F  # of the store timestamp


DAMAGE: list[Damage] = [flips, holes, garbage, shifted, nested, stale]


def write_harmed(whole: Path, root: Path, harm: Damage | None, seed: int) -> None:
    """The segments of a store into `commitlog` of another, damaged by a seed."""
    chance = np.random.default_rng(seed)
    for one in sorted((whole / "commitlog").iterdir()):
        data = bytearray(one.read_bytes())
        if harm is not None:
            harm(data, chance)
        (root / "commitlog" / one.name).write_bytes(data[:SIZE])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("parts")
    logs.write_log(root / "commitlog", 2 * SIZE, body_size=logs.BODY_OF_300, segment_size=SIZE)
    return root


@pytest.mark.share
@pytest.mark.parametrize("harm", [None, *DAMAGE])
def test_parts_add_up_to_the_segment(whole: Path, tmp_path: Path, effort: int, harm: Damage | None) -> None:
    (tmp_path / "commitlog").mkdir()
    for seed in range(2 * effort):
        write_harmed(whole, tmp_path, harm, seed)
        expected, done = read(tmp_path)
        assert done == 2 * SIZE
        for jobs, part_bytes in ((2, PART), (3, 3000)):
            assert read(tmp_path, jobs=jobs, part_bytes=part_bytes) == (expected, 2 * SIZE)


def test_bad_blocks_are_told_once(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = sorted((whole / "commitlog").iterdir())
    break_blocks(monkeypatch, {first: [2, 3, 9, 23], second: [0, 8]})
    expected, _ = read(whole)
    assert read(whole, jobs=2, part_bytes=PART)[0] == expected


def test_a_log_is_read_side_by_side(whole: Path) -> None:
    """Parts begin at records: with nothing wrong, each is one of its own."""
    begun: list[int] = []

    def made(segment: Segment) -> Callable[[Records], Run]:
        begun.append(segment.base)
        return partial(Run.of, segment)

    segments = Store.open(whole).segments
    reader = LogReader(segments, ReadOptions(jobs=2), kernels_python, made, part_bytes=PART)
    assert sum(len(event.rows) for _, event in reader.events() if isinstance(event, Run)) == 2 * (SIZE // 300)
    assert begun.count(0) == SIZE // PART


def test_a_hole_is_not_cut(tmp_path: Path) -> None:
    """The work goes with the bytes that are there, whatever length a file has."""
    logs.write_log(tmp_path / "commitlog", SIZE, body_size=logs.BODY_OF_300, segment_size=SIZE)
    (path,) = (tmp_path / "commitlog").iterdir()
    with path.open("r+b") as file:
        file.truncate(1 << 42)
    expected, done = read(tmp_path)
    assert done == 1 << 42
    assert read(tmp_path, jobs=2, part_bytes=PART) == (expected, 1 << 42)
