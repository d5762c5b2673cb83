"""What is left in the last segment of an earlier life of the log: records behind its end that are older."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.repair.mend.model import Frame, Hole, joined

if TYPE_CHECKING:
    from rmqtool.repair.mend.model import Run, Survey
    from rmqtool.repair.mend.order import Order


def cut_stale(survey: Survey) -> None:
    """Takes records behind the end of the log out of it; they become part of the hole in front of them.

    Truncation never clears bytes (`MappedFileQueue#truncateDirtyFiles`). Such records are older than the last
    one in front of the hole, and their queues do not go on with them.
    """
    if not survey.slabs:
        return
    last = survey.slabs[-1]
    for hole in survey.holes:
        if hole.slab is not last or hole.behind is None or hole.behind >= hole.timestamp:
            continue
        if any(_goes_back(runs, hole) for runs in survey.runs.values()):
            _cut(survey, hole.start)
            return


def _goes_back(runs: list[Run], hole: Hole) -> bool:
    """Whether a queue has a lower offset behind the hole than in front of it."""
    before = [run.last for run in runs if run.start < hole.start]
    after = [run.first for run in runs if run.start >= hole.end]
    return bool(before and after) and min(after) <= max(before)


def _cut(survey: Survey, start: int) -> None:
    for queues in (survey.runs, survey.light):
        for key, runs in queues.items():
            queues[key] = [run for run in runs if run.start < start]
    kept = [hole for hole in survey.holes if hole.end <= start]
    slab = survey.slabs[-1]
    first = next(hole for hole in survey.holes if hole.end > start)
    rest = Hole(slab, start, slab.end, first.before, first.timestamp, trailer=first.trailer)
    rest.reasons.add("stale")
    survey.holes = [*kept, rest]
    survey.data_end = start
    survey.fillers.pop(slab.base, None)
    if first.before is not None:
        survey.last_start = first.before
    survey.last_timestamp = survey.highest_timestamp = first.timestamp


def loosen(survey: Survey, order: Order) -> None:
    """Records out of the order of their queue become holes, each with the one frame that it is."""
    slabs = survey.slabs
    for run in order.outliers:
        places = [(run.start, run.first_end), (run.last_start, run.end)]
        for start, end in places if run.last_start > run.start else [(run.start, run.end)]:
            slab = next(one for one in slabs if one.base <= start < one.end)
            hole = Hole(slab, start, end, None, survey.last_timestamp)
            hole.frames.append(Frame(start, end, suspect=True))
            hole.reasons.add("out-of-order")
            survey.holes.append(hole)
    if order.outliers:
        survey.holes = joined(survey.holes)
        survey.messages -= sum(run.count for run in order.outliers)
