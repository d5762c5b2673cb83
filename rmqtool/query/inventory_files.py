"""Segments, queue files and index files of an inventory, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.errors import FormatError
from formats.index import Header
from formats.primitives import sizeof
from rmqtool.errors import RmqtoolError
from rmqtool.query.queue_ends import file_ends
from rmqtool.query.segment_ends import SegmentEnds, segment_ends
from rmqtool.store.coverage import unreadable
from rmqtool.store.geometry import index_geometry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.store.files import StoreFile
    from rmqtool.store.index_geometry import IndexGeometry
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

Row = dict[str, Any]

READ_THROUGH_BUDGET = 256 << 20
"""bytes of segments that are read through, the newest first; the others are looked at from both ends"""
_SOLVED_EACH = 8
"""so many index files are solved one by one; of more files one of each length is solved for all"""


def segment_rows(store: Store, lost: list[Row]) -> tuple[list[Row], Row]:
    """A row for each commit log file in the order of their offsets, and what holds for the log as a whole."""
    segments = store.segments
    exact = _read_through(store)
    rows = [_segment_row(store, one, exact=one in exact, lost=lost) for one in segments]
    for one, row in zip(segments, rows, strict=True):
        row["preallocated"] = row["content"] == "zero" and not segments.is_active(one)
    ends = [row["end_offset"] for row in rows if row["last_physical_offset"] is not None]
    firsts = [row["first_physical_offset"] for row in rows if row["first_physical_offset"] is not None]
    told = {
        "segments": len(rows),
        "min_offset": min(firsts, default=None),
        "end_offset": max(ends, default=None),
        "first_store_timestamp": _outer(min, rows, "first_store_timestamp"),
        "last_store_timestamp": _outer(max, rows, "last_store_timestamp"),
        "roots": sorted({row["root"] for row in rows}),
        "holes": [
            {"physical_offset": hole.start, "length": hole.end - hole.start} for hole in segments.holes()
        ],
        "twins": [[one.file.shown for one in group] for group in segments.twins()],
        "overlaps": [[one.file.shown, two.file.shown] for one, two in segments.overlaps()],
    }
    return rows, told


def _outer(choose: Any, rows: list[Row], name: str) -> int | None:
    values = [row[name] for row in rows if row[name] is not None]
    return choose(values) if values else None


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


def _segment_row(store: Store, segment: Segment, *, exact: bool, lost: list[Row]) -> Row:
    row: Row = {
        "type": "segment",
        "path": segment.file.shown,
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
    try:
        ends = segment_ends(segment, read_through=exact, active=store.segments.is_active(segment))
    except RmqtoolError as error:
        lost.append(unreadable(segment.file.shown, str(error)))
        return row | {"error": str(error)}
    return row | _ends(segment, ends)


def _ends(segment: Segment, ends: SegmentEnds) -> Row:
    told: Row = {"ending": ends.ending, "read_through": ends.read_through}
    told["content"] = "records"
    if ends.first is not None:
        told["first_physical_offset"] = segment.base + ends.first.position
        told["first_store_timestamp"] = ends.first.store_timestamp
    if ends.last is not None and ends.end is not None:
        told["last_physical_offset"] = segment.base + ends.last.position
        told["last_store_timestamp"] = ends.last.store_timestamp
        told["end_offset"] = segment.base + ends.end
    elif ends.first is None:
        names = {"zero": "zero", "blank": "blank", "end": "empty"}
        told["content"] = names.get(ends.ending, "no record found")
    return told


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
        row: Row = {"type": "index", "path": file.shown, "size": file.size, "disk_bytes": file.disk_bytes}
        try:
            row |= _header(file)
            row |= _geometry(_geometry_of(store, file, known if len(files) > _SOLVED_EACH else None))
        except RmqtoolError as error:
            lost.append(unreadable(file.shown, str(error)))
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
