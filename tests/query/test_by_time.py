"""Offsets by time: exactly by the records, and as the brokers of all releases answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.stores import healthy_store
from rmqtool.broker.offset_by_time import Boundary, broker_offset
from rmqtool.query.by_time import exact_offset
from tests.helpers import rmq
from tests.query.serving import NAMES, queue
from tests.tiers import of_each_kind

PRE_BLANK = 0x7FFFFFFF


@pytest.mark.share
@pytest.mark.parametrize("name", of_each_kind(NAMES))
def test_the_broker_would_answer_as_it_did(golden, name):
    found = golden(name)
    for asked in found.expected["offsetByTime"]:
        with queue(found, asked["topic"], asked["queue"]) as view:
            for key in asked.keys() & {"lower", "upper", "offset"}:
                boundary = Boundary.UPPER if key == "upper" else Boundary.LOWER
                answer = broker_offset(view, asked["timestamp"], boundary)
                assert answer == asked[key], (asked, key)


@pytest.mark.share
@pytest.mark.parametrize("name", of_each_kind(NAMES))
def test_the_exact_answer_follows_the_records(golden, name):
    found = golden(name)
    times = {one["physicalOffset"]: one["storeTimestamp"] for one in found.expected["records"]}
    units = {(one["topic"], one["queue"]): one["units"] for one in found.expected["cqUnits"]}
    for asked in found.expected["offsetByTime"]:
        place, moment = (asked["topic"], asked["queue"]), asked["timestamp"]
        with queue(found, *place) as view:
            low = view.min_offset
            answers = [exact_offset(view, moment, boundary) for boundary in Boundary]
        served = [
            (unit[0], times[unit[1]])
            for unit in units.get(place, ())
            if unit[0] >= low and unit[1] in times and unit[2] != PRE_BLANK
        ]
        after = [slot for slot, time in served if time >= moment]
        before = [slot for slot, time in served if time <= moment]
        wanted = [after[0] if after else None, before[-1] if before else None]
        assert [one.queue_offset for one in answers] == wanted, asked


@pytest.mark.parametrize("name", ["v498-basic", "v533-basic"])
def test_files_chosen_by_their_edges_give_the_same_answers(golden, name):
    """What long queues are asked with, on short ones whose times never go back."""
    found = golden(name)
    for asked in found.expected["offsetByTime"]:
        with queue(found, asked["topic"], asked["queue"]) as view:
            for boundary in Boundary:
                whole = exact_offset(view, asked["timestamp"], boundary)
                part = exact_offset(view, asked["timestamp"], boundary, all_units=0)
                if whole.monotone:
                    assert part.queue_offset == whole.queue_offset, (asked, boundary)
                assert {whole.checked, part.checked} <= {"all", "edges"}


def test_what_has_expired_is_no_damage(tmp_path: Path) -> None:
    """A queue file may outlive all of its records; one of them further behind may not be below the log."""
    store = healthy_store().write(tmp_path)
    first, *_ = (one for one in store.of("Orders") if one.offset >= 6 * 4096)
    for segment in sorted((tmp_path / "commitlog").iterdir())[:6]:
        segment.unlink()
    asked = ("query-time", tmp_path, "Orders", 0, 0, "--format", "ndjson")
    assert rmq(*asked).rows[-1]["queue_offset"] == first.queue_offset > 20
    assert rmq(*asked).exit_code == 0
    assert rmq(*asked[:-2], "--boundary", "upper").exit_code == 1
    latest = ("query-time", tmp_path, "Orders", 0, "2030-01-01", "--boundary", "upper")
    assert rmq(*latest, "--key", "k0").exit_code == 1  # searched back to where the log begins
    path, position = store.of("Orders")[-2].unit
    store.patch(path, position, bytes(8))
    assert rmq(*asked).exit_code == 3


def test_no_time_is_taken_from_damage(tmp_path: Path) -> None:
    store = healthy_store().write(tmp_path)
    lost = store.of("Orders")[20]
    store.patch(*store.segment(lost.offset), bytes(64))
    reported = rmq("query-time", tmp_path, "Orders", 0, lost.time, "--format", "ndjson")
    assert (reported.exit_code, reported.rows[-1]["unknown_times"], reported.rows[-1]["queue_offset"]) == (
        3,
        1,
        21,
    )
