"""Records by key in mapped files: what the kernel is sure of is what a look at the message says."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.commitlog import encode_message
from formats.index import Item, item_position, key_hash, slot_position
from formats.primitives import dtype_of
from rmqtool.messagestore.messages import StoredMessage
from rmqtool.scan.engine import prepared
from rmqtool.scan.fields import FoundColumn, LookupRequest, Spanned
from tests.scan.conftest import compiled_kernels
from tests.scan.guarded import question

look_up = compiled_kernels().lookup.look_up
NAMES = ["a", "b", "ab", "a b", "k" * 20, "é", "鍵", "Aa", "BB"]
SLOTS = 3
FAR = 1 << 62
VALUES = [
    b"",
    b"a",
    b"a b",
    b"b  ab",
    b" a",
    b"k" * 20,
    b"k" * 19,
    "é".encode(),
    "鍵 a".encode(),
    b"BB",
    b"\xff",
    b"Aa\x00",
]
VALUE = st.sampled_from(VALUES)
PAIR = st.tuples(st.sampled_from([b"UNIQ_KEY", b"KEYS", b"KEY", b"TAGS", b""]), VALUE)
PROPERTIES = st.lists(PAIR, max_size=4).map(
    lambda pairs: b"".join(name + b"\x01" + value + b"\x02" for name, value in pairs)
)
RECORDS = st.lists(st.tuples(st.sampled_from(["T", "Tü", "Other"]), PROPERTIES), max_size=5)


def index_of(places: list[int], values: list[int]) -> np.ndarray:
    """An index file with these items, each with the hash at its place."""
    items = np.zeros(len(places) + 1, dtype_of(Item))
    slots = np.zeros(SLOTS, ">i4")
    for number, (place, value) in enumerate(zip(places, values, strict=True), 1):
        items[number] = value, place, 0, slots[value % SLOTS]
        slots[value % SLOTS] = number
    return np.frombuffer(bytes(slot_position(0)) + slots.tobytes() + items.tobytes(), np.uint8)


def ask(files: list[np.ndarray], log: np.ndarray, keys: list[str], **given: int) -> Any:
    """For each key where its records begin, None where the kernel is not sure; and the whole answer."""
    items = item_position(0, SLOTS)
    table = [
        (at := one.ctypes.data) and (at + slot_position(0), 0, at + items, (len(one) - items) // 20)
        for one in files
    ]
    tables = np.array(table, np.int64).reshape(-1, 4), np.array([[0, len(log), log.ctypes.data]])
    told: dict[str, Any] = {"files": tables[0], "segments": tables[1], "size": max(len(log), 1)}
    asked = question(slots=SLOTS, **told, topic=b"T", keys=[one.encode() for one in keys], **given)
    used = look_up(asked)
    ends = len(LookupRequest) + len(keys) + 1
    counts = asked[ends : ends + len(keys)].tolist()
    rows = asked[ends + len(keys) :][: used * len(FoundColumn)].reshape(-1, len(FoundColumn))[
        :, FoundColumn.START
    ]
    found = iter(rows.tolist())
    return [None if count < 0 else [next(found) for _ in range(count)] for count in counts], asked


@given(RECORDS)
def test_the_kernel_is_sure_of_what_a_message_says(records: list[tuple[str, bytes]]) -> None:
    log, places, messages = b"", [], {}
    for topic, properties in records:
        places.append(len(log))
        raw = encode_message(topic, b"body", properties, physical_offset=len(log))
        messages[len(log)] = StoredMessage(raw)
        log += raw
    data = np.frombuffer(log, np.uint8)
    for name in NAMES:
        file = index_of(places, [key_hash("T", name)] * len(places))
        wanted = [at for at in places[::-1] if messages[at].has_key("T", name)]
        for some in ([name], [name, "absent", name]):
            found, _ = ask([file], data, some)
            assert found[0] == found[-1]
            assert found[0] is None or found[0] == wanted


def plain(count: int) -> tuple[np.ndarray, list[int]]:
    """Records with the keys `same` and `k` and their number, stored one millisecond after the other."""
    log, places = b"", []
    for number in range(count):
        places.append(len(log))
        properties = b"KEYS\x01same k%d\x02" % number
        log += encode_message("T", b"b", properties, physical_offset=len(log), store_timestamp=number)
    return np.frombuffer(log, np.uint8), places


def test_chains_are_followed_from_file_to_file() -> None:
    data, places = plain(6)
    same = key_hash("T", "same")
    files = [index_of(places[3:], [same] * 3), index_of(places[:3], [same] * 3)]
    assert ask(files, data, ["same"])[0] == [places[::-1]]
    assert ask(files, data, ["same"], limit=4)[0] == [places[:1:-1]]
    assert ask(files, data, ["same"], begin=1, end=4)[0] == [places[4:0:-1]]
    assert ask(files, data, ["absent"])[0] == [[]]
    for limit, ended in ((2, 0), (3, 0), (4, 1), (6, 1), (7, 2)):
        assert ask(files, data, ["same"], limit=limit)[1][LookupRequest.ENDED] == ended
    # the index goes on behind what is mapped
    assert ask(files[:1], data, ["same"], all_files=0)[0] == [None]
    assert ask(files[:1], data, ["same"], all_files=0, limit=3)[0] == [places[:2:-1]]


def test_a_record_that_the_index_knows_twice_is_one() -> None:
    data, places = plain(2)
    same = key_hash("T", "same")
    file = index_of([places[0], places[0], places[1], places[1], places[0]], [same] * 5)
    assert ask([file], data, ["same"])[0] == [
        [places[0], places[1], places[0]]
    ]  # as one look after the other


def test_what_is_not_at_hand_is_not_sure() -> None:
    data, places = plain(3)
    same = key_hash("T", "same")
    file = index_of(places, [same] * 3)
    assert ask([file], data, ["same"])[0] == [places[::-1]]
    for told in (
        {"written": 3},  # the newest item is in memory only
        {"steps": 2},
        {"room": 2},
        {"high": places[2] + 8},
        {"high": places[2]},
    ):
        found, asked = ask([file], data, ["same"], **told)
        assert found == [None]
        assert asked[LookupRequest.MISSING] == (0 if told == {"high": places[2]} else -1)
    found, asked = ask([file], data, ["same"], segment_size=places[2])
    assert (found, asked[LookupRequest.MISSING]) == ([None], 1)
    # what has expired is not a record
    assert ask([file], data, ["same"], segment_size=places[2], first_segment=2)[0] == [[]]
    # a text of other bytes, a key without bytes, zeros that end a record
    assert ask([file], data, [""])[0] == [None]
    cut = data.copy()
    cut[-1] = 0
    assert ask([file], cut, ["same"])[0] == [None]
    assert ask([file], cut, ["same"], limit=1)[0] == [None]


def test_no_number_of_a_file_leads_astray() -> None:
    data, places = plain(2)
    same = key_hash("T", "same")
    good = index_of(places, [same] * 2)
    items = good[item_position(0, SLOTS) :].view(dtype_of(Item))
    for name, value in (("prev", 2), ("prev", 3), ("prev", -1), ("prev", 1 << 30)):
        spoilt = good.copy()
        spoilt[item_position(0, SLOTS) :].view(dtype_of(Item))[name][1] = value
        assert ask([spoilt], data, ["same"])[0] == [places[::-1]]  # it is not older: the end
    assert items["prev"].tolist() == [0, 0, 1]
    for place in (-1, 1 << 62, -(1 << 63), 1, len(data)):
        assert ask([index_of([place], [same])], data, ["same"])[0] in ([[]], [None])
    for newest in (-1, 3, 1 << 30):
        spoilt = good.copy()
        spoilt[slot_position(0) :][: 4 * SLOTS].view(">i4")[:] = newest
        assert ask([spoilt], data, ["same"])[0] == [[]]


def test_a_question_that_does_not_fit_is_none() -> None:
    data, places = plain(1)
    file = index_of(places, [key_hash("T", "same")])
    for name, value in (("keys", -1), ("keys", 1 << 40), ("room", 1 << 60), ("room", -1), ("slots", 0)):
        asked = question(
            slots=SLOTS,
            files=np.zeros((0, 4), np.int64),
            segments=np.zeros((0, 3), np.int64),
            size=1,
            topic=b"T",
            keys=[b"k"],
        )
        asked[LookupRequest[name.upper()]] = value
        assert look_up(asked) == -1
    for ends in ((0, -1), (1, 1 << 40), (2, 1)):
        _, asked = ask([file], data, ["same"])
        asked[len(LookupRequest) :][:2] = ends
        assert look_up(asked) == -1


def test_one_question_is_asked_again_and_again() -> None:
    """A kernel for an array that stays."""
    longs = np.zeros(len(LookupRequest) + 200, np.int64)
    longs[LookupRequest.SLOTS] = longs[LookupRequest.SEGMENT_SIZE] = longs[LookupRequest.ALL_FILES] = 1
    ask_again = prepared(look_up, longs)
    for keys in (0, 3, -1):
        longs[LookupRequest.KEYS] = keys
        longs[LookupRequest.ENDED] = 7
        ask_again()
        assert look_up(longs.copy()) == min(keys, 0)
        assert longs[LookupRequest.ENDED] == 0
    made = getattr(look_up, "prepared", None)
    for wrong in (longs.astype(np.int32), longs.reshape(-1, 2), longs[::2]) if made else ():
        with pytest.raises(TypeError, match="look_up"):
            made(wrong)


UNIT = st.tuples(
    st.integers(-FAR, (1 << 63) - 1) | st.integers(0, 5000), st.integers(-(1 << 31), (1 << 31) - 1)
)


@given(st.lists(UNIT, min_size=1, max_size=40), st.sampled_from([1, 1000, 1 << 30]))
def test_units_lead_to_the_bytes_of_their_records(units: list[tuple[int, int]], size: int) -> None:
    raw = np.frombuffer(b"".join(struct.pack(">qiq", *unit, 7) for unit in units), np.uint8)
    asked = np.zeros(len(Spanned) + 2 * len(units), np.int64)
    asked[: Spanned.BASE] = raw.ctypes.data, len(units), size
    assert compiled_kernels().span_units(asked) == len(units)
    base, *found = asked[Spanned.BASE : len(Spanned)].tolist()
    offsets, sizes = zip(*units, strict=True)
    # what ends behind any log does so here, too, and never in front of it
    ends = [min(offset, FAR) + length for offset, length in units]
    assert found == [min(offsets), max(offsets[0], *ends), min(sizes), sum(sizes)]
    if max(offsets) < FAR and min(offsets) >= 0:
        assert base == offsets[0] - offsets[0] % size
        pairs = [(offset - base, offset - base + length) for offset, length in units]
        assert asked[len(Spanned) :].reshape(-1, 2).tolist() == [list(pair) for pair in pairs]
