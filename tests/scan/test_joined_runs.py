"""Runs of one window are one run; others stay apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.many import Many
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field
from rmqtool.scan.joined_runs import joined_runs
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.bytes import MemorySource

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("window_bytes", [1 << 20, 2000])
def test_records_between_holes_come_together(tmp_path: Path, window_bytes: int) -> None:
    many = Many(1, 1, 300)
    root = many.write(tmp_path / "store")
    data = bytearray((root / "commitlog" / f"{0:020d}").read_bytes())
    for number in range(0, 300, 3):
        start = number * many.record_size
        data[start : start + many.record_size] = bytes(many.record_size)

    class Copied(MemorySource):
        zero_copy = False

    def scan() -> SegmentScan:
        return SegmentScan(Copied(bytes(data)), 0, window_bytes=window_bytes)

    apart = [one.rows[:, Field.POSITION].copy() for one in scan() if isinstance(one, Records)]
    together = []
    for run in joined_runs(scan()):
        together.append(run.rows[:, Field.POSITION].copy())
        at = int(run.rows[0, Field.POSITION]) - run.origin
        assert run.window[at : at + 4].tobytes() == many.record_size.to_bytes(4, "big")
    assert np.array_equal(np.concatenate(apart), np.concatenate(together))
    assert (len(together) == 1) == (window_bytes == 1 << 20)
    assert len(together) < 100 <= len(apart)
