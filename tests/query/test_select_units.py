"""Which units and items of queue and index files are wanted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.select_units import UnitFilter


def batch(slots: range = range(10), name: str = "slot") -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: list(slots), "physical_offset": [slot * 100 for slot in slots]})


def file(topic: str | None = "TopicA", queue_id: int | None = 1) -> Any:
    return SimpleNamespace(topic=topic, queue_id=queue_id)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, True), ({"topics": ("Topic*",)}, True), ({"topics": ("topic*",)}, False),
        ({"topics": ("B", "TopicA")}, True),
        ({"queues": frozenset({1})}, True), ({"queues": frozenset({0, 2})}, False),
        ({"topics": ("TopicA",), "queues": frozenset({0})}, False), ({"limit": 0}, True),
    ],
)  # fmt: skip
def test_files(wanted: dict[str, Any], expected: bool) -> None:
    assert UnitFilter(MessageFilter(**wanted)).may_hold(file()) is expected


def test_files_without_a_queue() -> None:
    """An index file belongs to no topic: a filter by topic leaves it out."""
    assert not UnitFilter(MessageFilter(topics=("*A",))).may_hold(file(None, None))
    assert UnitFilter(MessageFilter(offset_from=1)).may_hold(file(None, None))


@pytest.mark.parametrize(
    ("wanted", "slots"),
    [
        ({}, range(10)), ({"queue_offset_from": 3}, range(3, 10)), ({"queue_offset_to": 3}, range(3)),
        ({"queue_offset_from": 2, "queue_offset_to": 5}, range(2, 5)), ({"offset_from": 300}, range(3, 10)),
        ({"offset_from": 301, "offset_to": 500}, range(4, 5)), ({"offset_to": 0}, range(0)),
        ({"offset_from": 200, "queue_offset_to": 4}, range(2, 4)),
    ],
)  # fmt: skip
def test_ranges_are_half_open(wanted: dict[str, Any], slots: range) -> None:
    assert UnitFilter(MessageFilter(**wanted)).units(batch())["slot"].to_pylist() == list(slots)


def test_queue_offsets_mean_nothing_to_index_slots_of_another_name() -> None:
    chosen = UnitFilter(MessageFilter(queue_offset_from=5)).units(batch(name="number"))
    assert chosen.num_rows == 10


def test_the_limit_counts_over_batches_and_rows() -> None:
    chosen = UnitFilter(MessageFilter(limit=13))
    assert chosen.units(batch()).num_rows == 10
    assert chosen.row({"type": "epoch"}) == {"type": "epoch"}
    assert chosen.left_out is None
    assert chosen.units(batch())["slot"].to_pylist() == [0, 1]
    assert chosen.left_out is not None
    assert chosen.left_out["slot"] == 2
    assert chosen.row({"type": "epoch"}) is None
    assert chosen.units(batch()).num_rows == 0


def test_a_limit_that_is_just_enough_leaves_nothing_out() -> None:
    chosen = UnitFilter(MessageFilter(limit=10))
    assert chosen.units(batch()).num_rows == 10
    for kind in ("tail", "gap", "index_header"):
        assert chosen.row({"type": kind}) is not None
    assert chosen.left_out is None
    assert chosen.row({"type": "config"}) is None
    assert chosen.left_out == {"type": "config"}


def test_without_a_limit_nothing_is_left_out() -> None:
    chosen = UnitFilter(MessageFilter())
    for _ in range(3):
        assert chosen.units(batch()).num_rows == 10
        assert chosen.row({"type": "epoch"})
    assert chosen.left_out is None
