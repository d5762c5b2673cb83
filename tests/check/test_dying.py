"""Dying disks, and files cut or removed while they are read: exact ranges, and nothing else is lost."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, nullcontext
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fixtures import derived, logs
from rmqtool.check import verify
from rmqtool.check.levels import Level
from rmqtool.check.verify import Verification
from rmqtool.scan import reader
from rmqtool.scan.events import Records
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.layout import Store
from rmqtool.store.patched import CUT
from tests.disks import BLOCK, break_blocks
from tests.helpers import held, rmq
from tests.scan.conftest import compiled_kernels
from tests.tiers import sampled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEGMENT = 1 << 20
SEGMENTS = 3
QUEUE = "consumequeue/TopicTest0/0/00000000000000000000"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, logs.LogFacts]:
    root = tmp_path_factory.mktemp("dying") / "store"
    facts = logs.write_log(
        root / "commitlog", SEGMENTS * SEGMENT, body_size=logs.BODY_OF_300, segment_size=SEGMENT
    )
    derived.write_derived(root, facts, units_in_a_file=4096, slots=5000, items=20_000)
    return root, facts


@pytest.fixture
def made(pristine: tuple[Path, logs.LogFacts], tmp_path: Path) -> tuple[Path, logs.LogFacts]:
    root = tmp_path / "store"
    shutil.copytree(pristine[0], root)
    return root, pristine[1]


def starts(facts: logs.LogFacts) -> np.ndarray:
    """Physical offset of every record."""
    per_segment = (SEGMENT - 8) // facts.record_size
    numbers = np.arange(facts.messages)
    return numbers // per_segment * SEGMENT + numbers % per_segment * facts.record_size


def records_outside(facts: logs.LogFacts, ranges: list[tuple[int, int]]) -> list[int]:
    begin = starts(facts)
    lost = np.zeros(len(begin), bool)
    for start, end in ranges:
        lost |= (begin < end) & (begin + facts.record_size > start)
    return begin[~lost].tolist()


def serious(found: list[Any]) -> list[Any]:
    return [one for one in found if one.severity != "note"]


def verified(root: Path, level: Level = Level.DEFAULT, **reading: Any) -> tuple[list[Any], dict[str, Any]]:
    opened = Store.open(root)
    run = Verification(opened, ReadOptions.of(opened, **reading), level)
    return list(run.findings()), run.summary()


def test_the_store_is_right(made: tuple[Path, logs.LogFacts]) -> None:
    found, summary = verified(made[0])
    assert serious(found) == []
    assert (summary["records"], summary["complete"]) == (made[1].messages, True)


BAD: list[dict[int, Any]] = [
    {0: [5]},
    {0: [0, 9], 1: [3, 4, 5], 2: [0]},
    {1: range(10, 250)},
    {1: range(256)},
    {0: [255]},
    {2: range(5, 256)},  # the log ends there, or goes on where nobody can read
    {2: range(256)},
]


@pytest.mark.share
@pytest.mark.parametrize(
    ("blocks", "jobs"),
    sampled(product(BAD, (1, 3)), kind=lambda one: BAD.index(one[0]) // 2, unpack=True),
)
def test_bad_blocks_of_the_log(
    made: tuple[Path, logs.LogFacts], monkeypatch: pytest.MonkeyPatch, blocks: dict[int, Any], jobs: int
) -> None:
    root, facts = made
    bad = {root / "commitlog" / f"{number * SEGMENT:020d}": which for number, which in blocks.items()}
    wanted = [(n * SEGMENT + a, n * SEGMENT + b) for n, which in blocks.items() for a, b in runs(which)]
    break_blocks(monkeypatch, bad)
    left = records_outside(facts, wanted)

    found, summary = verified(root, jobs=jobs, safe_io=True)
    reported = [one for one in found if one.code == "DIR-UNREADABLE"]
    assert [(one.physical_offset, one.physical_offset + one.length) for one in reported] == wanted
    assert all("Input/output error" in one.message for one in reported)
    assert (summary["records"], summary["complete"]) == (len(left), False)
    assert summary["incomplete_reason"] == "unreadable"
    assert [(one["position"], one["length"]) for one in summary["not_covered"]] == [
        (start % SEGMENT, end - start) for start, end in wanted
    ]
    others = [one for one in serious(found) if one not in reported]
    assert {one.caused_by for one in others} <= {"DIR-UNREADABLE"}, others[:3]

    result = rmq("dump", root, "--format", "ndjson", "--body", "none", "--safe-io", "--jobs", jobs)
    assert result.exit_code == 3
    assert [row["physical_offset"] for row in result.of_type("message")] == left
    gaps = [row for row in result.of_type("gap") if row["reason"] == "unreadable"]
    assert [(row["physical_offset"], row["physical_offset"] + row["length"]) for row in gaps] == wanted
    torn = [row for row in result.of_type("gap") if row["reason"] != "unreadable"]
    assert {row["reason"] for row in torn} <= {"torn"}
    rows = [row for row in result.rows if row["type"] != "summary"]
    assert_all_bytes_are_told(rows)


def runs(blocks: Any) -> list[tuple[int, int]]:
    """Byte ranges of neighbouring blocks."""
    numbers = np.array(sorted(blocks))
    return [
        (int(part[0]) * BLOCK, (int(part[-1]) + 1) * BLOCK)
        for part in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    ]


def assert_all_bytes_are_told(rows: list[dict[str, Any]]) -> None:
    """Every byte of the log is part of one row: a record, a gap, a filler or the tail."""
    at = 0
    tails = 0
    for row in rows:
        if row["type"] == "tail":
            tails += row["length"]
            continue
        assert row["physical_offset"] == at, row
        at += row.get("length", row.get("store_size", 0))
    assert at + tails >= SEGMENTS * SEGMENT


@pytest.mark.parametrize("block", [0, 2])
def test_a_bad_block_of_a_queue(
    made: tuple[Path, logs.LogFacts], monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    root, _ = made
    path = next((root / "consumequeue").rglob("0" * 20))
    break_blocks(monkeypatch, {path: [block]})
    found, summary = verified(root)
    (one,) = serious(found)
    assert (one.code, root / one.path, one.position, one.length) == (
        "DIR-UNREADABLE",
        path,
        block * BLOCK,
        BLOCK,
    )
    assert (one.topic, one.queue_id) == (path.parts[-3], int(path.parts[-2]))
    assert not summary["complete"]

    result = rmq("dump", path, "--format", "ndjson")
    assert result.exit_code == 3
    (gap,) = result.of_type("gap")
    assert (gap["position"], gap["length"], gap["reason"]) == (block * BLOCK, BLOCK, "unreadable")
    lost = range(block * BLOCK // 20, -(-(block + 1) * BLOCK // 20))
    whole = 1 + max(row["slot"] for row in result.of_type("unit"))
    assert [row["slot"] for row in result.of_type("unit")] == [n for n in range(whole) if n not in lost]


@pytest.mark.share
@pytest.mark.parametrize("block", [0, 3, 30])
def test_a_bad_block_of_an_index_file(
    made: tuple[Path, logs.LogFacts], monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """In the slots (the first one with the header), and in the items."""
    root, _ = made
    path = min((root / "index").iterdir())
    break_blocks(monkeypatch, {path: [block]})
    found, summary = verified(root, safe_io=True)
    reported = [one for one in found if one.code == "IDX-UNREADABLE"]
    assert [(root / one.path, one.position, one.length) for one in reported] == [(path, block * BLOCK, BLOCK)]
    assert {one.caused_by for one in serious(found) if one not in reported} <= {"IDX-UNREADABLE"}
    assert not summary["complete"]
    result = rmq("dump", path, "--format", "ndjson")
    assert result.exit_code == 3
    gaps = {(row["position"], row["length"], row["reason"]) for row in result.of_type("gap")}
    assert (block * BLOCK, BLOCK, "unreadable") in gaps


@pytest.mark.parametrize("name", ["consumequeue", "index", "commitlog"])
def test_files_removed_after_they_were_listed(made: tuple[Path, logs.LogFacts], name: str) -> None:
    root, facts = made
    store = Store.open(root)
    path = max(one for one in (root / name).rglob("*") if one.is_file())
    path.unlink()
    run = Verification(store, ReadOptions.of(store))
    found = list(run.findings())
    reported = [one for one in found if one.code in {"DIR-UNREADABLE", "IDX-UNREADABLE"}]
    assert [root / one.path for one in reported] == [path]
    assert {one.caused_by for one in serious(found) if one not in reported} <= {
        "DIR-UNREADABLE",
        "IDX-UNREADABLE",
    }
    assert not run.summary()["complete"]
    if name == "commitlog":
        last = (SEGMENTS - 1) * SEGMENT, SEGMENTS * SEGMENT
        assert run.covered.records == len(records_outside(facts, [last]))


@pytest.mark.parametrize("listed", [0, 5_000, SEGMENT - 1])
def test_a_segment_that_grew_after_it_was_listed(made: tuple[Path, logs.LogFacts], listed: int) -> None:
    """As the files of a store do that is just being copied here."""
    root, facts = made
    path = root / "commitlog" / f"{SEGMENT:020d}"
    whole = path.read_bytes()
    path.write_bytes(whole[:listed])
    store = Store.open(root)
    path.write_bytes(whole)
    run = Verification(store, ReadOptions.of(store))
    codes = {one.code for one in serious(list(run.findings()))}
    assert codes & {"DIR-SIZE", "DIR-EMPTY-FILE"}, codes
    lost = (SEGMENT, 2 * SEGMENT) if not listed else (0, 0)
    assert run.covered.records == len(records_outside(facts, [lost]))


def test_a_segment_cut_in_mid_verification(
    made: tuple[Path, logs.LogFacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, facts = made
    path = root / "commitlog" / f"{SEGMENT:020d}"
    usual = reader.opened

    @contextmanager
    def opened_and_cut(segment: Any, *rest: Any, **how: Any) -> Iterator[Any]:
        with usual(segment, *rest, **how) as answer:
            if segment.base == SEGMENT:
                os.truncate(path, 100_000)
            yield answer

    monkeypatch.setattr(reader, "opened", opened_and_cut)
    found, summary = verified(root)
    (reported,) = [one for one in found if one.code == "DIR-UNREADABLE"]
    assert (reported.physical_offset, reported.length, reported.found) == (
        SEGMENT + 100_000,
        SEGMENT - 100_000,
        CUT,
    )
    assert summary["records"] == len(records_outside(facts, [(SEGMENT + 100_000, 2 * SEGMENT)]))
    assert {one.caused_by for one in serious(found) if one is not reported} <= {"DIR-UNREADABLE"}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("left", [0, 3_000_001])
def test_a_mapped_segment_cut_in_mid_dump(tmp_path: Path, jobs: int, left: int) -> None:
    """More than the twin reads, so that the compiled kernels walk over a mapping; no SIGBUS."""
    kernels = compiled_kernels()
    from rmqtool.scan.opened import opened

    size = 12 << 20
    facts = logs.write_log(tmp_path / "commitlog", 2 * size, segment_size=size)
    segments = Store.open(tmp_path / "commitlog").segments
    with opened(segments[0], ReadOptions()) as (source, _):
        assert source.zero_copy, "not mapped"
    assert kernels.walk
    path = tmp_path / "commitlog" / ("0" * 20)
    seen: list[int] = []
    gaps: list[tuple[int, int]] = []
    for piece in scan_log(
        segments, LogScan(("physical_offset", "body", "topic", "properties"), options=ReadOptions(jobs=jobs))
    ):
        if hasattr(piece.content, "num_rows"):
            if not seen:
                os.truncate(path, left)
            assert set(piece.content["topic"].to_pylist()) <= set(logs.TOPICS), "a record made of zeros"
            seen += piece.content["physical_offset"].to_pylist()
        elif type(piece.content).__name__ == "Unreadable":
            gaps.append((piece.segment.base + piece.content.position, piece.content.length))
    if gaps:
        ((start, length),) = gaps
        assert start >= left
        assert start + length == size
    else:  # a worker that reads ahead had all of it before it was cut
        assert jobs > 1
        start = size
    second = [offset for offset in seen if offset >= size]
    per_segment = (size - 8) // facts.record_size
    assert len(second) == facts.messages - per_segment
    assert seen == sorted(set(seen))
    assert set(range(0, start - facts.record_size + 1, facts.record_size)) <= set(seen)
    assert not any(start - facts.record_size < offset < size for offset in seen)


def test_a_run_that_was_spoiled_is_read_again(tmp_path: Path) -> None:
    """The bytes of a run are gone when they are wanted, after the walk over them."""
    kernels = compiled_kernels()
    from rmqtool.store.access import open_source
    from rmqtool.store.patched import ZeroFilledSource

    facts = logs.write_log(tmp_path, 4 << 20, segment_size=4 << 20)
    path = tmp_path / ("0" * 20)
    with ZeroFilledSource(open_source(path, "map"), 4 << 20) as source:
        scan = SegmentScan(source, 0, kernels=kernels)
        events = iter(scan)
        run = next(events)
        assert isinstance(run, Records)
        os.truncate(path, 1_000_000)
        assert run.window[2_000_000:2_000_100].tobytes() == bytes(100)
        assert source.had_fault()
        reported = list(_plain(scan.reread(run)))
        whole = 1_000_000 // facts.record_size
        assert reported[:3] == [
            ("Records", whole),
            ("Gap", 1_000_000 - whole * facts.record_size),
            ("Unreadable", (4 << 20) - 1_000_000),
        ]


def _plain(events: Iterator[Any]) -> Iterator[tuple[str, int]]:
    for event in events:
        name = type(event).__name__
        yield name, len(event.rows) if isinstance(event, Records) else getattr(event, "length", 0)


@pytest.fixture
def live(made: tuple[Path, logs.LogFacts], request: pytest.FixtureRequest) -> Iterator[bool]:
    with held(made[0]) if request.param else nullcontext():
        yield request.param


@pytest.mark.parametrize(
    ("live", "level"),
    sampled(product((False, True), (Level.QUICK, Level.DEEP)), kind=lambda one: one[0], unpack=True),
    indirect=["live"],
)
def test_other_levels_survive_the_same(
    made: tuple[Path, logs.LogFacts],
    monkeypatch: pytest.MonkeyPatch,
    level: Level,
    live: bool,
) -> None:
    """Bad blocks by their exact ranges, everything around them read; a store at work is read as well."""
    root, facts = made
    found, summary = verified(root, level=level)
    assert serious(found) == []
    assert summary["complete"]
    assert ("live" in summary) is (live and level is Level.DEEP)

    last = root / "commitlog" / f"{(SEGMENTS - 1) * SEGMENT:020d}"
    queue = next((root / "consumequeue").rglob("0" * 20))
    break_blocks(monkeypatch, {last: [0, 9], queue: [2]})
    found, summary = verified(root, level=level, safe_io=True)
    reported = {(root / one.path, one.position, one.length) for one in found if one.code == "DIR-UNREADABLE"}
    assert reported == {(last, 0, BLOCK), (last, 9 * BLOCK, BLOCK), (queue, 2 * BLOCK, BLOCK)}
    assert {one.caused_by for one in serious(found)} <= {None, "DIR-UNREADABLE"}
    rows = {(root / row["path"], row["position"], row["length"]) for row in summary["not_covered"]}
    assert (rows, summary["incomplete_reason"]) == (reported, "unreadable")
    if level is Level.DEEP:
        base = (SEGMENTS - 1) * SEGMENT
        lost = [(base, base + BLOCK), (base + 9 * BLOCK, base + 10 * BLOCK)]
        assert summary["records"] == len(records_outside(facts, lost))


@pytest.mark.share
@pytest.mark.parametrize("level", list(Level))
def test_a_segment_that_expires_after_the_listing(made: tuple[Path, logs.LogFacts], level: Level) -> None:
    root, _ = made
    for live in (True, False):
        with held(root) if live else nullcontext(), pytest.MonkeyPatch.context() as patched:
            patched.setattr(verify, "relisted", lambda store: store)
            store = Store.open(root)
            segment = root / "commitlog" / f"{0:020d}"
            content = segment.read_bytes()
            segment.unlink()
            run = Verification(store, ReadOptions.of(store), level)
            loud = serious(list(run.findings()))
            segment.write_bytes(content)
        assert run.summary()["complete"] is live
        assert [one.code for one in loud][:1] == ([] if live else ["DIR-UNREADABLE"])


def test_queue_files_that_a_broker_makes_after_the_listing(made: tuple[Path, logs.LogFacts]) -> None:
    root, _ = made
    whole, away = root / QUEUE, root / "away"
    whole.rename(away)
    with held(root):
        store = Store.open(root)
        away.rename(whole)
        run = Verification(store, ReadOptions.of(store))
        assert serious(list(run.findings())) == []
    assert run.summary()["live"]
