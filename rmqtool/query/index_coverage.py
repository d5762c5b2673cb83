"""For which part of the log the index answers, and for which only the log itself can.

A broker puts keys into the index in the order of the log (`IndexService#buildIndex`), so that a file answers
for the physical offsets between the two in its header. What no file answers for has to be read.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from formats.index import FIRST_ITEM
from rmqtool.errors import RmqtoolError
from rmqtool.query.index_lookup import IndexReader, open_index
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.one import RecordReader

if TYPE_CHECKING:
    from rmqtool.store.files import StoreFile
    from rmqtool.store.index_geometry import IndexGeometry
    from rmqtool.store.layout import Store


@dataclass(frozen=True, slots=True)
class IndexFileView:
    """One file that answers: for records from `first_offset` up to `end_offset`; their store times (ms).

    The record at `first_offset` may have keys in the file before, that at `last_offset`, where the file is
    `full`, in the next one (`IndexService#putKey`).
    """

    file: StoreFile
    first_offset: int
    last_offset: int
    end_offset: int
    full: bool
    first_timestamp: int
    last_timestamp: int

    @property
    def range(self) -> tuple[int | bool, ...]:
        """All but the file."""
        return tuple(getattr(self, name) for name in self.__slots__ if name != "file")


@dataclass
class Coverage:
    """files: those that answer, in order. setbacks: path → why a file does not."""

    files: list[IndexFileView] = field(default_factory=list)
    setbacks: dict[str, str] = field(default_factory=dict)

    def uncovered(self, low: int, high: int) -> list[tuple[int, int]]:
        """Ranges [start, end) of [low, high) in which records begin for which no index answers.

        Each begins at `low`, or where or behind where the last record of a file begins. The record at the end
        of a file is among them where keys of it may be in a file that does not answer.
        """
        ranges: list[tuple[int, int]] = []
        at = start = low
        for one in sorted(self.files, key=lambda view: view.first_offset):
            if one.first_offset > at:
                _add(ranges, start, min(one.first_offset + 1, high))
            if one.end_offset >= at:
                at = one.end_offset
                start = one.last_offset if one.full else at
        _add(ranges, max(start, low), high)
        return ranges


def _add(ranges: list[tuple[int, int]], start: int, end: int) -> None:
    """One range more, joined with the one before where both have the same record."""
    if ranges and start < ranges[-1][1]:
        start = ranges.pop()[0]
    if start < end:
        ranges.append((start, end))


def coverage(store: Store, log_end: int, known: dict[int, IndexGeometry]) -> Coverage:
    """Looks at the header, the items and the records at both ends of every index file; at nothing else.

    log_end: physical offset behind the last record. known: see `index_lookup.open_index`.
    """
    found = Coverage()
    for file in store.index_files():
        try:
            with open_index(store, file, known) as reader:
                view = _view(store, file, reader, log_end)
        except RmqtoolError as error:
            view = str(error)
        if isinstance(view, str):
            found.setbacks[file.display_path] = view
        elif view is not None:
            found.files.append(view)
    return found


def _view(
    store: Store, file: StoreFile, reader: IndexReader | None, log_end: int
) -> IndexFileView | str | None:
    """What the file answers for; None for an empty one, or why it is not to be trusted."""
    if reader is None:
        return "its geometry is unknown" if file.size else None
    header = reader.header
    count = int(header.index_count)
    if count <= FIRST_ITEM and not int(header.end_physical_offset):
        return None
    if not FIRST_ITEM < count <= reader.items:
        return f"index_count {count} is not possible"
    low, high = int(header.begin_physical_offset), int(header.end_physical_offset)
    if not 0 <= low <= high:
        return f"its range of offsets {low} to {high} is not possible"
    if high >= log_end:
        return f"it ends at offset {high}, behind the end of the log {log_end}"
    last = reader.item(count - 1)
    if last is None or last.physical_offset != high:
        return "its last entry is not the one that the header names"
    first = reader.item(FIRST_ITEM)
    if first is None or first.physical_offset != low:
        return "its first entry is not the one that the header names"
    times = reader.begin_timestamp, int(header.end_timestamp)
    view = IndexFileView(file, low, high, high, count >= reader.items, *times)
    return _held_against_records(store, view)


def _held_against_records(store: Store, view: IndexFileView) -> IndexFileView | str:
    """The view up to behind its last record, or how the records at its ends, where they are left, differ."""
    low, high = view.first_offset, view.last_offset
    kept_from = store.segments.first_offset
    first = _record(store, low) if low >= kept_from else None
    if first is not None and first[Field.STORE_TIMESTAMP] != view.first_timestamp:
        return f"its begin_timestamp {view.first_timestamp} is not that of the record at {low}"
    if high < kept_from:
        return view
    last = _record(store, high)
    if last is None:
        return f"no record begins at offset {high}, where its last entry points"
    if last[Field.STORE_TIMESTAMP] != view.last_timestamp:
        return f"its end_timestamp {view.last_timestamp} is not that of the record at {high}"
    return replace(view, end_offset=high + last[Field.STORE_SIZE])


def _record(store: Store, physical_offset: int) -> list[int] | None:
    with ExitStack() as files:
        there = RecordReader(Check.FRAME).at(
            store.segments, physical_offset, lambda one: files.enter_context(one.open("pread"))
        )
    return None if there is None else there.row
