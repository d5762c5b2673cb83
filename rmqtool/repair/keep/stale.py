"""What is left in the last segment of an earlier life of the log: records behind its end that are older."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from rmqtool.repair.keep.model import Frame, Hole, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.repair.keep.model import Run, Survey


def cut_stale(survey: Survey) -> None:
    """Takes records behind the end of the log out of it; they become part of the hole in front of them.

    Truncation never clears bytes (`MappedFileQueue#truncateDirtyFiles`). Such records are older than the last
    one in front of the hole, and their queues do not go on with them.
    """
    if not survey.segments:
        return
    begin = survey.stale_from
    if begin is not None:  # as every reader of the log has it (`scan.earlier_life`)
        _cut(survey, next(one.start for one in survey.holes if one.end > begin))
        return
    last = survey.segments[-1]
    older = [
        one
        for one in survey.holes
        if one.placed is last and one.behind is not None and one.behind < one.timestamp
    ]
    back = sorted(place for runs in survey.runs.values() for place in _returns(runs)) if older else []
    reach = list(accumulate((end for _, end in back), max))
    for hole in older:
        at = bisect_left(back, (hole.start,))
        if at and reach[at - 1] >= hole.end:
            _cut(survey, hole.start)
            return


def is_stale(survey: Survey, frame: Frame) -> bool:
    """Whether a record that its header tells is of the earlier life that the scan finds."""
    return survey.stale_from is not None and frame.start >= survey.stale_from


def _returns(runs: list[Run]) -> Iterator[tuple[int, int]]:
    """Starts of neighbours between which a queue goes back: it has a lower offset behind than in front."""
    ordered = _without_lone(sorted(runs, key=lambda run: run.start))
    highest = accumulate((run.last for run in ordered), max)
    lowest = list(accumulate((run.first for run in reversed(ordered)), min))[::-1]
    for (one, following), high, low in zip(pairwise(ordered), highest, lowest[1:], strict=False):
        if low <= high:
            yield one.start, following.start


def _without_lone(ordered: list[Run]) -> list[Run]:
    """Without single records between two runs that are in order without them: their own offset is wrong."""
    if len(ordered) < 3:
        return ordered
    kept = ordered[:1]
    for run, behind in pairwise(ordered[1:]):
        low, high = kept[-1].last, behind.first
        if run.count > 1 or low >= high or low < run.first < high:
            kept.append(run)
    return [*kept, ordered[-1]]


def _cut(survey: Survey, start: int) -> None:
    for queues in (survey.runs, survey.light):
        for key, runs in queues.items():
            queues[key] = [run for run in runs if run.start < start]
    survey.forget_uncounted(start, survey.segments[-1].end)
    kept = [hole for hole in survey.holes if hole.end <= start]
    placed = survey.segments[-1]
    first = next(hole for hole in survey.holes if hole.end > start)
    rest = Hole(placed, start, placed.end, first.before, first.timestamp, trailer=first.trailer)
    rest.reasons.add("stale")
    survey.holes = [*kept, rest]
    survey.data_end = start
    survey.fillers.pop(placed.base, None)
    if first.before is not None:
        survey.last_start = first.before
    survey.last_timestamp = survey.highest_timestamp = first.timestamp


def loosen(survey: Survey, outliers: Sequence[Run]) -> None:
    """Records out of the order of their queue become holes, each with the one frame that it is."""
    segments, bases = survey.segments, [placed.base for placed in survey.segments]
    for run in outliers:
        # of the inner records of a run only the bounds are known
        first_end = run.first_end if run.first_end > 0 else run.last_start
        places = [(run.start, first_end), (run.last_start, run.end)]
        for start, end in places if run.last_start > run.start else [(run.start, run.end)]:
            placed = segments[bisect_right(bases, start) - 1]
            hole = Hole(placed, start, end, None, survey.last_timestamp)
            hole.frames.append(Frame(start, end, suspect=True))
            hole.reasons.add("out-of-order")
            survey.holes.append(hole)
    if outliers:
        survey.holes = joined(survey.holes)
        survey.messages -= sum(run.count for run in outliers)
