"""Commit-log roots without a segment, in a store that lacks some: most often their disk is not mounted.

The first segments of a log may lie in one root alone, and without them they would look expired.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from formats.consumequeue import PRE_BLANK_SIZE, Unit
from formats.primitives import sizeof
from rmqtool.errors import RmqtoolError
from rmqtool.store.holes import last_nonzero
from rmqtool.store.index_header import index_header
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rmqtool.store.contents import StoreContents
    from rmqtool.store.files import StoreFile


def without_segments(store: StoreContents, named: Collection[str]) -> dict[str, str]:
    """Empty roots that may have what the log lacks, each with the reason.

    named: commit-log roots that were given, by options or settings. A mounted disk may well be empty.
    """
    filled = {os.path.dirname(one.file.location) for one in store.segments}
    suspects = [place for place in named if place not in filled and not os.path.ismount(place)]
    if not filled or not suspects or store.absent:
        return {}
    lacks = next(_lacking(store), None)
    return {} if lacks is None else dict.fromkeys(suspects, f"no segment in it, and {lacks}")


def _lacking(store: StoreContents) -> Iterator[str]:
    """What tells that segments are missing.

    A broker deletes the oldest ones, then within seconds each whole file of a queue, and of the index, that
    leads in front of the rest; after a crash it does so when it has started.
    """
    begin, end = store.segments[0].base, max(one.end for one in store.segments)
    for hole in store.segments.holes():
        yield f"none has offsets {hole.start} to {hole.end}"
    for queue in store.queues(FileKind.CONSUMEQUEUE):
        for file in queue.files:
            last = _last_unit(file)
            if last is not None and last >= end:
                yield f"{file.display_path} leads behind {end}, where the log ends"
            if last is not None and last < begin and file is not queue.files[-1]:
                yield f"all of {file.display_path} leads in front of {begin}, where the log begins"
    files = store.index_files()
    for file in files:
        last = _last_indexed(file)
        if last is not None and last >= end:
            yield f"{file.display_path} goes up to {last}, behind {end}, where the log ends"
        if last is not None and last < begin and file is not files[-1]:
            yield f"all of {file.display_path} leads in front of {begin}, where the log begins"


def _last_unit(file: StoreFile) -> int | None:
    """Physical offset in the last unit of a queue file, None for a filler or nothing."""
    length = sizeof(Unit)
    try:
        with file.open("pread") as source:
            at = last_nonzero(source) // length * length
            raw = source.window(at, length).tobytes() if at >= 0 else b""
    except RmqtoolError:
        return None
    unit = Unit.parse(raw) if len(raw) == length else None
    return None if unit is None or unit.size == PRE_BLANK_SIZE else int(unit.physical_offset)


def _last_indexed(file: StoreFile) -> int | None:
    header = index_header(file)
    return None if header is None else int(header.end_physical_offset) or None
