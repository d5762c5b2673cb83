"""Units of further queues in columns, against the lists of each record by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.java import java_parse_int, java_split
from formats.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, Field
from rmqtool.scan.multi import (
    MultiDispatch,
    extra_rows,
    further_places,
    is_exempt,
    takes_number,
    uncounted,
    unlisted,
)

ORIGIN = 700
TOPICS = ["T", "%RETRY%g"]
NAME = st.sampled_from(["%LMQ%a", "%LMQ%b", "Other", "a/b", "主题", " ", "", "%LMQ%"])
NUMBER = st.one_of(
    st.integers(0, 30).map(str),
    st.sampled_from(["007", "", " 1", "-1", "+3", "x", "٣", str((1 << 63) - 1), str(1 << 63), "9" * 18]),
)
RECORD = st.tuples(
    st.integers(0, 1),
    st.integers(-1, 5),
    st.one_of(st.none(), st.lists(NAME, max_size=4).map(",".join), st.sampled_from([",", ",,", " ", "a,,"])),
    st.one_of(
        st.none(),
        st.lists(NUMBER, max_size=4).map(",".join),
        st.sampled_from([",", "1,", ",1", "1,2,,", " "]),
    ),
)
Record = tuple[int, int, str | None, str | None]


def run_of(records: list[Record]) -> Records:
    data, rows = bytearray(b"?"), np.zeros((len(records), ROW_WIDTH), np.int64)
    for row, (_, queue_id, queues, offsets) in zip(rows, records, strict=True):
        texts = ((INNER_MULTI_DISPATCH, queues), ("KEYS", "k"), (INNER_MULTI_QUEUE_OFFSET, offsets))
        raw = "\x02".join(f"{name}\x01{text}" for name, text in texts if text is not None).encode()
        row[[Field.QUEUE_ID, Field.PROPERTIES_POSITION, Field.PROPERTIES_LENGTH]] = (
            queue_id, ORIGIN + len(data), len(raw),
        )  # fmt: skip
        data += raw
    return Records(rows, np.frombuffer(bytes(data), np.uint8), ORIGIN)


def expected(
    records: list[Record], rule: MultiDispatch, *, lmq: bool
) -> tuple[list[tuple[int, str, int, int]], int, int]:
    units, unlisted, stuck = [], 0, 0
    for number, (topic, queue_id, queues, offsets) in enumerate(records):
        if is_exempt(TOPICS[topic], rule) or not queues or not offsets:
            continue
        places = further_places(queues, offsets, queue_id, lmq=lmq)
        if places is None:
            unlisted += 1
            continue
        for name, of, slot in places:
            if rule is MultiDispatch.USER_TOPICS and "/" in name:
                continue
            if slot is None:
                stuck += 1
            else:
                units.append((number, name, of, slot))
    return units, unlisted, stuck


@settings(max_examples=300, deadline=None)
@given(
    st.lists(RECORD, max_size=12),
    st.sampled_from([MultiDispatch.ALL_TOPICS, MultiDispatch.USER_TOPICS]),
    st.booleans(),
)
def test_units_are_those_of_each_record(records: list[Record], rule: MultiDispatch, lmq: bool) -> None:
    topics = np.array([topic for topic, *_ in records], np.int64)
    found = extra_rows(run_of(records), topics, TOPICS, choose_kernels(), rule, lmq=lmq)
    names = [found.names[code] for code in found.name_of.tolist()]
    units = list(
        zip(found.records.tolist(), names, found.queue_ids.tolist(), found.slots.tolist(), strict=True)
    )
    assert (units, found.unlisted, found.stuck) == expected(records, rule, lmq=lmq)
    assert found.names == sorted(set(names))


@settings(max_examples=200, deadline=None)
@given(st.lists(RECORD, max_size=12), st.booleans())
def test_records_that_feed_none_are_those_with_uneven_lists(records: list[Record], lmq: bool) -> None:
    wanted, naming = [], []
    for number, (_, queue_id, queues, offsets) in enumerate(records):
        if queues and offsets and further_places(queues, offsets, queue_id, lmq=lmq) is None:
            names = java_split(queues, ",")
            naming += [number] if "%LMQ%a" in names else []
            for name, text in zip(names, java_split(offsets, ","), strict=False):
                if (slot := java_parse_int(text, 64)) is not None:
                    wanted.append((number, name, queue_id if takes_number(name, lmq=lmq) else 0, slot))
    run = run_of(records)
    run.rows[:, Field.POSITION] = np.arange(len(records))
    assert list(uncounted(run, choose_kernels(), lmq=lmq)) == wanted
    assert unlisted(run, "%LMQ%a", choose_kernels()) == naming


def test_nothing_is_dispatched_without_the_rule() -> None:
    run = run_of([(0, 0, "%LMQ%a", "1")])
    found = extra_rows(run, np.zeros(1, np.int64), TOPICS, choose_kernels(), MultiDispatch.NONE, lmq=True)
    assert (len(found.records), found.names) == (0, [])


@pytest.mark.parametrize("offsets", ["5", "-5"])
def test_names_that_are_not_utf8_are_decoded_as_java_does(offsets: str) -> None:
    """Bytes of a mapped file may change behind the scan, which found them right."""
    run = run_of([(0, 0, "%LMQ%a", offsets)])
    window = np.frombuffer(run.window.tobytes().replace(b"%LMQ%a", b"%LMQ%\xff"), np.uint8)
    found = extra_rows(
        Records(run.rows, window, ORIGIN), np.zeros(1, np.int64), TOPICS, choose_kernels(),
        MultiDispatch.ALL_TOPICS, lmq=True,
    )  # fmt: skip
    assert (found.names, found.slots.tolist()) == (["%LMQ%\ufffd"], [int(offsets)])
