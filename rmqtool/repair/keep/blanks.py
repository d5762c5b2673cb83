"""Which end-of-file blanks are real: what lies behind one is either hidden by it, or of an earlier life.

A broker stops reading a segment at a blank, so eight wrong bytes hide all that follows. But truncation never
clears bytes (`MappedFileQueue#truncateDirtyFiles`): behind the real blank of a segment that was written a
second time may lie whole records of the first time, at their own place. The order of the log tells the two
apart. What a blank hides fills a gap of its queues, and its store times follow on; what was left over has
queue offsets that were given out again in front of the blank or behind the segment, and is older than what
lies in front.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from rmqtool.repair.keep.headers import SMALLEST_RECORD
from rmqtool.repair.keep.model import Hole, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from rmqtool.repair.keep.model import Blanked, Frame, Run, Survey
    from rmqtool.repair.keep.room import Missing


@dataclass
class _Votes:
    """Records behind a blank. gap: between others of their queue. open: behind all others of their queue.

    against: at queue offsets that others have, or out of their order.
    """

    gap: int = 0
    open: int = 0
    against: int = 0
    later: int = 0
    older: int = 0

    def __iadd__(self, other: _Votes) -> Self:
        self.gap += other.gap
        self.open += other.open
        self.against += other.against
        self.later += other.later
        self.older += other.older
        return self

    @property
    def blank_lies(self) -> bool:
        """Whether these records are part of the log."""
        in_time = self.later > self.older
        if not (self.gap or self.open or self.against):
            return in_time
        return self.gap + (self.open if in_time else 0) > self.against


def drop_behind_blanks(survey: Survey) -> None:
    """Takes records behind real blanks out of the survey; where a blank lies, it is a hole already."""
    for _, group in groupby(survey.doubts, key=lambda one: one.placed.base):
        doubts = list(group)
        votes = [_Votes(later=one.later, older=one.older) for one in doubts]
        _count(survey, doubts, votes)
        real = None
        behind = _Votes()
        for doubt, vote in zip(reversed(doubts), reversed(votes), strict=True):
            behind += vote
            if not behind.blank_lies:
                real = doubt
        if real is not None:
            _cut(survey, real)


def _count(survey: Survey, doubts: Sequence[Blanked], votes: Sequence[_Votes]) -> None:
    starts, end = [one.start for one in doubts], doubts[0].placed.end
    for runs in survey.runs.values():
        first = bisect_left(runs, starts[0], key=_start)
        behind = bisect_left(runs, end, key=_start)
        following = runs[behind].first if behind < len(runs) else None
        for number in range(first, behind):
            run = runs[number]
            vote = votes[bisect_left(starts, run.start + 1) - 1]
            in_order = number == 0 or runs[number - 1].last < run.first
            if not in_order or (following is not None and run.last >= following):
                vote.against += run.count
            elif following is None:
                vote.open += run.count
            else:
                vote.gap += run.count


def _start(run: Run | Hole) -> int:
    return run.start


def _cut(survey: Survey, doubt: Blanked) -> None:
    """The log of this segment ends at the blank."""
    start, end = doubt.start, doubt.placed.end
    for queues in (survey.runs, survey.light):
        for runs in queues.values():
            gone = slice(bisect_left(runs, start, key=_start), bisect_left(runs, end, key=_start))
            survey.messages -= sum(run.count for run in runs[gone])
            del runs[gone]
        for key in [key for key, runs in queues.items() if not runs]:
            del queues[key]
    survey.forget_uncounted(start, end)
    survey.holes = [hole for hole in survey.holes if not start <= hole.start < end]
    survey.fillers[doubt.placed.base] = start - doubt.placed.base
    if survey.data_end <= end:
        survey.data_end, survey.last_start = doubt.data_end, doubt.last_start
        survey.last_timestamp, survey.highest_timestamp = doubt.last_timestamp, doubt.highest_timestamp
        for hole in doubt.open:
            hole.behind = None


def filler_places(survey: Survey) -> list[Hole]:
    """What fillers take of their segments, where a record would have room."""
    segments = {placed.base: placed for placed in survey.segments}
    places = []
    for base, at in sorted(survey.fillers.items()):
        timestamp, trailer = survey.in_front.get(base, (0, False))
        end = segments[base].end
        places.append(Hole(segments[base], base + at, end, timestamp=timestamp, trailer=trailer))
    return [one for one in places if one.length >= SMALLEST_RECORD]


def open_pointed(survey: Survey, pointed: Iterable[tuple[Hole, Sequence[Frame]]]) -> None:
    """A filler is a hole where units point behind it to what their queue misses just there."""
    _open(survey, [place for place, frames in pointed if any(_is_missed(survey, one) for one in frames)])


def open_skipped(survey: Survey) -> None:
    """A filler is a hole where queues skip offsets just there, no more than its room takes.

    It lies over what fitted into the segment. A queue that skips offsets anywhere else without a hole tells
    nothing: it is numbered so.
    """
    places = filler_places(survey)
    owed: Counter[int] = Counter()
    for key, runs in survey.runs.items() if places else ():
        if len(runs) > 1 and key[0] not in survey.batches:
            owed.update(_skipped_at(runs, survey.holes, places))
    rooms = [place.length // SMALLEST_RECORD for place in places]
    _open(survey, [places[number] for number, count in owed.items() if count <= rooms[number]])


def open_unplaced(survey: Survey, without: Iterable[Missing]) -> bool:
    """A filler is a hole where queues miss offsets that only it has room for; whether there is one.

    As in `open_skipped`, between records: once the holes are filled, the next plan would open it.
    """
    places = filler_places(survey)
    owed: Counter[int] = Counter()
    for one in without if places else ():
        first, end = (bisect_left(places, place, key=_start) for place in (one.low, one.high))
        runs = () if one.key[0] in survey.batches else survey.runs.get(one.key, ())
        if end == first + 1 and runs and runs[0].last < one.first <= one.last < runs[-1].first:
            owed[first] += one.count
    opened = [places[at] for at, count in owed.items() if count <= places[at].length // SMALLEST_RECORD]
    _open(survey, opened)
    return bool(opened)


def _skipped_at(runs: Sequence[Run], holes: Sequence[Hole], places: Sequence[Hole]) -> dict[int, int]:
    """How many offsets a queue skips at places, by number; nothing where it skips some elsewhere."""
    found: dict[int, int] = {}
    for before, after in pairwise(runs):
        skipped = after.first - before.last - 1
        at = bisect_left(holes, before.end, key=_start)
        if skipped > 0 and at < len(holes) and holes[at].start < after.start:
            continue  # the hole had them
        first, end = (bisect_left(places, one, key=_start) for one in (before.end, after.start))
        if skipped < 0 or (skipped and end != first + 1):
            return {}
        if skipped:
            found[first] = skipped
    return found


def _open(survey: Survey, places: Iterable[Hole]) -> None:
    for place in places:
        place.reasons.add("blank")
        survey.holes.append(place)
        del survey.fillers[place.placed.base]
    survey.holes = joined(survey.holes)


def _is_missed(survey: Survey, frame: Frame) -> bool:
    runs = survey.runs.get(frame.key, ()) if frame.key is not None else ()
    behind = bisect_left(runs, frame.end, key=_start)
    if frame.slot is None or not 0 < behind < len(runs):
        return False
    before = runs[behind - 1]
    return (
        before.end <= frame.start
        and before.last < frame.slot
        and frame.slot + frame.count <= runs[behind].first
    )
