"""Where records may have been in a hole: by what looks like their headers, and by units that point there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import BLANK_MAGIC_CODE, END_FILE_MIN_BLANK_LENGTH, MESSAGE_MAGIC_CODES
from rmqtool.check.queue_files import OpenFiles, QueueUnits
from rmqtool.repair.keep.headers import SMALLEST_RECORD, read_header
from rmqtool.repair.keep.model import Frame
from rmqtool.scan.fields import OFF_MAGIC, OFF_PHYSICAL_OFFSET
from rmqtool.scan.under_filler import under_filler
from rmqtool.store.access import Access
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.repair.keep.logbytes import LogBytes
    from rmqtool.repair.keep.model import Header, Hole, QueueKey
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]

BLANK = BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True)
_MAGICS = (*(magic.to_bytes(4, "big", signed=True) for magic in MESSAGE_MAGIC_CODES), BLANK)
_STEP = 4 << 20
_HEAD = 128


def frames_by_header(hole: Hole, log: LogBytes) -> list[Frame]:
    """Frames that begin with a header, in order and without overlap; whole records among them first."""
    whole = {frame.start: frame for frame in hole.frames}
    ends = dict(_own_places(hole, log)) | {frame.start: frame.end for frame in hole.frames}
    starts = {hole.start, *ends}
    ordered = sorted(starts)
    found: list[Frame] = []
    for start, following in zip(ordered, [*ordered[1:], hole.end], strict=True):
        if found and start < found[-1].end:
            continue
        known = whole.get(start)
        end = ends.get(start) or _end_of(hole, log, start, following)
        if end is None:
            continue
        header = read_header(log.read(start, end - start), start, end - start)
        found.append(Frame(start, end, header, suspect=known is not None and known.suspect))
    return found


def _end_of(hole: Hole, log: LogBytes, start: int, following: int) -> int | None:
    """Where the record at `start` ends: by its size, else where the next one begins."""
    head = log.read(start, _HEAD)
    size = int.from_bytes(head[:4], "big", signed=True)
    # behind the last record of a segment is a filler: what reaches to its very end is none
    most = following - start - (END_FILE_MIN_BLANK_LENGTH if following == hole.placed.end else 0)
    if SMALLEST_RECORD <= size <= most:
        return start + size
    magic = int.from_bytes(head[OFF_MAGIC : OFF_MAGIC + 4], "big", signed=True) in MESSAGE_MAGIC_CODES
    stated = int.from_bytes(head[OFF_PHYSICAL_OFFSET : OFF_PHYSICAL_OFFSET + 8], "big", signed=True)
    at_home = stated == start > 0  # zeros would be at home at 0
    # at the end of a segment the hole may reach into the filler
    bounded = following < hole.end or not hole.to_end
    if bounded and (magic or at_home) and following - start >= SMALLEST_RECORD:
        return following
    return None


def misplaced_header(frame: Frame, log: LogBytes) -> Header | None:
    """Of a record that is whole, whatever offset it states, where something else tells its extent."""
    size = int.from_bytes(log.read(frame.start, 4), "big", signed=True)
    if size != frame.length:
        return None
    header = read_header(log.read(frame.start, size), frame.start, size)
    return header if header is not None and header.framed and header.sound else None


def _own_places(hole: Hole, log: LogBytes) -> Iterator[tuple[int, int | None]]:
    """Physical offsets in a hole where a record's magic stands and the offset that it states is its place.

    And where it ends, of one that is whole under the header of a filler. The last record of a hole may state
    any offset: where it ends, an intact one begins.
    """
    last: list[int] = []
    for magic, place, head in heads_in(hole, log):
        stated = int.from_bytes(head[OFF_PHYSICAL_OFFSET : OFF_PHYSICAL_OFFSET + 8], "big")
        if stated != place:
            if place + int.from_bytes(head[:4], "big") == hole.end < hole.placed.end:
                last.append(place)
            continue
        if magic != BLANK:
            yield place, None
            continue
        found = under_filler(partial(_behind, log, place), hole.end - place, place)
        if found is not None:
            yield place, place + found[0]
    left = hole.length  # of what is read for all of them
    for place in reversed(last):
        left -= hole.end - place
        if left >= 0 and misplaced_header(Frame(place, hole.end), log) is not None:
            yield place, hole.end


def heads_in(hole: Hole, log: LogBytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Each magic in a hole, in order: itself, the physical offset of its record, and first bytes of that.

    These are fewer than `_HEAD` at the end of the hole.
    """
    if hole.placed.file is None:
        return
    for begin in range(hole.start, hole.end, _STEP):
        window = log.read(begin, min(_STEP + _HEAD, hole.end - begin))
        for at, magic in sorted(_magics(window)):
            if 0 <= at < _STEP:
                yield magic, begin + at, window[at : at + _HEAD]


def _magics(window: bytes) -> Iterator[tuple[int, bytes]]:
    """Where the record of each magic in a window would begin. One search for all of them is slower."""
    for magic in _MAGICS:
        at = window.find(magic)
        while at >= 0:
            yield at - OFF_MAGIC, magic
            at = window.find(magic, at + 1)


def _behind(log: LogBytes, start: int, position: int, count: int) -> bytes:
    return log.read(start + position, count)


def queues_there(store: Store, files: OpenFiles) -> Iterator[tuple[QueueKey, QueueUnits]]:
    """All plain and batch queues with a topic and a number."""
    for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
        for queue in store.queues(kind):
            if queue.topic is not None and queue.queue_id is not None:
                yield (queue.topic, queue.queue_id), QueueUnits(queue, files)


def frames_by_unit(store: Store, holes: Sequence[Hole]) -> dict[int, list[Frame]]:
    """Frames that units of plain and batch queues tell, by the number of their hole, in order of place.

    Not those of plain queues in a file whose name is no place for one: nobody knows their queue offsets.
    """
    found: dict[int, list[Frame]] = {}
    if not holes:
        return found
    starts = np.array([hole.start for hole in holes], np.int64)
    ends = np.array([hole.end for hole in holes], np.int64)
    files, size = OpenFiles(Access("pread")), store.sizes[FileKind.CONSUMEQUEUE].value
    try:
        for key, queue in queues_there(store, files):
            for number, file in enumerate(queue.files):
                if not queue.batch and (file.base_offset or 0) % size:
                    continue
                for at, frame in _of_file(key, queue, number, starts, ends):
                    found.setdefault(at, []).append(frame)
    finally:
        files.close()
    for frames in found.values():
        frames.sort(key=lambda frame: (frame.start, frame.end))
    return found


def _of_file(
    key: QueueKey, queue: QueueUnits, number: int, starts: Ints, ends: Ints
) -> Iterator[tuple[int, Frame]]:
    """The units of one file that point into a hole, with the number of the hole."""
    for low, units in queue.parts(number):
        offsets = units["physical_offset"].astype(np.int64)
        sizes = units["size"].astype(np.int64)
        at = np.maximum(np.searchsorted(starts, offsets, "right") - 1, 0)
        # a sum would overflow where offsets are senseless
        inside = (offsets >= starts[at]) & (sizes <= ends[at] - offsets) & (sizes >= SMALLEST_RECORD)
        if queue.batch:
            inside &= (units["base_offset"] >= 0) & (units["batch_size"] > 0)
        first = 0 if queue.batch else queue.first_slot(number) + low
        for k in np.flatnonzero(inside).tolist():
            slot, count = first + k, 1
            if queue.batch:
                slot, count = int(units["base_offset"][k]), int(units["batch_size"][k])
            start = int(offsets[k])
            yield int(at[k]), Frame(start, start + int(sizes[k]), None, key, slot, count)
