"""Headers of which one part is wrong: as if every queue were asked, in a time that goes with the log."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from rmqtool.repair.keep.model import Frame, Header, Hole, Run, Survey, text_of
from rmqtool.repair.keep.order import order_of
from rmqtool.repair.keep.placing import PlacedSegment
from rmqtool.repair.keep.room import Missing
from rmqtool.repair.keep.slot_assignment import SlotAssigner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.repair.keep.model import QueueKey

RECORD = 100


class AskingAll(SlotAssigner):
    """Every queue is asked for every frame."""

    def _claim_nearly(self, frames: Sequence[Frame]) -> set[int]:
        for frame in frames:
            if frame.header is not None:
                self._ask(frame, frame.header)
        return set()

    def _ask(self, frame: Frame, header: Header) -> None:
        best: dict[int, set[tuple[QueueKey, int]]] = {}
        for key, slot in self._all(frame, header):
            points = (text_of(header.topic) == key[0]) + (header.queue_id == key[1])
            points += header.queue_offset == slot
            if points >= 2 and self._in_order(key, slot, frame):
                best.setdefault(points, set()).add((key, slot))
        if not best:
            return
        found = best[max(best)]
        found = {one for one in found if self._is_between(*one, frame)} or found
        if len(found) == 1:
            ((key, slot),) = found
            self._take(key, slot, frame)

    def _is_between(self, key: QueueKey, slot: int, frame: Frame) -> bool:
        """Whether the queue has records, or claims, in front of the position and behind it."""
        gap = self._gap_around(key, frame)
        return gap is not None and 0 < gap.first <= slot <= gap.last

    def _all(self, frame: Frame, header: Header) -> list[tuple[QueueKey, int]]:
        found: list[tuple[QueueKey, int]] = []
        for key in dict.fromkeys((*self._missing, *self._claimed)):
            gap = self._gap_around(key, frame)
            if gap is not None:
                if gap.first <= header.queue_offset <= gap.last:
                    found.append((key, header.queue_offset))
                slots = range(gap.first, gap.last + 1)
                near = [slot for slot in slots if (slot ^ header.queue_offset).bit_count() == 1]
                one = len(near) == 1 and header.queue_offset not in slots
                found += [(key, slot) for slot in (near if one else (gap.first, gap.last))]
        for key, runs in self._order.chosen.items():
            if runs and frame.start >= runs[-1].end and key not in self._order.twice:
                found.append((key, self._next(key)))
        return found


def header(place: int, key: QueueKey, slot: int, *, own_place: bool = True) -> Header:
    host = (bytes(4), 0)
    return Header(
        size=RECORD,
        magic=-626843481,
        queue_id=key[1],
        flag=0,
        queue_offset=slot,
        physical_offset=place,
        sys_flag=0,
        born_timestamp=0,
        store_timestamp=0,
        born_host=host,
        store_host=host,
        reconsume_times=0,
        prepared_transaction_offset=0,
        topic=key[0].encode(),
        properties=None,
        framed=True,
        sound=True,
        own_place=own_place,
    )


def some_log(chance: random.Random) -> tuple[Survey, dict[int, list[Frame]]]:
    """Records of a few queues in any order; some are broken and lie about one part of their header."""
    placed = PlacedSegment(0, 1 << 40, "x", None)
    survey = Survey([placed])
    frames: dict[int, list[Frame]] = {}
    tops: dict[QueueKey, int] = {}
    queues = [(f"T{chance.randrange(3)}", chance.randrange(3)) for _ in range(4)]
    for number in range(chance.randrange(20, 70)):
        key, start = chance.choice(queues), number * RECORD
        slot = tops.get(key, 0)
        tops[key] = slot + 1
        if chance.random() < 0.35:
            if survey.holes and survey.holes[-1].end == start:
                survey.holes[-1].end += RECORD
            else:
                survey.holes.append(Hole(placed, start, start + RECORD))
            lie = chance.randrange(4)
            stated = (f"T{chance.randrange(4)}" if lie == 0 else key[0], 9 if lie == 1 else key[1])
            head = header(start, stated, 7 if lie == 2 else slot)
            there = frames.setdefault(len(survey.holes) - 1, [])
            there.append(Frame(start, start + RECORD, head if chance.random() < 0.9 else None))
            continue
        runs = survey.runs.setdefault(key, [])
        if runs and runs[-1].last + 1 == slot:
            runs[-1].last, runs[-1].last_start, runs[-1].end = slot, start, start + RECORD
        else:
            runs.append(Run(key, slot, slot, start, start, start + RECORD))
    return survey, frames


@pytest.mark.parametrize("seed", range(40))
def test_headers_are_believed_as_if_all_queues_were_asked(seed: int) -> None:
    found = []
    for claimant in (SlotAssigner, AskingAll):
        survey, frames = some_log(random.Random(seed))
        made = claimant(survey, order_of(survey), []).claims(frames, {}, {})
        found.append([(one.start, one.key, one.slot) for there in made.frames.values() for one in there])
    assert found[0] == found[1]


def test_what_a_queue_misses_between_its_records_goes_before_what_may_begin_later() -> None:
    """Law seed 11899: another record with a flipped bit makes a queue that seems to have lost its front."""
    placed = PlacedSegment(0, 1 << 40, "x", None)
    survey = Survey([placed])
    survey.runs = {
        ("T", 1): [Run(("T", 1), 0, 9, 0, 900, 1000), Run(("T", 1), 12, 20, 1200, 2000, 2100)],
        ("T", 129): [Run(("T", 129), 21, 21, 2100, 2100, 2200)],
    }
    survey.holes = [Hole(placed, 1000, 1200), Hole(placed, 2200, 9000)]
    order = order_of(survey)
    order.missing.append(Missing(("T", 129), 0, 20, 0, 2100))
    frames = [Frame(1000, 1100, header(1000, ("T", 5), 10)), Frame(1100, 1200)]
    SlotAssigner(survey, order, []).claims({0: frames}, {}, {})
    assert (frames[0].key, frames[0].slot) == (("T", 1), 10)


def test_where_a_queue_may_go_on_another_misses_the_record() -> None:
    """65200: a record with a wrong queue number might have been the next one of the queue that it states."""
    placed = PlacedSegment(0, 1 << 40, "x", None)
    survey = Survey([placed])
    survey.runs = {
        ("T", 0): [Run(("T", 0), 0, 9, 0, 900, 1000), Run(("T", 0), 12, 20, 1200, 2000, 2100)],
        ("T", 1): [Run(("T", 1), 0, 5, 10, 510, 600)],
    }
    survey.holes = [Hole(placed, 1000, 1200)]
    frames = [Frame(1000, 1100, header(1000, ("T", 1), 10), suspect=True), Frame(1100, 1200)]
    SlotAssigner(survey, order_of(survey), []).claims({0: frames}, {}, {})
    assert (frames[0].key, frames[0].slot) == (("T", 0), 10)


@pytest.mark.parametrize(("stated", "doubted"), [(11, True), (14, False)])
def test_the_next_one_of_its_own_queue_by_a_bit_is_a_guess(stated: int, doubted: bool) -> None:
    """660071: another queue goes on with what it states, and 9 with another bit is 11, but not 14."""
    placed = PlacedSegment(0, 1 << 40, "x", None)
    survey = Survey([placed])
    keys = ("T", 2), ("T", 3)
    survey.runs = {
        key: [Run(key, 0, last, 0, 900, 1000)] for key, last in zip(keys, (8, stated - 1), strict=True)
    }
    survey.holes = [Hole(placed, 1000, 1100)]
    frames = [Frame(1000, 1100, header(1000, keys[0], stated), suspect=True)]
    claims = SlotAssigner(survey, order_of(survey), []).claims({0: frames}, {}, {})
    assert (frames[0].key, frames[0].slot) == ((keys[0], 9) if doubted else (keys[1], stated))
    assert claims.contested == (frames if doubted else [])


@pytest.mark.parametrize(("topic", "taken"), [("Payment", None), ("Orderq", ("Orders", 0))])
def test_a_record_is_of_no_topic_of_another_length(topic: str, taken: QueueKey | None) -> None:
    """570133: with another length of its topic the record would not be whole."""
    placed = PlacedSegment(0, 1 << 40, "x", None)
    survey = Survey([placed])
    key = "Orders", 0
    survey.runs = {key: [Run(key, 0, 9, 0, 900, 1000), Run(key, 11, 20, 1100, 2000, 2100)]}
    survey.holes = [Hole(placed, 1000, 1100)]
    frames = [Frame(1000, 1100, header(1000, (topic, 0), 10))]
    SlotAssigner(survey, order_of(survey), []).claims({0: frames}, {}, {})
    assert frames[0].key == taken


def test_many_lies_and_many_queues_take_no_product_of_both() -> None:
    def seconds(count: int) -> float:
        """As many queues, each of which misses one record, as records whose topic is none of them."""
        placed = PlacedSegment(0, 1 << 40, "x", None)
        survey = Survey([placed])
        low, high = count * RECORD, 2 * count * RECORD
        for number in range(count):
            key = (f"T{number:05}", 0)
            starts = number * RECORD, high + number * RECORD
            survey.runs[key] = [
                Run(key, slot, slot, at, at, at + RECORD) for slot, at in zip((0, 2), starts, strict=True)
            ]
        survey.holes = [Hole(placed, low, high)]
        places = range(low, high, RECORD)
        frames = [Frame(at, at + RECORD, header(at, ("X00000", 0), 1)) for at in places]
        order = order_of(survey)
        began = time.process_time()
        SlotAssigner(survey, order, []).claims({0: frames}, {}, {})
        return time.process_time() - began

    seconds(100)
    assert seconds(8000) < 12 * max(seconds(2000), 0.005)
