"""Records from columns are those of `formats`, and of a scan of them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.commitlog import (
    HEADERS,
    MAX_PROPERTIES_LENGTH,
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    SysFlag,
    encode_message,
)
from formats.errors import FormatError
from formats.primitives import HostV4, HostV6, offset_of, sizeof
from rmqtool.broker.encoder import MessageColumns
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Refused, TopicColumn
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
    for kernels in (compiled_kernels(), python_kernels()):
        rows, places = np.zeros((len(sizes), ROW_WIDTH), np.int64), np.zeros(len(sizes), np.int64)
        rows[:, Field.STORE_SIZE] = sizes
        assert kernels.encoding.place_rows(rows, 1000, free, 1 << 20, places) == (count, used)
        begins = [sum(sizes[:row]) for row in range(count)]
        assert places[:count].tolist() == begins
        assert rows[:count, Field.STORED_PHYSICAL_OFFSET].tolist() == [1000 + at for at in begins]
        most = sum(sizes[:2])
        assert kernels.encoding.place_rows(rows, 0, 1 << 20, most, places)[0] == min(len(sizes), 2)


VALUES = st.lists(
    st.tuples(*[st.binary(max_size=6) | st.just(b"a\x02")] * 4, st.just(b"") | st.just(b"n\x01v\x02"))
)


def offsets_and_bytes(values: list[bytes]) -> tuple[Any, Any]:
    ends = np.cumsum([3, *map(len, values)], dtype=np.int64)
    return ends, np.frombuffer(b"???" + b"".join(values), np.uint8)


def prepared(
    kernels: Any,
    values: list[tuple[bytes, ...]],
    room: int,
    *,
    behind: int = 0,
    trimmed: int = 0,
    **given: Any,
) -> tuple[tuple[int, int], Any, Any, Any, Any]:
    """What `prepare_rows` answers, and fills: texts, rows, refused, queues. given: numbers of messages."""
    columns_of = [offsets_and_bytes([one[place] for one in values]) for place in range(5)]
    flat = tuple(part for one in columns_of for part in one)
    count = len(values)
    codes, queues, flags, born = (
        np.array(given.get(name, default), np.int64)
        for name, default in (("codes", [0] * count), ("queues", [-1] * count), ("flags", []), ("born", []))
    )
    topics = np.array([(MESSAGE_MAGIC_CODE, 91, 0, 1, 4, 2), (MESSAGE_MAGIC_CODE_V2, 92, 1, 5, -1, 0)])
    texts, rows = np.zeros(room, np.uint8), np.zeros((count, ROW_WIDTH), np.int64)
    refused = np.zeros(count, np.int64)
    limits = behind, trimmed, 0, 5, 91 + 40
    numbers = codes, queues, flags, born
    answer = kernels.encoding.prepare_rows(flat, numbers, topics, limits, texts, rows, refused)
    return answer, texts, rows, refused, queues


def stored_text(values: tuple[bytes, ...], behind: int) -> bytes:
    pairs = zip((b"UNIQ_KEY", b"KEYS", b"TAGS"), values[1:4], strict=True)
    own = b"".join(name + b"\x01" + value + b"\x02" for name, value in pairs if value)
    return own + values[4] + bytes(behind)


@given(VALUES, st.sampled_from([0, 17]), st.data())
def test_rows_are_prepared_as_single_messages_are(
    values: list[tuple[bytes, ...]], behind: int, data: st.DataObject
) -> None:
    count = len(values)
    codes = data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    queues = data.draw(st.lists(st.integers(-2, 5), min_size=count, max_size=count))
    flags = data.draw(st.just([]) | st.just(list(range(count))))
    trimmed = int(not behind)
    texts = [stored_text(one, behind) for one in values]
    turn, expected, places = 2, [], []
    for one, code, queue, text in zip(values, codes, queues, texts, strict=True):
        most, place = (-1 if code else 4), queue
        if queue < 0:
            place = -1 if code else turn % 4
            turn += not code
        places.append(place)
        size = (97 if code else 92) + len(one[0]) + len(text) - trimmed
        bad = place >= most or any(b"\x02" in value for value in one[1:4]) or len(one[0]) > 5
        expected.append(Refused.ILLEGAL if bad or size > 91 + 40 else Refused.NOTHING)
    room = sum(map(len, texts)) + 30 * count
    found = [
        prepared(
            kernels, values, room, behind=behind, trimmed=trimmed, codes=codes, queues=queues, flags=flags
        )
        for kernels in (compiled_kernels(), python_kernels())
    ]
    for answer, out, rows, refused, given_queues in found:
        begins, lengths = rows[:, Field.PROPERTIES_POSITION], rows[:, Field.PROPERTIES_LENGTH] + trimmed
        stored = [out[at : at + n].tobytes() for at, n in zip(begins.tolist(), lengths.tolist(), strict=True)]
        assert stored == texts
        assert answer == (sum(map(len, texts)), sum(one != Refused.NOTHING for one in expected))
        assert refused.tolist() == expected
        assert given_queues.tolist() == rows[:, Field.QUEUE_ID].tolist() == places
        assert rows[:, Field.FLAG].tolist() == (flags or [0] * count)
        sizes = [92 + 5 * code + len(one[0]) for one, code in zip(values, codes, strict=True)]
        assert (rows[:, Field.STORE_SIZE] - rows[:, Field.PROPERTIES_LENGTH]).tolist() == sizes
    assert (found[0][2] == found[1][2]).all()


@given(st.integers((1 << 15) - 40, (1 << 15) + 5))
def test_properties_longer_than_their_field_are_refused(length: int) -> None:
    values = [(b"", b"", b"", b"", b"n" * length)]
    for kernels in (compiled_kernels(), python_kernels()):
        _, _, rows, refused, _ = prepared(kernels, values, length + 30)
        assert rows[0, Field.PROPERTIES_LENGTH] == length
        why = Refused.PROPERTIES_SIZE if length > MAX_PROPERTIES_LENGTH else Refused.ILLEGAL
        assert refused.tolist() == [why]


@pytest.mark.parametrize("offsets", [[0, 3, 2], [-1, 0, 1], [0, 1, 5], [0, 1]])
@pytest.mark.parametrize("column", range(5))
def test_values_outside_of_their_bytes_are_not_prepared(offsets: list[int], column: int) -> None:
    data = np.zeros(4, np.uint8)
    good, bad = np.array([0, 1, 2]), np.array(offsets)
    flat = tuple(part for place in range(5) for part in (bad if place == column else good, data))
    none = np.zeros(0, np.int64)
    for kernels in (compiled_kernels(), python_kernels()):
        texts, rows = np.zeros(99, np.uint8), np.zeros((2, ROW_WIDTH), np.int64)
        numbers, refused = (np.zeros(2, np.int64), np.full(2, -1), none, none), np.zeros(2, np.int64)
        topics = np.zeros((1, len(TopicColumn)), np.int64)
        limits = 0, 0, 0, 99, 999
        answer = kernels.encoding.prepare_rows(flat, numbers, topics, limits, texts, rows, refused)
        assert answer == (-1, 0)
        assert not texts.any()


@given(st.lists(st.integers(0, 3)), st.data())
def test_rows_are_numbered_by_what_they_belong_to(which: list[int], data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(-1, 3), min_size=len(which), max_size=len(which)))
    for kernels in (compiled_kernels(), python_kernels()):
        following, rows = np.array([0, 7, 100, 1 << 40]), np.zeros((len(which), ROW_WIDTH), np.int64)
        rows[:, Field.BORN_TIMESTAMP] = times
        rows[:, Field.STORE_TIMESTAMP] = times[::-1]
        counts = following.tolist()
        kernels.encoding.number_rows(np.array(which, np.int64), following, rows, 9)
        for one, number in zip(which, rows[:, Field.QUEUE_OFFSET].tolist(), strict=True):
            assert number == counts[one]
            counts[one] += 1
        assert following.tolist() == counts
        stamps = [9 if time < 0 else time for time in times]
        assert rows[:, Field.BORN_TIMESTAMP].tolist() == stamps
        assert rows[:, Field.STORE_TIMESTAMP].tolist() == stamps[::-1]
