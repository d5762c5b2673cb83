"""Records from columns are those of `formats`, and of a scan of them."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.commitlog import HEADERS, SysFlag, encode_message
from formats.errors import FormatError
from formats.primitives import HostV4, HostV6, offset_of, sizeof
from rmqtool.broker.encoder import MessageColumns, roll
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field
from tests.broker.engine import columns
from tests.scan.conftest import compiled_kernels, python_kernels

INT32, INT64 = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
HOSTS = st.tuples(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16), INT32)
MESSAGES = st.fixed_dictionaries(
    {
        "topic": st.text("abü中", max_size=40) | st.just("T" * 200),
        "body": st.binary(max_size=300),
        "properties": st.binary(max_size=80),
        "queue_id": INT32,
        "flag": INT32,
        "queue_offset": INT64,
        "physical_offset": INT64,
        "sys_flag": INT32,
        "born_timestamp": INT64,
        "store_timestamp": INT64,
        "reconsume_times": INT32,
        "prepared_transaction_offset": INT64,
        "born_host": HOSTS,
        "store_host": HOSTS,
    }
)


def encoded(made: MessageColumns, kernels: ModuleType, *, trailer: bool = False) -> list[bytes]:
    sizes = made.sizes()
    places = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), np.uint8)
    made.write(places, out, kernels, crc_trailer=trailer)
    return [out[at : at + size].tobytes() for at, size in zip(places.tolist(), sizes.tolist(), strict=True)]


@given(st.lists(MESSAGES, max_size=5), st.booleans())
def test_the_records_are_those_of_the_schema(messages: list[dict[str, Any]], trailer: bool) -> None:
    expected = [encode_message(**one, crc_trailer=trailer) for one in messages]
    for kernels in (compiled_kernels(), python_kernels()):
        assert encoded(columns(messages, trailer=trailer), kernels, trailer=trailer) == expected


@given(st.lists(MESSAGES, max_size=5))
def test_what_a_scan_finds_is_encoded_to_the_same_bytes(messages: list[dict[str, Any]]) -> None:
    log = np.frombuffer(b"".join(encode_message(**one) for one in messages), np.uint8)
    rows, status = np.zeros((len(messages), ROW_WIDTH), np.int64), np.zeros(STATUS_WIDTH, np.int64)
    kernels = compiled_kernels()
    kernels.walk(log, 0, 0, len(log) + 1, 0, int(Check.CRC), rows, status)
    born = rows[:, Field.POSITION] + offset_of(HEADERS[False, False], "born_host")
    wide = (rows[:, Field.SYS_FLAG] & int(SysFlag.BORNHOST_V6)) != 0
    hosts = np.stack([born, born + np.where(wide, sizeof(HostV6), sizeof(HostV4)) + 8], axis=1)
    assert encoded(MessageColumns(rows, hosts, log, log, log, log), kernels) == [
        encode_message(**one) for one in messages
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (Field.MAGIC, 7),
        (Field.TOPIC_LENGTH, 128),
        (Field.PROPERTIES_LENGTH, 1 << 15),
        (Field.BODY_LENGTH, -1),
        (Field.BODY_LENGTH, 1 << 40),
        (Field.BODY_POSITION, -1),
        (Field.TOPIC_POSITION, (1 << 63) - 1),
    ],
)
def test_what_no_record_holds_is_refused(field: Field, value: int) -> None:
    one: dict[str, Any] = {"topic": "T", "body": b"b" * 500, "properties": b""}
    hosts = {"born_host": (bytes(4), 0), "store_host": (bytes(4), 0)}
    numbers = dict.fromkeys(
        ("queue_id", "flag", "queue_offset", "physical_offset", "sys_flag", "born_timestamp"), 0
    ) | dict.fromkeys(("store_timestamp", "reconsume_times", "prepared_transaction_offset"), 0)
    made = columns([one | hosts | numbers])
    made.rows[0, field] = value
    with pytest.raises(FormatError, match="message 0"):
        made.write(np.zeros(1, np.int64), np.zeros(1 << 16, np.uint8), compiled_kernels())


def test_records_at_one_place_or_outside_are_refused() -> None:
    one = {
        "topic": "T",
        "body": b"",
        "properties": b"",
        "born_host": (bytes(4), 0),
        "store_host": (bytes(4), 0),
    }
    numbers = ("queue_id", "flag", "queue_offset", "physical_offset", "sys_flag", "born_timestamp")
    rest = ("store_timestamp", "reconsume_times", "prepared_transaction_offset")
    made = columns([one | dict.fromkeys((*numbers, *rest), 0)] * 2)
    size = int(made.sizes()[0])
    for places in ([0, size - 1], [0, size + 1], [-1, size]):
        with pytest.raises(FormatError):
            made.write(np.array(places), np.zeros(2 * size, np.uint8), compiled_kernels())


@given(st.lists(st.integers(91, 500), max_size=20), st.integers(0, 3000))
def test_a_file_takes_what_leaves_room_for_a_blank(sizes: list[int], free: int) -> None:
    count, used = 0, 0
    for size in sizes:
        if used + size + 8 > free:
            break
        count, used = count + 1, used + size
    assert roll(np.array(sizes, np.int64), free) == count


VALUES = st.lists(
    st.tuples(*[st.binary(max_size=6) | st.just(b"a\x02")] * 3, st.just(b"") | st.just(b"n\x01v\x02"))
)


def offsets_and_bytes(values: list[bytes]) -> tuple[Any, Any]:
    ends = np.cumsum([3, *map(len, values)], dtype=np.int64)
    return ends, np.frombuffer(b"???" + b"".join(values), np.uint8)


@given(VALUES, st.sampled_from([0, 17]))
def test_properties_are_joined_as_single_messages_have_them(
    values: list[tuple[bytes, bytes, bytes, bytes]], behind: int
) -> None:
    columns_of = [offsets_and_bytes([one[place] for one in values]) for place in range(4)]
    flat = tuple(part for one in columns_of for part in one)
    texts = [
        b"".join(
            name + b"\x01" + value + b"\x02"
            for name, value in zip((b"UNIQ_KEY", b"KEYS", b"TAGS"), one, strict=False)
            if value
        )
        + one[3]
        + bytes(behind)
        for one in values
    ]
    room = sum(len(data) - 3 for data in flat[1::2]) + len(values) * (22 + behind)
    for kernels in (compiled_kernels(), python_kernels()):
        out = np.zeros(room, np.uint8)
        places, odd = np.zeros(len(values) + 1, np.int64), np.zeros(len(values), bool)
        found = kernels.encoding.join_properties(flat, behind, out, places, odd)
        assert [out[a:b].tobytes() for a, b in pairwise(places.tolist())] == texts
        assert found == places[-1] == sum(map(len, texts))
        assert odd.tolist() == [any(b"\x02" in value for value in one[:3]) for one in values]


@pytest.mark.parametrize("offsets", [[0, 3, 2], [-1, 0, 1], [0, 1, 5], [0, 1]])
@pytest.mark.parametrize("column", range(4))
def test_values_outside_of_their_bytes_are_not_joined(offsets: list[int], column: int) -> None:
    data = np.zeros(4, np.uint8)
    good, bad = np.array([0, 1, 2]), np.array(offsets)
    flat = tuple(part for place in range(4) for part in (bad if place == column else good, data))
    for kernels in (compiled_kernels(), python_kernels()):
        out, places, odd = np.zeros(99, np.uint8), np.zeros(3, np.int64), np.zeros(2, bool)
        assert kernels.encoding.join_properties(flat, 0, out, places, odd) == -1
        assert not out.any()


@given(st.lists(st.integers(0, 3)))
def test_rows_are_numbered_by_what_they_belong_to(which: list[int]) -> None:
    for kernels in (compiled_kernels(), python_kernels()):
        following, numbers = np.array([0, 7, 100, 1 << 40]), np.zeros(len(which), np.int64)
        counts = following.tolist()
        kernels.encoding.number_rows(np.array(which, np.int64), following, numbers)
        for one, number in zip(which, numbers.tolist(), strict=True):
            assert number == counts[one]
            counts[one] += 1
        assert following.tolist() == counts
