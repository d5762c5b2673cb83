"""Whether queues or the index know more than the log holds: its end, or all of it, was lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from formats.index import FIRST_ITEM
from rmqtool.errors import RmqtoolError
from rmqtool.query.index_lookup import IndexReader
from rmqtool.query.queue_ends import file_ends
from rmqtool.query.scope import Scope
from rmqtool.scan.log_end import log_span, span_of
from rmqtool.store.coverage import Incomplete, unreadable
from rmqtool.store.growing import segments_now
from rmqtool.store.index_geometry import configured_geometry, try_geometry
from rmqtool.store.kinds import FileKind
from rmqtool.store.log_gone import witnesses_of_lost_log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.layout import Store

Row = dict[str, Any]


def log_gone(store: Store) -> list[Row]:
    """No row of `not_covered`, or the one for a log without a byte in a store that had messages.

    It may lie elsewhere (`storePathCommitLog`): what is said of messages without it is not an answer.
    """
    witnesses = witnesses_of_lost_log(store)
    if not witnesses:
        return []
    seen = ", ".join(witnesses)
    why = f"no segment, though the store had messages (seen in {seen}); --commitlog names other places"
    return [unreadable("commitlog", why)]


def lost_end(store: Store, wanted: MessageFilter | None = None) -> list[Row]:
    """No row of `not_covered`, or the one for messages behind the log's end that a queue or the index knows.

    Both are looked at before the log: a broker that runs writes the log first. wanted: none where the end
    of the log is outside of what is wanted. Nothing is said of a part of a log.
    """
    if not store.segments.is_whole:
        return []
    last = store.segments.last_with_data() or next(iter(store.segments), None)
    if last is None or (wanted is not None and not Scope(store.segments, wanted).may_hold(last)):
        return []
    end, path = _furthest(store)
    high = max(log_span(store)[1], last.base)
    asked = high if wanted is None or wanted.offset_to is None else wanted.offset_to - 1
    if end <= high or asked < high:
        return []
    if end <= span_of(segments_now(store))[1]:  # beside a writer a segment may have begun since the listing
        return []
    place = {"path": last.file.display_path, "position": high - last.base, "physical_offset": high}
    why = f"{path} leads to messages up to offset {end}: the end of the log is lost"
    return [place | {"length": end - high, "reason": Incomplete.DAMAGE.value, "error": why}]


def behind_end(store: Store, high: int | None = None) -> tuple[str, int, int] | None:
    """The index file that leads behind the end of the log, how far, and that end.

    The log is written first, so it was longer. high: where the log ends, the end of its last record by
    default, with which nothing is said of a log without records. Nothing is said of a part of a log.
    """
    # the index first: without one the end of the log, which may lie behind much damage, need not be found
    end, path = max(_of_index(store), default=(0, ""))
    if not store.segments.is_whole or not end:
        return None
    if high is None:
        first, high = log_span(store)
        if high <= first:
            return None
    return (path, end, high) if end > high else None


def _furthest(store: Store) -> tuple[int, str]:
    """Physical offset behind the last message of any queue or index file, and the file that says so."""
    found = [(0, ""), *_of_index(store)]
    for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
        for queue in store.queues(kind):
            for file in reversed(queue.files):
                try:
                    last = file_ends(file).last
                except RmqtoolError:
                    break  # what cannot be read leads nowhere; who lists queues says so
                if last is not None:
                    found.append((last["physical_offset"] + last["size"], file.display_path))
                    break
    return max(found)


def _of_index(store: Store) -> Iterator[tuple[int, str]]:
    """Of the last index file that holds items: behind the first byte of its last message.

    A header that says otherwise than the last item is damage to the index, and tells nothing of the log.
    A file of another length begins as the others do.
    """
    for file in reversed(list(store.index_files())):
        geometry = try_geometry(file, store.config)
        if geometry.slots is None and (usual := _usual(store)) is not None:
            geometry = replace(geometry, slots=usual[0], items=usual[1])
        if geometry.slots is None or file.size <= geometry.item_position(FIRST_ITEM):
            continue
        try:
            with file.open("pread") as source:
                reader = IndexReader(source, file.display_path, geometry)
                last = reader.item(reader.count - 1)
                if last is None or reader.count <= FIRST_ITEM:
                    continue
                if last.physical_offset == int(reader.header.end_physical_offset):
                    yield last.physical_offset + 1, file.display_path
                return
        except RmqtoolError:
            continue  # who reads the index says so


def _usual(store: Store) -> tuple[int | None, int | None] | None:
    """Slots and items of the other index files, or by the settings."""
    others = ((one.slots, one.items) for one in store.index_geometry.values() if one.slots is not None)
    return next(others, configured_geometry(store.config))
