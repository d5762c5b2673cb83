"""A whole log: all segments in order, whatever the number of threads and whatever one of them does."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import fixtures
from fixtures.builder import HandmadeLog, zero_block
from rmqtool.errors import StoreIOError, UnreadableError
from rmqtool.scan import parts as parts_module
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Blank, End, Gap, Records, Tail, Unreadable
from rmqtool.scan.fields import Check
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.store.access import Access
from rmqtool.store.bytes import PreadSource
from rmqtool.store.layout import Store
from rmqtool.store.segments import Segment, SegmentSet
from tests.scan.conftest import compiled_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COLUMNS = ("physical_offset", "store_size", "topic", "body", "properties")
SIZE = 2048


def make_log(directory: Path, segments: int = 6, per_segment: int = 5) -> HandmadeLog:
    log = HandmadeLog(segment_size=SIZE)
    for number in range(segments * per_segment):
        log.put("TopicTest", bytes([number % 251]) * 200, {"TAGS": f"T{number}"})
        if (number + 1) % per_segment == 0 and number + 1 < segments * per_segment:
            log.roll()
    log.write(directory)
    return log


@pytest.fixture
def made(tmp_path: Path) -> tuple[HandmadeLog, SegmentSet]:
    log = make_log(tmp_path / "commitlog")
    return log, Store.open(tmp_path / "commitlog").segments


def plain(pieces: Iterator[Any]) -> list[Any]:
    """Pieces that can be compared."""
    return [
        (
            piece.segment.base,
            piece.content.to_pylist() if isinstance(piece.content, pa.RecordBatch) else piece.content,
        )
        for piece in pieces
    ]


def offsets(pieces: Iterator[Any]) -> list[int]:
    return [
        offset
        for piece in pieces
        if isinstance(piece.content, pa.RecordBatch)
        for offset in piece.content["physical_offset"].to_pylist()
    ]


def test_all_records_in_order(made: tuple[HandmadeLog, SegmentSet]) -> None:
    log, segments = made
    assert len(segments) == 6
    pieces = list(scan_log(segments, LogScan(COLUMNS)))
    assert offsets(pieces) == [record.physical_offset for record in log.records]
    kinds = [type(piece.content).__name__ for piece in pieces]
    assert kinds == ["RecordBatch", "Blank", "End"] * 5 + ["RecordBatch", "Tail", "End"]


@pytest.mark.parametrize(
    "options",
    [
        ReadOptions(jobs=4),
        ReadOptions(Access("pread")),
        ReadOptions(Access.of(1 << 40, careful=False, live=False), 3),
    ],
)
def test_threads_and_ways_to_read_make_no_difference(
    golden: Callable[[str], fixtures.Golden], made: tuple[HandmadeLog, SegmentSet], options: ReadOptions
) -> None:
    sets = [
        made[1],
        Store.open(golden("v533-basic").path).segments,
        Store.open(golden("v498-edge").path).segments,
    ]
    for segments in sets:
        expected = plain(scan_log(segments, LogScan(COLUMNS)))
        assert plain(scan_log(segments, LogScan(COLUMNS, options=options))) == expected


def test_closing_early_stops_the_threads(made: tuple[HandmadeLog, SegmentSet]) -> None:
    before = threading.active_count()
    for jobs in (1, 4):
        pieces = scan_log(made[1], LogScan(COLUMNS, options=ReadOptions(jobs=jobs)))
        next(pieces)
        pieces.close()
        assert threading.active_count() == before


def broken(monkeypatch: pytest.MonkeyPatch, base: int, from_position: int) -> None:
    """Reading the segment at `base` fails from this position on."""
    whole = PreadSource.window

    def window(self: PreadSource, offset: int, length: int) -> Any:
        if self.name.endswith(f"{base:020d}") and offset + length > from_position:
            if offset >= from_position:
                raise UnreadableError(self.name, offset, 4096, "Input/output error")
            length = from_position - offset
        return whole(self, offset, length)

    monkeypatch.setattr(PreadSource, "window", window)
    monkeypatch.setattr(PreadSource, "window_bytes", 300)


@pytest.mark.parametrize("jobs", [1, 4])
def test_an_unreadable_segment_does_not_stop_the_others(
    made: tuple[HandmadeLog, SegmentSet], monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    log, segments = made
    base = segments[2].base
    lost = [record for record in log.records if base <= record.physical_offset < base + SIZE]
    broken(monkeypatch, base, lost[2].physical_offset - base)
    pieces = list(scan_log(segments, LogScan(COLUMNS, options=ReadOptions(Access("pread"), jobs))))
    assert offsets(pieces) == [r.physical_offset for r in log.records if r not in lost[2:]]
    (bad,) = [piece for piece in pieces if isinstance(piece.content, Unreadable)]
    assert bad.segment.base == base
    start = lost[2].physical_offset - base
    assert (bad.content.position, bad.content.length) == (start, SIZE - start)
    assert "error" in bad.content.reason or "shorter" in bad.content.reason
    assert [piece.segment.base for piece in pieces] == sorted(piece.segment.base for piece in pieces)


def test_a_file_that_cannot_be_opened(
    made: tuple[HandmadeLog, SegmentSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root no mode forbids reading: the refusal is made here."""
    _log, segments = made
    forbidden = segments[1].base
    usual = Segment.open

    def open_segment(self: Segment, mode: Any = "auto") -> Any:
        if self.base == forbidden:
            raise StoreIOError(f"{self.file.display_path}: Permission denied")
        return usual(self, mode)

    monkeypatch.setattr(Segment, "open", open_segment)
    pieces = list(scan_log(segments, LogScan(COLUMNS, options=ReadOptions(jobs=2))))
    (bad,) = [piece for piece in pieces if isinstance(piece.content, Unreadable)]
    assert (bad.segment.base, bad.content.position, bad.content.length) == (forbidden, 0, SIZE)
    assert "Permission denied" in bad.content.reason
    assert len(offsets(pieces)) == 25


@pytest.mark.parametrize("jobs", [1, 4])
def test_an_internal_error_surfaces_in_place(made: tuple[HandmadeLog, SegmentSet], jobs: int) -> None:
    log, segments = made

    def choose(records: Records, base: int, path: str) -> Records:
        if base == segments[3].base:
            raise ZeroDivisionError(path)
        return records

    found: list[Any] = []
    pieces = scan_log(segments, LogScan(COLUMNS, choose=choose, options=ReadOptions(jobs=jobs)))
    with pytest.raises(ZeroDivisionError, match="00000000000000006144"):
        found.extend(pieces)
    assert offsets(found) == [r.physical_offset for r in log.records if r.physical_offset < segments[3].base]


def test_unwanted_segments_are_not_opened(
    made: tuple[HandmadeLog, SegmentSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    _log, segments = made
    segments.last_with_data()
    opened = []
    usual = Segment.open

    def open_segment(self: Segment, mode: Any = "auto") -> Any:
        opened.append(self.base)
        return usual(self, mode)

    monkeypatch.setattr(Segment, "open", open_segment)
    wanted = {segments[1].base, segments[4].base}
    how = LogScan(COLUMNS, wanted=lambda segment: segment.base in wanted, checks=Check.ALL)
    pieces = list(scan_log(segments, how))
    assert {piece.segment.base for piece in pieces} == set(opened) == wanted


def test_the_last_wanted_segment_is_not_taken_for_the_active_one(
    made: tuple[HandmadeLog, SegmentSet],
) -> None:
    log, segments = made
    first = segments[0]
    path = Path(first.file.location)
    end = log.records[4].end
    path.write_bytes(path.read_bytes()[:end] + bytes(SIZE - end))
    pieces = list(scan_log(segments, LogScan(COLUMNS, wanted=lambda segment: segment.base == 0)))
    assert [type(piece.content) for piece in pieces if not isinstance(piece.content, pa.RecordBatch)] == [
        Gap,
        End,
    ]


def test_progress_adds_up(made: tuple[HandmadeLog, SegmentSet]) -> None:
    steps: list[int] = []
    list(scan_log(made[1], LogScan(COLUMNS, options=ReadOptions(advance=steps.append))))
    assert sum(steps) == 6 * SIZE
    assert min(steps) >= 0


def test_bad_bodies_are_counted_though_nobody_chose_them(tmp_path: Path) -> None:
    log = make_log(tmp_path, segments=1)
    path = tmp_path / f"{0:020d}"
    at = log.records[2].physical_offset + 100
    path.write_bytes(zero_block(path.read_bytes(), at, 5).data)
    segments = Store.open(tmp_path).segments

    def none(records: Records, base: int, path: str) -> Records:
        return replace(records, rows=records.rows[:0])

    for choose in (None, none):
        pieces = list(scan_log(segments, LogScan(COLUMNS, choose=choose)))
        assert [at for piece in pieces for at in (() if piece.bad_bodies is None else piece.bad_bodies)] == [
            log.records[2].physical_offset
        ]


# ---- batches are bounded by the bytes of their bodies --------------------------------------------


def test_batches_are_split_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "BATCH_BYTES", 450)
    log = make_log(tmp_path, segments=1)
    segments = Store.open(tmp_path).segments

    def sizes(columns: tuple[str, ...]) -> list[int]:
        pieces = scan_log(segments, LogScan(columns))
        return [p.content.num_rows for p in pieces if isinstance(p.content, pa.RecordBatch)]

    assert sum(sizes(("topic",))) == len(log.records) == 5
    assert 1 < len(sizes(("topic",))) <= 5


def test_a_filter_sees_no_more_at_once_than_a_batch_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "BATCH_BYTES", 450)
    log = make_log(tmp_path, segments=1)
    seen = []

    def choose(records: Records, base: int, path: str) -> Records:
        seen.append(len(records.rows))
        return records

    pieces = scan_log(Store.open(tmp_path).segments, LogScan(COLUMNS, choose=choose))
    assert len(offsets(pieces)) == sum(seen) == len(log.records)
    assert max(seen) < len(log.records)


# ---- engine --------------------------------------------------------------------------------------


def test_the_measure_of_work_is_what_lies_on_disk(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}"
    log = make_log(tmp_path, segments=1)
    with path.open("r+b") as file:
        file.truncate(1 << 30)
    segments = Store.open(tmp_path).segments
    assert log.end_offset <= data_bytes(segments) < 1 << 20
    assert segments[0].size == 1 << 30


def test_which_kernels_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from rmqtool.errors import UsageError

    small, large = 1 << 10, 1 << 30
    assert choose_kernels(small).__name__ == "rmqtool.scan.kernels_python"
    for wanted in ("auto", ""):
        monkeypatch.setenv("RMQTOOL_KERNELS", wanted)
        assert choose_kernels(small).__name__ == "rmqtool.scan.kernels_python"
    monkeypatch.setenv("RMQTOOL_KERNELS", "python")
    assert choose_kernels(large).__name__ == "rmqtool.scan.kernels_python"
    monkeypatch.setenv("RMQTOOL_KERNELS", "bogus")
    with pytest.raises(UsageError, match="RMQTOOL_KERNELS=bogus"):
        choose_kernels(small)


def test_compiled_kernels_answer_for_large_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="numba is not installed")
    assert choose_kernels(1 << 30) is choose_kernels(None) is compiled_kernels()
    monkeypatch.setenv("RMQTOOL_KERNELS", "numba")
    assert choose_kernels(1).__name__ == "rmqtool.scan.kernels"


def test_events_have_no_other_kinds(made: tuple[HandmadeLog, SegmentSet]) -> None:
    kinds = {type(piece.content) for piece in scan_log(made[1], LogScan(COLUMNS))}
    assert kinds == {pa.RecordBatch, Blank, Tail, End}
