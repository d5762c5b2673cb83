"""What an answer does not cover: the rows of `not_covered`, of one shape in every summary.

A row is a range in the order in which files are read. `path` is where it begins; `position` and `length` its
bytes (left out for a directory that could not be listed), in the commit log `physical_offset` too. A range
that goes on through further files counts them in `files` and names the last of them in `last_path`; `length`
is the sum. `reason` is one of `Incomplete`; `error` has the system's words. Records that are listed though
something is wrong with them have `records`, how many they are, and a `cause` (`doubts.Doubt`).
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rmqtool.store.doubts import joined
from rmqtool.store.kinds import ROOT_FILES, TOP_DIRECTORIES, FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment, SegmentSet

Row = dict[str, Any]


class Incomplete(StrEnum):
    """Why an answer covers less than what was asked for; what outweighs the others stands first."""

    INTERRUPTED = "interrupted"
    UNREADABLE = "unreadable"
    DAMAGE = "damage"
    BUDGET = "budget"
    LIMIT = "limit"


def reason_of(not_covered: Iterable[Row]) -> Incomplete | None:
    """The `incomplete_reason` of a summary with these rows, None when it is complete."""
    given = {row["reason"] for row in not_covered}
    return next((one for one in Incomplete if one in given), None)


def each_once(rows: Iterable[Row]) -> list[Row]:
    """Rows that several readers found, in the order of the first of each."""
    return list({json.dumps(row, sort_keys=True): row for row in rows}.values())


def unreadable(path: str, error: str, position: int | None = None, length: int | None = None) -> Row:
    """A path, or bytes of it, that could not be listed, read or decoded."""
    row: Row = {"path": path}
    if position is not None and length is not None:
        row |= {"position": position, "length": length}
    return row | {"reason": Incomplete.UNREADABLE.value, "error": error}


def unopened(file: StoreFile) -> Row | None:
    """The row of an entry that is never opened (FIFO, socket, device, dead link), None for a file."""
    if file.regular or os.path.isdir(file.location):  # a link in a circle hides no file
        return None
    return unreadable(file.display_path, file.note or "not a regular file")


def unopened_entries(store: Store) -> Iterator[StoreFile]:
    """Entries that are never opened in the places of a store's own files."""
    further = {str(root) for root in store.roots[1:]}
    for file in store.of_kind(FileKind.UNKNOWN):
        top = file.path.partition("/")[0]
        own = top in TOP_DIRECTORIES or top in ROOT_FILES or top.startswith("dledger-")
        if (own or os.path.dirname(file.location) in further) and unopened(file) is not None:
            yield file


def dead_links(store: Store) -> Iterator[tuple[StoreFile, str]]:
    """Links in the places of a store's own files that lead nowhere, and what they name."""
    for file in unopened_entries(store):
        if os.path.islink(file.location):
            yield file, os.readlink(file.location)


def rest_of_log(
    segments: Sequence[Segment], start: int, reason: Incomplete, *, end: int | None = None
) -> list[Row]:
    """What lies from physical offset `start` on (to `end`) in these segments: no row, or one."""
    parts: list[tuple[Segment, int, int]] = []
    for one in segments:
        low, high = max(start, one.base), one.end if end is None else min(end, one.end)
        if low < high:
            parts.append((one, low, high))
    if not parts:
        return []
    first, low, _ = parts[0]
    row: Row = {"path": first.file.display_path, "position": low - first.base, "physical_offset": low}
    return [_ranged(row, [high - low for _, low, high in parts], parts[-1][0].file, reason)]


def holes_in(segments: SegmentSet, ranges: Sequence[tuple[int, int]]) -> list[Row]:
    """A row for each missing part of a log that lies in one of the ranges, which are in order."""
    ends = [end for _, end in ranges]
    rows: list[Row] = []
    for hole in segments.holes():
        for low, high in ranges[bisect_right(ends, hole.start) :]:
            if low >= hole.end:
                break
            start, end = max(low, hole.start), min(high, hole.end)
            place = {"path": "commitlog", "physical_offset": start, "length": end - start}
            rows.append(place | {"reason": Incomplete.DAMAGE.value})
    return rows


def rest_of_files(files: Sequence[StoreFile], position: int, reason: Incomplete) -> list[Row]:
    """What lies from `position` of the first of `files` on: no row, or one."""
    if not files:
        return []
    lengths = [files[0].size - position, *(one.size for one in files[1:])]
    return [_ranged({"path": files[0].display_path, "position": position}, lengths, files[-1], reason)]


def _ranged(row: Row, lengths: Sequence[int], last: StoreFile, reason: Incomplete) -> Row:
    row |= {"length": sum(lengths), "reason": reason.value}
    return row if len(lengths) == 1 else row | {"files": len(lengths), "last_path": last.display_path}


def coverage(not_covered: Sequence[Row]) -> Row:
    """`complete`, and when false why and what was not covered: the end of every summary."""
    reason = reason_of(not_covered)
    if reason is None:
        return {"complete": True}
    return {"complete": False, "incomplete_reason": reason.value, "not_covered": joined(not_covered)}
