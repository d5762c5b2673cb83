"""Ranges side by side give what one thread finds, wherever borders fall."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fixtures.builder import HandmadeLog
from rmqtool.repair.salvage.carve import Carver
from rmqtool.repair.salvage.sources import collect
from rmqtool.repair.salvage.tables import Run, merged
from rmqtool.repair.salvage.tabulate import Names
from rmqtool.store.access import Access


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A log, of which one body is a store file itself."""
    log = HandmadeLog(segment_size=1 << 16)
    for number in range(20):
        log.put("Topic", b"x" * 50 * number)
    inner = b"".join(record.data for record in log.records)
    log.put("Topic", inner)
    for number in range(20):
        log.put("Topic", b"y" * number)
    path = tmp_path / "image"
    path.write_bytes(b"noise" + b"".join(log.files().values()))
    return path


@pytest.mark.share
@pytest.mark.parametrize("size", [100, 777, 4096, 1 << 20])
@pytest.mark.parametrize("how", [Access("pread"), Access("auto")], ids=["pread", "auto"])
def test_borders_change_nothing(image: Path, size: int, how: Access) -> None:
    found = Carver(collect([str(image)]).files, Names(), jobs=2, how=how, range_bytes=size).run()
    whole = merged(found)
    assert whole.runs[:, [Run.POSITION, Run.COUNT, Run.OFFSET]].tolist() == [[5, 41, 0]]
    assert np.array_equal(whole.pieces[0], whole.pieces[-1])
