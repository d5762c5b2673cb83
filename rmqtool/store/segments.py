"""Commit log files as one address space: physical offset ↔ file and position.

Files may come from several roots (`MultiPathMappedFileQueue`), differ in size, leave gaps, overlap, be cut
short or exist twice. Nothing is assumed about a fixed file size: every file covers `[base, base + its own
length)`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from formats.commitlog import HEADERS, MESSAGE_MAGIC_CODES
from formats.primitives import offset_of
from rmqtool.errors import RmqtoolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rmqtool.store.access import OpenMode
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile

_RECORD_MAGICS = tuple(magic.to_bytes(4, "big", signed=True) for magic in MESSAGE_MAGIC_CODES)
_MAGIC = offset_of(HEADERS[False, False], "magic")
_PHYSICAL_OFFSET = offset_of(HEADERS[False, False], "physical_offset")
"""The same in all four layouts: hosts, whose width varies, come later."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One commit log (or DLedger data) file.

    base: physical offset of its first byte. size: its length in bytes as it lies there.
    base_from: `name`, `record` (the name is not a number, the first record tells) or `none` (0 was assumed).
    """

    file: StoreFile
    base: int
    size: int
    base_from: str = "name"

    @property
    def end(self) -> int:
        """Physical offset behind the last byte of the file."""
        return self.base + self.size

    def open(self, mode: OpenMode = "auto") -> ByteSource:
        """Opens the file, see `StoreFile.open`."""
        return self.file.open(mode)

    def covers(self, physical_offset: int) -> bool:
        """Whether the byte at `physical_offset` lies in this file."""
        return self.base <= physical_offset < self.end


@dataclass(frozen=True, slots=True)
class Hole:
    """Physical offsets `[start, end)` that no file covers; `before` and `after` are the neighbours."""

    start: int
    end: int
    before: Segment
    after: Segment


def segment_of(file: StoreFile) -> Segment:
    """Segment for a file; a name that is not a number is replaced by what the first record states."""
    if file.base_offset is not None:
        return Segment(file, file.base_offset, file.size)
    try:
        with file.open("pread") as source:
            head = source.window(0, _PHYSICAL_OFFSET + 8).tobytes()
    except RmqtoolError:
        return Segment(file, 0, file.size, "none")
    if len(head) == _PHYSICAL_OFFSET + 8 and head[_MAGIC : _MAGIC + 4] in _RECORD_MAGICS:
        base = int.from_bytes(head[_PHYSICAL_OFFSET : _PHYSICAL_OFFSET + 8], "big", signed=True)
        if base >= 0:
            return Segment(file, base, file.size, "record")
    return Segment(file, 0, file.size, "none")


class SegmentSet:
    """All segments of a log, in the order of their physical offsets (twins: by root, then path).

    Iterable, with `len()` and integer indexing.
    """

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._all = sorted(segments, key=lambda one: (one.base, one.file.root, one.file.path))
        self._data: dict[Segment, bool] = {}

    @classmethod
    def of_files(cls, files: Iterable[StoreFile]) -> SegmentSet:
        """Segments for commit log files."""
        return cls(segment_of(file) for file in files if file.regular)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._all)

    def __getitem__(self, index: int) -> Segment:
        return self._all[index]

    def __repr__(self) -> str:
        return f"SegmentSet({[(one.base, one.size) for one in self._all]})"

    @cached_property
    def _bases(self) -> list[int]:
        return [one.base for one in self._all]

    @cached_property
    def _reach(self) -> list[int]:
        """Greatest end among the segments up to each index: where a search backwards may stop."""
        reach: list[int] = []
        for one in self._all:
            reach.append(max(one.end, reach[-1]) if reach else one.end)
        return reach

    @cached_property
    def _longer(self) -> list[int]:
        """For each segment the last one before it that ends behind it, -1 where none does.

        One file that is as long as all the others must not make each search go through all of them.
        """
        longer: list[int] = []
        for index, one in enumerate(self._all):
            before = index - 1
            while before >= 0 and self._all[before].end <= one.end:
                before = longer[before]
            longer.append(before)
        return longer

    @property
    def first_offset(self) -> int:
        """Base of the first segment, -1 without segments (as `MappedFileQueue#getMinOffset`)."""
        return self._all[0].base if self._all else -1

    @property
    def end_offset(self) -> int:
        """Physical offset behind the last byte of any segment (valid or not), 0 without segments."""
        return self._reach[-1] if self._all else 0

    @property
    def is_whole(self) -> bool:
        """Whether these are all segments of a log, not a part that somebody was given."""
        return True

    @property
    def span(self) -> tuple[int, int]:
        """Physical offsets [start, end) that are read: of a whole log all that its files cover."""
        return 0, self.end_offset

    def locate_all(self, physical_offset: int) -> list[Segment]:
        """Every segment that covers the offset: more than one only for twins and overlapping files."""
        found: list[Segment] = []
        index = bisect_right(self._bases, physical_offset) - 1
        while index >= 0 and self._reach[index] > physical_offset:
            if self._all[index].covers(physical_offset):
                found.append(self._all[index])
                index -= 1
            else:
                index = self._longer[index]
        return found

    def locate(self, physical_offset: int) -> tuple[Segment, int] | None:
        """(segment, position in it) of a physical offset, None in a hole or outside.

        Among several candidates: the one with the greatest base, then one with data, then the longest, then
        the lowest root.
        """
        found = self.locate_all(physical_offset)
        if not found:
            return None
        best = found[0]
        if len(found) > 1:
            best = max(found, key=lambda one: (one.base, self.has_data(one), one.size, -one.file.root))
        return best, physical_offset - best.base

    def by_base(self, base: int) -> Segment | None:
        """The segment with this base offset, chosen among twins as `locate` does."""
        twins = [one for one in self._slice(base) if one.base == base]
        if len(twins) < 2:
            return twins[0] if twins else None
        return max(twins, key=lambda one: (self.has_data(one), one.size, -one.file.root))

    def _slice(self, base: int) -> Sequence[Segment]:
        end = bisect_right(self._bases, base)
        start = end
        while start > 0 and self._bases[start - 1] == base:
            start -= 1
        return self._all[start:end]

    def physical_offset(self, base: int, position: int) -> int:
        """Physical offset of the address form SEGMENT:POSITION.

        Raises `UsageError` when there is no such segment or the position lies outside of it.
        """
        segment = self.by_base(base)
        if segment is None:
            raise UsageError(f"there is no segment {base}")
        if not 0 <= position <= segment.size:
            raise UsageError(f"segment {base} has {segment.size} bytes, position {position} is not in it")
        return base + position

    def address(self, physical_offset: int) -> tuple[int, int] | None:
        """(segment base, position) of a physical offset, None where no file lies."""
        found = self.locate(physical_offset)
        return None if found is None else (found[0].base, found[1])

    def holes(self) -> list[Hole]:
        """Ranges between the first and the last byte that no file covers (missing or short files)."""
        holes: list[Hole] = []
        furthest: Segment | None = None
        for one in self._all:
            if furthest is not None and one.base > furthest.end:
                holes.append(Hole(furthest.end, one.base, furthest, one))
            if furthest is None or one.end >= furthest.end:
                furthest = one
        return holes

    def twins(self) -> list[tuple[Segment, ...]]:
        """Groups of segments with the same base offset (in two roots, or under padded and unpadded names)."""
        groups: dict[int, list[Segment]] = {}
        for one in self._all:
            groups.setdefault(one.base, []).append(one)
        return [tuple(group) for group in groups.values() if len(group) > 1]

    def overlaps(self) -> list[tuple[Segment, Segment]]:
        """Pairs of segments with different bases where the first reaches into the second."""
        pairs: list[tuple[Segment, Segment]] = []
        furthest: Segment | None = None
        for one in self._all:
            if furthest is not None and furthest.base < one.base < furthest.end and one.size:
                pairs.append((furthest, one))
            if furthest is None or one.end > furthest.end:
                furthest = one
        return pairs

    def has_data(self, segment: Segment) -> bool:
        """Whether a segment starts with anything but zeros, by its first 8 bytes (remembered).

        A file that cannot be read counts as having data: it must not be taken for a pre-allocated one.
        """
        if not segment.size:
            return False
        known = self._data.get(segment)
        if known is None:
            try:
                with segment.open("pread") as source:
                    known = bool(source.window(0, 8).any())
            except RmqtoolError:
                known = True
            self._data[segment] = known
        return known

    def last_with_data(self) -> Segment | None:
        """The last segment whose first bytes are not all zero: behind it lie only pre-allocated files."""
        return self._last_with_data

    @cached_property
    def _last_with_data(self) -> Segment | None:
        return next((one for one in reversed(self._all) if self.has_data(one)), None)

    def is_active(self, segment: Segment) -> bool:
        """Whether no later segment has data, so that a tail of zeros is normal in this one."""
        last = self.last_with_data()
        return last is None or segment.base >= last.base
