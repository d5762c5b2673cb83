"""`verify --quick`: what it finds, what it says it left out, and how little of a large store it reads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import fixtures
from fixtures import logs
from formats.consumequeue import Unit
from formats.primitives import dtype_of
from rmqtool.check.levels import Level
from rmqtool.check.verify import Verification
from rmqtool.scan.options import ReadOptions
from rmqtool.store.bytes import PreadSource
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KIB = 1 << 10
LIVE_BYTES = 256 * KIB
"""of records in a segment that is not sparse"""


def sparse_store(root: Path, segments: int, queues: int, segment_size: int = 1 << 30) -> None:
    """Records in the first, middle and last segment, the rest holes; every queue with a hundred units."""
    for number in range(segments):
        base = number * segment_size
        if number in (0, segments // 2, segments - 1):
            logs.write_log(root / "commitlog", LIVE_BYTES, segment_size=segment_size, first_offset=base)
        else:
            with (root / "commitlog" / f"{base:020d}").open("wb") as file:
                file.truncate(segment_size)
    units = np.zeros(100, dtype_of(Unit))
    units["physical_offset"] = np.arange(100) * 1232
    units["size"] = 1232
    for number in range(queues):
        queue = root / "consumequeue" / f"Topic{number // 8}" / str(number % 8)
        queue.mkdir(parents=True)
        for base in (0, 6_000_000):
            with (queue / f"{base:020d}").open("wb") as file:
                file.write(units.tobytes())
                file.truncate(6_000_000)


def quick(path: Path, **reading: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    opened = Store.open(path)
    run = Verification(opened, ReadOptions.of(opened, **reading), Level.QUICK)
    rows = [one.row() for one in run.findings()]
    return rows, run.summary()


@pytest.mark.parametrize("name", ["v533-basic", "b533-full", "v498-basic"])
def test_right_stores_are_right(golden: Callable[[str], fixtures.Golden], name: str) -> None:
    rows, summary = quick(golden(name).path)
    assert [row for row in rows if row["severity"] != "note"] == []
    assert (summary["level"], summary["complete"]) == ("quick", True)
    assert summary["not_looked_at"]


def damaged(path: Path, position: int, value: bytes) -> Path:
    raw = bytearray(path.read_bytes())
    raw[position : position + len(value)] = value
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_broken_first_record_is_found_in_every_segment(
    fresh_golden: Callable[[str], fixtures.Golden], which: int
) -> None:
    root = fresh_golden("v498-basic").path
    segment = sorted((root / "commitlog").iterdir())[which]
    damaged(segment, 4, b"\x11\x22\x33\x44")
    loud = [row for row in quick(root)[0] if row["severity"] == "error"]
    assert (loud[0]["code"], loud[0]["position"]) == ("CL-MAGIC", 0)
    assert loud[0]["path"] == f"commitlog/{segment.name}"
    assert loud[0]["length"] > 0


def test_a_hole_in_the_last_file_of_a_queue(fresh_golden: Callable[[str], fixtures.Golden]) -> None:
    root = fresh_golden("v533-basic").path
    lasts = [max(queue.iterdir()) for queue in sorted((root / "consumequeue").glob("*/*"))]
    queue = next(path for path in lasts if any(path.read_bytes()[40:60]))
    damaged(queue, 20, bytes(20))
    loud = [row for row in quick(root)[0] if row["severity"] == "error"]
    assert [(row["code"], row["position"], row["length"]) for row in loud] == [("CQ-HOLE", 20, 20)]


def test_a_wrong_index_header(fresh_golden: Callable[[str], fixtures.Golden]) -> None:
    root = fresh_golden("v533-basic").path
    path = min((root / "index").iterdir())
    damaged(path, 36, (5).to_bytes(4, "big"))
    assert "IDX-COUNT" in {row["code"] for row in quick(root)[0]}


def test_it_reads_a_bounded_part_of_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read goes with the number of files, not with their length."""
    read: dict[str, int] = {}
    window = PreadSource.window

    def counted(self: PreadSource, offset: int, length: int) -> Any:
        got = window(self, offset, length)
        kind = self.name.split("/")[0]
        read[kind] = read.get(kind, 0) + got.size
        return got

    monkeypatch.setattr(PreadSource, "window", counted)
    counts = []
    for size in (16 << 20, 64 << 20):
        root = tmp_path / str(size)
        sparse_store(root, 12, 16, size)
        read.clear()
        rows, summary = quick(root, safe_io=True)
        assert {row["code"] for row in rows if row["severity"] == "error"} == {"CL-ZERO"}
        assert sum(row["length"] for row in rows if row["code"] == "CL-ZERO") == 9 * size
        assert summary["end_offset"] == 11 * size + LIVE_BYTES // 1232 * 1232
        counts.append(dict(read))
    small, large = counts
    # the three segments at the end are read with windows of 32 MiB, from where there is data
    assert large["commitlog"] <= small["commitlog"] + 3 * (32 << 20)
    assert large["consumequeue"] == small["consumequeue"] < 16 * 64 * KIB


@pytest.mark.full
def test_a_hundred_gib_take_seconds(tmp_path: Path) -> None:
    sparse_store(tmp_path / "store", 100, 8000)
    began = time.process_time()
    rows, summary = quick(tmp_path / "store")
    assert time.process_time() - began < 10
    assert summary["complete"]
    assert sum(row["code"] == "CL-ZERO" for row in rows) == 97
