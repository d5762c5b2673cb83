"""Which runs of records have lists of further queues, by both kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from rmqtool.scan.fields import Field
from tests.build.building import kernel_modules

if TYPE_CHECKING:
    from types import ModuleType

LIST = b"INNER_MULTI_QUEUE_OFFSET\x017"


@pytest.mark.parametrize("kernels", kernel_modules(), ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (LIST, True),
        *[
            (b"A" * before + b"\x01b\x02" + LIST + b"\x02C\x01d", True)
            for before in (*range(1, 18), *range(54, 66))
        ],
        (b"\x02\x02" + LIST, True),
        (b"A\x01" + LIST, False),
        (b"A\x01b\x02" + LIST[:20], False),
        (b"X" + LIST, False),
        (b"A\x01bbbbbbbbbbbbbbbbbbbbbbbbbb", False),
        (b"", False),
    ],
)
def test_only_a_property_with_that_name_counts(
    kernels: ModuleType, properties: bytes, expected: bool
) -> None:
    origin, front = 1000, b"\x02" + LIST
    for behind in (LIST, 40 * b"\x02I", b""):  # with and without 64 bytes to be read at once
        window = np.frombuffer(front + properties + behind, np.uint8)
        rows = np.zeros((2, len(Field)), np.int64)
        rows[1, Field.PROPERTIES_POSITION] = origin + len(front)
        rows[1, Field.PROPERTIES_LENGTH] = len(properties)
        assert bool(kernels.building.feeds_further_queues(window, origin, rows)) is expected
