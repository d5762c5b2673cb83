"""Segments, queue files and index files of an inventory, as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formats.errors import FormatError
from formats.index import Header
from formats.primitives import sizeof
from rmqtool.errors import RmqtoolError
from rmqtool.query.queue_ends import file_ends
from rmqtool.scan.segment_ends import SegmentEnds, segment_ends
from rmqtool.store.coverage import unreadable
from rmqtool.store.geometry import index_geometry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rmqtool.store.files import StoreFile
    from rmqtool.store.index_geometry import IndexGeometry
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment, SegmentSet

Row = dict[str, Any]

READ_THROUGH_BUDGET = 256 << 20
"""bytes of segments that are read through, the newest first; the others are looked at from both ends"""
_SOLVED_EACH = 8
"""so many index files are solved one by one; of more files one of each length is solved for all"""


_OFFSETS_AND_TIMES = (
    "first_physical_offset",
    "last_physical_offset",
    "first_store_timestamp",
    "last_store_timestamp",
)


@dataclass(frozen=True)
class LogSeen:
    """seen: each commit log file in the order of their offsets, with its ends or why they are not known."""

    segments: SegmentSet
    seen: list[tuple[Segment, SegmentEnds | str]]

    def row(self, one: tuple[Segment, SegmentEnds | str]) -> Row:
        """A file as a row."""
        row = _segment_row(*one)
        row["preallocated"] = row["content"] == "zero" and not self.segments.is_active(one[0])
        return row

    def skipped(self) -> int:
        """Files with records that were read at both ends only."""
        found = (ends for _, ends in self.seen if not isinstance(ends, str))
        return sum(not ends.read_through and _content(ends) == "records" for ends in found)

    def head(self) -> Row:
        """What holds for the log as a whole."""
        outer: dict[str, int] = {}
        for segment, ends in self.seen:
            for choose, name, value in _outermost(segment, ends):
                outer[name] = choose(outer.get(name, value), value)
        return {
            "segments": len(self.seen),
            "min_offset": outer.get("min_offset"),
            "end_offset": outer.get("end_offset"),
            "first_store_timestamp": outer.get("first_store_timestamp"),
            "last_store_timestamp": outer.get("last_store_timestamp"),
            "roots": sorted({segment.file.root for segment, _ in self.seen}),
            "holes": [
                {"physical_offset": hole.start, "length": hole.end - hole.start}
                for hole in self.segments.holes()
            ],
            "twins": [[one.file.display_path for one in group] for group in self.segments.twins()],
            "overlaps": [
                [one.file.display_path, two.file.display_path] for one, two in self.segments.overlaps()
            ],
        }


def look_at_log(store: Store, lost: list[Row], on_looked: Callable[[int], object]) -> LogSeen:
    """Looks at both ends of every commit log file. lost: gets a row for each that cannot be read.

    on_looked: called with how many were looked at.
    """
    segments = store.segments
    exact = _read_through(store)
    found = LogSeen(segments, [])
    for one in segments:
        try:
            active = segments.is_active(one)
            ends: SegmentEnds | str = segment_ends(one, read_through=one in exact, active=active)
        except RmqtoolError as error:
            ends = str(error)
            lost.append(unreadable(one.file.display_path, ends))
        found.seen.append((one, ends))
        on_looked(len(found.seen))
    return found


def _outermost(
    segment: Segment, ends: SegmentEnds | str
) -> Iterator[tuple[Callable[[int, int], int], str, int]]:
    if isinstance(ends, str):
        return
    if ends.first is not None:
        yield min, "min_offset", segment.base + ends.first.position
        yield min, "first_store_timestamp", ends.first.store_timestamp
    if ends.last is not None and ends.end is not None:
        yield max, "end_offset", segment.base + ends.end
        yield max, "last_store_timestamp", ends.last.store_timestamp


def segment_facts(segment: Segment, ends: SegmentEnds | str) -> Row:
    """What a commit log file adds to its row among all files."""
    if isinstance(ends, str) or _content(ends) != "records":
        return _NOTHING
    reported = _ends(segment, ends)
    return {name: reported.get(name) for name in _OFFSETS_AND_TIMES}


_NOTHING: Row = dict.fromkeys(_OFFSETS_AND_TIMES)


def _read_through(store: Store) -> set[Segment]:
    chosen: set[Segment] = set()
    left = READ_THROUGH_BUDGET
    for one in reversed(store.segments):
        if not store.segments.has_data(one):
            continue
        # Behind the data of the active segment lies a hole; all others are full.
        left -= min(one.size, one.file.disk_bytes) if store.segments.is_active(one) else one.size
        if left < 0:
            break
        chosen.add(one)
    return chosen


def _segment_row(segment: Segment, ends: SegmentEnds | str) -> Row:
    row: Row = {
        "type": "segment",
        "path": segment.file.display_path,
        "segment": segment.base,
        "size": segment.size,
        "disk_bytes": segment.file.disk_bytes,
        "root": segment.file.root,
        "base_from": segment.base_from,
        "first_physical_offset": None,
        "last_physical_offset": None,
        "end_offset": None,
        "first_store_timestamp": None,
        "last_store_timestamp": None,
        "content": "unreadable",
        "ending": None,
        "read_through": False,
    }
    return row | ({"error": ends} if isinstance(ends, str) else _ends(segment, ends))


def _ends(segment: Segment, ends: SegmentEnds) -> Row:
    reported: Row = {"ending": ends.ending, "read_through": ends.read_through, "content": _content(ends)}
    if ends.first is not None:
        reported["first_physical_offset"] = segment.base + ends.first.position
        reported["first_store_timestamp"] = ends.first.store_timestamp
    if ends.last is not None and ends.end is not None:
        reported["last_physical_offset"] = segment.base + ends.last.position
        reported["last_store_timestamp"] = ends.last.store_timestamp
        reported["end_offset"] = segment.base + ends.end
    return reported


def _content(ends: SegmentEnds) -> str:
    if ends.first is not None or (ends.last is not None and ends.end is not None):
        return "records"
    return {"zero": "zero", "blank": "blank", "end": "empty"}.get(ends.ending, "no record found")


def queue_file_facts(file: StoreFile) -> Row:
    """What a file of a plain or batch queue adds to its row."""
    ends = file_ends(file)
    return {
        "units": ends.units,
        "pre_blank": ends.pre_blank,
        "min_offset": ends.min_offset,
        "max_offset": ends.max_offset,
        "first_physical_offset": None if ends.first is None else ends.first["physical_offset"],
        "last_physical_offset": None if ends.last is None else ends.last["physical_offset"],
        "first_unit": ends.first,
        "last_unit": ends.last,
    }


def index_rows(store: Store, lost: list[Row]) -> list[Row]:
    """Header and geometry of each index file, in name order."""
    rows: list[Row] = []
    known: dict[int, IndexGeometry] = {}
    files = store.index_files()
    for file in files:
        row: Row = {
            "type": "index",
            "path": file.display_path,
            "size": file.size,
            "disk_bytes": file.disk_bytes,
        }
        try:
            row |= _header(file)
            row |= _geometry(_geometry_of(store, file, known if len(files) > _SOLVED_EACH else None))
        except RmqtoolError as error:
            lost.append(unreadable(file.display_path, str(error)))
            row["error"] = str(error)
        rows.append(row)
    return rows


def _geometry_of(store: Store, file: StoreFile, known: dict[int, IndexGeometry] | None) -> IndexGeometry:
    if known is None:
        return store.index_geometry[file.path]
    if file.size not in known:
        found = index_geometry(file, store.config)
        if found.slots is None:
            return found
        known[file.size] = found
    return known[file.size]


def _geometry(geometry: IndexGeometry) -> Row:
    return {
        "slots": geometry.slots,
        "items": geometry.items,
        "geometry_source": geometry.source.value,
        "geometry_detail": geometry.detail,
    }


def _header(file: StoreFile) -> Row:
    with file.open("pread") as source:
        raw = source.window(0, sizeof(Header)).tobytes()
    try:
        header: Mapping[str, Any] = Header.parse(raw)
    except FormatError as error:
        return {"header_error": str(error)}
    return {name: int(value) for name, value in header.items() if name[0] != "_"}
