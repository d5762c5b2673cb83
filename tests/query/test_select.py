"""Which records a filter passes: whole columns at once against one record after the other."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formats.commitlog import encode_message
from formats.properties import decode, split_keys
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.scope import Scope
from rmqtool.query.select import Selector
from rmqtool.scan import kernels_python as kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field
from rmqtool.store.segments import SegmentSet

if TYPE_CHECKING:
    from collections.abc import Sequence

BASE = 1 << 20
TOPICS = ["TopicA", "TopicB", "a", "*", "%RETRY%g", "b[1]"]
TAGS = ["A", "B", ""]
WORDS = ["k1", "k2", "k1 k2", " k1", ""]


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    pairs = {
        "TAGS": draw(st.sampled_from(TAGS)),
        "KEYS": draw(st.sampled_from(WORDS)),
        "UNIQ_KEY": draw(st.sampled_from(["U1", "U2", ""])),
        "color": draw(st.sampled_from(["red", "blue", ""])),
    }
    raw = b"".join(f"{name}\x01{value}\x02".encode() for name, value in pairs.items())
    raw += draw(st.sampled_from([b"", b"", b"color\x01red\x02", b"color\x01\xff\x02"]))
    return {
        "topic": draw(st.sampled_from(TOPICS)),
        "body": draw(st.sampled_from([b"", b"hello", b"say hello", b"\xff\xfe", "grün".encode()])),
        "properties": raw,
        "queue_id": draw(st.integers(-1, 3)),
        "queue_offset": draw(st.integers(0, 9)),
        "born_timestamp": draw(st.integers(0, 9)),
        "store_timestamp": draw(st.integers(0, 9)),
    }


BOUND = st.integers(0, 10)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "topics": st.lists(
        st.sampled_from(["Topic*", "TopicA", "?", "*", "[ab]", "%*", "b[[]1]", "nothing"]), max_size=2
    ).map(tuple),
    "queues": st.frozensets(st.integers(0, 3), max_size=2),
    "store_from": BOUND,
    "store_to": BOUND,
    "born_from": BOUND,
    "born_to": BOUND,
    "offset_from": st.integers(BASE, BASE + 900),
    "offset_to": st.integers(BASE, BASE + 900),
    "queue_offset_from": BOUND,
    "queue_offset_to": BOUND,
    "tags": st.frozensets(st.sampled_from(["A", "B", "C", ""]), max_size=2),
    "keys": st.frozensets(st.sampled_from(["k1", "k2", "k1 k2", ""]), max_size=2),
    "uniq_keys": st.frozensets(st.sampled_from(["U1", "U2"]), max_size=2),
    "properties": st.lists(
        st.sampled_from(
            [("color", "red"), ("color", "blue"), ("TAGS", "A"), ("color", "\ufffd"), ("none", "x")]
        ),
        max_size=2,
    ).map(tuple),
    "body_contains": st.sampled_from(["hello", "ü", "say", "absent", ""]),
}


@st.composite
def filters(draw: st.DrawFn) -> MessageFilter:
    """Of one to three fields: more of them would hardly ever pass anything."""
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=3, unique=True))
    return MessageFilter(**{name: draw(FIELDS[name]) for name in names})


def passes(wanted: MessageFilter, message: dict[str, Any], place: int) -> bool:
    """The same in plain words."""
    properties = decode(message["properties"])
    ranges = (
        (message["store_timestamp"], wanted.store_from, wanted.store_to),
        (message["born_timestamp"], wanted.born_from, wanted.born_to),
        (place, wanted.offset_from, wanted.offset_to),
        (message["queue_offset"], wanted.queue_offset_from, wanted.queue_offset_to),
    )
    return (
        (not wanted.topics or any(fnmatchcase(message["topic"], glob) for glob in wanted.topics))
        and (not wanted.queues or message["queue_id"] in wanted.queues)
        and all(
            (low is None or value >= low) and (high is None or value < high) for value, low, high in ranges
        )
        and (not wanted.tags or properties.get("TAGS") in wanted.tags)
        and (not wanted.uniq_keys or properties.get("UNIQ_KEY") in wanted.uniq_keys)
        and (not wanted.keys or bool(wanted.keys & set(split_keys(properties.get("KEYS", "")))))
        and all(properties.get(name) == value for name, value in wanted.properties)
        and (wanted.body_contains is None or wanted.body_contains.encode() in message["body"])
    )


def walked(listed: Sequence[dict[str, Any]]) -> tuple[Records, list[int]]:
    data, places = b"", []
    for message in listed:
        places.append(BASE + len(data))
        data += encode_message(**message)
    rows = np.empty((len(listed), ROW_WIDTH), np.int64)
    window = np.frombuffer(data, np.uint8)
    kernels.walk(window, 0, 0, len(data), BASE, int(Check.ALL), rows, np.zeros(STATUS_WIDTH, np.int64))
    return Records(rows, window, 0), places


@pytest.mark.parametrize("examples", [250, pytest.param(5000, marks=pytest.mark.full)])
def test_any_filter_on_any_messages(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(messages(), min_size=1, max_size=6), filters())
    def prop(listed: list[dict[str, Any]], wanted: MessageFilter) -> None:
        records, places = walked(listed)
        chosen = Selector(wanted, kernels).choose(records, BASE)
        found = (chosen.rows[:, Field.POSITION] + BASE).tolist()
        assert found == [
            at for at, message in zip(places, listed, strict=True) if passes(wanted, message, at)
        ]

    prop()


def test_one_selector_serves_many_runs() -> None:
    selector = Selector(MessageFilter(topics=("Topic?",), keys=frozenset({"k"})), kernels)
    good = {"topic": "TopicA", "properties": b"KEYS\x01j k\x02"}
    for run, expected in (([good], 1), ([{"topic": "x"}], 0), ([good, {"topic": "TopicB"}, good], 2)):
        assert len(selector.choose(walked(run)[0], BASE).rows) == expected


def test_the_empty_filter_passes_everything_untouched() -> None:
    records, _ = walked([{"topic": "T"}])
    assert Selector(MessageFilter(limit=3, sample=4), kernels).choose(records, BASE) is records


def test_a_topic_that_cannot_be_decoded_matches_no_glob() -> None:
    from tests.scan.tools import encode_raw_topic

    data = encode_raw_topic(b"\xff")
    rows = np.empty((1, ROW_WIDTH), np.int64)
    window = np.frombuffer(data, np.uint8)
    kernels.walk(window, 0, 0, len(data), BASE, int(Check.ALL), rows, np.zeros(STATUS_WIDTH, np.int64))
    chosen = Selector(MessageFilter(topics=("*",)), kernels).choose(Records(rows, window, 0), BASE)
    assert len(chosen.rows) == 0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (None, None, True), (0, None, True), (999, None, True), (1999, None, True), (2000, None, False),
        (None, 1000, False), (None, 1001, True), (1500, 1600, True), (2000, 3000, False), (0, 1000, False),
    ],
)  # fmt: skip
def test_segments_outside_of_the_range_are_left_unread(
    low: int | None, high: int | None, expected: bool
) -> None:
    from types import SimpleNamespace

    segment: Any = SimpleNamespace(base=1000, end=2000)
    scope = Scope(SegmentSet(()), MessageFilter(offset_from=low, offset_to=high))
    assert scope.in_offsets(segment) is expected
