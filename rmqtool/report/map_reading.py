"""Reading a log for its map: by itself, or in the pass that verifies it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rmqtool.check.account import Accounting
from rmqtool.check.log_reading import CheckedLog
from rmqtool.report.shape import Shaping
from rmqtool.scan.fields import Check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from rmqtool.check.account import RunAccounts, RunSummary
    from rmqtool.check.verify import Verification
    from rmqtool.report.segment_map import SegmentMap
    from rmqtool.report.shape import RunShape
    from rmqtool.scan.events import Records
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment, SegmentSet


def read_map(store: Store, options: ReadOptions, found: SegmentMap) -> None:
    """Reads the log for the map alone."""
    shaping = Shaping(options.kernels, found.cells)

    def made(segment: Segment) -> Callable[[Records], RunShape]:
        return lambda run: shaping(run, segment)

    log = CheckedLog(store.segments, options, options.kernels, made, checks=Check.ALL, false_blanks=False)
    for segment, event in log.events():
        found.take(segment, event)
    found.close()


@dataclass(frozen=True, slots=True)
class Both:
    """What a run is to the checks, and on the map."""

    account: RunSummary
    shape: RunShape

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return self.account.nbytes + self.shape.nbytes


@dataclass(frozen=True)
class _Making:
    """Makes both of the runs of one segment."""

    accounts: RunAccounts
    shaping: Shaping
    segment: Segment

    def __call__(self, run: Records) -> Both:
        account = self.accounts(run)
        return Both(account, self.shaping(run, self.segment, account.placed))


def share_the_pass(run: Verification, found: SegmentMap, taken: Callable[[RunShape], object]) -> None:
    """Lets a verification that has not begun fill the map while it reads the log. taken: gets each shape."""

    def events(segments: SegmentSet) -> Iterator[tuple[Segment, Any]]:
        kernels = run.reading.kernels
        usual = Accounting.of(run.store, kernels, run.level, run.compared_until)
        index = run.index_check
        accounting = replace(usual, unindexed=index is not None and index.without_files)
        shaping = Shaping(kernels, found.cells)

        def made(segment: Segment) -> _Making:
            return _Making(accounting(segment), shaping, segment)

        for segment, event in CheckedLog(segments, run.reading, kernels, made).events():
            if isinstance(event, Both):
                found.take(segment, event.shape)
                taken(event.shape)
                yield segment, event.account
            else:
                found.take(segment, event)
                yield segment, event
        found.close()

    run.external_reader = events
