"""What cannot be read is zero and listed, block by block; everything around it is there."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import pytest

from rmqtool.errors import UnreadableError
from rmqtool.scan.events import Unreadable
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import Access, open_source
from rmqtool.store.bytes import MemorySource
from rmqtool.store.patched import CUT, BadRange, ZeroFilledSource
from tests.disks import BLOCK, break_blocks, replace

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.store.bytes import Window

EIO = "Input/output error"
BLOCKS = 24


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000"
    path.write_bytes(random.Random(7).randbytes(BLOCKS * BLOCK - 100))
    return path


def patched(data: bytes, bad: set[int]) -> bytes:
    whole = bytearray(data)
    for number in bad:
        size = len(whole[number * BLOCK : (number + 1) * BLOCK])
        whole[number * BLOCK : (number + 1) * BLOCK] = bytes(size)
    return bytes(whole)


@pytest.mark.parametrize(
    ("bad", "ranges"),
    [
        ({5}, [(5, 6)]),
        ({0}, [(0, 1)]),
        ({3, 4, 5, 9}, [(3, 6), (9, 10)]),
        ({1, 3, 5, 7}, [(1, 2), (3, 4), (5, 6), (7, 8)]),
        ({BLOCKS - 1}, [(BLOCKS - 1, BLOCKS)]),
        (set(range(BLOCKS)), [(0, BLOCKS)]),
    ],
)
@pytest.mark.parametrize(("offset", "length"), [(0, 1 << 30), (0, BLOCK * 3), (4097, 60_000), (5 * BLOCK, 7)])
def test_bad_blocks(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    bad: set[int],
    ranges: list[tuple[int, int]],
    offset: int,
    length: int,
) -> None:
    data = file.read_bytes()
    break_blocks(monkeypatch, {file: bad})
    with ZeroFilledSource(open_source(file, "pread")) as source:
        window = source.window(offset, length)
        assert window.tobytes() == patched(data, bad)[offset : offset + length]
        met = {one for one in bad if one * BLOCK < offset + length and (one + 1) * BLOCK > offset}
        assert {number for one in source.unreadable for number in _blocks(one)} == met
        source.window(0, len(data))
        expected = [BadRange(a * BLOCK, min(b * BLOCK, len(data)), EIO) for a, b in ranges]
        assert source.unreadable == expected


def _blocks(bad: BadRange) -> range:
    return range(bad.start // BLOCK, -(-bad.end // BLOCK))


def test_bad_blocks_are_met_a_few_times_only(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk may take seconds over each of them."""
    failed = break_blocks(monkeypatch, {file: range(8, 16)})
    with ZeroFilledSource(open_source(file, "pread")) as source:
        source.window(0, BLOCKS * BLOCK)
        assert source.unreadable == [BadRange(8 * BLOCK, 16 * BLOCK, EIO)]
    assert 0 < len(failed) <= 3 * 8


class _EveryOther(MemorySource):
    """Zeros of which every other block cannot be read."""

    def window(self, offset: int, length: int) -> Window:
        bad = (offset // BLOCK | 1) * BLOCK
        if bad < min(offset + length, self.size):
            raise UnreadableError(self.name, max(bad, offset), 1, EIO)
        return super().window(offset, length)


def test_time_grows_with_the_number_of_bad_blocks() -> None:
    def seconds(blocks: int) -> float:
        began = time.process_time()
        with ZeroFilledSource(_EveryOther(bytes(blocks * BLOCK))) as source:
            scan = SegmentScan(source, 0, active=False)
            met = [event for event in scan if isinstance(event, Unreadable)]
        assert [one.position for one in met] == list(range(BLOCK, blocks * BLOCK, 2 * BLOCK))
        return time.process_time() - began

    assert seconds(16_384) < 8 * seconds(4_096) + 0.5


def test_a_range_keeps_the_reason_with_which_it_was_met_first(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = file.read_bytes()
    break_blocks(monkeypatch, {file: [5]})
    with ZeroFilledSource(open_source(file, "pread"), len(data)) as source:
        source.window(0, len(data))
        os.truncate(file, 3 * BLOCK)
        source.notice_cut()
        cut = BadRange(3 * BLOCK, 5 * BLOCK, CUT), BadRange(6 * BLOCK, len(data), CUT)
        assert source.unreadable == [cut[0], BadRange(5 * BLOCK, 6 * BLOCK, EIO), cut[1]]
        assert source.unreadable_in(4 * BLOCK, 5 * BLOCK) == [cut[0]]
        assert source.unreadable_in(5 * BLOCK, 6 * BLOCK + 1) == source.unreadable[1:]


@pytest.mark.parametrize("mode", ["map", "pread"])
def test_a_file_that_is_cut(file: Path, mode: str) -> None:
    data = file.read_bytes()
    with ZeroFilledSource(open_source(file, mode), len(data)) as source:  # type: ignore[arg-type]
        assert source.window(0, 10).tobytes() == data[:10]
        os.truncate(file, 3 * BLOCK)
        assert source.window(2 * BLOCK, 2 * BLOCK).tobytes() == data[2 * BLOCK : 3 * BLOCK] + bytes(BLOCK)
        assert source.window(4 * BLOCK, 20).tobytes() == bytes(20)
        assert source.unreadable == [BadRange(3 * BLOCK, len(data), CUT)]


def test_a_file_that_was_cut_before_it_was_opened_or_that_nobody_reads_to_its_end(file: Path) -> None:
    data = file.read_bytes()
    os.truncate(file, BLOCK)
    with ZeroFilledSource(open_source(file, "pread"), len(data)) as source:
        assert source.size == len(data)
        assert source.next_data(BLOCK) is None
        assert source.unreadable == [BadRange(BLOCK, len(data), CUT)]
    with ZeroFilledSource(open_source(file, "pread"), len(data)) as source:
        source.notice_cut()
        assert source.unreadable == [BadRange(BLOCK, len(data), CUT)]


def test_a_live_store_leaves_nothing_in_the_page_cache(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[tuple[int, int, int]] = []
    replace(monkeypatch, "posix_fadvise", lambda _, *rest: dropped.append(rest))
    with open_source(file, Access("pread", drop_behind=True)) as source:
        source.window(0, 2 * BLOCK)
        assert dropped == []
        source.window(2 * BLOCK, BLOCK)
        assert dropped == [(0, 2 * BLOCK, os.POSIX_FADV_DONTNEED)]
    assert dropped[1:] == [(2 * BLOCK, BLOCK, os.POSIX_FADV_DONTNEED)]
    with open_source(file, "pread") as source:
        source.window(0, 2 * BLOCK)
    assert len(dropped) == 2
