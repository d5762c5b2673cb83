"""Which run lies where: copies removed, claims on the same bytes of the log decided."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.repair.salvage.moved import Moved, Why, none_moved
from rmqtool.repair.salvage.tables import Found, Run, joined, taken
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.repair.salvage.files import Files
    from rmqtool.scan.events import Records

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ResolvedRuns:
    """Runs that overlap no more, by offset; copies by source; and who lost (rows of `Moved`)."""

    found: Found
    duplicates: Ints
    moved: Ints


def families(found: Found) -> Ints:
    """A number for each run; those that continue each other, also over the end of a segment, share one.

    Of several runs that begin where one ends, that of the same host with the nearest store time goes on.
    """
    runs, ends = found.runs, found.ends.tolist()
    parent = list(range(len(runs)))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        return one

    starts: dict[int, list[int]] = {}
    shifts: dict[tuple[int, int], int] = {}
    for number, (source, offset, position) in enumerate(
        runs[:, [Run.SOURCE, Run.OFFSET, Run.POSITION]].tolist()
    ):
        starts.setdefault(offset, []).append(number)
        parent[root(number)] = root(shifts.setdefault((source, offset - position), number))
    columns = [Run.ROLLS, Run.HOST, Run.LAST_TIME]
    for number, (rolls, host, time) in enumerate(runs[:, columns].tolist()):
        following = [*starts.get(ends[number], ()), *starts.get(rolls, ())]
        if following:
            nearest = min(
                following,
                key=lambda one: (runs[one, Run.HOST] != host, abs(int(runs[one, Run.FIRST_TIME]) - time)),
            )
            parent[root(nearest)] = root(number)
    return np.array([root(one) for one in range(len(runs))], np.int64)


def resolve_overlaps(found: Found, files: Files) -> ResolvedRuns:
    """Decides for all runs. Evidence: how much continues a run, then the later store time, then length."""
    duplicates = np.zeros(len(files.sources), np.int64)
    if len(found.runs) == 0:
        return ResolvedRuns(found, duplicates, none_moved())
    order = np.lexsort((found.ends, found.runs[:, Run.OFFSET]))
    found = taken(found, order)
    reach = np.maximum.accumulate(found.ends)
    breaks = np.concatenate([[True], found.runs[1:, Run.OFFSET] >= reach[:-1]])
    starts = np.flatnonzero(breaks)
    sizes = np.diff(np.concatenate([starts, [len(breaks)]]))
    alone = taken(found, starts[sizes == 1])
    if len(alone.runs) == len(found.runs):
        return ResolvedRuns(found, duplicates, none_moved())
    rank = _ranks(found)
    parts, gone = [alone], [none_moved()]
    for start, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        claims = sorted(range(start, start + size), key=lambda one: rank[one], reverse=True)
        ground = _OverlapRegion(found, files, duplicates)
        for one in claims:
            ground.claim(one)
        parts += ground.kept
        gone += ground.moved
    whole = joined(parts)
    return ResolvedRuns(
        taken(whole, np.argsort(whole.runs[:, Run.OFFSET], kind="stable")), duplicates, _flat(gone)
    )


def _flat(gone: list[Ints]) -> Ints:
    moved = np.concatenate(gone)
    stays: Ints = moved[moved[:, Moved.WHY] != Why.DUPLICATE]
    return stays


def _ranks(found: Found) -> list[tuple[int, int, int, int]]:
    """What speaks for each run; the greatest wins.

    Twice as much that continues it outweighs a later time: a broker that came back after a crash writes over
    what it cut off, but a fragment of another log is a fragment.
    """
    runs = found.runs
    _, group = np.unique(families(found), return_inverse=True)
    # of overlapping copies only one counts, or the log that was given most often would win
    size = np.zeros(group.max() + 1, np.int64)
    reach = np.full(len(size), -1, np.int64)
    for number, start, end in zip(group, runs[:, Run.OFFSET], found.ends, strict=True):
        size[number] += max(end - max(start, reach[number]), 0)
        reach[number] = max(reach[number], end)
    latest = np.zeros(len(size), np.int64)
    np.maximum.at(latest, group, runs[:, Run.LAST_TIME])
    return [
        (int(size[number]).bit_length(), int(latest[number]), length, -source)
        for number, length, source in zip(
            group, runs[:, Run.LENGTH].tolist(), runs[:, Run.SOURCE].tolist(), strict=True
        )
    ]


class _OverlapRegion:
    """A stretch of the log that several runs claim, given away one by one."""

    def __init__(self, found: Found, files: Files, duplicates: Ints) -> None:
        self._found = found
        self._files = files
        self._duplicates = duplicates
        self._given: list[tuple[int, int, int, int]] = []
        """(start, end, source, position) by start, not overlapping"""
        self.kept: list[Found] = []
        self.moved: list[Ints] = []

    def claim(self, one: int) -> None:
        """The next run takes what is free."""
        run = self._found.runs[one]
        start, length = int(run[Run.OFFSET]), int(run[Run.LENGTH])
        source, position = int(run[Run.SOURCE]), int(run[Run.POSITION])
        overlapped = self._overlapped(start, start + length)
        if not overlapped:
            insort(self._given, (start, start + length, source, position))
            self.kept.append(taken(self._found, np.array([one])))
        elif self._is_copy(start, length, (source, position), overlapped):
            self._duplicates[source] += run[Run.COUNT]
        else:
            self._claim_records(run)

    def _overlapped(self, start: int, end: int) -> list[tuple[int, int, int, int]]:
        first = bisect_left(self._given, (start,))
        if first and self._given[first - 1][1] > start:
            first -= 1
        return self._given[first : bisect_left(self._given, (end,))]

    def _is_copy(
        self, start: int, length: int, place: tuple[int, int], overlapped: list[tuple[int, int, int, int]]
    ) -> bool:
        """Whether all of it lies there already, byte for byte."""
        at = start
        for low, high, source, position in overlapped:
            if low > at:
                return False
            size = min(high, start + length) - at
            mine = place[0], place[1] + at - start
            if not self._files.same(mine, (source, position + at - low), size):
                return False
            at += size
        return at == start + length

    def _claim_records(self, run: Ints) -> None:
        kept, gone = self._files.divided(run, self._verdict)
        for row in kept.runs[:, [Run.OFFSET, Run.LENGTH, Run.SOURCE, Run.POSITION]].tolist():
            insort(self._given, (row[0], row[0] + row[1], row[2], row[3]))
        self.kept.append(kept)
        self.moved.append(gone)
        copies = gone[:, Moved.WHY] == Why.DUPLICATE
        self._duplicates[run[Run.SOURCE]] += int(copies.sum())

    def _verdict(self, batch: Records, _: Ints) -> Ints:
        starts = [one[0] for one in self._given]
        why = np.full(len(batch.rows), Why.STAYS, np.int64)
        columns = [Field.STORED_PHYSICAL_OFFSET, Field.STORE_SIZE, Field.POSITION]
        for number, (offset, size, position) in enumerate(batch.rows[:, columns].tolist()):
            place = bisect_right(starts, offset) - 1
            if place >= 0 and self._given[place][1] > offset:
                start, end, source, at = self._given[place]
                covered = offset + size <= end
                mine = batch.window[position - batch.origin : position - batch.origin + size]
                same = covered and np.array_equal(
                    mine, self._files.bytes_at(source, at + offset - start, size)
                )
                why[number] = Why.DUPLICATE if same else Why.CONFLICT
            elif place + 1 < len(starts) and starts[place + 1] < offset + size:
                why[number] = Why.CONFLICT
        return why
