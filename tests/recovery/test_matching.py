"""Records against entries on disk: all at once, as they agree as a rule, and field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from rmqtool.broker.mapped_files import MappedFile
from rmqtool.broker.queue_records import NO_CODE, QueueRecords
from rmqtool.recovery.matching import Matches, PlainQueue
from rmqtool.scan.fields import DispatchColumn
from rmqtool.scan.units import UNIT
from rmqtool.store.files import StoreFile
from rmqtool.store.kinds import FileKind
from tests.scan.conftest import python_kernels

if TYPE_CHECKING:
    from pathlib import Path

EACH = 8
"""entries of a file"""


def matches(
    root: Path, slots: list[int], codes: list[int], bases: tuple[int, ...], *, agree: bool
) -> Matches:
    """Of records at these queue offsets; the entry of each slot leads to a hundred times that."""
    files = []
    for base in bases:
        units = np.zeros(EACH, UNIT)
        units["physical_offset"] = (base + np.arange(EACH)) * 100
        units["size"], units["tags_code"] = 100, 7
        path = root / f"{base * UNIT.itemsize:020d}"
        path.write_bytes(units.tobytes())
        file = StoreFile(path.name, str(path), FileKind.CONSUMEQUEUE, units.nbytes, units.nbytes, 0)
        files.append(MappedFile(base * UNIT.itemsize, units.nbytes, path.name, file))
    columns = np.zeros((len(DispatchColumn), len(slots)), np.int64)
    columns[DispatchColumn.SLOT], columns[DispatchColumn.CODE] = slots, codes
    columns[DispatchColumn.OFFSET], columns[DispatchColumn.SIZE] = np.array(slots) * 100, 100
    kernel = python_kernels().dispatch.agree_units if agree else lambda *_: (0, -1)
    end = (bases[-1] + EACH - 1) if bases else 0
    queue = PlainQueue(tuple(files), end, EACH * UNIT.itemsize, int, (), None, kernel)
    queue.append(QueueRecords(columns, np.arange(len(slots))))
    return queue.found


@pytest.mark.parametrize("bases", [(), (0,), (0, 8), (8, 16), (3,), (0, 16)])
@pytest.mark.parametrize(
    "slots", [[0, 1, 2], [6, 7, 8, 9], [5, 5], [9, 8, 20], [-1, 3], [14, 15], [15], [22], [0, 1 << 40]]
)
@pytest.mark.parametrize("code", [7, 8, NO_CODE])
def test_all_at_once_and_field_by_field(tmp_path, slots, bases, code):
    codes = [7] * (len(slots) - 1) + [code]
    at_once, singly = (matches(tmp_path, slots, codes, bases, agree=one) for one in (True, False))
    assert at_once == singly
    assert at_once.matched <= len(slots)
