"""What a start takes away from the files that were there: parts of the log given up, files cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.recovery.loss import LostPart
from rmqtool.recovery.outcome import Truncation

if TYPE_CHECKING:
    from rmqtool.recovery.spans import Key
    from rmqtool.recovery.start import Start
    from rmqtool.store.files import StoreFile

_WINDOW = 1 << 20


def lost_parts(start: Start) -> list[LostPart]:
    """The log behind the place where recovery ends, in that file and the deleted ones."""
    end = start.end
    if end is None:
        return []
    stop = start.loaded[end.file]
    behind = [one for one in start.loaded if one.path in start.log.deleted]
    parts = [LostPart(stop, end.offset - stop.base, not behind)] if stop not in behind else []
    return parts + [LostPart(one, 0, one is behind[-1]) for one in behind]


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
    reading = start.reading
    with file.open(reading.access) as source:
        at = source.next_data(position)
        while at is not None and at < source.size:
            window = source.window(at, _WINDOW)
            if reading.kernels.first_nonzero(window, 0) < window.size:
                return True
            at = source.next_data(at + window.size)
    return False
