"""Parts of a log add up to the log, record for record and gap for gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import fixtures
from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.parts import CutError, log_parts
from rmqtool.query.not_read import not_read
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rmqtool.store.segments import SegmentSet

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
    return rows, beside


def read_in_parts(store: Store, size: int) -> tuple[Found, int]:
    """The same from parts of about `size`, and how many of them held something."""
    rows: list[dict[str, Any]] = []
    beside: list[dict[str, Any]] = []
    used = 0
    parts = log_parts(store, size)
    for first in [part for part in parts if part.number == 0]:
        try:
            views = [part.resolved() for part in parts if part.segment == first.segment]
            found = [read(view.segments) for view in views if view is not None]
        except CutError:
            whole = first.whole.resolved()
            assert whole is not None
            found = [read(whole.segments)]
        used += len(found)
        rows += [row for some, _ in found for row in some]
        beside += [row for _, some in found for row in some]
    return (rows, beside), used


@pytest.mark.parametrize("size", [4096, 20_000])
@pytest.mark.parametrize(
    "name", ["v498-basic", "v533-v2", "v533-compressed", "v498-unclean", "v533-expired-head"]
)
def test_parts_of_real_stores(golden: Callable[[str], fixtures.Golden], name: str, size: int) -> None:
    store = Store.open(golden(name).path)
    found, used = read_in_parts(store, size)
    assert found == read(store.segments)
    assert used > len(store.segments) / 2


@pytest.mark.parametrize("case", list(fixtures.damage_cases())[::60], ids=lambda case: case.id)
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
