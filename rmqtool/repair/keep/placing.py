"""Which file's bytes belong at which physical offset: names may lie, records say where they were written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError, UsageError
from rmqtool.repair.places import new_segments_in
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, CrcState, Field
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import file_name
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rmqtool.repair.keep.overlay import Patch
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import OpenMode
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

_PROBED = 64
"""records at the begin of a file that say where it belongs"""

_MOST_PLACES = 4096
"""places that records of one file may state before the rare ones are forgotten"""

MOST_MISSING = 10_000
"""segments that are missing between others and made again; a name or a record can claim any number of them"""


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """One segment as it should be.

    file: where its bytes come from, None when no file has them. given: what donors have for its holes.
    foreign: all records of the file are at other places.
    """

    base: int
    size: int
    path: str
    file: StoreFile | None
    given: tuple[Patch, ...] = ()
    foreign: bool = False

    @property
    def end(self) -> int:
        """Physical offset behind its last byte."""
        return self.base + self.size

    @property
    def moved(self) -> bool:
        """Whether the bytes lie under another name now."""
        return self.file is not None and self.file.path != self.path


@dataclass
class Placing:
    """The segments of a log in order, without holes, and what else lies beside them.

    strays: files that are not part of the log, with the reason. ahead: a segment of zeros, made ahead and not
    yet used, which a broker removes by itself. copies: files with records of a segment that has another file,
    and its base.
    """

    size: int
    segments: list[PlacedSegment] = field(default_factory=list)
    strays: list[tuple[StoreFile, str]] = field(default_factory=list)
    ahead: StoreFile | None = None
    copies: list[tuple[StoreFile, int]] = field(default_factory=list)
    displaced: dict[int, StoreFile] = field(default_factory=dict)

    @property
    def beyond(self) -> dict[int, StoreFile | None]:
        """Where segments in front of the log and behind it begin that files are named after; without records.

        The file, None where its bytes belong elsewhere.
        """
        if not self.segments:
            return {}
        first, last = self.segments[0].base, self.segments[-1].base
        files = [file for file, _ in self.strays] + ([] if self.ahead is None else [self.ahead])
        moved = [one.file for one in self.segments if one.moved and one.file is not None]
        named: dict[int | None, StoreFile | None] = dict(self.displaced.items())
        named |= {file.base_offset: None for file in moved}
        named |= {file.base_offset: file for file in files}
        return {
            base: file
            for base, file in named.items()
            if base is not None and base % self.size == 0 and not first <= base <= last
        }

    @property
    def in_front(self) -> list[tuple[int, int]]:
        """Begin and end of those in front of the log."""
        first = self.segments[0].base if self.segments else 0
        return [(base, base + self.size) for base in sorted(self.beyond) if base < first]


@dataclass(frozen=True, slots=True)
class _Known:
    """counts: records by the base that they state. data: any byte that is not zero or cannot be read.

    spans: positions of the first and the last of these records.
    """

    file: StoreFile
    counts: dict[int, int]
    data: bool
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def stated(self) -> dict[int, int]:
        """Without what a single record states otherwise than more of them: its own offset is wrong."""
        most = max(self.counts.values(), default=0)
        return {base: count for base, count in self.counts.items() if count > 1 or most == 1}

    @property
    def latest(self) -> int | None:
        """The highest base that is stated, if all records of others lie behind: of an earlier use."""
        stated = self.stated
        if not stated:
            return None
        highest = max(stated)
        end = self.spans[highest][1]
        earlier = all(self.spans[base][0] > end for base in stated if base != highest)
        return highest if earlier else None

    @property
    def begun(self) -> int | None:
        """The base that a single record at the begin of the file states, in front of those of others."""
        return next(
            (base for base, span in self.spans.items() if span[0] == 0 and self.counts.get(base) == 1), None
        )

    def displaced(self, size: int, homes: Collection[int]) -> int | None:
        """The segment that has the places of all records, in a file with another name.

        homes: segments of which other files are; what is left of them does not count.
        """
        bases = {(shift + place) // size * size for shift, span in self.spans.items() for place in span}
        (base, *more) = bases.difference(homes) or (-1,)
        return base if base >= 0 and not more and base != self.file.base_offset else None

    def with_those_of(self, other: _Known) -> _Known:
        """What either saw of the same file."""
        most, spans = Counter(self.counts) | Counter(other.counts), dict(self.spans)
        for base, (first, last) in other.spans.items():
            low, high = spans.get(base, (first, last))
            spans[base] = min(first, low), max(last, high)
        return replace(self, counts=dict(most), spans=spans)

    def own(self, size: int) -> int:
        """Records at their own place under the name that the file has."""
        base = self.file.base_offset
        return 0 if base is None or base % size else self.counts.get(base, 0)


def place_segments(store: Store, kernels: Kernels, mode: OpenMode) -> Placing:
    """Finds the bytes of every segment from the first to the last that has records at their own place."""
    size = store.sizes[FileKind.COMMITLOG].value
    known = [_look(file, kernels, mode) for file in log_files(store)]
    placing = Placing(size)
    homes = _homes(known, size)
    if not homes:
        placing.strays = [(one.file, "no-records") for one in known]
        return placing
    first, last = min(homes), max(homes)
    if (last - first) // size > len(homes) + MOST_MISSING:
        raise UsageError(
            f"{store.given}: segments from {first} to {last} would be {(last - first) // size + 1:,}, "
            f"of which {len(homes):,} are there: move those out that belong to another log"
        )
    used, directory = {one.file for one in homes.values()}, new_segments_in(store)
    named, with_records = _named(known), {one.file for one in known if one.counts}
    displaced = {
        base: one.file
        for one in known
        if one.file not in used
        and one.file.base_offset not in range(first, last + size, size)
        and (base := one.displaced(size, homes)) is not None
    }
    for base in range(first, last + size, size):
        there = named.get(base) or displaced.pop(base, None)
        placing.segments.append(_placed(base, size, homes.get(base), there, used, with_records, directory))
    taken = {placed.file for placed in placing.segments} | {
        named.get(placed.base) for placed in placing.segments
    }
    for one in known:
        if one.file in taken:
            continue
        if one.file.base_offset == last + size and one.file.size == size and not one.data:
            placing.ahead = one.file
        else:
            placing.strays.append((one.file, _why(one, homes, size)))
    placing.displaced = displaced
    placing.copies = [
        (one.file, base)
        for one in known
        for base in one.counts
        if base in homes and homes[base].file is not one.file
    ]
    return placing


def holds_records(store: Store, kernels: Kernels, mode: OpenMode) -> bool:
    """Whether `place_segments` finds any, as soon as one file tells."""
    size = store.sizes[FileKind.COMMITLOG].value
    return any(_homes([_look(file, kernels, mode)], size) for file in log_files(store))


def holds_own_records(file: StoreFile, size: int, kernels: Kernels, mode: OpenMode) -> bool:
    """Whether a file has records at their own place; size: of segments."""
    return _look(file, kernels, mode).own(size) > 0


def _why(one: _Known, homes: dict[int, _Known], size: int) -> str:
    if one.file.base_offset is None:
        return "stray-file"
    if one.file.size == 0:
        return "empty-file"
    if not one.data:
        return "unused-segment"
    if any(base in homes for base in one.counts):
        return "copied-segment"
    return "wrong-name" if one.file.base_offset % size else "no-records"


def log_files(store: Store) -> list[StoreFile]:
    """Files in the log's directories, also those whose names are not numbers."""
    roots = {file.path.rpartition("/")[0] for file in store.of_kind(FileKind.COMMITLOG)} | {"commitlog"}
    unknown = [file for file in store.of_kind(FileKind.UNKNOWN) if file.path.rpartition("/")[0] in roots]
    return [file for file in (*store.of_kind(FileKind.COMMITLOG), *unknown) if file.regular]


def _homes(known: Sequence[_Known], size: int) -> dict[int, _Known]:
    """The best file for each base that has one.

    A file with a record at its own place belongs where its name says, whatever else it holds: the rest of a
    file that was used before states other places. A file under another's name takes a base that has none, or
    one of which the file there has fewer records and is what another base lacks (exchanged names).
    """
    homes: dict[int, _Known] = {}
    for one in known:
        base = one.file.base_offset
        if base is not None and one.own(size):
            rival = homes.get(base)
            if rival is None or _rank(one, size) > _rank(rival, size):
                homes[base] = one
    settled = {one.file for one in homes.values()}
    most: Counter[int] = Counter()
    for one in known:
        most |= Counter(one.counts)
    moved = [
        (_weight(one, base, most[base]), count, base, one)
        for one in known
        if one.file not in settled
        for base, count in one.stated.items()
        if base >= 0 and base % size == 0
    ]
    for _, count, base, one in sorted(moved, key=lambda found: -found[0]):
        there = homes.get(base)
        if one.file in settled:
            continue
        if there is not None and count > there.own(size) > 0:
            lacking = [
                (n, other) for other, n in there.stated.items() if other not in homes and other % size == 0
            ]
            if not lacking or max(lacking)[1] < 0:
                continue
            homes[max(lacking)[1]] = there
        elif there is not None:
            continue
        homes[base] = one
        settled.add(one.file)
    for one in known:
        # its only record goes on with the log, the rest is of an earlier use that other files have
        base = one.begun
        if base is not None and one.file not in settled and base not in homes and base - size in homes:
            homes[base] = one
    return homes


def _weight(one: _Known, base: int, most: int) -> int:
    """Records that say that a file belongs at a base; most: records of one file that say so.

    Those that are left of an earlier use of the file count for its latest one.
    """
    count = one.counts[base]
    return sum(one.stated.values()) if base == one.latest and count == most else count


def _rank(one: _Known, size: int) -> tuple[bool, bool, int, int]:
    padded = one.file.name == file_name(one.file.base_offset or 0)
    return one.file.size == size, padded, one.file.size, -one.file.root


def _placed(
    base: int,
    size: int,
    home: _Known | None,
    there: StoreFile | None,
    used: set[StoreFile],
    with_records: set[StoreFile],
    directory: str,
) -> PlacedSegment:
    """there: the file with the name of the segment. with_records: files that hold whole records.

    directory: of segments that get another file.
    """
    if home is None:
        # its bytes are not records at their own place; what may be read from them is decided by the survey
        file = there if there is not None and there not in used and there.size else None
        own = there is not None and there.base_offset == base
        path = there.path if there is not None and own else f"{directory}/{file_name(base)}"
        foreign = file is not None and file in with_records
        return PlacedSegment(base, size, path, file, foreign=foreign)
    own = home.file.base_offset == base and home.file.name == file_name(base)
    path = home.file.path if own else f"{directory}/{file_name(base)}"
    return PlacedSegment(base, size, path, home.file)


def _named(known: list[_Known]) -> dict[int, StoreFile]:
    """The first file with the whole name of each segment."""
    found: dict[int, StoreFile] = {}
    for one in known:
        base = one.file.base_offset
        if base is not None and one.file.name == file_name(base):
            found.setdefault(base, one.file)
    return found


def _look(file: StoreFile, kernels: Kernels, mode: OpenMode) -> _Known:
    """Where whole records of a file say that its first byte is: the first where these agree, else all."""
    if not file.size:
        return _Known(file, {}, False)
    base = file.base_offset or 0
    try:
        with ZeroFilledSource(file.open(mode), file.size) as source:
            known = _probe(file, source, base, kernels)
            if known.counts and base not in known.counts:
                # a blank that lies is passed over only where the records behind it are at their own place
                for stated in {max(known.counts), max(known.counts, key=known.counts.__getitem__)}:
                    known = known.with_those_of(_probe(file, source, stated, kernels))
            return known
    except RmqtoolError:
        return _Known(file, {}, True)


def _probe(file: StoreFile, source: ZeroFilledSource, base: int, kernels: Kernels) -> _Known:
    """See `_look`; base: where the file is taken to begin."""
    shifts: Counter[int] = Counter()
    spans: dict[int, tuple[int, int]] = {}
    seen = 0
    scan = SegmentScan(
        source,
        base,
        checks=Check.CRC,
        active=True,
        keep_stale=True,
        past_blanks=True,
        batch_rows=_PROBED,
        kernels=kernels,
    )
    data = scan.first_nonzero(0) < file.size or bool(source.unreadable)
    for event in scan if data else ():
        if isinstance(event, Records):
            good = event.rows[event.rows[:, Field.CRC_STATE] != CrcState.BAD]
            positions = good[:, Field.POSITION]
            stated = (good[:, Field.STORED_PHYSICAL_OFFSET] - positions).tolist()
            shifts.update(stated)
            for one, position in zip(stated, positions.tolist(), strict=True):
                spans[one] = spans.get(one, (position, position))[0], position
            seen += len(good)
            if shifts[base] == seen >= _PROBED:
                break
            if len(shifts) > _MOST_PLACES:
                own = shifts[base]
                shifts = Counter(dict(shifts.most_common(_PROBED)))
                shifts[base] = own
                spans = {one: span for one, span in spans.items() if one in shifts}
    return _Known(file, {one: count for one, count in shifts.items() if count}, data, spans)
