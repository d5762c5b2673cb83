"""Parts of a log add up to the log, record for record and gap for gap."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import fixtures
from fixtures.builder import HandmadeLog
from formats.commitlog import Blank, encode_message
from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.parts import MANY_SEGMENTS, MOST_PIECES, log_parts, pieces
from rmqtool.query.not_read import not_read
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.store.bytes import BLOCK
from rmqtool.store.doubts import joined
from rmqtool.store.layout import Store
from rmqtool.store.segments import Segment, SegmentSet
from tests.disks import break_blocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Found = tuple[list[dict[str, Any]], list[dict[str, Any]]]
COLUMNS = ("path", "physical_offset", "topic", "queue_offset", "crc")


def read(segments: SegmentSet) -> Found:
    rows: list[dict[str, Any]] = []
    beside: list[dict[str, Any]] = []
    for piece in scan_log(segments, LogScan(columns=COLUMNS)):
        if isinstance(piece.content, pa.RecordBatch):
            rows += piece.content.to_pylist()
        else:
            beside += not_read(piece.segment, piece.content)
    return rows, joined(beside)


def read_in_parts(store: Store, size: int) -> tuple[Found, int]:
    """The same from parts of about `size`, and how many of them held something."""
    rows: list[dict[str, Any]] = []
    beside: list[dict[str, Any]] = []
    used = 0
    parts = log_parts(store, size)
    for first in [part for part in parts if part.number == 0]:
        views = [part.resolved() for part in parts if part.segment == first.segment]
        found = [read(view.segments) for view in views if view is not None]
        used += len(found)
        rows += [row for some, _ in found for row in some]
        beside += [row for _, some in found for row in some]
    return (rows, joined(beside)), used


@pytest.mark.parametrize("size", [4096, 20_000])
@pytest.mark.parametrize(
    "name", ["v498-basic", "v533-v2", "v533-compressed", "v498-unclean", "v533-expired-head"]
)
def test_parts_of_real_stores(golden: Callable[[str], fixtures.Golden], name: str, size: int) -> None:
    store = Store.open(golden(name).path)
    found, used = read_in_parts(store, size)
    assert found == read(store.segments)
    assert used > len(store.segments) / 2


@pytest.mark.share
@pytest.mark.parametrize(
    "case",
    [one for one in fixtures.damage_cases() if one.id.endswith("layout-twin-copy-abort")]
    + list(fixtures.damage_cases())[::180],
    ids=lambda case: case.id,
)
def test_parts_of_damaged_stores(
    damaged: Callable[[fixtures.DamageCase], Path], case: fixtures.DamageCase
) -> None:
    assert_same(damaged(case))


@pytest.mark.full
@pytest.mark.parametrize("case", list(fixtures.damage_cases()), ids=lambda case: case.id)
def test_parts_of_every_damaged_store(
    damaged: Callable[[fixtures.DamageCase], Path], case: fixtures.DamageCase
) -> None:
    assert_same(damaged(case))


def assert_same(path: Path) -> None:
    try:
        store = Store.open(path)
    except RmqtoolError:
        pytest.skip("no store is left")
    assert read_in_parts(store, 4096)[0] == read(store.segments)


def test_segments_are_really_cut(golden: Callable[[str], fixtures.Golden]) -> None:
    store = Store.open(golden("v498-basic").path)
    _, used = read_in_parts(store, 4096)
    assert used > 4 * len(store.segments)


def test_a_message_that_looks_like_a_record_is_no_border(golden: Callable[[str], fixtures.Golden]) -> None:
    """A border needs a run of records in front of it: one record that follows a gap does not do."""
    store = Store.open(golden("v498-basic").path)
    parts = log_parts(store, 512)  # smaller than many messages
    assert read_in_parts(store, 512)[0] == read(store.segments)
    assert len(parts) > 100


TIMES = {"store_timestamp": 1_700_000_000_000}
"""of records that a broker wrote before all others"""


def add_up(root: Path, *sizes: int) -> list[str | None]:
    """Checks parts against the whole, at many cuts; the topics of the whole."""
    store = Store.open(root)
    whole = read(store.segments)
    for size in sizes or (512, 700, 1024, 2048, 5000):
        assert read_in_parts(store, size)[0] == whole, size
    return [row["topic"] for row in whole[0]]


def test_records_in_the_bodies_of_others(tmp_path: Path) -> None:
    """A body that holds many whole records, at the offsets that they would have where they lie."""
    log, inner = HandmadeLog(segment_size=65536), HandmadeLog(segment_size=65536)
    for _ in range(3):
        log.put("T", bytes(50))
    start = len(encode_message("T", b"", b""))
    for number in range(200):
        at = log.end_offset + start - 1 + inner.end_offset
        inner.put_raw(encode_message("Inner", bytes(20), b"", physical_offset=at, queue_offset=number))
    body = b"".join(one.data for one in inner.records)
    for _ in range(2):
        log.put("T", body)
    log.write(tmp_path / "commitlog")
    assert add_up(tmp_path) == ["T"] * 5


def test_old_records_behind_a_filler_in_the_middle(tmp_path: Path) -> None:
    """A broker that truncated its log and found no room for the next message leaves old records there."""
    log = HandmadeLog(segment_size=16384)
    while len(log.segments) < 2:
        later = 1000 if len(log.records) < 20 else 0
        log.put("Old", bytes(100), store_timestamp=1_700_000_000_000 + later)
    log.put("Next", bytes(100), store_timestamp=1_700_000_002_000)
    log.write(tmp_path / "commitlog")
    assert add_up(tmp_path).count("Old") > 40
    at = log.records[20].physical_offset
    with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(at)
        file.write(Blank.build({"total_size": 16384 - at}))
    assert add_up(tmp_path).count("Old") == 20 + 1


@pytest.mark.parametrize("more", [0, 30])
def test_old_records_behind_the_end(tmp_path: Path, more: int) -> None:
    """Behind what a broker wrote again, with and without zeros between, and with damage in front."""
    log = HandmadeLog(segment_size=65536)
    for _ in range(60):
        log.put("New", bytes(100))
    log.put_raw(bytes(more) + b"\1" * 40)
    for _ in range(100):
        log.put("Old", bytes(100), **TIMES)
    log.write(tmp_path / "commitlog")
    assert add_up(tmp_path) == ["New"] * 60
    with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
        lost = log.records[30].physical_offset - 50, log.records[33].physical_offset
        file.seek(lost[0])
        file.write(bytes(lost[1] - lost[0]))
    assert add_up(tmp_path) == ["New"] * 56


@pytest.mark.parametrize("bad", [{2}, {2, 3}, {0}, {5}, {1, 4}])
def test_blocks_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: set[int]) -> None:
    """At a border, on both sides of it, over more than a part."""
    log = HandmadeLog(segment_size=8 * BLOCK)
    for number in range(180):
        log.put(f"T{number % 3}", bytes(80))
    log.write(tmp_path / "commitlog")
    usual = Segment.open
    monkeypatch.setattr(Segment, "open", lambda self, _="auto": usual(self, "pread"))
    break_blocks(monkeypatch, {tmp_path / "commitlog" / f"{0:020d}": bad})
    assert len(add_up(tmp_path, 512, BLOCK - 100, BLOCK, 2 * BLOCK)) < 180


def test_a_segment_that_is_gone_is_lost_once(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=8192)
    for _ in range(50):
        log.put("T", bytes(100))
    (first, *_) = log.write(tmp_path / "commitlog")
    store = Store.open(tmp_path)
    first.unlink()
    (rows, beside), _ = read_in_parts(store, 2000)
    assert {row["path"] for row in rows} == {"commitlog/00000000000000008192"}
    lost = sorted((row["position"], row["position"] + row["length"]) for row in beside)
    assert [start for start, _ in lost] == [0, *[end for _, end in lost[:-1]]]
    assert lost[-1][1] == 8192


def test_a_log_that_grows_between_its_tasks(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=65536)
    for _ in range(100):
        log.put("T", bytes(100))
    (path,) = log.write(tmp_path / "commitlog")
    store = Store.open(tmp_path)
    parts = log_parts(store, 4096)
    found: list[int] = []
    for part in parts:
        view = part.resolved()
        found += [row["physical_offset"] for row in read(view.segments)[0]] if view is not None else []
        log.put("T", bytes(100))
        path.write_bytes(log.files()[0])
    known = [record.physical_offset for record in log.records]
    assert found == known[: len(found)]
    assert len(found) >= 100


def test_when_segments_are_cut(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=256)
    log.put("T", b"")
    log.roll()
    log.write(tmp_path / "commitlog")
    store = Store.open(tmp_path)
    assert [part.count for part in log_parts(store, 0)] == [1, 1]
    assert log_parts(store, 100)[0].count == 3
    large = replace(store.segments[0], size=1 << 30)
    counts = {}
    for number in (MANY_SEGMENTS - 1, MANY_SEGMENTS):
        many = SegmentSet([replace(large, base=(1 << 30) * one) for one in range(number)])
        for root in ("/data/store", "s3://bucket/store"):
            one = replace(store, root=root).with_segments(many)
            counts[number, root] = max(part.count for part in log_parts(one, wanted=lambda s: s.base == 0))
    assert sorted(counts.values()) == [1, 1, 1, 8]


def test_the_smallest_parts_are_not_too_many() -> None:
    assert [pieces(1 << 30, size) for size in (1, 1 << 20, 1 << 30, 1 << 31)] == [MOST_PIECES, 1024, 1, 1]
