"""A segment that is open: its bytes, the scan over them, and what is said when it cannot be read on."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rmqtool.errors import VanishedError
from rmqtool.scan.events import Records, Unreadable
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.options import ALONE
from rmqtool.scan.segment import BATCH_ROWS, SegmentScan
from rmqtool.store.cut import TruncatedSource
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.errors import RmqtoolError
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.options import ReadOptions
    from rmqtool.scan.parallel import WorkerContext
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile
    from rmqtool.store.segments import Segment


class OpenSegment(NamedTuple):
    """Bytes, with zeros for those that cannot be read, and the scan over them."""

    source: ZeroFilledSource
    scan: SegmentScan


@contextmanager
def opened(  # noqa: PLR0913 - all but two are options
    segment: Segment,
    options: ReadOptions,
    *,
    worker: WorkerContext = ALONE,
    kernels: Kernels | None = None,
    end: int | None = None,
    active: bool = True,
    checks: Check = Check.ALL,
    false_blanks: bool = False,
    start: int = 0,
    until: int | None = None,
    batch_rows: int = BATCH_ROWS,
    window_bytes: int | None = None,
) -> Iterator[OpenSegment]:
    """The bytes of a segment, closed at the end, and a scan over them (`SegmentScan` says what is scanned).

    end: position at which the file is taken to end, None for its length. A file whose length is another one
    than when it was listed is copied, and taken for live. Raises `StoreIOError`, `VanishedError`.
    """
    access = replace(options.access, stop=worker.stop)
    found: ByteSource = segment.open(access)
    moving = options.live
    if end is not None:
        source = ZeroFilledSource(TruncatedSource(found, end))
    else:
        if found.size != segment.size:
            moving = True
            if found.zero_copy:
                found.close()
                found = segment.open(replace(access, mode="pread", drop_behind=True))
        source = ZeroFilledSource(found, segment.size)
    with source:
        yield OpenSegment(
            source,
            SegmentScan(
                source,
                segment.base,
                checks=checks,
                active=active,
                false_blanks=false_blanks,
                start=start,
                until=until,
                batch_rows=batch_rows,
                window_bytes=window_bytes,
                kernels=options.kernels if kernels is None else kernels,
                moving=moving,
                stop=worker.stop,
            ),
        )


class ScannedFile(NamedTuple):
    """Bytes of a file, and the scan over them; bytes that cannot be read are an error."""

    source: ByteSource
    scan: SegmentScan


@contextmanager
def scanned(
    file: StoreFile,
    base: int,
    options: ReadOptions,
    *,
    worker: WorkerContext = ALONE,
    checks: Check = Check.ALL,
    active: bool = False,
    false_blanks: bool = False,
    start: int = 0,
) -> Iterator[ScannedFile]:
    """As `opened`, for a file that is known by itself. base: physical offset of its first byte."""
    with options.open(file, worker) as source:
        scan = SegmentScan(
            source,
            base,
            checks=checks,
            active=active,
            false_blanks=false_blanks,
            start=start,
            kernels=options.kernels,
            stop=worker.stop,
        )
        yield ScannedFile(source, scan)


def handed_on(records: Records, source: ByteSource, worker: WorkerContext) -> Records:
    """The run for another thread, which has room for it: its rows are overwritten when the scan goes on."""
    worker.take(records.rows.nbytes + copied_bytes(source, records))
    return Records(records.rows.copy(), records.window, records.origin)


def copied_bytes(source: ByteSource, run: Records) -> int:
    """Bytes of a run's window that take memory: none of a mapping."""
    return 0 if source.zero_copy else run.window.nbytes


def unread(error: RmqtoolError, start: int, end: int, *, live: bool) -> Unreadable | None:
    """Positions of a segment that an error left unread; None for a file that expired in a live store."""
    if live and isinstance(error, VanishedError):
        return None
    return Unreadable(start, max(end - start, 0), str(error))


def behind(records: Records) -> int:
    """Position behind the last record of a run."""
    last = records.rows[-1]
    return int(last[Field.POSITION] + last[Field.STORE_SIZE])


def before(records: Records, stop: int) -> Records:
    """The records that begin in front of a position."""
    rows = records.rows
    if rows[-1, Field.POSITION] < stop:
        return records
    return Records(rows[rows[:, Field.POSITION] < stop], records.window, records.origin)


def odd_rows(kernels: Kernels, records: Records) -> int:
    """How many records have something to tell (`fields.ODD`), or a body that fails its CRC."""
    return kernels.dispatch.outline(records.rows, 0)[0]
