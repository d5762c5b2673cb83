"""What the start does to the commit log, and what it does not notice in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.broker.record_check import ORDINARY_STOPS
from rmqtool.broker.traits import ReputStart
from rmqtool.recovery.consequences.consequence import Consequence, consequence
from rmqtool.recovery.existing import indexed_behind_end, known_behind_end, missing_files
from rmqtool.store.kinds import FileKind
from rmqtool.store.log_gone import witnesses_of_lost_log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.recovery.consequences.finding_context import FindingContext

_DIGITS = 20
_GREGORIAN = range(1970, 2300)
"""years that names of index files may begin with; the Thai calendar is 543 ahead"""


def cuts(scene: FindingContext) -> Iterator[Consequence]:
    """Where the log is cut, and what that costs."""
    start, loss = scene.start, scene.outcome.loss
    yield from _without_log(scene)
    if start.end is None:
        return
    stop, offset = start.loaded[start.end.file].path, start.end.offset
    if start.end.reason not in ORDINARY_STOPS:
        yield consequence("DR-LOG-CUT", stop, offset=offset, reason=start.end.reason.value)
    if loss is not None and loss.messages:
        yield consequence(
            "DR-MESSAGES-LOST",
            *(one.path for one in start.loaded[start.end.file :]),
            offset=offset,
            messages=loss.messages,
            bytes=loss.bytes,
            first_timestamp=loss.first_timestamp,
            last_timestamp=loss.last_timestamp,
        )
    yield from _deleted(scene, offset)


def _without_log(scene: FindingContext) -> Iterator[Consequence]:
    start = scene.start
    gone = [path for queue in start.queues.values() for path in queue.files.deleted]
    if start.plan is None or start.loaded:
        return
    if gone:
        yield consequence("DR-QUEUES-DESTROYED", *sorted(gone), count=len(gone))
        return
    if witnesses := witnesses_of_lost_log(start.store):
        yield consequence("DR-LOG-GONE", *witnesses, evidence=", ".join(witnesses))


def _deleted(scene: FindingContext, offset: int) -> Iterator[Consequence]:
    start, loss = scene.start, scene.outcome.loss
    ranges = loss.ranges if loss is not None else []
    gone = {one.path: one.base for one in start.loaded if one.path in start.log.deleted}
    full = [
        path
        for path, base in gone.items()
        if any(one.start < base + start.log.size and base < one.end for one in ranges)
    ]
    empty = [path for path in gone if path not in full]
    for code, paths in (("DR-SEGMENTS-DELETED", full), ("DR-LOOKAHEAD-DELETED", empty)):
        if paths:
            yield consequence(code, *paths, count=len(paths), offset=offset)


def unnoticed(scene: FindingContext) -> Iterator[Consequence]:
    """What lies in the log and is taken as it is."""
    start, witness = scene.start, scene.start.witness
    for first, end, beside in missing_files(start):
        yield consequence("DR-GAP", *beside, start=first, end=end)
    if (longer := indexed_behind_end(start, scene.outcome.loss)) is not None:
        path, offset, end = longer
        yield consequence("DR-END-LOST", path, offset=offset - 1, end=end)
    known = known_behind_end(start, scene.outcome.loss)
    if known is not None:
        end = start.log.max_offset
        yield consequence("DR-END-DOUBTED", "checkpoint", until=known, latest=witness.latest, end=end)
    for code, found in (
        ("DR-BAD-BODIES", witness.broken),
        ("DR-DISPLACED", witness.displaced),
        ("DR-TORN-PROPERTIES", witness.torn),
        ("DR-POISON-HALF", witness.poison),
    ):
        if found.count and found.first is not None:
            yield consequence(code, *_file_at(scene, found.first), count=found.count, offset=found.first)
    if scene.gaps:
        paths = sorted({path for path, _, _ in scene.gaps})
        length = sum(length for _, _, length in scene.gaps)
        yield consequence(
            "DR-UNREAD-DAMAGE", *paths, count=len(scene.gaps), bytes=length, offset=scene.gaps[0][1]
        )
    for one in scene.hidden_records:
        yield consequence(
            "DR-FILLER-HIDES", one.path, position=one.position, messages=one.messages, bytes=one.bytes
        )


def _file_at(scene: FindingContext, offset: int) -> list[str]:
    size = scene.start.log.size
    return [one.path for one in scene.start.loaded if one.base <= offset < one.base + size][:1]


def dispatching(scene: FindingContext) -> Iterator[Consequence]:
    """What is handed on during the start, and what is left out for good."""
    start = scene.start
    if start.dispatched:
        units = sum(queue.appended for queue in start.queues.values())
        yield consequence("DR-DISPATCHED", messages=start.dispatched, units=units)
    covered = start.dispatcher.covered
    if start.border and (covered is None or covered[0] > start.known):
        yield consequence("DR-BORDER-RECORD", *_file_at(scene, start.known), offset=start.known)
    if start.dispatcher.unlisted:
        yield consequence("DR-LMQ-SKIPPED", count=start.dispatcher.unlisted)
    for begin, end in scene.outcome.skipped:
        yield consequence("DR-SKIPPED", *_file_at(scene, begin), offset=begin, bytes=end - begin)
    if start.unwritable is not None:
        path = _file_at(scene, start.unwritable)
        yield consequence("DR-QUEUES-STOP", *path, offset=start.unwritable)
    end = start.log.max_offset
    ahead = start.reput is not None and start.reput.offset > end
    if ahead and start.traits.reput_start is ReputStart.QUEUES and start.reput is not None:
        yield consequence("DR-DISPATCH-AHEAD", offset=start.reput.offset, end=end)


def names(scene: FindingContext) -> Iterator[Consequence]:
    """Names and entries that a broker takes in its own way."""
    start = scene.start
    if start.plan is None:
        return
    empty = [path for path in start.log.deleted if path not in {one.path for one in start.loaded}]
    for queue in start.queues.values():
        empty += [path for path in queue.files.deleted if _size(scene, path) == 0]
    if empty:
        yield consequence("DR-EMPTY-FILE-DELETED", *sorted(empty), count=len(empty))
    for entry in start.listing.commit_log():
        if entry.file is None:
            yield consequence("DR-DIRECTORY-IGNORED", entry.path)
    loaded = [one.path for one in start.loaded]
    foreign = [path for path in loaded if not path.isascii()]
    short = [path for path in loaded if path not in foreign and len(path.rpartition("/")[2]) != _DIGITS]
    if short:
        yield consequence("DR-UNPADDED-NAME", *short, count=len(short))
    foreign += [
        one.display_path for one in scene.start.store.of_kind(FileKind.INDEX) if _is_other_year(one.name)
    ]
    if foreign:
        yield consequence("DR-LOCALE-NAMES", *foreign, count=len(foreign))


def _size(scene: FindingContext, path: str) -> int | None:
    file = scene.start.store.file(path)
    return None if file is None else file.size


def _is_other_year(name: str) -> bool:
    return not name.isascii() or (len(name) == 17 and name.isdecimal() and int(name[:4]) not in _GREGORIAN)
