"""Lists of further queues that damage left half of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, decode
from rmqtool.scan.broken_lists import broken_lists, has_broken_list, only_pairs, without_lists
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, Field

NAMES, OFFSETS = f"{INNER_MULTI_DISPATCH}\x01%LMQ%a", f"{INNER_MULTI_QUEUE_OFFSET}\x0152"
ORIGIN = 90
BROKEN = [
    ("KEYS\x01k", NAMES, "INNER_MULTI_QU_MULTI_QUEUE_"),
    (NAMES, "INNER_MULTI_QVEUE_OFFSET\x0152"),
    ("\x01", OFFSETS),
    ("INNER_MULTI_DISPATCX\x01%LMQ%a", OFFSETS, "TAGS\x01t"),
]
WHOLE = [
    (NAMES, OFFSETS),
    (NAMES, OFFSETS, "a piece"),
    (NAMES, "KEYS\x01k"),
    (OFFSETS, "KEYS\x01k"),
    ("a piece", "KEYS\x01k"),
    ("INNER_MULTI_DISPATCX\x01%LMQ%a", "KEYS\x01k"),
    (),
]


def run_of(records: list[bytes]) -> Records:
    data, rows = bytearray(b"?"), np.zeros((len(records), ROW_WIDTH), np.int64)
    for row, raw in zip(rows, records, strict=True):
        row[[Field.PROPERTIES_POSITION, Field.PROPERTIES_LENGTH]] = ORIGIN + len(data), len(raw)
        data += raw
    return Records(rows, np.frombuffer(bytes(data), np.uint8), ORIGIN)


def joined(parts: tuple[str, ...]) -> bytes:
    return "\x02".join(parts).encode()


@pytest.mark.parametrize(
    ("parts", "broken"), [*((one, True) for one in BROKEN), *((one, False) for one in WHOLE)]
)
def test_one_list_alone_and_what_may_have_been_the_other(parts: tuple[str, ...], broken: bool) -> None:
    assert has_broken_list(joined(parts)) is broken


@pytest.mark.parametrize("size", [0, 1 << 30], ids=["python", "numba"])
@settings(max_examples=60)
@given(st.lists(st.sampled_from([*BROKEN, *WHOLE]), min_size=1, max_size=12))
def test_runs_as_record_by_record(size: int, records: list[tuple[str, ...]]) -> None:
    raw = [joined(one) for one in records]
    found = broken_lists(run_of(raw), choose_kernels(size))
    assert found.tolist() == [has_broken_list(one) for one in raw]


@pytest.mark.parametrize("parts", [*BROKEN, *WHOLE])
def test_what_is_left_without_them(parts: tuple[str, ...]) -> None:
    left = only_pairs(without_lists(joined(parts)))
    own = {name: value for name, value in decode(joined(parts)).items() if not name.startswith("INNER_")}
    assert decode(left) == own
