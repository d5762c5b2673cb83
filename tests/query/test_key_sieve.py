"""Keys as columns of numbers, and the sieve that lets all hashes of wanted keys through."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.index import key_hash
from formats.java import java_hash, utf16_length
from rmqtool.query.key_columns import hash_columns, index_hashes, powers_of
from rmqtool.query.key_sieve import KeySieve, codes_of
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.scan.fields import ROW_WIDTH, Field
from tests.scan.conftest import compiled_kernels, python_kernels

texts = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("Aa0#-")), min_size=0, max_size=90)
names = st.text(st.characters(codec="utf-8", categories=("Lu", "Nd")), min_size=1, max_size=8)


def sieve_of(keys: list[str], topic: str | None = None) -> KeySieve:
    return KeySieve.of([codes_of(*hash_columns(pa.array(keys, pa.string())))], len(keys), topic)


@given(st.lists(texts, max_size=20), st.integers(0, 3))
def test_columns_hash_as_java_does(keys: list[str], skipped: int) -> None:
    column = pa.array(keys, pa.string()).slice(min(skipped, len(keys)))
    lengths, hashes = hash_columns(column)
    left = column.to_pylist()
    assert lengths.tolist() == [utf16_length(key) for key in left]
    assert hashes.tolist() == [java_hash(key) & 0xFFFFFFFF for key in left]


@given(st.lists(texts, min_size=1, max_size=20), names)
def test_wanted_hashes_are_those_of_the_index(keys: list[str], topic: str) -> None:
    lengths, hashes = hash_columns(pa.array(keys, pa.string()))
    expected = [key_hash(topic, key) for key in keys]
    assert index_hashes(topic, powers_of(lengths), hashes).tolist() == expected
    wanted = WantedKeys(keys, topic)
    assert wanted.hits(topic, np.array(expected, np.int32)).all()
    assert wanted.in_topic(topic).tolist() == sorted(set(expected))


@given(st.lists(texts, min_size=1, max_size=20, unique=True), names, st.lists(names, max_size=3))
def test_a_sieve_finds_the_code_of_each_wanted_key(keys: list[str], topic: str, others: list[str]) -> None:
    sieve = sieve_of(keys)
    asked = np.array([key_hash(topic, key) for key in keys], np.int32)
    assert sieve.hits(topic, asked).all()
    found = {
        pair
        for places, codes in sieve.codes([topic, *others], asked)
        for pair in zip(places.tolist(), codes.tolist(), strict=True)
    }
    own = codes_of(*hash_columns(pa.array(keys, pa.string()))).tolist()
    assert set(enumerate(own)) <= found


@given(st.lists(texts, min_size=1, max_size=5), names, st.lists(st.integers(0, (1 << 31) - 1), max_size=50))
def test_codes_that_are_wanted_are_hashes_that_are(keys: list[str], topic: str, values: list[int]) -> None:
    hashes = np.array([*values, 0, *(key_hash(topic, key) for key in keys)], np.int32)
    own = set(codes_of(*hash_columns(pa.array(keys, pa.string()))).tolist())
    certain = {
        place
        for places, codes in sieve_of(keys).codes([topic], hashes)
        for place, code in zip(places.tolist(), codes.tolist(), strict=True)
        if code in own
    }
    assert certain == set(np.flatnonzero(WantedKeys(keys).hits(topic, hashes)).tolist())


@given(
    st.lists(st.tuples(texts, st.lists(texts, max_size=3)), max_size=8),
    st.lists(texts, max_size=2),
    st.data(),
)
def test_kernels_find_the_first_record_with_a_wanted_key(
    records: list[tuple[str, list[str]]], others: list[str], data: st.DataObject
) -> None:
    """A sieve of few keys in many bits lets nothing else through here."""
    known = [key for uniq, keys in records for key in (uniq, *" ".join(keys).split(" ")) if key]
    wanted = {*others, *data.draw(st.lists(st.sampled_from(known), max_size=2) if known else st.just([]))}
    sieve = sieve_of(sorted(wanted))
    rows, text = np.full((len(records), ROW_WIDTH), -1, np.int64), b""
    for row, (uniq, keys) in zip(rows, records, strict=True):
        for at, one in ((Field.UNIQ_KEY_POSITION, uniq), (Field.KEYS_POSITION, " ".join(keys))):
            row[at], row[at + 1] = 7 + len(text), len(one.encode()) or -1
            text += one.encode()
    hashes = {java_hash(key) for key in wanted}
    has = [
        any(key and java_hash(key) in hashes for key in (uniq, *" ".join(keys).split(" ")))
        for uniq, keys in records
    ]
    expected = has.index(True) if True in has else len(records)
    window = np.frombuffer(text, np.uint8)
    for kernels in (compiled_kernels(), python_kernels()):
        assert kernels.hashes.first_in_sieve(window, 7, rows, sieve.bits) == expected


def test_the_hash_without_a_positive_partner() -> None:
    topic, length = "TopicTest", 5
    rest = ((1 << 31) - (java_hash(f"{topic}#") & 0xFFFFFFFF) * 31**length) % (1 << 32)
    key = ""
    for power in range(length - 1, -1, -1):
        key += chr(rest // 31**power)
        rest %= 31**power
    assert java_hash(f"{topic}#{key}") == -(1 << 31)
    assert key_hash(topic, key) == 0
    zero = np.zeros(1, np.int32)
    assert WantedKeys([key]).hits(topic, zero).all()
    own = codes_of(*hash_columns(pa.array([key]))).tolist()
    assert own[0] in [code for _, codes in sieve_of([key]).codes([topic], zero) for code in codes.tolist()]


@pytest.mark.parametrize("count", [1000, 200_000])
def test_a_sieve_lets_few_others_through(count: int) -> None:
    sieve = sieve_of([f"order-{number:09}" for number in range(count)])
    hashes = np.random.default_rng(1).integers(0, 1 << 31, 100_000, dtype=np.int32)
    assert sieve.hits("TopicTest", hashes).mean() < 0.15
    assert sieve.bits.nbytes <= max(4 * count, 128 << 10)
