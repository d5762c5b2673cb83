"""Positions in light queues: what is handed out, and that no number in the data decides how long it takes."""

from __future__ import annotations

import time

from rmqtool.broker.file_rules import FileRules
from rmqtool.repair.keep.light import MultiDispatchPositions
from rmqtool.repair.keep.light_gaps import Further
from rmqtool.repair.keep.model import Frame, Hole, Run, Survey
from rmqtool.repair.keep.placing import PlacedSegment
from rmqtool.scan.multi import MultiDispatch

RULES = FileRules(multi_dispatch=MultiDispatch.ALL_TOPICS, lmq=True)
RECORD = 200
ENOUGH = 30_000


def name(number: int) -> tuple[str, int]:
    return f"%LMQ%q{number}", 0


def survey(hole: tuple[int, int], runs: dict[tuple[str, int], list[tuple[int, int, int]]]) -> Survey:
    """runs: first, last and physical offset of the first, a record a slot."""
    placed = PlacedSegment(0, 1 << 40, "x", None)
    made = Survey([placed], holes=[Hole(placed, *hole)])
    for key, there in runs.items():
        made.light[key] = [
            Run(key, first, last, at, at + (last - first) * RECORD, at + (last + 1 - first) * RECORD)
            for first, last, at in there
        ]
    return made


def units(*pointed: tuple[int, int, int]) -> list[Frame]:
    """Number of the queue, slot, physical offset."""
    return [Frame(at, at + RECORD, None, name(number), slot) for number, slot, at in pointed]


def test_a_forged_position_does_not_decide_how_long_it_takes() -> None:
    for forged in (10**12, (1 << 63) - 1):
        log = survey((1000, 2000), {name(0): [(0, 4, 0), (forged, forged, 2000)]})
        multi_dispatch = MultiDispatchPositions(log, RULES, ())
        assert multi_dispatch.of("T", 0, 1000, None, ENOUGH) == []
        assert multi_dispatch.without() == {}


def test_what_is_missing_is_given_to_what_lies_there() -> None:
    log = survey((1000, 2000), {name(0): [(0, 4, 0), (7, 9, 2000)], name(1): [(0, 4, 0), (6, 9, 2000)]})
    multi_dispatch = MultiDispatchPositions(log, RULES, ())
    assert multi_dispatch.of("T", 3, 1000, None, ENOUGH) == [Further(name(0), 5), Further(name(1), 5)]
    assert multi_dispatch.of("T", 3, 1200, None, ENOUGH) == [Further(name(0), 6)]
    assert multi_dispatch.of("T", 3, 1400, None, ENOUGH) == []
    assert multi_dispatch.without() == {}


def test_a_queue_misses_what_lies_in_a_hole_behind_a_record_of_its_own() -> None:
    """60963: a whole record with a wrong queue number is in the hole, and the queue that it names has it."""
    log = survey((1000, 2000), {name(0): [(0, 5, 0), (7, 9, 2000)]})
    multi_dispatch = MultiDispatchPositions(log, RULES, ())
    assert multi_dispatch.of("T", 3, 1200, None, ENOUGH) == [Further(name(0), 6)]
    assert multi_dispatch.without() == {}


def test_what_a_unit_takes_further_on_is_left_to_it() -> None:
    log = survey((1000, 2000), {name(0): [(0, 4, 0), (8, 9, 2000)]})
    multi_dispatch = MultiDispatchPositions(log, RULES, units((0, 5, 1400)))
    assert [multi_dispatch.of("T", 3, at, None, ENOUGH) for at in (1000, 1200)] == [[], []]
    assert multi_dispatch.of("T", 3, 1400, None, ENOUGH) == [Further(name(0), 5)]
    assert multi_dispatch.of("T", 3, 1600, None, ENOUGH) == [Further(name(0), 6)]
    assert multi_dispatch.without() == {name(0): 1}


def test_positions_ascend_where_a_unit_leads_to_no_record() -> None:
    log = survey((1000, 2200), {name(0): [(0, 4, 0), (8, 9, 2200)]})
    multi_dispatch = MultiDispatchPositions(log, RULES, units((0, 5, 1300), (0, 7, 1600)))
    given = [multi_dispatch.of("T", 3, at, None, ENOUGH) for at in (1000, 1400, 1600, 1800)]
    assert given == [[], [Further(name(0), 5)], [Further(name(0), 7)], []]
    assert multi_dispatch.without() == {name(0): 1}


def test_a_unit_at_the_position_of_an_intact_record_counts_for_nothing() -> None:
    """14188: a plain queue's file over a light queue's gave one record two positions, and others none."""
    log = survey((1000, 1600), {name(0): [(0, 4, 0), (7, 9, 1600)]})
    multi_dispatch = MultiDispatchPositions(log, RULES, units((0, 0, 1400), (0, 6, 1400)))
    given = [multi_dispatch.of("T", 3, at, None, ENOUGH) for at in (1000, 1200, 1400)]
    assert given == [[Further(name(0), 5)], [], [Further(name(0), 6)]]
    assert multi_dispatch.without() == {}


def test_no_more_names_than_there_is_room_for() -> None:
    log = survey((1000, 2000), {name(n): [(0, 4, 0), (6, 9, 2000)] for n in range(5)})
    multi_dispatch = MultiDispatchPositions(log, RULES, ())
    given = [multi_dispatch.of("T", 3, at, None, 70) for at in (1000, 1200, 1400)]
    assert [len(one) for one in given] == [2, 2, 1]
    assert multi_dispatch.without() == {}


def test_many_tombstones_and_many_queues_take_no_product_of_both() -> None:
    def seconds(count: int) -> float:
        end = 1000 + count * RECORD
        runs = {name(n): [(0, 0, 0), (count + 1, count + 1, end)] for n in range(count)}
        log = survey((1000, end), runs)
        began = time.process_time()
        multi_dispatch = MultiDispatchPositions(log, RULES, ())
        for number in range(count):
            assert len(multi_dispatch.of("T", 0, 1000 + number * RECORD, None, 100)) >= 1
        assert multi_dispatch.without()
        return time.process_time() - began

    seconds(100)
    assert seconds(8000) < 12 * max(seconds(2000), 0.005)
