"""The log of a store, read for its checks: what the reader tells, and a closer look at fillers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH as BLANK_HEADER
from rmqtool.scan.events import Blank
from rmqtool.scan.fields import Check
from rmqtool.scan.reader import PART_BYTES, SUMMED_PART_BYTES, LogReader, Made

if TYPE_CHECKING:
    from rmqtool.check.account import Accounting, RunSummary
    from rmqtool.scan.events import Event
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.patched import ZeroFilledSource
    from rmqtool.store.segments import SegmentSet

_PART = 2 << 20
"""bytes of a filler that are looked at together"""


@dataclass(frozen=True, slots=True)
class Filler:
    """A blank record, and whether the bytes behind its header are not zero."""

    blank: Blank
    filled: bool


@dataclass(frozen=True)
class CheckedLog(LogReader[Made]):
    """A `LogReader` that asks all of `Check.VERIFY` and tells fillers as `Filler`."""

    checks: Check = Check.VERIFY
    false_blanks: bool = True

    def of_event(self, source: ZeroFilledSource, event: Event) -> Filler | Event:
        """See `LogReader.of_event`."""
        return Filler(event, self._filled(source, event)) if isinstance(event, Blank) else event

    def _filled(self, source: ZeroFilledSource, blank: Blank) -> bool:
        """Whether a filler has bytes behind its header; they are read to the end, holes are not."""
        at: int | None = blank.position + BLANK_HEADER
        while at is not None and at < source.size:
            at = source.next_data(at)
            if at is not None:
                part = source.window(at, _PART)
                filled = int(self.kernels.first_nonzero(part, 0)) < part.size
                if source.had_fault():
                    continue
                if filled:
                    return True
                at += part.size
        return False


def accounted_log(
    segments: SegmentSet, options: ReadOptions, kernels: Kernels, account: Accounting
) -> CheckedLog[RunSummary]:
    """A log for its accounts, which have no bytes: what is checked block by block is not copied before."""
    part_bytes = SUMMED_PART_BYTES if account.summed else PART_BYTES
    mapped = account.summed or account.columned
    return CheckedLog(segments, options, kernels, account, part_bytes=part_bytes, mapped=mapped)
