"""`walk` of both kernel modules against the schema of the format, record by record and field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import strategies as st

import fixtures
from fixtures.builder import HandmadeLog
from formats.commitlog import (
    BLANK_MAGIC_CODE,
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    Blank,
    Message,
    SysFlag,
    encode_message,
)
from formats.properties import decode
from rmqtool.scan.fields import ROW_WIDTH, Check, CrcState, Field, Issue, Stop
from rmqtool.scan.legal import may_be_topic
from tests.scan.tools import (
    PROPERTIES,
    array,
    check_property,
    declared_row,
    declared_rows,
    encode_raw_topic,
    logs,
    meaning,
    walk,
)
from tests.tiers import of_each_kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

V4 = (bytes([10, 0, 0, 1]), 51000)
V6 = (bytes(range(16)), 10911)
SCHEDULED, INNER = "SCHEDULE_TOPIC_XXXX", int(SysFlag.INNER_BATCH)
GOLDENS = [name for name in fixtures.golden_names() if name not in {"b497-dledger", "b533-dledger"}]


def segments(opened: fixtures.Golden) -> list[tuple[int, bytes]]:
    """(base, content) of all commit log files of all stores."""
    directories = [root / "commitlog" for root in opened.stores.values()]
    return [
        (int(path.name), path.read_bytes())
        for directory in directories
        if directory.is_dir()
        for path in sorted(directory.iterdir())
        if path.name.isdecimal()
    ]


@pytest.mark.share
@pytest.mark.parametrize("name", of_each_kind(GOLDENS))
def test_rows_of_real_logs(golden: Callable[[str], fixtures.Golden], kernels: ModuleType, name: str) -> None:
    found = 0
    for base, data in segments(golden(name)):
        walked = walk(kernels, data, base=base, limit=4000)
        end = walked.position
        assert walked.rows == declared_rows(data[:end], base)
        assert walked.stop in {Stop.BLANK, Stop.ZERO, Stop.END}
        found += len(walked.rows)
    assert found > 0


@pytest.mark.share
@pytest.mark.parametrize("checks", [*list(Check), Check.FRAME, Check.ALL, Check.VERIFY])
def test_rows_of_any_log(kernels: ModuleType, effort: int, checks: Check) -> None:
    def prop(data: bytes, base: int) -> None:
        walked = walk(kernels, data, base=base, checks=checks)
        assert walked.rows == declared_rows(data, base, checks)
        assert (walked.position, walked.stop) == (len(data), Stop.END)

    bases = st.sampled_from([0, 4096, 1 << 40])
    check_property(prop, logs(), bases, examples=40 * effort)


@pytest.mark.parametrize("born", [V4, V6], ids=["v4", "v6"])
@pytest.mark.parametrize("store", [V4, V6], ids=["v4", "v6"])
@pytest.mark.parametrize("magic", [MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2], ids=["V1", "V2"])
def test_all_layouts(kernels: ModuleType, born: tuple, store: tuple, magic: int) -> None:
    data = encode_message(
        "TopicTest",
        b"body",
        b"TAGS\x01TagA\x02",
        magic=magic,
        born_host=born,
        store_host=store,
        queue_id=-2,
        flag=-3,
        queue_offset=-4,
        physical_offset=1 << 40,
        born_timestamp=-(1 << 62),
        store_timestamp=(1 << 62) + 1,
        reconsume_times=-5,
        prepared_transaction_offset=-(1 << 63),
    )
    (row,) = walk(kernels, data, base=1 << 40).rows
    assert row == declared_row(data, 0, 1 << 40)
    assert row[Field.STORE_TIMESTAMP] == (1 << 62) + 1
    assert row[Field.PREPARED_TRANSACTION_OFFSET] == -(1 << 63)
    assert row[Field.CRC_STATE] == CrcState.OK
    assert row[Field.ISSUES] == 0
    place = row[Field.TAGS_POSITION]
    assert data[place : place + row[Field.TAGS_LENGTH]] == b"TagA"


def check_text(kernels: ModuleType, raw: bytes, front: bytes = b"") -> None:
    """Places and counts of a property string at the end of the buffer, against Java's decoding rules."""
    data = front + encode_message("T", b"", raw, physical_offset=len(front))
    row = walk(kernels, data, start=len(front)).rows[0]
    assert row == declared_row(data, len(front))
    decoded = decode(raw)
    for name, place, length in (
        ("TAGS", Field.TAGS_POSITION, Field.TAGS_LENGTH),
        ("KEYS", Field.KEYS_POSITION, Field.KEYS_LENGTH),
        ("UNIQ_KEY", Field.UNIQ_KEY_POSITION, Field.UNIQ_KEY_LENGTH),
    ):
        if row[length] < 0:
            assert name not in decoded
        else:
            value = data[row[place] : row[place] + row[length]]
            assert decode(b"n\x01" + value) == {"n": decoded[name]}


@pytest.mark.share
@pytest.mark.parametrize("name", [b"TAGS", b"KEYS", b"UNIQ_KEY"])
def test_names_at_every_place_of_a_block(kernels: ModuleType, name: bytes) -> None:
    """With the pair before it ending anywhere, the name and its value cross the border of 64 bytes."""
    for before in range(135):
        front = b"" if before < 4 else b"a\x01" + b"b" * (before - 3) + b"\x02"
        for value in (b"v", b"w" * 63, b"x" * 64, b"y" * 65, b"\xc3\xa9"):
            for tail in (b"", b"\x02", b"\x02W\x01true\x02", b"\x02W\x01true"):
                check_text(kernels, front + name + b"\x01" + value + tail)


def test_whole_blocks_at_the_end_of_the_buffer(kernels: ModuleType) -> None:
    for size in (60, 63, 64, 65, 127, 128, 129, 192):
        for raw in (
            b"TAGS\x01".ljust(size, b"v"),
            b"TAGS\x01".ljust(size - 1, b"v") + b"\x02",
            b"v" * size,
            b"\x02" * size,
            b"\x01" * size,
            b"a\x01" + b"b" * (size - 3) + b"\xff",
            b"a\x01" + b"b" * (size - 3) + b"\0",
            b"a\x01b\x02" * (size // 4),
            b"a\x01" + b"b" * (size - 3) + b"\x01",
        ):
            for front in (b"", bytes(1), bytes(63)):
                check_text(kernels, raw, front)


ODD = {
    "value with 0x01": b"TAGS\x01a\x01b\x02KEYS\x01k\x02",
    "no separator at the end": b"KEYS\x01k",
    "empty value": b"TAGS\x01\x02KEYS\x01k\x02",
    "empty name": b"\x01v\x02TAGS\x01a\x02",
    "empty segments": b"\x02\x02TAGS\x01a\x02\x02",
    "no pair": b"garbage\x02TAGS\x01a",
    "only a name": b"TAGS\x01",
    "last of two wins": b"TAGS\x01one\x02TAGS\x01three\x02",
    "empty value after a good one": b"TAGS\x01one\x02TAGS\x01\x02",
    "NUL": b"TAGS\x01a\0b\x02",
    "beyond ASCII": "TAGS\x01标签\x02KEYS\x01ключ\x02".encode(),
    "ill-formed": b"TAGS\x01\xed\xa0\x80\x02KEYS\x01\xff\x02",
    "separator inside of a broken character": b"TAGS\x01\xe4\x02KEYS\x01k\x02",
    "name in a name": b"XTAGS\x01a\x02TAGSX\x01b\x02",
    "name as value": b"A\x01TAGS\x02B\x01UNIQ_KEY\x02",
    "name behind 0x01": b"A\x01TAGS\x01v\x02",
    "separator alone": b"\x01",
    "end alone": b"\x02",
}


@pytest.mark.parametrize("raw", ODD.values(), ids=ODD)
def test_odd_properties(kernels: ModuleType, raw: bytes) -> None:
    check_text(kernels, raw)
    check_text(kernels, b"p\x01" + b"q" * 60 + b"\x02" + raw)


def test_any_properties(kernels: ModuleType, effort: int) -> None:
    check_property(lambda raw: check_text(kernels, raw), PROPERTIES, examples=150 * effort)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 127])
@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize(
    "byte", [0, 1, 0x20, 0x2F, 0x3A, 0x40, 0x5B, 0x60, 0x7B, 0x7D, 0x7F, 0xC3, 0xE9, 0xFF]
)
def test_bytes_of_topics(kernels: ModuleType, size: int, place: str, byte: int) -> None:
    topic = bytearray(b"a" * size)
    if size:
        topic[0 if place == "first" else -1] = byte
    data = encode_raw_topic(bytes(topic), body=b"x")
    (row,) = walk(kernels, data).rows
    assert row == declared_row(data, 0)
    assert row[Field.ISSUES] & Issue.TOPIC_CHARACTERS


def test_every_legal_byte_of_topics(kernels: ModuleType) -> None:
    legal = [b for b in range(256) if chr(b).isascii() and (chr(b).isalnum() or chr(b) in "%|_-")]
    assert len(legal) == 66
    for byte in range(256):
        (row,) = walk(kernels, encode_raw_topic(b"T" * 70 + bytes([byte]))).rows
        assert bool(row[Field.ISSUES] & Issue.TOPIC_CHARACTERS) == (byte not in legal)


@pytest.mark.parametrize(
    ("topic", "legal"),
    [
        ("%RETRY%group-1+Orders", True),
        ("%RETRY%g+t", True),
        ("%RETRY%" + "g" * 100 + "+" + "t" * 100, True),
        ("%RETRY%g|%RETRY%+T", True),
        ("%RETRY%g+", False),
        ("%RETRY%+t", False),
        ("%RETRY%g+t+t", False),
        ("%RETRY%g+t.t", False),
        ("%RETRY%gé+t", False),
        ("%DLQ%g+t", False),
        ("g+t", False),
        ("rmq_sys_REVIVE_LOG_prod.shop 1", True),
        ("rmq_sys_REVIVE_LOG_生产", True),
        ("rmq_sys_REVIVE_LOG_", True),
        ("rmq_sys_REVIVE_LOG_a\nb", False),
        ("rmq_sys_REVIVE_LOG_a\0", False),
        ("rmq_sys_REVIVE_LOGS.", False),
    ],
)
def test_topics_that_only_a_broker_makes(kernels: ModuleType, topic: str, legal: bool) -> None:
    data = encode_raw_topic(topic.encode(), body=b"x")
    (row,) = walk(kernels, data).rows
    assert row == declared_row(data, 0)
    assert bool(row[Field.ISSUES] & Issue.TOPIC_CHARACTERS) == (not legal)
    assert may_be_topic(topic) == legal


def replaced(data: bytes, **fields: int) -> bytes:
    """A record with header fields that contradict the rest."""
    from formats.commitlog import HEADERS
    from formats.primitives import dtype_of, offset_of

    raw = bytearray(data)
    header = HEADERS[False, False]
    for name, value in fields.items():
        width = dtype_of(header)[name].itemsize
        at = offset_of(header, name)
        raw[at : at + width] = value.to_bytes(width, "big", signed=True)
    return bytes(raw)


GOOD = encode_message("TopicTest", b"hello", b"TAGS\x01A\x02")
SIZE = len(GOOD)
ROOM = 200
STOPS = {
    "zero": (bytes(SIZE), Stop.ZERO, MESSAGE_MAGIC_CODE, 0),
    "zero magic only": (replaced(GOOD, magic=0), Stop.BAD_MAGIC, MESSAGE_MAGIC_CODE, 0),
    "magic": (replaced(GOOD, magic=-626843480), Stop.BAD_MAGIC, MESSAGE_MAGIC_CODE, -626843480),
    "blank": (replaced(GOOD, magic=BLANK_MAGIC_CODE), Stop.BLANK, SIZE + ROOM, SIZE),
    "size 0": (replaced(GOOD, total_size=0), Stop.BAD_SIZE, 91, 0),
    "size negative": (replaced(GOOD, total_size=-1), Stop.BAD_SIZE, 91, -1),
    "size 90": (replaced(GOOD, total_size=90), Stop.BAD_SIZE, 91, 90),
    "size 102 with IPv6": (replaced(GOOD, total_size=102, sys_flag=0x10), Stop.BAD_SIZE, 103, 102),
    "size beyond": (
        replaced(GOOD, total_size=SIZE + ROOM + 1),
        Stop.EXCEEDS_FILE,
        SIZE + ROOM,
        SIZE + ROOM + 1,
    ),
    "size maximal": (replaced(GOOD, total_size=0x7FFFFFFF), Stop.EXCEEDS_FILE, SIZE + ROOM, 0x7FFFFFFF),
    "size plus one": (replaced(GOOD, total_size=SIZE + 1), Stop.SIZE_MISMATCH, SIZE, SIZE + 1),
    "body beyond": (replaced(GOOD, body_length=SIZE - 90), Stop.BAD_BODY_LENGTH, SIZE - 91, SIZE - 90),
    "body maximal": (replaced(GOOD, body_length=0x7FFFFFFF), Stop.BAD_BODY_LENGTH, SIZE - 91, 0x7FFFFFFF),
    "topic negative": (GOOD[:93] + b"\x80" + GOOD[94:], Stop.BAD_TOPIC_LENGTH, SIZE - 96, -128),
    "topic beyond": (GOOD[:93] + b"\x7f" + GOOD[94:], Stop.BAD_TOPIC_LENGTH, SIZE - 96, 127),
    "properties beyond": (
        GOOD[:103] + b"\x7f\xff" + GOOD[105:],
        Stop.BAD_PROPERTIES_LENGTH,
        SIZE - 105,
        32767,
    ),
    "properties shorter": (GOOD[:103] + b"\0\x01" + GOOD[105:], Stop.SIZE_MISMATCH, 106, SIZE),
    "properties negative": (GOOD[:103] + b"\xff\xff" + GOOD[105:], Stop.SIZE_MISMATCH, 105, SIZE),
}


@pytest.mark.parametrize(("data", "stop", "expected", "found"), STOPS.values(), ids=STOPS)
def test_stops(kernels: ModuleType, data: bytes, stop: Stop, expected: int, found: int) -> None:
    """Behind a good record, so that position and rows are right too."""
    assert GOOD[93:94] == b"\x09"
    good = replaced(GOOD, physical_offset=0)
    walked = walk(kernels, good + data + bytes(ROOM))
    assert len(walked.rows) == 1
    assert walked.status == (1, SIZE, stop, expected, found)


def test_a_negative_length_counts_as_none(kernels: ModuleType) -> None:
    record = Message.parse(encode_message("T"))
    data = Message.build({**record, "body_length": -7, "properties_length": -1, "body_crc": 5})
    (row,) = walk(kernels, data).rows
    assert (row[Field.BODY_LENGTH], row[Field.PROPERTIES_LENGTH]) == (-7, -1)
    assert row == declared_row(data, 0)
    assert row[Field.CRC_STATE] == CrcState.ABSENT


@pytest.mark.parametrize(
    ("topic", "flags", "properties", "odd"),
    [
        (SCHEDULED, 0, b"DELAY\x013\x02", False),
        (SCHEDULED, 0, b"DELAY\x01s\x02", True),
        (SCHEDULED, 0, b"TAGS\x01a\x02DELAY\x01" + b"9" * 10, True),
        (SCHEDULED, 0, b"DELAY\x01" + b"9" * 9, False),
        (SCHEDULED, 0, b"DELAY\x01\x02DELAYED\x01s\x02", False),
        (SCHEDULED, 0, b"DELAY\x013\x02DELAY\x01-\x02", True),
        (SCHEDULED, 0, b"", False),
        (SCHEDULED[:-1] + "Y", 0, b"DELAY\x01s\x02", False),
        (SCHEDULED + "X", 0, b"DELAY\x01s\x02", False),
        ("T", INNER, b"INNER_NUM\x0112\x02INNER_BASE\x015\x02", False),
        ("T", INNER, b"INNER_NUM\x0112\x02INNER_BASE\x01" + b"1" * 19, True),
        ("T", INNER, b"INNER_NUM\x0112345\x02", True),
        ("T", 0, b"INNER_NUM\x01many\x02", False),
    ],
)
def test_numbers_in_properties(
    kernels: ModuleType, topic: str, flags: int, properties: bytes, odd: bool
) -> None:
    """Both twins tell what is no plain number, and of those records alone whose numbers a broker reads."""
    data = encode_message(topic, properties=properties, sys_flag=flags)
    (row,) = walk(kernels, data, checks=Check.VERIFY).rows
    assert bool(row[Field.ISSUES] & int(Issue.NUMBER)) == odd
    assert row == declared_row(data, 0, checks=Check.VERIFY)


def test_the_body_crc(kernels: ModuleType) -> None:
    good = encode_message("T", b"body")
    bad = good.replace(b"body", b"bodx")
    behind = encode_message("T", b"fine", physical_offset=2 * len(good))
    rows = walk(kernels, good + replaced(bad, physical_offset=len(good)) + behind).rows
    assert [row[Field.CRC_STATE] for row in rows] == [CrcState.OK, CrcState.BAD, CrcState.OK]
    rows = walk(kernels, bad, checks=Check.TEXT).rows
    assert [row[Field.CRC_STATE] for row in rows] == [CrcState.UNCHECKED]


def test_the_stored_offset(kernels: ModuleType) -> None:
    log = HandmadeLog(first_offset=1 << 33)
    log.put("T", b"x")
    log.put("T", b"y", physical_offset=5)
    rows = walk(kernels, log.files()[1 << 33], base=1 << 33).rows
    assert [row[Field.ISSUES] for row in rows] == [0, Issue.OFFSET]
    assert rows[1][Field.STORED_PHYSICAL_OFFSET] == 5


def test_rows_full(kernels: ModuleType) -> None:
    log = HandmadeLog()
    for number in range(5):
        log.put("T", bytes(number))
    data = log.files()[0]
    first = walk(kernels, data, limit=3)
    assert (len(first.rows), first.position, first.stop) == (
        3,
        log.records[3].physical_offset,
        Stop.ROWS_FULL,
    )
    rest = walk(kernels, data, start=first.position, limit=3)
    assert (len(rest.rows), rest.position, rest.stop) == (2, log.end_offset, Stop.ZERO)
    exactly = walk(kernels, data[: log.end_offset], limit=5)
    assert (len(exactly.rows), exactly.position, exactly.stop) == (5, log.end_offset, Stop.ROWS_FULL)


@pytest.mark.parametrize("left", range(9))
def test_the_end_of_the_file(kernels: ModuleType, left: int) -> None:
    blank = Blank.build({"total_size": 8})
    walked = walk(kernels, GOOD + blank[:left])
    stop = {0: Stop.END, 8: Stop.BLANK}.get(left, Stop.SHORT)
    assert walked.status == (1, SIZE, stop, 8, left)


def test_windows_of_every_length(kernels: ModuleType) -> None:
    """A window that ends in a record gives what is whole, and says how much more it needs."""
    log = HandmadeLog(segment_size=600)
    log.put("T", b"a", {"TAGS": "A"})
    log.put("T", b"bb", born_host=V6)
    data = log.files()[0]
    ends = [record.end for record in log.records]
    for size in range(len(data)):
        walked = walk(kernels, data[:size], file_size=len(data))
        whole = sum(end <= size for end in ends)
        assert walked.rows == declared_rows(data[: ends[whole - 1]])[:whole] if whole else walked.rows == []
        if size < ends[-1] + 8:
            assert walked.stop == Stop.NEED_MORE
            needed = size - walked.position + 1
            assert walked.expected >= needed


def test_records_at_places(kernels: ModuleType, effort: int) -> None:
    """Each row is that of a walk which begins there, in the order asked for; no place reads outside."""

    def prop(data: bytes, origin: int, shares: list[float], far: list[int]) -> None:
        places = [row[Field.POSITION] for row in walk(kernels, data).rows]
        places += [int(one * len(data)) for one in shares] + far
        alone = [
            walk(kernels, data, start=one, origin=origin, limit=1).rows
            for one in places
            if one in range(len(data))
        ]
        rows = np.full((len(places), ROW_WIDTH), 0x5A5A5A5A, np.int64)
        asked = array(data), np.array(places, np.int64), origin, origin + len(data), 0, int(Check.ALL), rows
        count = kernels.records_at(*asked)
        assert [meaning(row) for row in rows[:count]] == [row for found in alone for row in found]

    far = st.sampled_from([-1, 1 << 40, -(1 << 63), (1 << 63) - 1])
    shares = st.lists(st.floats(0, 1), max_size=5)
    check_property(prop, logs(), st.integers(0, 1 << 35), shares, st.lists(far), examples=20 * effort)


def test_windows_that_begin_elsewhere(kernels: ModuleType, effort: int) -> None:
    """`origin` moves positions only; bytes before `start` do not matter."""

    def prop(data: bytes, front: bytes, origin: int) -> None:
        whole = walk(kernels, data, base=origin + len(front))
        moved = walk(kernels, front + data, start=len(front), origin=origin)
        shift = origin + len(front)
        places = {f for f in Field if f.name == "POSITION" or f.name.endswith("_POSITION")}
        expected = [{f: v + shift * (f in places) for f, v in row.items()} for row in whole.rows]
        assert moved.rows == expected
        assert moved.position == whole.position + shift
        assert moved.stop == whole.stop

    check_property(prop, logs(base=0), st.binary(max_size=100), st.integers(0, 1 << 35), examples=30 * effort)
