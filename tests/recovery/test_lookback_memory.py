"""What a look back keeps of each segment."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

from fixtures.stores import HandmadeStore
from rmqtool.recovery.simulation import simulate
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from pathlib import Path


def _peak(root: Path, messages: int) -> tuple[int, int]:
    made = HandmadeStore()
    for number in range(messages):
        made.put("Orders", b"body %d" % number)
    made.write(root)
    store = Store.open(root)
    tracemalloc.start()
    try:
        simulate(store, "5.3.3", reading=ReadOptions.of(store))
        return len(store.segments), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_segment_keeps_no_room_for_records(tmp_path: Path) -> None:
    """Each kept a megabyte of columns, 130 kB of it touched: a simulated start grew with the log."""
    _peak(tmp_path / "first", 100)
    few, small = _peak(tmp_path / "few", 200)
    many, large = _peak(tmp_path / "many", 1000)
    assert large - small < (many - few) * 100_000
