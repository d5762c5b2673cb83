"""Extension units: one for each record that names the queue as its own (`#putMessagePositionInfoWrapper`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.consumequeue import ext_address
from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.broker.extension_files import ExtensionFiles
from rmqtool.broker.files import StoreFiles
from rmqtool.broker.mapped_files import MappedFiles
from rmqtool.broker.queue_records import QueueRecords
from rmqtool.scan.fields import DispatchColumn
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    from pathlib import Path


def test_every_record_of_its_own_gets_a_unit(tmp_path: Path) -> None:
    """Also one that is known and gets no entry; none that came by multi-dispatch."""
    columns = np.zeros((len(DispatchColumn), 4), np.int64)
    columns[DispatchColumn.SLOT], columns[DispatchColumn.OFFSET] = [0, 0, 1, 2], [0, 0, 100, 200]
    columns[DispatchColumn.SIZE], columns[DispatchColumn.CODE] = 100, [7, 7, 8, 9]
    with StoreFiles(str(tmp_path)) as files:
        mapped = MappedFiles(200, "consumequeue/T/0", disk=files)
        queue = ConsumeQueue("T", 0, mapped, "pread", 0, extension=ExtensionFiles("T", 0, 400, files))
        queue.append(QueueRecords(columns, np.arange(4), own=np.array([True, True, False, True])))
    raw = (tmp_path / "consumequeue/T/0" / f"{0:020d}").read_bytes()
    codes = np.frombuffer(raw, UNIT)["tags_code"][:3].tolist()
    assert codes == [ext_address(0), 8, ext_address(40)]
    assert queue.skipped == 1
