"""Queues whose records skip queue offsets although the log has no hole there: their entries stay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import strict
from fixtures.handmade import plain_unit
from fixtures.stores import HandmadeStore
from rmqtool.repair.keep.model import Run
from rmqtool.repair.keep.order import order_of
from tests.helpers import rmq
from tests.repair.keep.test_order import RECORD, survey

if TYPE_CHECKING:
    from pathlib import Path

KEY = "Orders", 0
AT = 20
"""number of the record with which the queue skips"""


def skipping(root: Path, by: int = 3, at: int = AT, *, blank: bool = False, others: int = 0) -> HandmadeStore:
    """A queue of 40 records that skips. blank: its entries lie where the records state, behind blank ones."""
    store = HandmadeStore()
    for number in range(40):
        if number == at:
            store.log.queue_offsets[KEY] += by
            for _ in range(by if blank else 0):
                store.queues[KEY].append(plain_unit(*strict.PRE_BLANK, 0))
        store.put("Orders", b"body %d" % number, tags="TagA")
        for _ in range(others):
            store.put("Late", b"body %d" % number)
    store.write(root)
    return store


def lose(store: HandmadeStore, start: int, end: int) -> None:
    """Noise over records of the queue, by number, and what lies between them."""
    records = store.of("Orders")
    last = records[end - 1]
    for one in store.stored:
        if records[start].offset <= one.offset <= last.offset:
            store.patch(*store.segment(one.offset), b"\x77" * one.size)


def places(root: Path) -> dict[int, tuple[int, int]]:
    """Offset and size of the queue's entries that are none of blanks, by place."""
    found = {key[3]: (one.offset, one.size) for key, one in strict.entries(root).items() if key[1:3] == KEY}
    return {place: one for place, one in found.items() if one != strict.PRE_BLANK}


def recover(root: Path, target: Path) -> tuple[int, dict[str, Any]]:
    done = rmq("recover", root, "--output", target, "--apply", "--json")
    return done.exit_code, json.loads(done.stdout)


def lost(reported: dict[str, Any]) -> list[tuple[int, int]]:
    """The first queue offset and the count of tombstones of the queue."""
    rows = [one for row in reported["rows"] for one in row.get("tombstones", ())]
    return [(one["queue_offset"], one["count"]) for one in rows if (one["topic"], one["queue_id"]) == KEY]


def holds(store: HandmadeStore, target: Path) -> None:
    """Whole records and the places of entries stay, entries lead to records, and nothing is left to do."""
    before, after = strict.carve(store.root), strict.carve(target)
    assert {at: one.raw for at, one in before.items()}.items() <= {
        at: one.raw for at, one in after.items()
    }.items()
    assert places(target) == places(store.root)
    records = {one.offset for one in after.values() if one.slot[:2] == KEY and one.placed}
    assert {offset for offset, _ in places(target).values() if offset in after} == records
    checked = rmq("verify", target, "--json")
    codes = {row["code"] for row in json.loads(checked.stdout)["rows"] if row["severity"] == "error"}
    assert codes <= {"CQ-SHIFT"}
    again = json.loads(rmq("recover", target, "--json").stdout)
    assert again["rows"] == []


@pytest.mark.share
@pytest.mark.parametrize("stray", [False, True])
@pytest.mark.parametrize(
    ("start", "end", "stated"), [(10, 11, 10), (19, 20, 19), (20, 21, 20), (25, 26, 28), (30, 33, 33)]
)
def test_lost_records_get_what_their_entries_tell(
    start: int, end: int, stated: int, stray: bool, tmp_path: Path
) -> None:
    """A filler took their place, to which the entry led, or a tombstone with another tags code.

    stray: no broker starts on the store as it is, which would give queue offsets out again, too.
    """
    store = skipping(tmp_path / "store")
    lose(store, start, end)
    if stray:
        store.add("commitlog/..data", b"foreign")
    code, reported = recover(store.root, tmp_path / "out")
    assert lost(reported) == [(stated, end - start)]
    (left,) = reported["summary"]["checked"]["remains"]
    assert (
        code,
        "queue offsets from 40 on, though messages in the log have 3 of them, up to 42" in left,
    ) == (1, True)
    holds(store, tmp_path / "out")


@pytest.mark.parametrize("blank", [False, True])
def test_entries_that_lead_behind_the_end_of_the_log_go(tmp_path: Path, *, blank: bool) -> None:
    """440252: they stayed with the queue, which the proof refused, and were counted nowhere."""
    store = skipping(tmp_path / "store", blank=blank, others=2)
    was, (last, _) = places(store.root), store.segment(store.stored[-1].offset)
    store.remove(last)
    end = int(last.rpartition("/")[2])
    _, reported = recover(store.root, tmp_path / "out")
    assert reported["summary"]["checked"]["proven"]
    assert reported["summary"]["lost"]["messages"] == sum(one.offset >= end for one in store.stored)
    assert places(tmp_path / "out") == {place: one for place, one in was.items() if one[0] < end}


@pytest.mark.share
@pytest.mark.parametrize(("number", "stated"), [(10, 10), (20, 1020), (25, 1025)])
def test_a_lost_record_where_entries_lie_as_records_state(number: int, stated: int, tmp_path: Path) -> None:
    store = skipping(tmp_path / "store", 1000, blank=True)
    lose(store, number, number + 1)
    code, reported = recover(store.root, tmp_path / "out")
    assert (code, lost(reported)) == (0, [(stated, 1)])
    holds(store, tmp_path / "out")


@pytest.mark.parametrize("in_front", [1, 2])
def test_a_hole_close_by_explains_nothing_that_entries_tell_otherwise(in_front: int, tmp_path: Path) -> None:
    """110409: the record in front of the hole was out of order, and blank entries hid those before it."""
    store = skipping(tmp_path / "store", others=2)
    lose(store, AT + in_front, AT + in_front + 2)
    store.remove(store.segment(0)[0])
    code, reported = recover(store.root, tmp_path / "out")
    assert (code, lost(reported)) == (1, [(AT + in_front + 3, 2)])
    assert "blank" not in str(reported["summary"])
    holds(store, tmp_path / "out")


@pytest.mark.parametrize("in_front", [1, 2])
def test_few_records_in_front_of_what_a_queue_skips(in_front: int, tmp_path: Path) -> None:
    """They were out of order, and would have been lost."""
    store = skipping(tmp_path / "store", at=in_front)
    lose(store, 30, 31)
    code, reported = recover(store.root, tmp_path / "out")
    assert (code, lost(reported)) == (1, [(33, 1)])
    holds(store, tmp_path / "out")


@pytest.mark.share
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("head", [0, 1])
@pytest.mark.parametrize(
    ("first", "end"), [(0, 40), (0, 10), (0, 25), (18, 23), (25, 30), (19, 40), (35, 40)]
)
def test_lost_entries_come_back_where_a_broker_appended_them(
    first: int, end: int, head: int, killed: bool, tmp_path: Path
) -> None:
    """640890: they were left out, so that a start gave out more queue offsets again and the plan was refused.

    head: segments that have expired.
    """
    store = skipping(tmp_path / "store", others=1)
    segments = sorted({store.segment(one.offset)[0] for one in store.stored})
    for path in segments[:head]:
        store.remove(path)
    begin = int(segments[head].rpartition("/")[2])
    was = {place: one for place, one in places(store.root).items() if one[0] >= begin}
    for one in store.of("Orders")[first:end]:
        store.patch(*one.unit, bytes(20))  # type: ignore[misc]
    if killed:
        store.add("abort", b"")
    code, reported = recover(store.root, tmp_path / "out")
    assert reported["summary"]["checked"]["proven"], reported["summary"]["checked"]["problems"]
    assert code == 1
    assert was.items() <= places(tmp_path / "out").items()
    left = reported["summary"]["checked"]["remains"]
    assert any("queue offsets from 40 on, though messages in the log have 3 of them" in one for one in left)
    again = json.loads(rmq("recover", tmp_path / "out", "--json").stdout)
    assert again["rows"] == []


@pytest.mark.parametrize(
    ("one", "behind", "count", "jumps"),
    [
        *((5, 8, 20, True), (8, 10, 20, True), (6, 8, 20, False), (8, 8, 20, False), (8, 11, 20, False)),
        *((5, 11, 20, False), (None, 8, 20, False), (5, None, 20, False)),
        *((5, 8, 2, True), (5, 8, 1, False), (8, 10, 3, True), (8, 10, 2, False)),
    ],
)
def test_entries_tell_whether_a_record_or_its_queue_skips(
    one: int | None, behind: int | None, count: int, jumps: bool
) -> None:
    """Of the record out of order, with queue offset 8, and of the next one in order, with 11.

    count: records from that one on. Few that state more may lie, as they may without a hole.
    """
    key, end = ("T", 0), 5 * RECORD
    out = Run(key, 8, 8, end, end, end + RECORD, end + RECORD)
    start = end + 10 * RECORD
    last = start + (count - 1) * RECORD
    rest = Run(key, 11, 10 + count, start, last, last + RECORD, start + RECORD)
    log = survey({key: [Run(key, 0, 4, 0, 4 * RECORD, end, RECORD), out, rest]}, [(end + RECORD, start)])
    known = {at: {place} for at, place in ((end, one), (start, behind)) if place is not None}
    order = order_of(log, places=lambda asked: {at: known[at] for run in asked if (at := run.start) in known})
    assert (key in order.twice, key in order.skipping) == (jumps, jumps)
    assert order.outliers == ([] if jumps else [out])
