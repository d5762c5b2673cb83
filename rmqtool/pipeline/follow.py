"""Where a stream begins to read a log that a broker is writing, and how what it reads at once is cut."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.pipeline.parts import PART_BYTES, LogPart, pieces
from rmqtool.query.segment_times import SegmentTimes
from rmqtool.scan.fields import Field
from rmqtool.store.required import refuse_dledger
from rmqtool.store.resolve import StoreForm

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rmqtool.scan.follower import LogFollower
    from rmqtool.store.layout import Store

    Rows = npt.NDArray[np.int64]

EARLIEST, LATEST = "earliest", "latest"


def refuse_unfollowed(store: Store) -> None:
    """Raises `UsageError` for a part of a store, `NewerFormatError` where the log is in DLedger's files."""
    refuse_dledger(store)
    if store.form not in {StoreForm.STORE, StoreForm.COMMITLOG}:
        raise UsageError(f"{store.given} is a part of a store, a stream follows whole ones")


def starting_offset(log: LogFollower, wanted: str | int, *, time: bool = False) -> int:
    """Where a stream begins to read. wanted: `EARLIEST`, `LATEST`, an offset, or with `time` epoch ms.

    An offset below the first one that is there is taken as it is: what is lacking is reported when it is
    read. Raises `UsageError` for one behind the log.
    """
    first = log.first_offset
    empty = log.segments.last_with_data() is None
    if wanted == EARLIEST or (empty and (wanted == LATEST or time)):
        return first
    if wanted == LATEST:
        return log.last_end()
    number = int(wanted)
    if time:
        return _at_time(log, number)
    if number <= first:
        return number
    end = log.last_end()
    if number > end:
        raise UsageError(f"start: the log of {log.store.given} ends at {end}, before {number}")
    return log.record_from(number, end)


def parts_between(
    log: LogFollower, start: int, end: int, part_bytes: int | None
) -> list[tuple[LogPart, tuple[int, int]]]:
    """The log from `start` to `end` as parts with the offsets that each is read between.

    Pieces of a segment are looked for in front of `end` only, where nothing changes any more.
    """
    found: list[tuple[LogPart, tuple[int, int]]] = []
    at = start
    part_bytes = PART_BYTES if part_bytes is None else part_bytes
    for segment in log.segments:
        low, high = max(at, segment.base), min(end, segment.end)
        if low >= high:
            continue
        at = high
        reach = high - segment.base
        count = pieces(reach, part_bytes) if part_bytes and high - low > part_bytes else 1
        light = replace(log.store, files=(segment.file,), directories=(), notes=())
        active = log.segments.is_active(segment)
        found += [
            (LogPart(light, segment, number, count, reach, active), (low, high)) for number in range(count)
        ]
    return found


def _at_time(log: LogFollower, millis: int) -> int:
    """Offset of the first record stored at or after a time, or the end of the log."""
    times = SegmentTimes(log.segments)
    for segment in log.segments:
        if not times.may_hold(segment, millis, None):
            continue

        def reached(rows: Rows, base: int = segment.base) -> int | None:
            late = (rows[:, Field.STORE_TIMESTAMP] >= millis).nonzero()[0]
            return base + int(rows[late[0], Field.POSITION]) if len(late) else None

        found = log.search(segment, 0, reached)
        if found is not None:
            return found
    return log.last_end()
