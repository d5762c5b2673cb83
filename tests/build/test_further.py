"""Which runs of records feed further queues, or are not single messages, by both kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from formats.commitlog import SysFlag
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


@pytest.mark.parametrize("kernels", kernel_modules(), ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize(
    ("properties", "flag", "single"),
    [
        (b"TAGS\x01INNER_\x02KEYS\x01k\x02", 0, True),
        (b"TAGS\x01a\x02INNER\x01b\x02", 0, True),
        (b"TAGS\x01a\x02" + LIST, 0, False),
        *[(b"A" * before + b"\x01b\x02INNER_NUM\x014\x02", 0, False) for before in (1, 40, 61, 62, 63)],
        (b"INNER_BASE\x014", 0, False),
        (b"KEYS\x01k\x02", int(SysFlag.INNER_BATCH), False),
        (b"KEYS\x01k\x02", int(SysFlag.COMPRESSED), True),
        (b"", 0, True),
    ],
)
def test_single_messages_name_no_other_place(
    kernels: ModuleType, properties: bytes, flag: int, single: bool
) -> None:
    origin = 1000
    for behind in (LIST, 40 * b"\x02I", b""):
        window = np.frombuffer(b"\x02" + properties + behind, np.uint8)
        rows = np.zeros((2, len(Field)), np.int64)
        rows[1, Field.PROPERTIES_POSITION] = origin + 1
        rows[1, Field.PROPERTIES_LENGTH] = len(properties)
        rows[1, Field.SYS_FLAG] = flag
        assert bool(kernels.building.are_single(window, origin, rows)) is single
