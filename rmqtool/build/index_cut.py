"""Index files out of the keys of many parts of a log, each file by itself.

A file takes `maxIndexNum` - 1 keys, so running sums of the parts' key counts tell which keys are in which
file. It begins with the end of the file before it, which is the record of the key in front of its own first.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from formats.index import FIRST_ITEM
from rmqtool.broker.index_files import FileEnd, IndexFile
from rmqtool.build.spool import read_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.build.files import DerivedFiles
    from rmqtool.scan.kernel_types import Kernels


@dataclass(frozen=True)
class SpooledKeys:
    """What a part of a log has for the index, see `KeySpool`; path: of the file with its keys."""

    path: str
    keys: int
    first: int | None
    last: FileEnd


@dataclass(frozen=True)
class IndexShare:
    """One index file. ranges: (spool file, number of the first key, how many)."""

    path: str
    after: FileEnd
    ranges: tuple[tuple[str, int, int], ...]

    def build(self, rules: FileRules, files: DerivedFiles, kernels: Kernels) -> None:
        """Writes the file."""
        file = IndexFile(self.path, rules, files, kernels, self.after)
        for place, start, count in self.ranges:
            for rows in read_keys(place, start, count):
                owners = np.arange(len(rows), dtype=np.int32)
                hashes, offsets, times = (np.ascontiguousarray(rows[n]) for n in ("hash", "offset", "time"))
                file.put(hashes, owners, offsets, times)
        file.close()


def cut_index(
    parts: Sequence[SpooledKeys], rules: FileRules, next_name: Callable[[int], str]
) -> list[IndexShare]:
    """The files that `IndexFiles` would write of these parts, in the order of the log."""
    first = next((one.first for one in parts if one.first is not None), None)
    if first is None:
        return []
    sums = [0, *accumulate(one.keys for one in parts)]
    room = rules.index_items - FIRST_ITEM
    shares: list[IndexShare] = []
    for start in range(0, max(sums[-1], 1), room):
        time = first if not start else _record_of(parts, sums, start).timestamp
        after = _record_of(parts, sums, start - 1) if start else FileEnd()
        ranges = tuple(_ranges(parts, sums, start, min(start + room, sums[-1])))
        shares.append(IndexShare(f"index/{next_name(time)}", after, ranges))
    if sums[-1] and sums[-1] % room == 0:
        last = next(one.last for one in reversed(parts) if one.first is not None)
        end = _record_of(parts, sums, sums[-1] - 1)
        if last.physical_offset > end.physical_offset:
            shares.append(IndexShare(f"index/{next_name(last.timestamp)}", end, ()))
    return shares


def _ranges(
    parts: Sequence[SpooledKeys], sums: Sequence[int], start: int, end: int
) -> Iterator[tuple[str, int, int]]:
    for part, before in zip(parts, sums, strict=False):
        low, high = max(start, before), min(end, before + part.keys)
        if low < high:
            yield part.path, low - before, high - low


def _record_of(parts: Sequence[SpooledKeys], sums: Sequence[int], number: int) -> FileEnd:
    """The record of a key."""
    at = bisect_right(sums, number) - 1
    (row,) = next(read_keys(parts[at].path, number - sums[at], 1))
    return FileEnd(int(row["time"]), int(row["offset"]))
