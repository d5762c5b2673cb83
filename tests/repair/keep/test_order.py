"""The order of queues: against trying everything, and in a time that goes with what there is."""

from __future__ import annotations

import random
import time
from collections import Counter
from itertools import accumulate, pairwise

import pytest

from rmqtool.repair.keep.chain import Link, heaviest
from rmqtool.repair.keep.model import Hole, Run, Survey
from rmqtool.repair.keep.order import order_of
from rmqtool.repair.keep.placing import PlacedSegment
from rmqtool.repair.keep.room import Missing
from rmqtool.repair.keep.stabbing import NOTHING, Stabbing

RECORD = 100


def tried(links: list[Link]) -> list[int]:
    """Every part after every other one in front of it; of equal ones what misses least, then the first."""
    scale = max(one.last for one in links) + 1
    weights, before = [one.alone * scale + one.first for one in links], [-1] * len(links)
    for j, part in enumerate(links):
        linked = []
        for i in range(j):
            step, most = part.first - 1 - links[i].last, part.front - links[i].behind
            fits = step == 0 or 0 < step <= most
            linked.append(weights[i] + part.weight * scale if fits else weights[j])
        if linked and max(linked) > weights[j]:
            before[j] = linked.index(max(linked))
            weights[j] = max(linked)
    at = max(range(len(links)), key=lambda j: (weights[j] - links[j].last, -j))
    chain = []
    while at >= 0:
        chain.append(at)
        at = before[at]
    return chain[::-1]


def some_links(chance: random.Random, factor: int) -> list[Link]:
    """Parts that mostly go on, with holes and lies between them."""
    links, slot, front = [], 0, 0
    high = chance.choice([3, 30, 1 << 62])
    for _ in range(chance.randrange(1, 14)):
        front += chance.choice([0, 0, 1, 2, 5])
        own = chance.choice([0, 1, 2])
        if chance.random() < 0.3:
            slot = chance.randrange(high)
        else:
            slot += chance.choice([0, 0, 0, 1, 2, 4])
        count = chance.choice([1, 1, 2, 7])
        alone = count if chance.random() < 0.7 else count - slot - 1
        links.append(Link(slot, slot + count - 1, count, alone, front * factor, (front + own) * factor))
        front += own
        slot += count
    return links


@pytest.mark.parametrize("seed", range(20))
def test_the_heaviest_chain_is_that_of_trying_all(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        links = some_links(chance, chance.choice([1, 0x7FFF]))
        assert heaviest(links) == tried(links), links


@pytest.mark.parametrize("seed", range(5))
def test_ranges_over_a_number_are_those_of_asking_each(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(50):
        ranges = [(low, low + chance.randrange(1, 9)) for low in chance.choices(range(20), k=6)]
        found = Stabbing(ranges)
        for value, (low, high) in enumerate(ranges):
            found.raise_to(low, high, value)
            for number in range(-1, 31):
                over = [at for at, one in enumerate(ranges[: value + 1]) if one[0] <= number < one[1]]
                assert found.at(number) == max(over, default=NOTHING)


def survey(queues: dict[tuple[str, int], list[Run]], holes: list[tuple[int, int]]) -> Survey:
    placed = PlacedSegment(0, 1 << 40, "x", None)
    return Survey([placed], queues, [Hole(placed, start, end) for start, end in holes])


def broken(runs: int, length: int = 5) -> Survey:
    """One queue whose every run of some records is followed by a lost one."""
    key, step = ("T", 0), length + 1
    made, holes = [], []
    for number in range(runs):
        start, first = number * step * RECORD, number * step
        end = start + length * RECORD
        made.append(Run(key, first, first + length - 1, start, end - RECORD, end))
        holes.append((end, end + RECORD))
    return survey({key: made}, holes[:-1])


@pytest.mark.parametrize("runs", [700, 20_000])
def test_a_queue_of_any_number_of_runs_has_an_order(runs: int) -> None:
    order = order_of(broken(runs))
    assert (order.twice, order.outliers) == (set(), [])
    assert [(one.first, one.last, one.low) for one in order.missing] == [
        (at * 6 - 1, at * 6 - 1, (at * 6 - 1) * RECORD) for at in range(1, runs)
    ]


def test_a_lie_among_many_runs_is_found() -> None:
    log = broken(3000)
    ((key, runs),) = log.runs.items()
    liar = Run(key, 7, 7, 9000 * RECORD, 9000 * RECORD, 9001 * RECORD, 9001 * RECORD)
    runs[1500:] = [
        liar,
        *(
            Run(
                key,
                one.first + 1,
                one.last + 1,
                one.start + RECORD,
                one.last_start + RECORD,
                one.end + RECORD,
            )
            for one in runs[1500:]
        ),
    ]
    log.holes = [
        hole if hole.start < liar.start else Hole(hole.placed, hole.start + RECORD, hole.end + RECORD)
        for hole in log.holes
    ]
    order = order_of(log)
    assert order.outliers == [liar]
    assert order.twice == set()


@pytest.mark.parametrize(("count", "numbered_twice"), [(1, False), (2, False), (3, True), (4, True)])
def test_records_that_agree_are_no_lie_however_short_their_run_is(count: int, numbered_twice: bool) -> None:
    """Queue offsets that are skipped although nothing is missing in the log."""
    key, end = ("T", 0), 9 * RECORD
    last = end + (count - 1) * RECORD
    ahead = Run(key, 15, 14 + count, end, last, last + RECORD, end + RECORD)
    order = order_of(survey({key: [Run(key, 0, 8, 0, end - RECORD, end), ahead]}, []))
    assert (key in order.twice) == (key in order.skipping) == numbered_twice
    assert bool(order.outliers) != numbered_twice


@pytest.mark.parametrize("known", [0, 1])
def test_of_two_records_that_exclude_each_other_the_one_with_a_unit_is_right(known: int) -> None:
    """As many records are in order with the one as with the other; each leaves room for what is missing."""
    key, place = ("T", 0), 5 * RECORD
    both = [Run(key, slot, slot, at, at, at + RECORD, at + RECORD) for slot, at in ((7, 700), (6, 800))]
    runs = [Run(key, 0, 4, 0, 400, place, RECORD), *both, Run(key, 9, 20, 1100, 2200, 2300, 1200)]
    log = survey({key: runs}, [(place, 700), (900, 1100)])
    assert order_of(log).outliers == [both[1]]
    order = order_of(
        log, places=lambda asked: {one.start: {one.first} for one in asked if one.start == both[known].start}
    )
    assert order.outliers == [both[1 - known]]


def single(key: tuple[str, int], slot: int, at: int) -> Run:
    return Run(key, slot, slot, at, at, at + RECORD, at + RECORD)


def test_a_record_that_counts_in_the_place_of_another_queues_stays() -> None:
    """Two records state 12 of one queue; another queue misses 12 where the first one lies."""
    own, alone = ("T", 1), ("T", 9)
    wrong, right = single(alone, 12, 1200), single(alone, 12, 2500)
    runs = [Run(own, 0, 11, 0, 1100, 1200, 100), Run(own, 13, 20, 1300, 2000, 2100, 1400)]
    order = order_of(survey({own: runs, alone: [wrong, right]}, []))
    assert order.chosen[alone] == [right]
    assert order.outliers == [wrong]


def test_what_a_batch_queue_misses_in_front_is_one_batch_also_behind_an_exchange() -> None:
    """Of two records with queue offset 5 the second one has the unit; a hole had room for a batch of five."""
    key = "T", 0
    both = single(key, 5, 100), single(key, 5, 200)
    log = survey({key: [*both, Run(key, 6, 9, 300, 600, 700, 400)]}, [(0, 100)])
    log.batches = frozenset({"T"})
    order = order_of(log, places=lambda asked: {one.start: {5} for one in asked if one.start == 200})
    assert order.chosen[key][0] == both[1]
    assert [(one.first, one.last) for one in order.missing] == [(0, 4)]


def test_of_equally_many_records_those_in_order_that_miss_less() -> None:
    """With two whose queue number is wrong two positions would be missing, with the queue's own two none."""
    key = "T", 0
    slots = {0: 0, 1: 200, 2: 300, 5: 700, 6: 900, 3: 1400, 4: 1500}
    runs = [Run(key, slot, slot, at, at, at + RECORD, at + RECORD) for slot, at in slots.items()]
    order = order_of(survey({key: runs}, [(100, 200), (300 + RECORD, 700), (1000, 1400)]))
    assert [one.first for one in order.outliers] == [5, 6]


def misses(one: Missing, run: Run, part: int) -> bool:
    inside = one.low <= run.start and run.end <= one.high and one.first <= run.first <= one.last
    return inside and shares(one, run, part) and run.key != one.key


def shares(one: Missing | Run, run: Run, part: int) -> bool:
    return run.key[part] == one.key[part] and len(run.key[0]) == len(one.key[0])


def disowned_by_asking_all(missing: list[Missing], singletons: list[Run]) -> list[Run]:
    """A record for a position that is missed, its topic before its queue number; all stay if in doubt.

    One with queue offset 0 is in doubt wherever holes explain what is missing.
    """
    found: list[Run] = []
    filled = []
    for part in (0, 1):
        gaps = [one for one in missing if part == 0 or one.first]
        asked = [
            run for run in singletons if run not in found and any(misses(one, run, part) for one in gaps)
        ]
        for run in asked:
            slot = run.first
            rivals = [one for one in asked if shares(one, run, part) and one.first == slot]
            there = [one for one in gaps if shares(one, run, part) and one.first <= slot <= one.last]
            if len(rivals) <= len([one for one in there if (one.key, slot) not in filled]):
                found.append(run)
                filled += [(one.key, slot) for one in there] if part == 0 and run == rivals[-1] else []
    return [run for run in singletons if run in found]


@pytest.mark.parametrize("seed", range(30))
def test_lonely_records_are_given_to_the_queues_that_miss_them(seed: int) -> None:
    chance = random.Random(seed)
    queues: dict[tuple[str, int], list[Run]] = {}
    holes = []
    tops = [0] * 6
    for number in range(60):
        start, topic = number * RECORD, chance.randrange(6)
        key, slot = (f"T{topic // 2}", topic % 2), tops[topic]
        tops[topic] += 1
        lies = chance.random()
        if lies < 0.15:
            key = (f"T{topic // 2}", 70 + number) if lies < 0.07 else (f"U{number}", topic % 2)
        elif lies < 0.25:
            holes.append((start, start + RECORD))
            continue
        runs = queues.setdefault(key, [])
        if runs and runs[-1].last + 1 == slot:
            runs[-1].last, runs[-1].last_start, runs[-1].end = slot, start, start + RECORD
        else:
            runs.append(Run(key, slot, slot, start, start, start + RECORD, start + RECORD))
    singletons = [runs[0] for runs in queues.values() if len(runs) == 1 and runs[0].count <= 2]
    order = order_of(survey(queues, holes))
    given = [one for one in order.outliers if one in singletons]
    first = [one for one in singletons if not one.first]
    lost = {one: sum(one.low <= start < one.high for start, _ in holes) for one in order.missing}
    unexplained = [one for one, count in lost.items() if count < one.count]
    expected = disowned_by_asking_all(order.missing, [one for one in singletons if one.first])
    expected += disowned_by_asking_all(unexplained, first)
    records = Counter(run.key for runs in order.chosen.values() for run in runs for _ in range(run.count))
    records.update(run.key for run in given for _ in range(run.count))
    larger = [one for one in order.missing if records[one.key] > 1]
    expected = [
        run
        for run in expected
        if run.count == 1 or any(misses(one, run, part) for one in larger for part in (0, 1))
    ]
    assert sorted(given, key=lambda one: one.start) == sorted(expected, key=lambda one: one.start)
    assert all(not order.chosen[one.key] for one in given)


@pytest.mark.parametrize("spread", [1, 1000])
def test_time_goes_with_the_number_of_runs(spread: int) -> None:
    """Runs in no order at all; ten times as many take about ten times as long, not a hundred times."""

    def seconds(count: int) -> float:
        chance = random.Random(3)
        slots = [chance.randrange(count * spread) for _ in range(count)]
        fronts = list(accumulate(chance.choice([0, 1, 4]) for _ in range(count + 1)))
        links = [
            Link(slot, slot, 1, 1, front, behind)
            for slot, (front, behind) in zip(slots, pairwise(fronts), strict=True)
        ]
        began = time.process_time()
        heaviest(links)
        return time.process_time() - began

    seconds(100)
    assert seconds(20_000) < 40 * max(seconds(2000), 0.002)
