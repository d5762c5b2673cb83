"""Units of a new timer log, made in columns: the same as those of a plain loop over the messages."""

from __future__ import annotations

import shutil
import sys
import time
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formats.commitlog import BLANK_MAGIC_CODE
from formats.java import java_hash, java_parse_int
from formats.timer import (
    ROLL_TIMES,
    TIMER_BLANK,
    TIMER_DELETES,
    TIMER_ROLLED,
    TIMER_SET,
    TIMER_UNIT_SIZE,
    WHEEL_SPAN,
    TimerBlank,
    TimerCheck,
    TimerUnit,
)
from rmqtool import MessageStore
from rmqtool.broker.settings import settings_of
from rmqtool.repair.keep.timer_log import timer_log_edits
from rmqtool.repair.keep.timer_units import COLUMNS, Window, timer_files, timer_units
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from pathlib import Path

DAY, TODAY = 86_400_000, 1_795_219_200_000
LEAST, MOST = -(1 << 63), (1 << 63) - 1


class Record(NamedTuple):
    """A message of the timer topic; properties as they stand in it, the last of a name counts."""

    queue_id: int
    queue_offset: int
    store_timestamp: int
    born_timestamp: int
    body_crc: int
    uniq_key: str | None
    properties: tuple[tuple[str, str], ...]


TYPES = {
    "physical_offset": pa.int64(), "store_size": pa.int32(), "queue_id": pa.int32(),
    "queue_offset": pa.int64(), "store_timestamp": pa.int64(), "born_timestamp": pa.int64(),
    "body_crc": pa.int32(), "uniq_key": pa.string(), "properties": pa.map_(pa.string(), pa.string()),
}  # fmt: skip


def place(number: int) -> tuple[int, int]:
    """Physical offset and size of a message by its place in the log."""
    return 300 * number, 200 + number % 50


def batches(records: list[Record], step: int) -> list[pa.RecordBatch]:
    rows = [
        dict(zip(("physical_offset", "store_size"), place(number), strict=True)) | one._asdict()
        for number, one in enumerate(records)
    ]
    schema = pa.schema([(name, TYPES[name]) for name in COLUMNS])
    parts = [rows[at : at + step] for at in range(0, len(rows), step)]
    return [pa.RecordBatch.from_pylist(part, schema) for part in parts]


def plain_units(records: list[Record], taken: int, window: Window) -> list[dict[str, int]]:
    """As they were made one by one."""

    def slot(when: int) -> int:
        return when // window.precision * window.precision

    known = []
    for number, one in enumerate(records):
        there = dict(one.properties)
        due = java_parse_int(there.get("TIMER_OUT_MS", ""), 64)
        if one.queue_id or one.queue_offset >= taken or due is None:
            continue
        rolled = java_parse_int(there.get(ROLL_TIMES) or "0") or 0
        topic, deletes = there.get("REAL_TOPIC"), there.get("TIMER_DEL_UNIQKEY")
        message = (one.born_timestamp, one.body_crc, one.uniq_key, due, topic, deletes)
        known.append((one.queue_offset, number, due, rolled, message))
    known.sort(key=lambda one: one[:2])
    again = {(message, rolled) for *_, rolled, message in known}
    made, last_waits = [], True
    for place_in_queue, (_, number, due, rolled, message) in enumerate(known):
        last_waits = slot(due) >= window.read_time and (message, rolled + 1) not in again
        magic = TIMER_SET | (TIMER_DELETES if message[-1] is not None else 0)
        if last_waits:
            when = max(slot(due), slot(window.today) if due < window.today else 0)
            furthest = slot(max(window.today, window.read_time)) + WHEEL_SPAN * window.precision
            if when > furthest:
                when, magic = furthest, magic | TIMER_ROLLED
        elif place_in_queue == len(known) - 1:
            when = window.read_time - window.precision
        else:
            continue
        written = max(slot(min(records[number].store_timestamp, when)), when - (1 << 30))
        made.append(
            {
                "size": TIMER_UNIT_SIZE,
                "magic": magic,
                "write_time": written,
                "delay": when - written,
                "physical_offset": place(number)[0],
                "record_size": place(number)[1],
                "topic_hash": java_hash(str(message[4] or "")),
                "reserved": 0,
            }
        )
    return made


def plain_files(units: list[dict[str, int]], size: int) -> list[bytes]:
    each = (size - TIMER_BLANK) // TIMER_UNIT_SIZE
    files: list[bytes] = []
    heads: dict[int, int] = {}
    for number, unit in enumerate(units):
        due = unit["write_time"] + unit["delay"]
        if number % each == 0:
            files.append(b"")
        files[-1] += TimerUnit.build({**unit, "previous": heads.get(due, -1)})
        heads[due] = (len(files) - 1) * size + len(files[-1]) - TIMER_UNIT_SIZE
    for number in range(len(files) - 1):
        rest = {"size": size - len(files[number]), "previous": 0, "magic": BLANK_MAGIC_CODE}
        files[number] += TimerBlank.build(rest)
    return files


near = st.integers(-3, 3).map(lambda days: TODAY + days * DAY)
moments = near | st.integers(TODAY - 20 * DAY, TODAY + 20 * DAY)
extremes = st.sampled_from([LEAST, LEAST + 1, -(1 << 31), -1, 0, 1, 999, MOST - 1, MOST])
numbers = st.integers(LEAST - 2, MOST + 2) | moments
odd_numbers = ["", "+5", "-", "1 ", "0x5", "٣", "1\n", f"+{TODAY}", f"{TODAY:030d}", "1" * 5000]
dues = near.map(str) | (numbers | extremes).map(str) | st.sampled_from(odd_numbers)
rolls = st.integers(-1, 3).map(str) | st.sampled_from(
    ["", "+1", "x", "00000000001", "2147483647", "2147483648", "-2147483648", "2147483646"]
)
VALUES = {
    "TIMER_OUT_MS": dues,
    "REAL_TOPIC": st.sampled_from(["", "Orders", "Ör" * 40, "\U0001f40d", "%RETRY%group"]),
    "TIMER_DEL_UNIQKEY": st.sampled_from(["", "A"]),
    ROLL_TIMES: rolls,
}


@st.composite
def records(draw: st.DrawFn) -> Record:
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=5))
    given = [("TIMER_OUT_MS", draw(dues))] if draw(st.integers(0, 9)) else []
    given += [(name, draw(VALUES[name])) for name in names]
    return Record(
        draw(st.sampled_from([0, 0, 0, 0, 1])),
        draw(st.integers(0, 40)),
        draw(moments | extremes),
        draw(st.sampled_from([0, 5, LEAST])),
        draw(st.sampled_from([0, -1])),
        draw(st.sampled_from([None, "", "A"])),
        tuple(given),
    )


def message(slot: int, due: int, *more: tuple[str, str]) -> Record:
    return Record(0, slot, TODAY, 5, 7, "A", (("TIMER_OUT_MS", str(due)), *more))


def rolled(times: int) -> tuple[str, str]:
    return (ROLL_TIMES, str(times))


LATER = TODAY + 3 * DAY
THINGS = [("REAL_TOPIC", "Orders"), ("TIMER_DEL_UNIQKEY", ""), ("TIMER_DEL_UNIQKEY", "A")]


@st.composite
def put_again(draw: st.DrawFn) -> list[Record]:
    """One message that waits, several times: rolled as often as it may be, or different in a thing."""
    one = message(0, LATER, *draw(st.lists(st.sampled_from(THINGS), max_size=2)))
    fields: list[dict[str, Any]] = [{}, {}, {"uniq_key": None}, {"born_timestamp": 6}, {"body_crc": 8}]
    copies = []
    for _ in range(draw(st.integers(2, 6))):
        more = (rolled(draw(st.integers(0, 2))), *draw(st.lists(st.sampled_from(THINGS), max_size=1)))
        slot = draw(st.integers(0, 40))
        copies.append(
            one._replace(
                queue_offset=slot, properties=(*one.properties, *more), **draw(st.sampled_from(fields))
            )
        )
    return copies


STEPS = [1, 7, 1000, (1 << 31) - 1]


@given(
    st.lists(st.lists(records(), max_size=4) | put_again(), max_size=5).map(
        lambda parts: list(chain(*parts))
    ),
    st.integers(-1, 40) | st.just(MOST),
    st.builds(
        Window,
        moments | st.sampled_from([1, MOST]),
        st.sampled_from(STEPS),
        st.sampled_from([DAY, TODAY]),
    ),
    st.integers(1, 20),
    st.integers(TIMER_BLANK + TIMER_UNIT_SIZE, 600),
)
@example([message(0, LATER), message(1, LATER, rolled(1)), message(2, LATER, rolled(3))], 9,
         Window(TODAY, 1000, TODAY), 2, 520)  # fmt: skip
@example([message(0, LATER), message(0, LATER), message(1, LATER, rolled(1))], 9,
         Window(TODAY, 1000, TODAY), 1, 100)  # fmt: skip
@example([message(0, MOST), message(1, LEAST)], 9, Window(MOST, 1000, TODAY), 2, 520)  # fmt: skip
@example([message(3, 0), message(5, 0), message(5, 0), message(4, 0), message(6, MOST)], 6,
         Window(TODAY, 1000, TODAY), 9, 520)  # fmt: skip
@example([message(at, TODAY + WHEEL_SPAN * 1000 + at * 500 - 500) for at in range(5)], 9,
         Window(TODAY, 1000, TODAY), 9, 520)  # fmt: skip
@example([message(0, LATER)._replace(store_timestamp=LEAST)], 9, Window(TODAY, 1000, TODAY), 2, 520)
@example([message(1, LATER), message(0, TODAY - 1)], 9, Window(TODAY, 7, TODAY), 2, 520)  # fmt: skip
def test_units_are_those_of_a_plain_loop(
    messages: list[Record], taken: int, window: Window, step: int, size: int
) -> None:
    expected = plain_units(messages, taken, window)
    units = timer_units(batches(messages, step), taken, window)
    found = [dict(zip(units.dtype.names or (), one, strict=True)) for one in units.tolist()]
    assert [{**one, "previous": 0} for one in expected] == found
    assert timer_files(units, size) == plain_files(expected, size)


MESSAGE = message(0, LATER, rolled(0))
OTHERS = {
    "born_timestamp": MESSAGE._replace(born_timestamp=6),
    "body_crc": MESSAGE._replace(body_crc=8),
    "uniq_key": MESSAGE._replace(uniq_key="B"),
    "no uniq_key": MESSAGE._replace(uniq_key=None),
    "due": message(0, LATER + 1, rolled(0)),
    **{str(thing): message(0, LATER, thing, rolled(0)) for thing in THINGS},
}


@pytest.mark.parametrize("different", OTHERS)
def test_a_timer_that_was_put_again_does_not_wait(different: str) -> None:
    """Another one whose number of rolls follows, and which is not the same message, does not count."""

    def waiting(*messages: Record) -> list[int]:
        units = timer_units(batches(list(messages), 2), 9, Window(TODAY, 1000, TODAY))
        return [at // 300 for at in units["physical_offset"].tolist()]

    def once_more(one: Record) -> Record:
        return one._replace(queue_offset=1, properties=(*one.properties[:-1], rolled(1)))

    one, other = MESSAGE, OTHERS[different]
    assert waiting(one, once_more(one)) == [1]
    assert waiting(other, once_more(other)) == [1]
    assert waiting(one, once_more(other)) == [0, 1]
    assert waiting(other, once_more(one)) == [0, 1]


def test_a_file_without_room_for_a_unit() -> None:
    units = timer_units(batches([message(0, LATER)], 1), 1, Window(TODAY, 1000, TODAY))
    assert timer_files(units, TIMER_BLANK + TIMER_UNIT_SIZE - 1) is None


def timer_store(root: Path, count: int) -> Store:
    """Timers that wait, with nothing in the timer log."""
    now = int(time.time() * 1000)
    given = [
        [("TIMER_OUT_MS", str(now + DAY + number)), ("REAL_TOPIC", "Orders"), (ROLL_TIMES, str(number % 3))]
        for number in range(count)
    ]
    columns = {
        "topic": pa.array(["rmq_sys_wheel_timer"] * count),
        "body": pa.array([b"body"] * count),
        "queue_id": pa.array([0] * count, pa.int32()),
        "properties": pa.array(given, TYPES["properties"]),
    }
    with MessageStore.open(root, create=True, release="5.3.3") as store:
        store.put_many(pa.table(columns))
    # how many of its slots are looked at, up to thousands, is a matter of chance: of the keys' hashes
    shutil.rmtree(root / "index")
    (root / "config/timercheck").write_bytes(
        TimerCheck.build(
            {
                "last_read_time": now,
                "last_timer_log_flush_position": 0,
                "last_timer_queue_offset": count,
                "master_timer_queue_offset": count,
            }
        )
    )
    return Store.open(root)


def python_calls(store: Store) -> int:
    """Functions of Python that planning calls, once all is imported and compiled."""
    timer_log_edits(store, "5.3.3", settings_of(store), ReadOptions.of(store))
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        edits = timer_log_edits(store, "5.3.3", settings_of(store), ReadOptions.of(store))
    finally:
        sys.setprofile(None)
    assert [one.change.path for one in edits][-2:] == [f"timerlog/{0:020d}", "config/timercheck"]
    return calls


def test_no_timer_is_looked_at_by_itself(tmp_path: Path) -> None:
    """A million took eight seconds and a gigabyte."""
    few, many = (python_calls(timer_store(tmp_path / str(count), count)) for count in (1000, 5000))
    assert many - few < 1000
