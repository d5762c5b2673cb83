"""Records behind a filler in the middle of a file: recovery and dispatching both go on with the next file.

A filler covers the rest of its file and says so; where it does not, or live records lie behind it, something
else stood there before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.commitlog import BLANK_MAGIC_CODE, MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2
from rmqtool.broker.record_check import StopReason
from rmqtool.errors import RmqtoolError
from rmqtool.recovery.fillers import FILLER, covers_rest, latest_before, live
from rmqtool.recovery.spans import QueueSpans
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field
from rmqtool.scan.opened import scanned
from rmqtool.scan.under_filler import under_filler

if TYPE_CHECKING:
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.recovery.observed_start import ObservedStart
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.bytes import ByteSource

_MAGICS = (BLANK_MAGIC_CODE, MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2)


@dataclass(frozen=True, slots=True)
class HiddenRecords:
    """path, position: the filler. messages, bytes: intact records behind the one that it replaces."""

    path: str
    position: int
    messages: int
    bytes: int


def behind_fillers(start: ObservedStart) -> tuple[HiddenRecords, ...]:
    """Records that recovery or dispatching passed over; their queue offsets count as those of the others."""
    size = start.log.size
    places = set(start.end.fillers if start.end else ())
    if start.end is not None and start.end.reason is StopReason.BLANK:
        places.add((start.end.file, start.end.offset - start.loaded[start.end.file].base))
    for offset in start.reput.fillers if start.reput else ():
        places |= {
            (number, offset - one.base)
            for number, one in enumerate(start.loaded)
            if one.base <= offset < one.base + size
        }
    hidden = QueueSpans(start.reading.kernels, is_batch=start.spans.is_batch)
    found = [_behind(start.loaded[number], position, start, hidden) for number, position in sorted(places)]
    start.spans.add(hidden)
    return tuple(one for one in found if one is not None)


def _behind(one: MappedFile, position: int, start: ObservedStart, hidden: QueueSpans) -> HiddenRecords | None:
    """What a filler at `position` of a file hides, None for a true one."""
    size, reading, matcher = start.log.size, start.reading, start.matcher
    if one.file is None:
        return None
    messages = length = 0
    try:
        with scanned(one.file, one.base, reading, start=position + FILLER) as (source, scan):
            replaced = not covers_rest(source, position, size) and _was_record(source, position)
            # as a rule the file ends with the filler, or zeros follow
            used = scan.first_nonzero(position + FILLER) < source.size
            since = latest_before(one, position, reading) if used and not replaced else None
            for event in scan:
                if isinstance(event, Records):
                    rows = event.rows[live(event, one.base, since)]
                    run = Records(rows, event.window, event.origin)
                    messages += len(run.rows)
                    length += int(run.rows[:, Field.STORE_SIZE].sum())
                    matcher.take(run, one.base, hidden)
            if not replaced and not messages and not _lies_on_one(one, position, source, reading):
                return None
    except RmqtoolError:
        return None
    return HiddenRecords(one.path, position, messages, length)


def _lies_on_one(one: MappedFile, position: int, source: ByteSource, reading: ReadOptions) -> bool:
    """Whether the rest of a record lies under the header of a filler of the right length."""

    def read(at: int, count: int) -> bytes:
        return source.window(position + at, count).tobytes()

    found = under_filler(read, source.size - position, one.base + position)
    if found is None:
        return False
    since = latest_before(one, position, reading)
    return since is None or found[1] >= since


def _was_record(source: ByteSource, position: int) -> bool:
    """Whether what states its size at `position` is a record, by what follows it."""
    end = position + int.from_bytes(source.window(position, 4).tobytes(), "big", signed=True)
    magic = source.window(end + 4, 4).tobytes() if 0 < end <= source.size - 8 else b""
    return int.from_bytes(magic, "big", signed=True) in _MAGICS
