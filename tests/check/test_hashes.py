"""Hashes and chains of index files: kernel, plain-Python twin and the definition give the same."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.index import Item, key_hash
from formats.java import java_hash, java_utf8_decode
from formats.primitives import dtype_of
from rmqtool.scan import hashes_python
from rmqtool.scan.fields import ROW_WIDTH, Field
from tests.scan.conftest import compiled_kernels

compiled = compiled_kernels().hashes
MODULES = [hashes_python, compiled]
ORIGIN = 1 << 33

PIECES = st.sampled_from(
    [
        b"abc", b"T", b"order-12345678901", b"\xc3\xa9", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\xff", b" ",
        b"\xe4\xb8\xad", b"\xe4\xb8", b"\xf4\x90", b"  ", b"\xf0\x9f\x98\x80", b"\xf0\x9f", b"\xf0\x9f\x98",
        b"\xc2", b"\xe0\x80\x80", b"\xf4\x8f\x80", b"xxxxxxxxyyyyyyyyzzz", b"\xed\xb0\x80\xed", b"\x80",
    ]
)  # fmt: skip
TEXT = (
    st.lists(PIECES, max_size=9).map(b"".join)
    | st.binary(max_size=30)
    | st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
RECORD = st.tuples(TEXT, TEXT, TEXT, st.sampled_from([0, 4, 8, 12, 0x1C, 0x30]))


def rows_of(records: list[tuple[bytes, bytes, bytes, int]]) -> tuple[Any, Any]:
    data = bytearray(b"pad")
    rows = np.zeros((len(records), ROW_WIDTH), np.int64)
    for row, (topic, uniq, keys, flag) in zip(rows, records, strict=True):
        places = (Field.TOPIC_POSITION, topic), (Field.UNIQ_KEY_POSITION, uniq), (Field.KEYS_POSITION, keys)
        for place, text in places:
            row[place] = ORIGIN + len(data)
            row[place + 1] = len(text) if text or place == Field.TOPIC_POSITION else -1
            data += text
        row[Field.SYS_FLAG] = flag
    return np.frombuffer(bytes(data), np.uint8), rows


def hashes_of(module: ModuleType, buf: Any, rows: Any, room: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(rows):
        hashes, owners = np.empty(room, np.int32), np.empty(room, np.int32)
        count, start = module.key_hashes(buf, ORIGIN, rows, start, hashes, owners)
        found += zip(hashes[:count].tolist(), owners[:count].tolist(), strict=True)
    return found


def defined(records: list[tuple[bytes, bytes, bytes, int]]) -> list[tuple[int, int]]:
    """What spec and `formats.index` say, said again."""
    found = []
    for number, (topic, uniq, keys, flag) in enumerate(records):
        if flag & 12 == 12:
            continue
        name = java_utf8_decode(topic)[0]
        texts = [java_utf8_decode(uniq)[0]] if uniq else []
        texts += [one for one in java_utf8_decode(keys)[0].split(" ") if one]
        found += [(key_hash(name, text), number) for text in texts]
    return found


@settings(max_examples=300, deadline=None)
@given(st.lists(RECORD, max_size=12), st.sampled_from([200, 4000]))
def test_all_ways_to_hash_agree(records: list[tuple[bytes, bytes, bytes, int]], room: int) -> None:
    buf, rows = rows_of(records)
    expected = defined(records)
    for module in MODULES:
        assert hashes_of(module, buf, rows, room) == expected


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    ("topic", "key", "expected"),
    [
        ("TopicTest", "k1", 2746024),
        ("T", "jllgvmc", 0),
        ("", "", None),
        ("主题", "订单-1 😀", None),
    ],
)
def test_known_vectors(module: ModuleType, topic: str, key: str, expected: int | None) -> None:
    buf, rows = rows_of([(topic.encode(), key.encode(), b"", 0)])
    found = hashes_of(module, buf, rows, 64)
    if not key:
        assert found == []
    else:
        assert found == [(key_hash(topic, key) if expected is None else expected, 0)]


def test_the_vector_without_a_positive_partner_is_one() -> None:
    assert java_hash("T#jllgvmc") == -(1 << 31)


ITEMS = st.lists(st.tuples(st.integers(-3, 40), st.integers(-2, 14)), max_size=40)


def items_of(pairs: list[tuple[int, int]]) -> Any:
    items = np.zeros(len(pairs), dtype_of(Item))
    items["key_hash"] = [one for one, _ in pairs]
    items["prev"] = [one for _, one in pairs]
    return items


@settings(max_examples=200, deadline=None)
@given(ITEMS, st.integers(1, 9), st.integers(0, 40), st.sampled_from([3, 100]))
def test_chains_are_followed_alike(pairs: list[tuple[int, int]], slots: int, cut: int, room: int) -> None:
    answers = []
    for module in MODULES:
        state, bad = np.zeros(slots, np.int64), np.zeros((room, 3), np.int64)
        count = 0
        for first, part in ((1, pairs[:cut]), (1 + len(pairs[:cut]), pairs[cut:])):
            count = module.chain(items_of(part).view(np.uint8), first, slots, state, bad, count)
        lengths = np.zeros(8, np.int64)
        module.compare_slots(np.empty(0, np.uint8), state, np.zeros(1, np.int64), lengths)
        heads = np.zeros(3, np.int64)
        heads = heads[: module.longest_chains(state, 2, heads)]
        assert heads.tolist() == state[state >> 32 >= 2][:3].tolist()
        hashes = np.zeros(99, np.int32)
        file = np.concatenate([np.zeros(20, np.uint8), items_of(pairs).view(np.uint8)])
        followed = module.follow(file, 0, state & 0xFFFFFFFF, hashes)
        answers.append((count, state.tolist(), bad[: min(count, room)].tolist(), lengths.tolist(),
                        hashes[:followed].tolist()))  # fmt: skip
    assert answers[0] == answers[1]


def put(hashes: list[int], slots: int) -> list[tuple[int, int]]:
    """Chains as `IndexFile#putKey` makes them."""
    heads: dict[int, int] = {}
    pairs = []
    for number, value in enumerate(hashes, 1):
        pairs.append((value, heads.get(value % slots, 0)))
        heads[value % slots] = number
    return pairs


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, (1 << 31) - 1), min_size=1, max_size=60), st.integers(1, 7), st.data())
def test_a_right_chain_is_silent_and_a_wrong_prev_is_found(
    hashes: list[int], slots: int, data: st.DataObject
) -> None:
    pairs = put(hashes, slots)
    damaged = data.draw(st.integers(0, len(pairs) - 1))
    wrong = data.draw(st.integers(-3, len(pairs) + 3).filter(lambda prev: prev != pairs[damaged][1]))
    for module in MODULES:
        state, bad = np.zeros(slots, np.int64), np.zeros((9, 3), np.int64)
        assert module.chain(items_of(pairs).view(np.uint8), 1, slots, state, bad, 0) == 0
        broken = [*pairs]
        broken[damaged] = (pairs[damaged][0], wrong)
        state[:] = 0
        assert module.chain(items_of(broken).view(np.uint8), 1, slots, state, bad, 0) == 1
        assert bad[0].tolist() == [damaged + 1, pairs[damaged][1], wrong]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(-3, 5)), max_size=8),
    st.integers(0, 5000),
    st.booleans(),
)
def test_agreement_is_seen_alike(items: list[tuple[int, int, int]], begin: int, relative: bool) -> None:
    made = np.zeros(len(items), dtype_of(Item))
    made["key_hash"] = [one[0] for one in items]
    made["physical_offset"] = [one[1] // 3 for one in items]
    made["time_diff"] = [one[2] // 2 for one in items]
    hashes, owners = np.array([1] * len(items), np.int32), np.zeros(len(items), np.int32)
    offsets, times = np.array([0, 1], np.int64), np.array([1700, 4000], np.int64)
    given_to = (made.view(np.uint8), hashes, owners, offsets, times, begin, relative)
    assert hashes_python.agree(*given_to) == compiled.agree(*given_to)


@pytest.mark.parametrize("module", MODULES)
def test_an_item_before_the_beginning_of_its_file_has_zero_seconds(module: ModuleType) -> None:
    made = np.zeros(1, dtype_of(Item))
    owners, offsets, times = np.zeros(1, np.int32), np.zeros(1, np.int64), np.array([1700], np.int64)
    for seconds, agreed in ((0, 1), (-1, 0)):
        made["time_diff"] = seconds
        hashes = np.zeros(1, np.int32)
        assert module.agree(made.view(np.uint8), hashes, owners, offsets, times, 2200, True) == agreed


def test_what_is_wrong_costs_no_more_for_what_was_wrong_before() -> None:
    """A thousand wrong items are kept; each further one is looked up among them, not held against all."""
    hashes = compiled

    count = 200_000
    items = np.zeros(count, dtype_of(Item))
    items["key_hash"] = 1
    right, wrong = items.copy(), items
    right["prev"] = np.arange(count)
    wrong["prev"][2:] = np.arange(count - 2)

    def seconds(chained: np.ndarray) -> float:
        begin = time.perf_counter()
        hashes.chain(chained.view(np.uint8), 1, 7, np.zeros(7, np.int64), np.zeros((1000, 3), np.int64), 0)
        return time.perf_counter() - begin

    seconds(right)
    assert min(seconds(wrong) for _ in range(5)) < 40 * min(seconds(right) for _ in range(5))
