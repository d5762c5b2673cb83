"""Records whose queue offset another queue misses just there: their topic or their queue number may be wrong.

A record with a wrong topic or queue number leaves a gap in its own queue, and lies in it: in the log between
the records on both sides of the gap, and with a queue offset that is missing there. What else it says of the
queue is right: a gap of T/1 takes a record of T/5, or one of U/1 (a topic of the same length: with another
length the record would not be whole), but not one of U/5.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.repair.keep.stabbing import Stabbing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rmqtool.repair.keep.model import QueueKey, Run
    from rmqtool.repair.keep.room import Missing

    Shared = Callable[[QueueKey], object]
    """what the keys of two queues have to have in common"""


def differs_in_one(key: QueueKey, other: QueueKey) -> bool:
    """In the queue number, or in a topic of the same length."""
    if _topic(key) == _topic(other):
        return key[1] != other[1]
    return length_and_number(key) == length_and_number(other)


def missed_elsewhere(missing: Sequence[Missing], runs: Sequence[Run]) -> set[int]:
    """Where the runs begin that lie in a gap of another queue, whatever else does.

    A queue of one run misses nothing but positions in front of it, so what covers a run is of another queue.
    """
    return {
        run.start
        for shared in (_topic, length_and_number)
        for gaps, some in _together(missing, runs, shared)
        for run in _covered(gaps, some)
    }


def owed_elsewhere(missing: Sequence[Missing], runs: Sequence[Run]) -> set[int]:
    """As `missed_elsewhere`, but a position that is missed accounts for one record, and first for its topic.

    Where more records have that queue offset than queues miss it, nobody can say which one is wrong, and all
    stay: of T/5 and T/6, both with queue offset 7, none goes to T/1, which misses one 7. So do those of other
    topics where a queue may as well begin later: in front of its first record.
    """
    found: set[int] = set()
    used: dict[tuple[object, int], int] = defaultdict(int)
    """queues that miss a position and have a record for it, by what other topics share and queue offset"""
    for gaps, some in _together(missing, runs, _topic):
        bounds = np.array([(one.first, one.last) for one in gaps], np.int64).T
        for slot, same in _by_slot(_covered(gaps, some)).items():
            here = np.flatnonzero((bounds[0] <= slot) & (slot <= bounds[1])).tolist()
            if len(same) > len(here):
                continue
            found.update(run.start for run in same)
            for at in here:
                used[length_and_number(gaps[at].key), slot] += 1
    inner = [one for one in missing if one.first]
    rest = [run for run in runs if run.start not in found]
    for gaps, some in _together(inner, rest, length_and_number):
        firsts, lasts = np.sort(np.array([(one.first, one.last) for one in gaps], np.int64).T)
        for slot, same in _by_slot(_covered(gaps, some)).items():
            count = np.searchsorted(firsts, slot, side="right") - np.searchsorted(lasts, slot, side="left")
            if len(same) <= count - used[length_and_number(gaps[0].key), slot]:
                found.update(run.start for run in same)
    return found


def _by_slot(runs: Iterable[Run]) -> dict[int, list[Run]]:
    found: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.first].append(run)
    return found


def _together(
    missing: Iterable[Missing], runs: Iterable[Run], shared: Shared
) -> Iterator[tuple[list[Missing], list[Run]]]:
    """Gaps and runs whose keys share something, each in the order of the log."""
    by_share: dict[object, list[Run]] = defaultdict(list)
    gaps: dict[object, list[Missing]] = defaultdict(list)
    for run in sorted(runs, key=lambda one: one.start):
        by_share[shared(run.key)].append(run)
    for one in sorted(missing, key=lambda one: one.low):
        if shared(one.key) in by_share:
            gaps[shared(one.key)].append(one)
    for same, there in gaps.items():
        yield there, by_share[same]


def _topic(key: QueueKey) -> object:
    return key[0]


def length_and_number(key: QueueKey) -> tuple[int, int]:
    """A record whose topic is wrong is whole only with a topic of the length that it had."""
    return len(key[0].encode("utf-8", "surrogateescape")), key[1]


def _covered(gaps: Sequence[Missing], runs: Iterable[Run]) -> Iterator[Run]:
    """The runs that lie in a gap, in the log and in queue offsets. Both sorted by the log.

    A run that begins behind the begin of a gap lies in it if it ends in front of its end: so of all gaps that
    begin so far, and miss its first queue offset, the one that ends last tells.
    """
    highest = Stabbing((one.first, one.last + 1) for one in gaps)
    at = 0
    for run in runs:
        while at < len(gaps) and gaps[at].low <= run.start:
            highest.raise_to(gaps[at].first, gaps[at].last + 1, gaps[at].high)
            at += 1
        if highest.at(run.first) >= run.end:
            yield run
