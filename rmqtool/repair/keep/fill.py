"""What is written into a hole: restored records, tombstones, fillers, and the blank at a segment's end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from formats import properties as props
from formats.commitlog import END_FILE_MIN_BLANK_LENGTH, MAX_PROPERTIES_LENGTH, Blank, SysFlag, transaction_of
from formats.properties import decode_pairs, is_lossless
from rmqtool.broker.record_check import lacks_number
from rmqtool.errors import ExitCode, RmqtoolError
from rmqtool.repair.filler import SMALLEST_FILLER, filler, split
from rmqtool.repair.keep.headers import read_header
from rmqtool.repair.keep.hole_layout import HoleLayout, smallest_filler
from rmqtool.repair.keep.light import pairs_of, with_lists
from rmqtool.repair.keep.listed import Listed
from rmqtool.repair.keep.restore import padded, restored, sealed
from rmqtool.repair.keep.room import Missing
from rmqtool.repair.keep.slot_assignment import batch_count
from rmqtool.repair.keep.tiles import Tiles
from rmqtool.repair.keep.tombstone_template import TombstoneTemplates
from rmqtool.repair.keep.torn import with_whole_properties
from rmqtool.repair.place import Place
from rmqtool.repair.tombstone import smallest, tombstone
from rmqtool.repair.tombstone_forms import is_service
from rmqtool.scan.torn import is_torn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rmqtool.repair.keep.light import MultiDispatchPositions
    from rmqtool.repair.keep.light_gaps import Further
    from rmqtool.repair.keep.logbytes import LogBytes
    from rmqtool.repair.keep.model import Frame, Header, Hole, QueueKey

_DAY_MS = 86_400_000
_LARGEST = 4 << 20
_KEPT, _SMALL = 10_000, 4096
_FURTHER = 512
"""bytes for the names of further queues, where there is room for them"""


class Position(NamedTuple):
    """What a record has in its queue: positions [slot, slot + size)."""

    key: QueueKey
    slot: int
    size: int = 1


@dataclass(slots=True)
class Filled:
    """What a hole became."""

    tiles: Tiles
    tombstones: Listed = field(default_factory=Listed)
    restored: Listed = field(default_factory=Listed)
    fillers: int = 0
    unknown: int = 0
    """bytes replaced by fillers whose former content nothing identifies"""
    blank: int | None = None
    """physical offset of the blank that closes the segment"""
    unplaced: list[Frame] = field(default_factory=list)
    """whole messages that no queue takes, that fillers stand in for"""
    without: list[Missing] = field(default_factory=list)
    """queue positions whose place in the hole turned out to be too small"""
    lengthened: int | None = None
    """physical offset of an intact record that takes the first bytes of the hole as separators"""


class UnfillableError(RmqtoolError):
    """A hole too small for any record, with none in front of it that can take its bytes."""

    exit_code = ExitCode.DAMAGE

    def __init__(self, start: int, length: int) -> None:
        super().__init__(
            f"no record fits into the {length} bytes at offset {start} of the log, before an intact one: "
            "no broker reads on behind them; rmqtool salvage takes the intact records into a new store"
        )


@dataclass
class Filling:
    """Fills holes one by one, in order. keep_bodies: damaged bodies stay, with a CRC that fits.

    multi_dispatch: positions in further queues. batches: topics of batch queues.
    """

    log: LogBytes
    plan_id: str
    multi_dispatch: MultiDispatchPositions
    batches: frozenset[str] = frozenset()
    keep_bodies: bool = False
    _templates: TombstoneTemplates = field(init=False)

    def __post_init__(self) -> None:
        self._templates = TombstoneTemplates(self.plan_id)

    def fill(self, hole: Hole, frames: Sequence[Frame], layouts: Sequence[HoleLayout], end: int) -> Filled:
        """Tiles from the start of the hole to `end`, less bytes behind a blank."""
        made = Filled(Tiles(self._templates.make, _fallback(hole)))
        parts: list[Frame | HoleLayout] = [one for one in frames if one.key is not None and one.end <= end]
        parts = sorted([*parts, *layouts], key=lambda one: one.start)
        for number, part in enumerate(parts):
            if isinstance(part, HoleLayout):
                self._cell(made, hole, part)
                continue
            behind = parts[number + 1] if number + 1 < len(parts) else None
            extra = 0
            if isinstance(behind, HoleLayout) and _too_small(behind):
                extra, behind.start = behind.length, behind.end
            self._frame(made, hole, part, extra)
        made.tombstones.close()
        made.restored.close()
        return made

    def _frame(self, made: Filled, hole: Hole, frame: Frame, extra: int) -> None:
        if frame.key is None or frame.slot is None:
            return
        record = self._restored(frame, trailer=hole.trailer)
        if record is not None and extra:
            record = padded(record, extra)
        if record is not None:
            made.tiles.add(frame.start, len(record), partial(bytes, record))
            made.restored.add(frame.key, frame.slot, frame.count, frame.start, len(record))
            return
        position = Position(frame.key, frame.slot, frame.count)
        self._tombstone(made, hole, position, frame.start, frame.length + extra, frame.header)

    def _restored(self, frame: Frame, *, trailer: bool) -> bytes | None:
        header = frame.header
        if header is None or not header.framed or not (header.sound or self.keep_bodies):
            return None
        own = header.properties
        if own is None or frame.key is None:
            return None
        in_batches, torn = frame.key[0] in self.batches, is_torn(own)
        if torn and (in_batches or header.headless or is_service(frame.key[0])):
            return None
        if in_batches and batch_count(header, frame.slot) != frame.count:
            return None
        batch = bool(header.sys_flag & SysFlag.INNER_BATCH)
        if lacks_number(frame.key[0].encode(), props.decode(own), inner_batches=batch):
            return None
        record = self.log.read(frame.start, frame.length)
        if torn:
            record = with_whole_properties(record, trailer=trailer) or record
            own = record[len(record) - len(own) :]
        found = restored(frame, record, correct_crc=self.keep_bodies)
        if found is None:
            return None
        dispatched = _is_dispatched(header)
        made = self.multi_dispatch.relisted(*frame.key, frame.start, own, dispatched=dispatched)
        return sealed(found[: len(found) - len(own)] + made)

    def _tombstone(
        self,
        made: Filled,
        hole: Hole,
        position: Position,
        start: int,
        length: int,
        header: Header | None = None,
    ) -> None:
        key, slot, count = position
        place = _place(hole, key, slot, start, header)
        if key[0] in self.batches:
            place = replace(place, batch_size=count)
        kept, further = self._kept(place, length, header, crc_trailer=hole.trailer)
        by_place = header is None and not kept and not hole.trailer and place.batch_size is None
        if by_place:
            make, data = partial(self._templates.make, place, length), self._templates.make(place, length)
        else:
            make, data = self._first_fit(place, length, kept, further, trailer=hole.trailer)
        if data is None and header is not None:  # it may state hosts of another width than the record had
            self.multi_dispatch.give_back(start, further)
            self._tombstone(made, hole, position, start, length)
            return
        if further and not (data is not None and self._names(data, place, further)):
            self.multi_dispatch.give_back(start, further)
        if data is None:
            made.without.append(Missing(key, slot, slot + count - 1, start, start + length))
            self._fillers(made, hole, start, length)
            return
        if by_place:
            made.tiles.add_stamped(start, length, key, slot)
        else:
            # a few small ones stay in memory, others are made again when they are written
            few = len(made.tiles) < _KEPT and length < _SMALL
            made.tiles.add(start, length, partial(bytes, data) if few else _sure(make))
        made.tombstones.add(key, slot, count, start, length)

    def _first_fit(
        self,
        place: Place,
        length: int,
        kept: bytes | dict[str, str] | None,
        further: Sequence[Further],
        *,
        trailer: bool,
    ) -> tuple[partial[bytes | None], bytes | None]:
        """How the tombstone is made that names all further positions, else the first one that fits.

        The trailer is left out only where nothing fits with it: then the lost record had none,
        unlike those in front of it, which were written with other settings.
        """
        ways = [(kept, True)] * trailer + [(kept, False)]
        if further and isinstance(kept, bytes):
            pairs = pairs_of(further)
            ways += [(pairs, True)] * trailer + [(pairs, False)]
        ways += [(None, True)] * trailer + [(None, False)]
        first: tuple[partial[bytes | None], bytes | None] | None = None
        for own, ending in ways:
            make = partial(tombstone, place, length, self.plan_id, kept=own, crc_trailer=ending)
            data = make()
            if data is None:
                continue
            if not further or self._names(data, place, further):
                return make, data
            first = first or (make, data)
        return first or (make, None)

    def _names(self, data: bytes, place: Place, further: Sequence[Further]) -> bool:
        """Whether a tombstone names these positions in further queues."""
        header = read_header(data, place.physical_offset, len(data))
        own = None if header is None else header.properties
        return self.multi_dispatch.stated(place.queue_id, own) == [*further]

    def _kept(
        self, place: Place, length: int, header: Header | None, *, crc_trailer: bool
    ) -> tuple[bytes | dict[str, str] | None, list[Further]]:
        """Properties that the tombstone takes over, with the positions in further queues that are true."""
        raw = _readable(header)
        room = 0
        if self.multi_dispatch.active:
            room = length - smallest(place, crc_trailer=crc_trailer) - len(raw or b"")
        key = place.topic, place.queue_id
        found = self.multi_dispatch.of(
            *key,
            place.physical_offset,
            raw,
            min(room, MAX_PROPERTIES_LENGTH),
            dispatched=header is None or _is_dispatched(header),
        )
        if raw is None:
            return pairs_of(found) or None, found
        for name in (
            props.INNER_NUM,
            props.INNER_BASE,
            props.CRC32,
        ):  # the tombstone has a CRC of its own, or none
            raw = props.without(raw, name)
        if found == self.multi_dispatch.stated(key[1], raw):
            return raw, found
        return with_lists(raw, found), found

    def _cell(self, made: Filled, hole: Hole, layout: HoleLayout) -> None:
        if layout.length == 0:
            return
        made.unplaced += [one for one in layout.frames if one.unplaced][len(layout.placed) :]
        if not layout.placed:
            made.unknown += 0 if layout.frames or layout.closes else layout.length
            self._close_or_fill(made, hole, layout.start, layout.end, closes=layout.closes)
            return
        if len(layout.frames) == len(layout.placed) and not layout.closes:
            lengths = _extents(layout)
        else:
            extra = (
                min(layout.room // max(len(layout.placed), 1), _FURTHER) if self.multi_dispatch.active else 0
            )
            lengths = [one.need + extra for one in layout.placed]
        at = layout.start
        for one, length in zip(layout.placed, lengths, strict=True):
            rest = layout.end - at - length
            last = one is layout.placed[-1]
            takes_rest = rest < smallest_filler(hole) or length + rest <= _LARGEST
            taken = length + rest if last and not layout.closes and takes_rest else length
            self._tombstone(made, hole, Position(one.key, one.slot, one.positions), at, taken)
            at += taken
        if at < layout.end:
            self._close_or_fill(made, hole, at, layout.end, closes=layout.closes)

    def _close_or_fill(self, made: Filled, hole: Hole, start: int, end: int, *, closes: bool) -> None:
        length = end - start
        if closes and length >= END_FILE_MIN_BLANK_LENGTH:
            made.blank = start
            blank = Blank.build({"total_size": length})
            made.tiles.add(start, len(blank), partial(bytes, blank))
            return
        small = length < smallest_filler(hole)
        if not (small and start == hole.start and self._lengthened(made, hole, length)):
            self._fillers(made, hole, start, length)

    def _lengthened(self, made: Filled, hole: Hole, count: int) -> bool:
        """Whether the intact record in front takes the bytes."""
        if hole.before is None:
            return False
        record = self.log.read(hole.before, hole.start - hole.before)
        record = with_whole_properties(record, trailer=hole.trailer) or record
        longer = padded(record, count)
        if longer is None:
            return False
        made.lengthened = hole.before
        made.tiles.add(hole.before, len(longer), partial(bytes, longer))
        return True

    def _fillers(self, made: Filled, hole: Hole, start: int, length: int) -> None:
        """Without a trailer where there is no room for one, see `_first_fit`."""
        trailer = hole.trailer and length >= smallest_filler(hole)
        lengths = split(length, smallest=smallest_filler(hole) if trailer else SMALLEST_FILLER)
        if lengths is None:
            raise UnfillableError(start, length)
        for one in lengths:
            make = partial(filler, one, start, hole.timestamp, crc_trailer=trailer)
            made.tiles.add(start, one, _sure(make))
            made.fillers += 1
            start += one


def _sure(make: partial[bytes | None]) -> partial[bytes]:
    """The same record, which was made once before."""

    def made() -> bytes:
        data = make()
        if data is None:
            raise ValueError("the same arguments give the same record")
        return data

    return partial(made)


def _too_small(layout: HoleLayout) -> bool:
    return not layout.placed and not layout.closes and layout.length < smallest_filler(layout.hole)


def _extents(layout: HoleLayout) -> list[int]:
    """Lengths of the broken records that the layout consists of, each with the bytes up to the next one."""
    starts = [layout.start, *(one.start for one in layout.frames[1:]), layout.end]
    lengths = [high - low for low, high in pairwise(starts)]
    if any(length < one.need for length, one in zip(lengths, layout.placed, strict=True)):
        return [one.need for one in layout.placed]
    return lengths


def _fallback(hole: Hole) -> int:
    """Store time of what has none of its own."""
    return hole.timestamp or hole.behind or 0


def _is_dispatched(header: Header) -> bool:
    """Whether a record of its type of transaction has units."""
    return transaction_of(header.sys_flag) not in {"prepared", "rollback"}


def _place(hole: Hole, key: QueueKey, slot: int, start: int, header: Header | None) -> Place:
    fallback = _fallback(hole)
    if header is None or not header.own_place:
        return Place(key[0], key[1], slot, start, fallback)
    latest = hole.behind if hole.behind is not None else hole.timestamp + _DAY_MS
    sane = hole.timestamp - _DAY_MS <= header.store_timestamp <= latest
    return Place(
        key[0],
        key[1],
        slot,
        start,
        header.store_timestamp if sane else fallback,
        born_timestamp=header.born_timestamp if sane and header.born_timestamp > 0 else None,
        born_host=header.born_host,
        store_host=header.store_host,
        sys_flag=header.sys_flag & int(SysFlag.COMMIT) if header.framed else 0,
        prepared_transaction_offset=header.prepared_transaction_offset if header.framed else 0,
    )


def readable(frames: Iterable[Frame]) -> Iterator[tuple[Frame, bytes]]:
    """Broken records that have a place in a queue, with the properties of those whose can be read."""
    for frame in frames:
        own = _readable(frame.header) if frame.key is not None else None
        if own is not None:
            yield frame, own


def _readable(header: Header | None) -> bytes | None:
    """Properties that can be read without loss; with nothing odd among them they are taken as intact."""
    if header is None or not header.properties or not header.own_place:
        return None
    raw = header.properties
    if not is_lossless(raw) or any(byte < 0x20 and byte not in {1, 2} for byte in raw):
        return None
    if any(not one.is_pair for one in decode_pairs(raw)):
        return None
    return raw
