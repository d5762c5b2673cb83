"""What a start takes away from the files that were there: parts of the log given up, files cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.broker.record_check import StopReason
from rmqtool.recovery.fillers import FILLER, covers_rest, latest_before
from rmqtool.recovery.loss import LostPart
from rmqtool.recovery.outcome import Truncation
from rmqtool.scan.opened import scanned

if TYPE_CHECKING:
    from rmqtool.broker.log_recovery import LogEnd
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.broker.start import Start
    from rmqtool.recovery.spans import Key
    from rmqtool.store.files import StoreFile


def lost_parts(start: Start) -> list[LostPart]:
    """The log behind the place where recovery ends, in that file and the deleted ones."""
    end = start.end
    if end is None:
        return []
    stop = start.loaded[end.file]
    behind = [one for one in start.loaded if one.path in start.log.deleted]
    parts = [_rest(start, stop, end, last=not behind)] if stop not in behind else []
    return parts + [LostPart(one, 0, one is behind[-1]) for one in behind]


def _rest(start: Start, stop: MappedFile, end: LogEnd, *, last: bool) -> LostPart:
    """The file in which recovery ends, from there on; under a filler's header a record may have been."""
    position = end.offset - stop.base
    if end.reason is StopReason.BLANK and stop.file is not None:
        with start.reading.open(stop.file) as source:
            whole = covers_rest(source, position, start.log.size)
        if whole:
            since = latest_before(stop, position, start.reading) or 0
            return LostPart(stop, position + FILLER, last, since)
    return LostPart(stop, position, last)


def truncations(start: Start, loaded_max: dict[Key, int]) -> tuple[Truncation, ...]:
    """Files that keep bytes which are no longer data; zeros behind the position do not count.

    loaded_max: every queue's end directly after the load.
    """
    found = [
        Truncation(one.path, one.wrote)
        for one in start.log.files
        if one.file is not None and one.wrote < start.log.size and _has_data(start, one.file, one.wrote)
    ]
    for key, queue in sorted(start.queues.items()):
        lost = queue.recovered_max > loaded_max.get(key, queue.recovered_max)
        if lost and queue.files.files:
            last = queue.files.files[-1]
            found.append(Truncation(last.path, last.wrote))
    return tuple(found)


def _has_data(start: Start, file: StoreFile, position: int) -> bool:
    with scanned(file, 0, start.reading) as (source, scan):
        return scan.first_nonzero(position) < source.size
