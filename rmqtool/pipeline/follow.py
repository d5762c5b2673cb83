"""Where a log that a broker is writing may be read up to, where reading begins, and what is gone before.

Everything is a physical offset at which a record or a segment begins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.errors import NewerFormatError, StoreIOError, UnreadableError, UsageError
from rmqtool.pipeline.parts import PART_BYTES, LogPart, pieces
from rmqtool.query.segment_times import SegmentTimes
from rmqtool.scan.events import Records, Unreadable
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.log_end import end_of_data
from rmqtool.scan.moving import half_written
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.cut import CutSource
from rmqtool.store.layout import FileKind
from rmqtool.store.patched import PatchedSource
from rmqtool.store.resolve import StoreForm

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment, SegmentSet

    Rows = npt.NDArray[np.int64]

EARLIEST, LATEST = "earliest", "latest"


def refuse_unfollowed(store: Store) -> None:
    """Raises `UsageError` for a part of a store, `NewerFormatError` where the log is in DLedger's files."""
    if not store.segments and store.of_kind(FileKind.DLEDGER_DATA):
        raise NewerFormatError(f"{store.given}: DLedger data files are not decoded by this release")
    if store.form not in {StoreForm.STORE, StoreForm.COMMITLOG}:
        raise UsageError(f"{store.given} is a part of a store, a stream follows whole ones")


def intact_end(segments: SegmentSet, at: int, *, unreadable: str = "fail") -> int:
    """Offset behind the last record that is whole, not before `at`.

    A record that looks half written, and still does a moment later, is taken once a whole one follows it.
    unreadable: `fail` raises `UnreadableError` where the log ends in bytes that cannot be read. Raises
    `StoreIOError` when the log ends before `at`, which was read already.
    """
    last = segments.last_with_data()
    if last is None:
        if at > max(segments.first_offset, 0):
            raise StoreIOError(f"there is no log any more, of which {at} bytes were read")
        return max(segments.first_offset, at)
    if at > last.end:
        raise StoreIOError(f"the log ends at {last.end}, although it was read up to {at}")
    start = max(at - last.base, 0)
    end, lost = start, None
    with PatchedSource(CutSource(last.open("pread"), max(end_of_data(last), start))) as source:
        for event in SegmentScan(source, last.base, checks=Check.ALL, start=start, moving=True):
            if isinstance(event, Unreadable):
                lost = event
            elif isinstance(event, Records):
                whole = event.rows[~half_written(event.rows)]
                if len(whole):
                    end, lost = _behind(whole), None
    if lost is not None and unreadable == "fail":
        raise UnreadableError(last.file.shown, lost.position, lost.length, lost.reason)
    return last.base + end


def limited_end(segments: SegmentSet, at: int, end: int, most: int) -> int:
    """Where to stop reading for now, with about `most` bytes from `at` on, and at least one record."""
    if end - at <= most:
        return end
    target = at + most
    found = segments.locate(target)
    if found is None:
        return min(next((one.base for one in segments if one.base > at), end), end)
    segment = found[0]
    start = max(at, segment.base)
    stop = segment.base

    def reached(rows: Rows) -> int | None:
        nonlocal stop
        behind = rows[:, Field.POSITION] + rows[:, Field.STORE_SIZE] + segment.base
        fitting = int(behind.searchsorted(target, "right"))
        if fitting == len(rows):
            stop = int(behind[-1])
            return None
        if fitting:
            return int(behind[fitting - 1])
        return stop if stop > at else int(behind[0])

    found_end = _search(segment, start - segment.base, reached)
    return min(segment.end if found_end is None else found_end, end)


def starting_offset(store: Store, segments: SegmentSet, wanted: str | int, *, time: bool = False) -> int:
    """Where a stream begins to read. wanted: `EARLIEST`, `LATEST`, an offset, or with `time` epoch ms.

    An offset below the first one that is there is taken as it is: what is lacking is told when it is read.
    Raises `UsageError` for one behind the log.
    """
    first = max(segments.first_offset, 0)
    last = segments.last_with_data()
    if wanted == EARLIEST or (last is None and (wanted == LATEST or time)):
        return first
    if wanted == LATEST:
        return intact_end(segments, first if last is None else last.base, unreadable="skip")
    number = int(wanted)
    if time:
        return _at_time(segments, number)
    if number <= first:
        return number
    end = intact_end(segments, first if last is None else last.base, unreadable="skip")
    if number > end:
        raise UsageError(f"start: the log of {store.given} ends at {end}, before {number}")
    found = segments.locate(number)
    if found is None or number == end:
        return number
    segment, position = found
    after = _search(segment, position, lambda rows: int(rows[0, Field.POSITION]) + segment.base)
    return min(segment.end if after is None else after, end)


def uncovered(segments: SegmentSet, start: int, end: int) -> list[tuple[int, int]]:
    """Ranges of [start, end) of which no file is there."""
    lost: list[tuple[int, int]] = []
    at = start
    for one in segments:
        if at >= end:
            break
        if one.base > at:
            lost.append((at, min(one.base, end)))
        at = max(at, one.end)
    if at < end:
        lost.append((at, end))
    return lost


def parts_between(
    store: Store, segments: SegmentSet, start: int, end: int, part_bytes: int | None
) -> list[tuple[LogPart, tuple[int, int]]]:
    """The log from `start` to `end` as parts with the offsets that each is read between.

    Pieces of a segment are looked for in front of `end` only, where nothing changes any more.
    """
    found: list[tuple[LogPart, tuple[int, int]]] = []
    at = start
    part_bytes = PART_BYTES if part_bytes is None else part_bytes
    for segment in segments:
        low, high = max(at, segment.base), min(end, segment.end)
        if low >= high:
            continue
        at = high
        reach = high - segment.base
        count = pieces(reach, part_bytes) if part_bytes and high - low > part_bytes else 1
        light = replace(store, files=(segment.file,), directories=(), notes=())
        active = segments.is_active(segment)
        found += [
            (LogPart(light, segment, number, count, reach, active), (low, high)) for number in range(count)
        ]
    return found


def _at_time(segments: SegmentSet, millis: int) -> int:
    """Offset of the first record stored at or after a time, or the end of the log."""
    times = SegmentTimes(segments)
    for segment in segments:
        if not times.may_hold(segment, millis, None):
            continue

        def reached(rows: Rows, base: int = segment.base) -> int | None:
            late = (rows[:, Field.STORE_TIMESTAMP] >= millis).nonzero()[0]
            return base + int(rows[late[0], Field.POSITION]) if len(late) else None

        found = _search(segment, 0, reached)
        if found is not None:
            return found
    last = segments.last_with_data()
    return intact_end(segments, 0 if last is None else last.base, unreadable="skip")


def _search(segment: Segment, start: int, reached: Callable[[Rows], int | None]) -> int | None:
    """The first answer of `reached` to runs of records from a position on, None without one."""
    with PatchedSource(CutSource(segment.open("pread"), max(end_of_data(segment), start))) as source:
        for event in SegmentScan(source, segment.base, checks=Check.FRAME, start=start):
            if isinstance(event, Records):
                found = reached(event.rows)
                if found is not None:
                    return found
    return None


def _behind(rows: Rows) -> int:
    return int(rows[-1, Field.POSITION] + rows[-1, Field.STORE_SIZE])
