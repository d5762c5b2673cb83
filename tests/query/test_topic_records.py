"""Numbers in properties, in columns."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from formats.java import java_parse_int
from rmqtool.query.views.topic_records import numbers_of

NUMBERS = st.integers(-(1 << 63) - 2, (1 << 63) + 2) | st.integers(-(1 << 31) - 2, (1 << 31) + 2)
TEXTS = NUMBERS.map(str) | st.from_regex(r"[+-]?0{0,20}[0-9٣\n ]{0,20}", fullmatch=True) | st.text(max_size=3)


@given(st.lists(st.none() | TEXTS), st.sampled_from([32, 64]))
def test_numbers_are_what_java_reads(texts: list[str | None], bits: int) -> None:
    expected = [None if one is None else java_parse_int(one, bits) for one in texts]
    assert numbers_of(pa.array(texts, pa.string()), bits).to_pylist() == expected
