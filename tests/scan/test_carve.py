"""Records at any byte: kernel, plain-Python twin and the known places of hand-made records agree."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.builder import HandmadeLog
from rmqtool.scan import carve_python
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Field, Stop
from tests.scan.conftest import compiled_kernels

compiled = compiled_kernels().carve
MODULES = [carve_python, compiled]
LONGEST = 1 << 16
MAGIC = bytes.fromhex("DAA320A7")
COMPARED = [field for field in Field if field not in {Field.TAGS_POSITION, Field.KEYS_POSITION}][:21]

NOISE = st.one_of(
    st.binary(max_size=200),
    st.integers(0, 300).map(bytes),
    st.sampled_from([MAGIC, MAGIC[:1] * 70, b"\0\0\0\x70" + MAGIC, b"\0\0\0\x70" + MAGIC + bytes(200)]),
)


def record(number: int, length: int) -> bytes:
    log = HandmadeLog(segment_size=1 << 16)
    return log.put(
        "Topic", b"x" * length, b"KEYS\x01k\x02", queue_id=number, physical_offset=number * 999
    ).data


def carved(
    module: ModuleType, data: bytes, window: int = 0, room: int = 100, border: int | None = None
) -> list[Any]:
    """Rows of all records, read through windows of at least so many bytes (0: one window)."""
    whole = np.frombuffer(data, np.uint8)
    rows, status = np.zeros((room, ROW_WIDTH), np.int64), np.zeros(STATUS_WIDTH, np.int64)
    at, follows, need, reported = 0, -1, 0, []
    border = len(data) if border is None else border
    while at < border:
        origin = at if window else 0
        part = whole[origin : origin + max(window, need) if window else None]
        before = at
        module.carve(part, at - origin, border - origin, origin, len(data), LONGEST, follows, rows, status)
        count, at, stop, wanted, follows = status.tolist()
        reported += rows[:count][:, COMPARED].tolist()
        need = wanted if stop == Stop.NEED_MORE else 0
        if at == before and not count and not need:
            break
    return reported


@pytest.mark.parametrize("module", MODULES, ids=["python", "compiled"])
@settings(max_examples=80, deadline=None)
@given(
    parts=st.lists(st.tuples(NOISE, st.integers(0, 400)), max_size=8), window=st.sampled_from([0, 64, 700])
)
def test_finds_every_record_and_both_agree(
    module: ModuleType, parts: list[tuple[bytes, int]], window: int
) -> None:
    data, places = b"", []
    for number, (noise, length) in enumerate(parts):
        data += noise
        places.append(len(data))
        data += record(number, length)
    rows = carved(module, data, window)
    found = [row[Field.POSITION] for row in rows]
    if not any(MAGIC in noise for noise, _ in parts):
        assert found == places
    assert rows == carved(MODULES[1], data)


@pytest.mark.parametrize("module", MODULES, ids=["python", "compiled"])
def test_a_record_in_a_body_is_body_while_its_container_is_whole(module: ModuleType) -> None:
    inner = record(1, 50)
    outer = HandmadeLog(segment_size=1 << 16).put("Topic", b"--" + inner + b"--").data
    assert [row[Field.POSITION] for row in carved(module, outer)] == [0]
    broken = outer[:-10]
    assert [row[Field.POSITION] for row in carved(module, broken)] == [outer.index(inner)]


@pytest.mark.parametrize("module", MODULES, ids=["python", "compiled"])
@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:8] + b"\x7f" + data[9:],
        lambda data: data[:28] + b"\xff" + data[29:],
        lambda data: data[:-1],
        lambda data: data.replace(b"Topic", b"To\xffic"),
        lambda data: data.replace(b"Topic", b"To\0ic"),
        lambda data: b"\x01" + data[1:],
    ],
    ids=["body crc", "negative offset", "cut", "no text", "zero byte", "size"],
)
def test_what_is_not_right_is_no_record(module: ModuleType, change: Any) -> None:
    data = change(record(3, 100))
    assert carved(module, data) == []


@pytest.mark.parametrize("module", MODULES, ids=["python", "compiled"])
@pytest.mark.parametrize("body", [b"b", b""])
def test_a_strange_topic_counts_with_a_body_or_behind_a_record_that_it_continues(
    module: ModuleType, body: bytes
) -> None:
    """The CRC of a body proves the record; without one nothing does, but the record in front."""
    log = HandmadeLog(segment_size=1 << 16)
    first, second = log.put("Topic", b"a"), log.put("t p", body)
    alone = bool(body)
    assert len(carved(module, first.data + second.data)) == 2
    assert len(carved(module, first.data + b"\0" + second.data)) == 1 + alone
    assert len(carved(module, second.data)) == alone


@pytest.mark.parametrize("module", MODULES, ids=["python", "compiled"])
def test_border_and_full_rows(module: ModuleType) -> None:
    data = b"".join(record(number, 10) for number in range(9))
    size = len(data) // 9
    assert len(carved(module, data, room=2)) == 9
    assert len(carved(module, data, border=size + 1)) == 2
    assert len(carved(module, data, border=size)) == 1
