"""Donors: where the log has a hole, the same range of a replica or of a copy of a segment, if it is valid."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import HEADERS
from formats.primitives import offset_of
from rmqtool.repair.content import FromFile, chunks_of
from rmqtool.repair.keep.overlay import Patch
from rmqtool.repair.keep.survey import intact
from rmqtool.repair.keep.torn import with_whole_properties
from rmqtool.scan.events import Blank, Records
from rmqtool.scan.fields import Field
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.cut import TruncatedSource
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rmqtool.repair.keep.logbytes import LogBytes
    from rmqtool.repair.keep.model import Hole
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import OpenMode
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store


_FIXED = offset_of(HEADERS[False, False], "body_length")
"""bytes"""
_START, _END = attrgetter("start"), attrgetter("end")
_OVERWRITTEN = 4
"""so many bytes at the end of a record, most of them other ones, were written over"""


@dataclass(frozen=True, slots=True)
class FromDonor:
    """A range of a segment of a donor."""

    file: StoreFile
    position: int
    size: int

    def read(self, position: int, length: int) -> bytes:
        """See `Content.read`."""
        with self.file.open("pread") as source:
            return source.window(self.position + position, length).tobytes()

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `Content.chunks`."""
        return chunks_of(self)


@dataclass(frozen=True, slots=True)
class DonorRange:
    """Bytes for a hole. records: in it."""

    hole: Hole
    patch: Patch
    records: int
    donor: str

    @property
    def start(self) -> int:
        """Physical offset of its first byte."""
        return self.hole.placed.base + self.patch.position

    @property
    def of_record(self) -> bool:
        """Whether it takes the place of a record whose properties may be torn."""
        return self.hole.before == self.hole.start


@dataclass(frozen=True, slots=True)
class DonorPart:
    """Physical offsets [start, end) that a file may give; base: that of its first byte."""

    file: StoreFile
    base: int
    start: int
    end: int


@dataclass(frozen=True)
class Donor:
    """Segments of another store, copies of some of this one, or parts of them.

    name: to show, that of the file when None. work: directory for what they give, where their files change
    before all of it is read.
    """

    name: str | None
    parts: Sequence[DonorPart]
    work: str | None = None

    def content(self, file: StoreFile, position: int, size: int) -> FromDonor | FromFile:
        """A range of one of its files."""
        found = FromDonor(file, position, size)
        if self.work is None:
            return found
        path = os.path.join(self.work, "donated")
        with open(path, "ab") as out:
            begin = out.tell()
            out.writelines(found.chunks())
        return FromFile(path, begin, size)


def of_store(store: Store) -> Donor:
    """A replica."""
    return Donor(
        str(store.given), [DonorPart(one.file, one.base, one.base, one.end) for one in store.segments]
    )


def of_copies(copies: Iterable[tuple[StoreFile, int]], work: str | None) -> Donor:
    """Files in the log's directories whose records state that they begin at a base. work: as in `Donor`."""
    return Donor(None, [DonorPart(file, base, base, base + file.size) for file, base in copies], work)


@dataclass(frozen=True)
class Donors:
    """Asked in their order."""

    donors: Sequence[Donor]
    kernels: Kernels
    mode: OpenMode

    def donated_ranges(
        self, holes: Sequence[Hole], log: LogBytes, given: Iterable[DonorRange] = ()
    ) -> list[DonorRange]:
        """What they have for these holes, by start; each is asked for what those in front of it lack.

        holes: by start. One with itself as the record in front is a record whose properties may be torn.
        given: what others have for them, by start.
        """
        found: list[DonorRange] = []
        left = {one.start: _Left(one) for one in holes}
        for one in given:
            if one.hole.start in left:
                left[one.hole.start].take(one)
        for donor in self.donors:
            for part in donor.parts:
                low = bisect_right(holes, part.start, key=_END)
                reached = holes[low : bisect_left(holes, part.end, key=_START)]
                wanting = [(one, left[one.start].within(part)) for one in reached]
                if not any(ranges for _, ranges in wanting):
                    continue
                with ZeroFilledSource(part.file.open(self.mode)) as source:
                    for hole, ranges in wanting:
                        for more in self._of(donor, part, source, hole, ranges, log) if ranges else ():
                            left[hole.start].take(more)
                            found.append(more)
        return sorted(found, key=_START)

    def _of(
        self,
        donor: Donor,
        part: DonorPart,
        source: ZeroFilledSource,
        hole: Hole,
        ranges: Iterable[tuple[int, int]],
        log: LogBytes,
    ) -> list[DonorRange]:
        """ranges: of the hole, inside of the part."""
        if not self._same_writes(source, part, hole, log):
            return []
        base = part.base
        found = [one for begin, end in ranges for one in self._valid(source, base, begin - base, end - base)]
        if hole.before == hole.start:  # a record
            found = [
                (begin, end, count)
                for begin, end, count in found
                if end - begin == hole.length
                and _is_better(source.window(begin, end - begin).tobytes(), base + begin, log)
            ]
        name = donor.name or part.file.display_path
        shift = base - hole.placed.base
        return [
            DonorRange(hole, Patch(begin + shift, donor.content(part.file, begin, end - begin)), count, name)
            for begin, end, count in found
        ]

    @staticmethod
    def _same_writes(source: ZeroFilledSource, part: DonorPart, hole: Hole, log: LogBytes) -> bool:
        """Whether the donor has the same record in front of the hole, behind it, or where it begins.

        The fixed fields tell, with the CRC of the body and the store time; what follows may be torn.
        """
        if hole.before is None or hole.before < part.start:
            return True
        places = [(hole.before, hole.start), (hole.start, hole.end)]
        if hole.behind is not None:
            places.append((hole.end, min(part.end, hole.placed.end)))
        for place, end in places:
            length = max(min(end - place, _FIXED), 0)
            theirs = source.window(place - part.base, length).tobytes()
            if any(theirs) and theirs == log.read(place, length):
                return True
        return False

    def _valid(
        self, source: ZeroFilledSource, base: int, start: int, stop: int
    ) -> Iterator[tuple[int, int, int]]:
        """Where records that are right follow each other, from `start` up to `stop`: begin, end, how many.

        The blank that ends a segment goes with those in front of it, and where there are none counts as one.
        """
        begin = end = start
        count = 0
        within = TruncatedSource(source, stop)  # or each hole would cost the rest of the segment
        for event in SegmentScan(within, base, start=start, kernels=self.kernels):
            if isinstance(event, Blank) and event.position == end == stop - event.stored_length:
                end, count = stop, max(count, 1)
            if not isinstance(event, Records):
                continue
            starts = event.rows[:, Field.POSITION]
            ends = starts + event.rows[:, Field.STORE_SIZE]
            good = intact(event.rows)
            starts, ends = starts[good], ends[good]
            apart = np.flatnonzero(starts[1:] != ends[:-1]) + 1
            for one, following in pairwise((0, *apart.tolist(), len(starts)) if len(starts) else ()):
                if starts[one] != end:
                    if count:
                        yield begin, end, count
                    begin, count = int(starts[one]), 0
                end, count = int(ends[following - 1]), count + following - one
        if count:
            yield begin, end, count


class _Left:
    """Ranges of a hole that nobody has given yet, by start."""

    def __init__(self, hole: Hole) -> None:
        self._ranges = [(hole.start, hole.end)]

    def _first(self, place: int) -> int:
        """Number of the first range that ends behind a place."""
        return bisect_right(self._ranges, place, key=itemgetter(1))

    def within(self, part: DonorPart) -> list[tuple[int, int]]:
        """What lies inside of the part."""
        first, last = self._first(part.start), bisect_left(self._ranges, part.end, key=itemgetter(0))
        return [(max(begin, part.start), min(end, part.end)) for begin, end in self._ranges[first:last]]

    def take(self, given: DonorRange) -> None:
        """A part of one of them."""
        first, end = self._first(given.start), given.start + given.patch.content.size
        begin, last = self._ranges[first]
        rest = (begin, given.start), (end, last)
        self._ranges[first : first + 1] = [one for one in rest if one[0] < one[1]]


def _is_better(record: bytes, place: int, log: LogBytes) -> bool:
    """Whether the record of a donor is whole where that of the log is torn, or has an end of other bytes.

    A few bits may be wrong on either side.
    """
    mine = log.read(place, len(record))
    if len(mine) < len(record) or with_whole_properties(record, trailer=False) is not None:
        return False
    if with_whole_properties(mine, trailer=False) is not None:
        return True
    differs = np.frombuffer(record, np.uint8) != np.frombuffer(mine, np.uint8)
    end = differs[int(np.argmax(differs)) :]
    return bool(differs.any()) and len(end) >= _OVERWRITTEN and 2 * int(end.sum()) > len(end)
