"""A whole commit log: segment after segment, several at once, as Arrow batches and events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Doubtful, End, Records, Unreadable
from rmqtool.scan.fields import Check, CrcState, Field, Issue
from rmqtool.scan.opened import before, behind, odd_rows, opened, unread
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.scan.parallel import in_order
from rmqtool.scan.parts import Part, cut, parts
from rmqtool.scan.sound import Passed
from rmqtool.store.doubts import Doubt

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.scan.events import Blank, Gap, Tail
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.parallel import WorkerContext
    from rmqtool.scan.segment import SegmentScan
    from rmqtool.scan.sound import Runs
    from rmqtool.store.patched import ZeroFilledSource
    from rmqtool.store.segments import Segment, SegmentSet

    Bad = npt.NDArray[np.int64] | None


BATCH_ROWS = 8192
"""records in a run at most: their rows stay in a cache while they are looked at"""


@dataclass(frozen=True)
class LogScan:
    """What is read of a log, and how.

    columns: of the record table. choose: keeps some of the records of a run (segment base, path given), asked
    from several threads. wanted: False skips a segment unread. offsets: only physical offsets [start, end),
    where a record or a segment begins at `start`; what begins behind `end` is not read. passing: gives what
    passes over runs of records in which nothing is wanted, for each segment.
    """

    columns: Sequence[str]
    choose: Callable[[Records, int, str], Records] | None = None
    wanted: Callable[[Segment], bool] | None = None
    offsets: tuple[int, int] | None = None
    checks: Check = Check.ALL
    options: ReadOptions = field(default_factory=ReadOptions)
    passing: Callable[[Kernels], Runs[Passed]] | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a log, in physical order.

    bad_bodies: physical offsets of the records of a run that fail their CRC, chosen or not; all of them come
    with the first batch of the run. None without one.
    """

    segment: Segment
    content: pa.RecordBatch | Blank | Gap | Tail | End | Unreadable | Doubtful
    bad_bodies: npt.NDArray[np.int64] | None = None


def scan_log(segments: SegmentSet, how: LogScan) -> Iterator[Piece]:
    """Everything in the segments that `how` wants. Damage and unreadable parts are pieces, not errors."""
    low, high = segments.span
    if how.offsets is not None:
        low, high = max(low, how.offsets[0]), min(high, how.offsets[1])
    chosen = [
        one
        for one in segments
        if one.end > low and one.base < high and (how.wanted is None or how.wanted(one))
    ]
    kernels = choose_kernels(min(data_bytes(chosen), max(high - low, 0)))

    def work(segment: Segment, worker: WorkerContext) -> Iterator[Piece]:
        within = max(low - segment.base, 0), high - segment.base
        return _scan_one(segment, how, kernels, worker, within, active=segments.is_active(segment))

    return in_order(chosen, work, how.options.jobs, size=lambda one: one.size)


def _scan_one(
    segment: Segment,
    how: LogScan,
    kernels: Kernels,
    worker: WorkerContext,
    within: tuple[int, int],
    *,
    active: bool,
) -> Iterator[Piece]:
    """The records that begin at positions [start, stop), and what lies between them."""
    options = how.options
    done, stop = within
    try:
        with opened(
            segment,
            options,
            worker=worker,
            kernels=kernels,
            active=active,
            checks=how.checks,
            false_blanks=True,
            start=done,
            until=stop,
            batch_rows=BATCH_ROWS,
        ) as (source, scan):
            for event in scan.summed(None if how.passing is None else how.passing(kernels)):
                if isinstance(event, Passed):
                    options.done(event.end - done)
                    done = event.end
                    continue
                if not isinstance(event, Records):
                    yield Piece(segment, event)
                    continue
                part = before(event, stop)
                if len(part.rows):
                    end = behind(part)
                    batches = _Batches(
                        segment, how, kernels, source, scan, worker, odd=odd_rows(kernels, part) > 0
                    )
                    doubts = _doubts(segment, part, Doubt.MISPLACED) if batches.odd else []
                    yield from batches.of(part)
                    yield from doubts
                    options.done(end - done)
                    done = end
                # behind the last record that was asked for there may be much that is none
                if len(part.rows) < len(event.rows) or stop <= done < segment.size:
                    break
    except RmqtoolError as error:
        lost = unread(error, done, min(stop, segment.size), live=options.live)
        if lost is not None:
            yield Piece(segment, lost)
    options.done(segment.size - done)


def _doubts(segment: Segment, records: Records, cause: Doubt) -> list[Piece]:
    """No piece, or the one that tells of the records with this cause."""
    import numpy as np

    from rmqtool.scan.torn import torn_records

    rows = records.rows
    if cause is Doubt.BODY:
        held = rows[:, Field.CRC_STATE] == CrcState.BAD
    elif cause is Doubt.TORN:
        held = torn_records(records)
    else:
        held = (rows[:, Field.ISSUES] & int(Issue.OFFSET)) != 0
    found = np.flatnonzero(held)
    if not found.size:
        return []
    start, last = int(rows[found[0], Field.POSITION]), rows[found[-1]]
    end = int(last[Field.POSITION] + last[Field.STORE_SIZE])
    return [Piece(segment, Doubtful(start, end - start, int(found.size), cause))]


@dataclass(frozen=True, slots=True)
class _Batches:
    """Makes the batches of a run; what they are made from must have been readable to the end.

    odd: there may be a record with something to tell.
    """

    segment: Segment
    how: LogScan
    kernels: Kernels
    source: ZeroFilledSource
    scan: SegmentScan
    worker: WorkerContext
    odd: bool

    def of(self, records: Records, *, counted: bool = False) -> Iterator[Piece]:
        """The records that are wanted, some at a time, with the places of bad bodies among all of them.

        counted: these bad bodies have been reported.
        """
        from rmqtool.scan.table import bad_bodies

        found = bad_bodies(records) + self.segment.base if self.odd and not counted else None
        bad = found if found is not None and found.size else None
        mapped = self.source.zero_copy
        if self.how.choose is None:
            bad = yield from self._all(records, bad, mapped=mapped)
        else:
            # a filter may look at text, so it is given no more at once than a batch holds
            for some in cut(records):
                kept = self.how.choose(some, self.segment.base, self.segment.file.display_path)
                if self._had_fault(mapped=mapped):
                    yield from self._reread(some)
                elif len(kept.rows):
                    bad = yield from self._all(kept, bad, mapped=mapped)
        if bad is not None:
            empty = Records(records.rows[:0], records.window, records.origin)
            yield Piece(self.segment, self._batch(Part(empty)), bad)

    def _had_fault(self, *, mapped: bool) -> bool:
        """Whether bytes of a run, and of all that follows in it, may be wrong; `mapped`: they are no copy."""
        return self.source.had_fault() or (mapped and not self.source.zero_copy)

    def _all(self, records: Records, bad: Bad, *, mapped: bool) -> Generator[Piece, None, Bad]:
        """Batches of all these records, the first one with `bad`; returns what of it is left to report."""
        from rmqtool.scan.table import PLAIN_COLUMNS

        plain = not PLAIN_COLUMNS.isdisjoint(self.how.columns)
        for part in parts(records, self.worker, plain=plain):
            batch = self._batch(part)
            if self._had_fault(mapped=mapped):
                yield from self._reread(part.records)
                continue
            yield Piece(self.segment, batch, bad)
            bad = None
        if self.odd:
            yield from _doubts(self.segment, records, Doubt.BODY)
            yield from _doubts(self.segment, records, Doubt.TORN)
        return bad

    def _reread(self, records: Records) -> Iterator[Piece]:
        """Reads them again; from here on the source copies, so nothing is read three times."""
        for event in self.scan.reread(records):
            if isinstance(event, Records):
                yield from self.of(event, counted=True)
            else:
                yield Piece(self.segment, event)

    def _batch(self, part: Part) -> pa.RecordBatch:
        from rmqtool.scan.table import to_batch

        return to_batch(
            part.records,
            base=self.segment.base,
            path=self.segment.file.display_path,
            kernels=self.kernels,
            columns=self.how.columns,
            plain=part.plain,
        )
