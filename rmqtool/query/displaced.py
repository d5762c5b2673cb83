"""Segments in which other records lie than consume queues say: another one lies in the place of theirs.

Such a segment is whole, and so is the log. A damaged queue file says the same of one queue, and a damaged
entry of one message: so of the queues that have entries there most must lead to what is no record of theirs.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING, Any

from rmqtool.errors import RmqtoolError
from rmqtool.query.locate import What, look_at
from rmqtool.query.lost_end import lost_end
from rmqtool.query.queue_ends import file_ends, units_from
from rmqtool.query.scope import Scope
from rmqtool.scan.fields import Field, Issue
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.store.coverage import Incomplete
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment, SegmentSet

Row = dict[str, Any]

_LARGEST = 64
"""queues that are asked about every segment, the largest: these have entries for most; where none has, others
are asked until one has"""
_QUEUES = 8
"""queues that are asked about a segment"""
_UNITS = 8
"""units of each that are followed"""


def lost_by_units(store: Store, wanted: MessageFilter | None = None) -> list[Row]:
    """Rows of `not_covered` for messages that queues know and the log does not have, where it looks whole."""
    return [*displaced(store, wanted), *lost_end(store, wanted)]


def displaced(store: Store, wanted: MessageFilter | None = None) -> Iterator[Row]:
    """A row for each segment that entries contradict, of those in which messages may be wanted.

    Nothing is said of a part of a log.
    """
    scope = None if wanted is None else Scope(store.segments, wanted)
    yield from _displaced(store, [one for one in store.segments if scope is None or scope.in_offsets(one)])


def displaced_at(store: Store, offsets: Iterable[int]) -> Iterator[Row]:
    """As `displaced`, of the segments in which these physical offsets lie."""
    found = {place[0].base: place[0] for one in offsets if (place := store.segments.locate(one))}
    yield from _displaced(store, [found[base] for base in sorted(found)])


def _displaced(store: Store, asked: Sequence[Segment]) -> Iterator[Row]:
    segments = store.segments
    if not segments.is_whole:
        return
    for segment, files in _by_segment(store, asked) if asked else ():
        known = [one for file in files if (one := _first_wrong(segments, segment, file)) is not None]
        wrong = [one for one in known if one >= 0]
        if 2 * len(wrong) > len(known):
            yield _row(segment, min(wrong), len(wrong))


def _by_segment(store: Store, asked: Iterable[Segment]) -> Iterator[tuple[Segment, list[StoreFile]]]:
    """Up to `_QUEUES` queue files with entries that may lead into each segment."""
    kinds = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
    queues = [queue.files for kind in kinds for queue in store.queues(kind)]
    queues.sort(key=lambda files: sum(one.disk_bytes for one in files))
    known = [_Span(queues.pop()) for _ in range(min(_LARGEST, len(queues)))]
    for one in asked:
        leading = (span.leading_into(one) for span in known)
        files = [*islice((file for file in leading if file is not None), _QUEUES)]
        while queues and not files:
            known.append(_Span(queues.pop()))
            if (file := known[-1].leading_into(one)) is not None:
                files.append(file)
        if files:
            yield one, files


class _Span:
    """Where the entries of a queue's files lead."""

    def __init__(self, files: Iterable[StoreFile]) -> None:
        self._files: list[StoreFile] = []
        self._lows: list[int] = []
        self._highs: list[int] = []
        for file in files:
            try:
                ends = file_ends(file)
            except RmqtoolError:
                continue  # who lists queues says so
            if ends.first is not None and ends.last is not None:
                self._files.append(file)
                self._lows.append(ends.first["physical_offset"])
                self._highs.append(ends.last["physical_offset"])

    def leading_into(self, segment: Segment) -> StoreFile | None:
        """The first file that may."""
        at = bisect_left(self._highs, segment.base)
        return self._files[at] if at < len(self._files) and self._lows[at] < segment.end else None


def _first_wrong(segments: SegmentSet, segment: Segment, file: StoreFile) -> int | None:
    """Physical offset of the first entry that leads to no record of its queue, if most do; -1 if they do not.

    None where none leads into the segment, or to damage.
    """
    wrong, right = [], 0
    try:
        for unit in units_from(file, segment.base, _UNITS):
            if not segment.base <= unit["physical_offset"] < segment.end:
                break
            found = _is_there(segments, file, unit)
            if found is False:
                wrong.append(unit["physical_offset"])
            right += bool(found)
    except RmqtoolError:
        return None  # what cannot be read says nothing; who reads it says so
    if len(wrong) > right:
        return wrong[0]
    return -1 if right else None


def _is_there(segments: SegmentSet, file: StoreFile, unit: dict[str, int]) -> bool | None:
    """Whether an entry leads to a record of its queue; None where none can be read."""
    place = look_at(segments, unit["physical_offset"])
    if place.what is What.INSIDE:
        return False
    if place.what is not What.RECORD or place.row is None or place.row[Field.ISSUES] & Issue.OFFSET:
        return None
    row = place.row
    if row[Field.STORE_SIZE] != unit["size"]:
        return False
    at = row[Field.TOPIC_POSITION] - row[Field.POSITION]
    topic = place.raw[at : at + row[Field.TOPIC_LENGTH]].decode("utf-8", "replace")
    light = (file.topic or "").startswith(LMQ_PREFIX)
    return light or (topic, row[Field.QUEUE_ID]) == (file.topic, file.queue_id)


def _row(segment: Segment, offset: int, queues: int) -> Row:
    many = "1 queue leads" if queues == 1 else f"{queues} queues lead"
    why = f"the entries of {many} to other records than lie here: the segment is not the one that they knew"
    place = {"path": segment.file.display_path, "position": offset - segment.base, "physical_offset": offset}
    return place | {"reason": Incomplete.DAMAGE.value, "error": why}
