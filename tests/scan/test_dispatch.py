"""Records on their way to their queues: kernels, plain-Python twin and definition give the same."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.consumequeue import PRE_BLANK_SIZE
from formats.java import java_utf8_decode
from formats.tags_code import tags_hash
from rmqtool.scan import dispatch_python, hashes_python
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, CrcState, DispatchColumn, Field, Issue
from rmqtool.scan.keys import key_hashes
from rmqtool.scan.partitions import Partitions, StretchedPartitions
from rmqtool.scan.units import UNIT
from tests.scan.conftest import compiled_kernels, python_kernels

compiled, hashes = compiled_kernels().dispatch, compiled_kernels().hashes
MODULES = [dispatch_python, compiled]
ORIGIN, BASE = 1 << 20, 1 << 33

RECORD = st.tuples(
    st.sampled_from(["T", "TopicTest", "主题", "", "a-longer-topic-name", "TopicTesu"]),
    st.integers(-1, 3),
    st.integers(0, 9),
    st.sampled_from([b"", b"TagA", "标签".encode(), b"\xff\xc3", b"12345678"]),
    st.sampled_from([0, 4, 8, 12]),
    st.sampled_from([0, 0, 0, int(Issue.TOPIC_UTF8)]),
)


def run_of(records: list[Any]) -> Records:
    data = bytearray(b"pad")
    rows = np.zeros((len(records), ROW_WIDTH), np.int64)
    for number, (topic, queue_id, slot, tags, flag, issues) in enumerate(records):
        rows[number, [Field.QUEUE_ID, Field.QUEUE_OFFSET, Field.SYS_FLAG, Field.ISSUES]] = (
            queue_id, slot, flag, issues,
        )  # fmt: skip
        rows[number, [Field.POSITION, Field.STORE_SIZE]] = number * 100, 100
        for at, raw in ((Field.TOPIC_POSITION, topic.encode()), (Field.TAGS_POSITION, tags)):
            rows[number, [at, at + 1]] = ORIGIN + len(data), len(raw)
            data += raw
    return Records(rows, np.frombuffer(bytes(data), np.uint8), ORIGIN)


def expected(records: list[Any]) -> list[tuple[Any, ...]]:
    reported = []
    for number, (topic, queue_id, slot, tags, flag, issues) in enumerate(records):
        if flag not in (4, 12) and not issues:
            code = tags_hash(java_utf8_decode(tags)[0])
            reported.append(((topic, queue_id), slot, BASE + number * 100, 100, code))
    return reported


def partitions_of(module: ModuleType, records: list[Any], room: int) -> list[tuple[Any, ...]]:
    partitions = Partitions(compiled_kernels() if module is compiled else python_kernels(), room)
    found: list[tuple[Any, ...]] = []

    def empty() -> None:
        part = []
        for key, chosen in partitions.groups():
            assert (np.diff(chosen) > 0).all()
            rows = partitions.columns[DispatchColumn.SLOT : DispatchColumn.OWNER, chosen].T.tolist()
            part += [(place, (key, *row)) for place, row in zip(chosen.tolist(), rows, strict=True)]
        found.extend(row for _, row in sorted(part))
        partitions.clear()

    for _ in partitions.take(run_of(records), BASE):
        empty()
    empty()
    return found


@settings(max_examples=100, deadline=None)
@given(st.lists(RECORD, max_size=30), st.sampled_from([3, 100]))
def test_records_are_sorted_by_topic_and_queue(records: list[Any], room: int) -> None:
    for module in MODULES:
        assert partitions_of(module, records, room) == expected(records)


@pytest.mark.parametrize("module", MODULES)
def test_any_number_of_queues(module: ModuleType) -> None:
    records = [(f"Topic{number // 3}-{'x' * 90}", number, 0, b"", 0, 0) for number in range(1500)]
    assert partitions_of(module, records, 4096) == expected(records)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("room", [5, 4096])
def test_what_was_placed_elsewhere_is_taken_in_its_order(module: ModuleType, room: int) -> None:
    """By two that place, each with keys of its own; what is taken from a run goes to the same partitions."""
    kernels = compiled_kernels() if module is compiled else python_kernels()
    records = [(f"T{number % 700 // 3}{'x' * 90}", number % 7, 1, b"t", 0, 0) for number in range(1400)]
    run, others = run_of(records), [Partitions(kernels, 64), Partitions(kernels, 2048)]
    partitions = Partitions(kernels, room)
    found: list[tuple[Any, ...]] = []

    def empty() -> None:
        columns = partitions.columns[:, : len(partitions)]
        for column in columns.T.tolist():
            key = partitions.keys[column[DispatchColumn.PARTITION]]
            found.append((key, *column[DispatchColumn.SLOT : DispatchColumn.OWNER]))
        partitions.clear()

    for start in range(0, len(records), 100):
        part = Records(run.rows[start : start + 100], run.window, ORIGIN)
        number = start // 100 % 3
        taken = partitions.take(part, BASE) if number == 2 else None
        if taken is None:
            taken = partitions.take_placed(others[number].placed(part, BASE))
        for _ in taken:
            empty()
    empty()
    assert found == expected(records)
    assert len(set(partitions.keys)) == len(partitions.keys)


@settings(max_examples=200, deadline=None)
@given(st.lists(RECORD, max_size=30), st.sampled_from([2, 100]), st.integers(1, 9))
def test_stretches_are_the_records_of_each_queue(records: list[Any], room: int, at_once: int) -> None:
    """Their records one by one are the queue's, and in one call none could be longer."""
    wanted: dict[Any, list[tuple[int, int]]] = {}
    for key, slot, offset, *_ in expected(records):
        wanted.setdefault(key, []).append((slot, offset))
    run = run_of(records)
    for module in MODULES:
        partitions = StretchedPartitions(compiled_kernels() if module is compiled else python_kernels(), room)
        found: dict[Any, list[tuple[int, int]]] = {}
        for start in range(0, len(records), at_once):
            part = partitions.placed(Records(run.rows[start : start + at_once], run.window, ORIGIN), BASE)
            last: dict[int, int] = {}
            for partition, slot, offset, last_slot, last_offset in part.columns.T.tolist():
                assert room < 100 or last.get(partition) != slot - 1
                last[partition] = last_slot
                left = wanted[part.keys[partition]][len(found.get(part.keys[partition], [])) :][
                    : last_slot - slot + 1
                ]
                assert [one for one, _ in left] == list(range(slot, last_slot + 1))
                assert (left[0][1], left[-1][1]) == (offset, last_offset)
                found.setdefault(part.keys[partition], []).extend(left)
        assert found == wanted


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, int(Issue.SEALED), int(Issue.CRC32 | Issue.SEALED), 1]),
            st.sampled_from(CrcState),
            st.sampled_from([-(1 << 63), -1, 0, 1, 9, 10, 19, 1 << 40, (1 << 63) - 1]),
        ),
        max_size=8,
    )
)
def test_an_outline_tells_whether_rows_must_be_looked_at(given: list[tuple[int, CrcState, int]]) -> None:
    rows = np.zeros((len(given), ROW_WIDTH), np.int64)
    for row, one in zip(rows, given, strict=True):
        row[[Field.ISSUES, Field.CRC_STATE, Field.STORE_TIMESTAMP]] = one
    odd = sum(bool(issues & ~Issue.SEALED) or state is CrcState.BAD for issues, state, _ in given)
    times = [time for *_, time in given]
    even = all(one > 0 for one in times) and all(abs(a - b) <= 9 for a, b in pairwise(times))
    for module in MODULES:
        assert module.outline(rows, 9) == (odd, even)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([b"", b"k"]), st.sampled_from([b"", b"  ", b" a"]), st.booleans())))
def test_records_with_keys_are_those_that_have_hashes(given: list[tuple[bytes, bytes, bool]]) -> None:
    run = run_of([("T", 0, 0, b"", 12 if back else 0, 0) for *_, back in given])
    data = bytearray(run.window.tobytes())
    for row, (uniq, keys, _) in zip(run.rows, given, strict=True):
        for at, raw in ((Field.UNIQ_KEY_POSITION, uniq), (Field.KEYS_POSITION, keys)):
            row[[at, at + 1]] = ORIGIN + len(data), len(raw) or -1
            data += raw
    run = Records(run.rows, np.frombuffer(bytes(data), np.uint8), ORIGIN)
    for module in (hashes_python, hashes):
        owners = sorted(set(key_hashes(module, run)[1].tolist()))
        found = np.full(3, 7)
        module.keyed(run.window, ORIGIN, run.rows, found)
        assert found.tolist() == ([owners[0], owners[-1], len(owners)] if owners else [0, 0, 0])


UNITS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 5, 9, -1]), st.sampled_from([0, 100, PRE_BLANK_SIZE]), st.integers(0, 1)
    ),
    max_size=6,
)


def units_of(values: list[tuple[int, int, int]]) -> Any:
    units = np.zeros(len(values), UNIT)
    for name, column in zip(
        ("physical_offset", "size", "tags_code"), zip(*values, strict=True), strict=False
    ):
        units[name] = column
    return units.view(np.uint8)


@settings(max_examples=200, deadline=None)
@given(
    UNITS, st.integers(0, 3), st.lists(st.tuples(st.integers(0, 8), st.sampled_from([0, 1, 5])), max_size=6)
)
def test_units_agree_in_all_fields_or_not(
    units: list[tuple[int, int, int]], first: int, records: list[tuple[int, int]]
) -> None:
    columns = np.zeros((len(DispatchColumn), len(records)), np.int64)
    for number, (slot, offset) in enumerate(records):
        columns[:, number] = (0, slot, offset, 100, 1, number, 0)
    truth = [
        0 <= slot - first < len(units) and units[slot - first] == (offset, 100, 1) for slot, offset in records
    ]
    highest = max((offset for (_, offset), right in zip(records, truth, strict=True) if right), default=-1)
    for module in MODULES:
        right = np.zeros(len(records), bool)
        chosen = np.arange(len(records))
        assert module.agree_units(units_of(units), first, columns, chosen, right) == (sum(truth), highest)
        assert right.tolist() == truth


@settings(max_examples=200, deadline=None)
@given(UNITS, st.sampled_from([-1, 0, 4]))
def test_ascending_units_are_seen_alike(units: list[tuple[int, int, int]], highest: int) -> None:
    answers = [module.ascending_units(units_of(units), highest) for module in MODULES]
    assert answers[0] == answers[1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 3)), min_size=1, max_size=9))
def test_slots_are_compared_alike(pairs: list[tuple[int, int]]) -> None:
    raw = np.array([said for said, _ in pairs], ">i4").view(np.uint8)
    state = np.array([newest | (newest and 5 << 32) for _, newest in pairs], np.int64)
    truth = [slot for slot, (said, newest) in enumerate(pairs) if said != newest]
    for module in (hashes_python, hashes):
        wrong, lengths = np.zeros(2, np.int64), np.zeros(4, np.int64)
        count, used = module.compare_slots(raw, state, wrong, lengths)
        assert lengths.tolist() == [len(pairs) - used, 0, 0, used]
        assert (count, used) == (len(truth), sum(newest > 0 for _, newest in pairs))
        assert wrong[: min(count, 2)].tolist() == truth[:2]
