"""Segments that a copy lacks (`store.partial`): a finding a run of them; entries that nobody can follow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.check.findings import finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.store.segments import Segment, SegmentSet

    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]


@dataclass
class NotCopied:
    """Physical offsets whose segments a copy lacks; of entries that lead there it keeps numbers only.

    starts and ends: those of runs of such segments, which no segment that is there overlaps.
    """

    starts: Ints
    ends: Ints
    units: int = 0
    index_entries: int = 0
    _run: list[Segment] = field(default_factory=list)

    @classmethod
    def of(cls, segments: SegmentSet) -> NotCopied:
        """The runs of a log."""
        starts: list[int] = []
        ends: list[int] = []
        reached = 0
        for one in segments:
            if one.file.absent is None or one.base < reached:
                while ends and one.file.absent is None and one.base < ends[-1]:  # a twin of what is not there
                    starts.pop()
                    ends.pop()
            elif ends and ends[-1] == one.base:
                ends[-1] = one.end
            else:
                starts.append(one.base)
                ends.append(one.end)
            reached = max(reached, one.end)
        return cls(np.array(starts, np.int64), np.array(ends, np.int64))

    def __bool__(self) -> bool:
        return bool(len(self.starts))

    def holds(self, offsets: Ints) -> Bools:
        """Which of these physical offsets lie in what was not copied."""
        at = np.searchsorted(self.starts, offsets, side="right") - 1
        return (at >= 0) & (offsets < self.ends[at]) if self else np.zeros(len(offsets), bool)

    def meets(self, segment: Segment) -> Iterator[Finding]:
        """Takes one that was not copied; the finding about those in front of it, unless it follows them."""
        last = self._run[-1] if self._run else segment
        if last.file.absent != segment.file.absent or last.end not in (segment.base, segment.end):
            yield from self.close()
        self._run.append(segment)

    def close(self) -> Iterator[Finding]:
        """The finding about the last run of segments, if there is one."""
        if not self._run:
            return
        first, last = self._run[0], self._run[-1]
        more = len(self._run) - 1
        self._run = []
        one = finding(
            "DIR-UNREADABLE",
            path=first.file.display_path,
            position=0,
            physical_offset=first.base,
            length=last.end - first.base,
            found=f"{first.file.absent}{_followers(more, last)}",
        )
        yield replace(one, hint="ask again where the whole store is, or copy what is missing")

    def unseen(self) -> list[str]:
        """What was not followed, for `not_looked_at`."""
        held = (self.units, "consume queue"), (self.index_entries, "index")
        return [
            f"{count:,} {kind} {'entry' if count == 1 else 'entries'} for segments that were not copied"
            for count, kind in held
            if count
        ]


def _followers(count: int, last: Segment) -> str:
    if not count:
        return ""
    files = "1 segment that follows" if count == 1 else f"{count} segments that follow"
    return f", as well as the {files}, up to {last.file.display_path}"
