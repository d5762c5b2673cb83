"""One pull of a broker, played through: which records it delivers, with which status and next offset.

`DefaultMessageStore#getMessage` with default settings, by the traits of a release.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache, partial
from itertools import accumulate, chain, count, islice, repeat
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

from formats.consumequeue import PRE_BLANK_SIZE, Unit
from formats.primitives import Flat
from rmqtool.broker.queue_bounds import LogStart, QueueBounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rmqtool.broker.queue_view import Units

    Columns = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    Passes = Callable[[int, int, int], bool]
    Looked = tuple[int, tuple[int, int, int], int]
    """queue offset, physical offset, size and tags code, and messages of a unit"""


class GetMessageStatus(StrEnum):
    """`GetMessageStatus`."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"


_MAX_PULL_BYTES = 128 << 20
_UNIT = Flat(Unit)
_TOGETHER = 256
"""units whose layout is kept, by their number"""


@dataclass(frozen=True, slots=True)
class PullLimits:
    """in_memory, on_disk: bytes and messages of one pull (`maxTransferBytesOnMessageInMemory` and its kin).

    memory_ratio: per cent of the machine's memory that counts as hot (`accessMessageInMemoryMaxRatio`).
    filtered: bytes of units that one pull looks at (`maxFilterMessageSize`).
    """

    in_memory: tuple[int, int] = (262_144, 32)
    on_disk: tuple[int, int] = (65_536, 8)
    memory_ratio: int = 40
    filtered: int = 16_000

    @property
    def hot(self) -> int:
        """Bytes at the end of the log that a broker takes to be in memory."""
        return physical_memory() * self.memory_ratio // 100

    @property
    def at_once(self) -> int:
        """Messages that a pull delivers without a look at each, at most."""
        most_bytes, most_messages = self.in_memory
        return max(most_messages, 0) if most_bytes <= _MAX_PULL_BYTES else 0


_LIMITS = PullLimits()


class ServedLog(LogStart, Protocol):
    """What a pull asks of the log; `broker.log_view.LogView` says what each answers."""

    @property
    def high(self) -> int:
        """Physical offset behind the last record."""
        ...

    def holds(self, physical_offset: int, size: int) -> bool:
        """Whether so many bytes from there on lie in one file."""
        ...

    def extent(self, physical_offset: int) -> tuple[int, int]:
        """Where the data of the file around a place begins and ends; twice 0 without one."""
        ...

    def file_behind(self, physical_offset: int) -> int:
        """Physical offset at which the next file begins."""
        ...


class ServedQueue(QueueBounds, Protocol):
    """What a pull asks of a queue; `broker.queue_view.QueueView` says what each answers."""

    @property
    def log(self) -> ServedLog:
        """The log that units lead to."""
        ...

    def slice_from(self, offset: int, most: int) -> tuple[int, Units] | None:
        """Up to `most` units of one file, and the queue offset of the first of them."""
        ...

    def plain_from(self, offset: int, most: int) -> bytes:
        """Bytes of the units of `slice_from`; none of a batch queue."""
        ...

    def next_file_offset(self, offset: int) -> int:
        """Queue offset at which the next file begins."""
        ...


class Delivered(NamedTuple):
    """One record of the answer: queue offset, size, messages and tags code from its unit.

    foreign: it is not that unit's. 4.x delivers bytes from the start of the oldest file for a unit with
    offset 0 that is no longer there.
    """

    queue_offset: int
    physical_offset: int
    size: int
    messages: int = 1
    tags_code: int = 0
    foreign: bool = False


_delivered: Callable[[tuple[Any, ...]], Delivered] = partial(tuple.__new__, Delivered)
"""as `Delivered._make`, in half the time"""


class Run(Sequence[Delivered]):
    """Neighbouring units of a plain queue whose records lie in one file of the log, as they are delivered.

    queue_offset: of the first. offsets, sizes, codes: physical offsets, bytes and tags codes of the records.
    base: where the file begins. end: behind the last of the records. size: bytes of all.
    """

    __slots__ = ("base", "codes", "end", "offsets", "queue_offset", "size", "sizes")

    def __init__(
        self,
        queue_offset: int,
        offsets: Sequence[int],
        sizes: Sequence[int],
        codes: Sequence[int],
        base: int,
        end: int,
        size: int,
    ) -> None:
        self.queue_offset, self.offsets, self.sizes, self.codes = queue_offset, offsets, sizes, codes
        self.base, self.end, self.size = base, end, size

    @property
    def places(self) -> list[tuple[int, int]]:
        """Physical offset and size of each record."""
        return list(zip(self.offsets, self.sizes, strict=True))

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, index: int) -> Delivered: ...

    @overload
    def __getitem__(self, index: slice) -> list[Delivered]: ...

    def __getitem__(self, index: int | slice) -> Delivered | list[Delivered]:
        return list(self)[index]

    def __iter__(self) -> Iterator[Delivered]:
        columns = count(self.queue_offset), self.offsets, self.sizes, repeat(1), self.codes
        return map(Delivered._make, zip(*columns, repeat(False)))


@dataclass(slots=True)
class Pull:
    """Answer to one pull."""

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    delivered: Sequence[Delivered] = ()
    skipped: int = 0
    """units that lead to no record, or are skipped with one that does, where the log reaches back so far"""
    first_skipped: int | None = None
    throws_at: int | None = None
    """queue offset of a unit with a size below zero: a broker's pull throws when it comes to it, each time"""
    suggest_pulling_from_slave: bool = False
    """the unit looked at last leads further back than what a broker takes to be in memory"""


@cache
def physical_memory() -> int:
    """Bytes of memory of this machine, by which a broker estimates what is hot."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def pull(
    view: ServedQueue, offset: int, count: int, passes: Passes | None = None, limits: PullLimits = _LIMITS
) -> Pull:
    """Plays one pull of at most `count` messages from `offset`.

    passes: the broker's filter: (tags code, physical offset, size) → delivered or not; None delivers all.
    """
    low, high = view.min_offset, view.max_offset
    if passes is None and low <= offset < high:
        run = _at_once(view, offset, min(count, high - offset), limits)
        if run is not None:
            return Pull(GetMessageStatus.FOUND, offset + len(run.offsets), low, high, run)
    answer = Pull(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, low, high)
    if high == 0:
        return answer
    if offset < low:
        answer.status, answer.next_begin_offset = GetMessageStatus.OFFSET_TOO_SMALL, low
    elif offset == high:
        answer.status, answer.next_begin_offset = GetMessageStatus.OFFSET_OVERFLOW_ONE, offset
    elif offset > high:
        answer.status = GetMessageStatus.OFFSET_OVERFLOW_BADLY
        answer.next_begin_offset = 0 if view.traits.overflow_to_zero and low == 0 else high
    else:
        _Scan(view, answer, offset, count, passes, limits).run()
    return answer


@lru_cache(maxsize=_TOGETHER)
def _units(number: int) -> Callable[[bytes | memoryview], tuple[int, ...]]:
    """Reads so many units: the fields of one behind those of the other."""
    return _UNIT.many(number).unpack


def columns_of(raw: bytes | memoryview) -> Columns:
    """Physical offsets, sizes and tags codes of units."""
    number = len(raw) // _UNIT.size
    if number > _TOGETHER:
        offsets, sizes, codes = zip(*_UNIT.iter_unpack(raw), strict=True)
        return offsets, sizes, codes
    fields = _units(number)(raw)
    return fields[::3], fields[1::3], fields[2::3]


def _at_once(view: ServedQueue, offset: int, most: int, limits: PullLimits) -> Run | None:
    """Delivers units that need no look at each; None where any does. most: what is asked for."""
    most = min(most, limits.at_once)
    raw = view.plain_from(offset, most) if most > 0 else b""
    if not raw:
        return None
    columns = columns_of(raw)
    begin, end = view.log.extent(columns[0][0])
    return hot_run(offset, columns, begin, end, view.log.high, limits)


def hot_run(offset: int, columns: Columns, begin: int, end: int, high: int, limits: PullLimits) -> Run | None:
    """Units that are delivered without a look at each: all hot, their records whole in one file.

    columns: physical offsets, sizes and tags codes of neighbouring units of a plain queue, the first at
    queue offset `offset`. begin, end: of the data in the file with the first record. high: end of the log.
    None where any is not so.
    """
    offsets, sizes, codes = columns
    most_bytes, _ = limits.in_memory
    size = sum(sizes)
    if size > most_bytes:
        until = max(bisect_right(list(accumulate(sizes)), most_bytes), 1)
        offsets, sizes, codes = offsets[:until], sizes[:until], codes[:until]
        size = sum(sizes)
    behind = max(map(add, offsets, sizes))
    whole = are_whole_and_hot(min(offsets), min(sizes), behind, begin, end, high, limits.hot)
    return Run(offset, offsets, sizes, codes, begin, behind, size) if whole else None


def are_whole_and_hot(
    lowest: int, least: int, behind: int, begin: int, end: int, high: int, hot: int
) -> bool:
    """Whether units need no look at each: all in one file, and in what a broker takes to be in memory.

    lowest, behind: where the first of their records begins and the last one ends. least: bytes of the
    smallest. begin, end, high: see `hot_run`. hot: see `PullLimits.hot`.
    """
    return begin <= lowest and behind <= end and least > 0 and high - lowest <= hot


class _Scan:
    """The loop over the units of one queue file."""

    def __init__(
        self,
        view: ServedQueue,
        answer: Pull,
        offset: int,
        count: int,
        passes: Passes | None,
        limits: PullLimits,
    ) -> None:
        self.view, self.answer, self.offset, self.count = view, answer, offset, count
        self.passes, self.limits = passes, limits
        self.removed_until: int | None = None
        self.damaged = False

    def run(self) -> None:
        """Fills the answer."""
        answer, view, offset, count = self.answer, self.view, self.offset, self.count
        answer.delivered = delivered = list[Delivered]()
        reach = max(self.limits.filtered, count * view.width)
        most, few = reach // view.width + 1, max(count, 0) + 1
        found = view.slice_from(offset, min(few, most))
        if found is None or not len(found[1]):
            answer.status = GetMessageStatus.OFFSET_FOUND_NULL
            answer.next_begin_offset = view.next_file_offset(offset)
            return
        answer.status = GetMessageStatus.NO_MATCHED_MESSAGE
        log, counts_batches = view.log, view.traits.pull_counts_batches
        low, high, hot, top = log.low, log.high, self.limits.hot, answer.max_offset
        behind, back, taken, messages = offset, 0, 0, 0
        begin = end = 0
        """of the file that has the record delivered last, 0 where each is to be looked for"""
        for slot, (physical_offset, size, tags_code), number in self.units(found, few, most):
            if (slot - offset) * view.width >= reach or slot >= top:
                break
            most_bytes, most_messages = (
                self.limits.in_memory if high - physical_offset <= hot else self.limits.on_disk
            )
            if taken and (  # `DefaultMessageStore#isTheBatchFull`
                messages + (number if counts_batches else 1) > count
                or messages >= most_messages
                or taken + size > most_bytes
                or (counts_batches and max(taken + size, taken + 1) > _MAX_PULL_BYTES)
            ):
                break
            behind, back = slot + number, high - physical_offset
            if not (begin <= physical_offset and 0 < size <= end - physical_offset):
                if not self.is_there(slot, physical_offset, size, tags_code, taken):
                    begin = end = 0
                    continue
                if self.passes is None:
                    begin, end = log.extent(physical_offset)
            taken += size
            messages += number
            foreign = physical_offset == 0 < low
            delivered.append(_delivered((slot, physical_offset, size, number, tags_code, foreign)))
        answer.next_begin_offset, answer.suggest_pulling_from_slave = behind, back > hot

    def units(self, found: tuple[int, Units], few: int, most: int) -> Iterator[Looked]:
        """The units of a slice of at most `few`, and behind them those of one of `most`."""
        return chain.from_iterable(self.slices(found, few, most))

    def slices(self, found: tuple[int, Units], few: int, most: int) -> Iterator[Iterable[Looked]]:
        """See `units`; the second is asked for when the first does not do."""
        yield _looked(*found)
        done = len(found[1])
        more = self.view.slice_from(self.offset, most) if done == few < most else None
        if more is not None:
            yield islice(_looked(*more), done, None)

    def is_there(self, slot: int, physical_offset: int, size: int, tags_code: int, taken: int) -> bool:
        """Whether the record of a unit is delivered; notes why not. taken: bytes in front of it."""
        log, answer = self.view.log, self.answer
        if self.removed_until is not None and physical_offset < self.removed_until:
            self.skip(slot)
            return False
        if self.passes is not None and not self.passes(tags_code, physical_offset, size):
            return False
        foreign = physical_offset == 0 < log.low
        if not log.holds(log.low if foreign else physical_offset, size):
            if size < 0 and answer.throws_at is None and log.extent(physical_offset)[1]:
                answer.throws_at = slot  # `DefaultMappedFile#selectMappedBuffer` sets it as a limit
            if not taken:
                answer.status = GetMessageStatus.MESSAGE_WAS_REMOVING
            self.removed_until = log.file_behind(physical_offset)
            filler = (physical_offset, size) == (0, PRE_BLANK_SIZE)  # `ConsumeQueue#fillPreBlank`
            self.damaged = not filler and physical_offset >= log.low
            self.skip(slot)
            return False
        self.removed_until = None
        answer.status = GetMessageStatus.FOUND
        return True

    def skip(self, slot: int) -> None:
        """Counts a unit that is not delivered because of one whose record is gone and has not expired."""
        if self.damaged:
            if not self.answer.skipped:
                self.answer.first_skipped = slot
            self.answer.skipped += 1


def _looked(first: int, units: Units) -> Iterable[Looked]:
    """Units of a slice that begins with queue offset `first`."""
    if "batch_size" not in (units.dtype.names or ()):
        return zip(count(first), _UNIT.iter_unpack(units.data), repeat(1))
    slots, *columns, numbers = (
        units[name].tolist() for name in ("base_offset", "physical_offset", "size", "tags_code", "batch_size")
    )
    return zip(slots, zip(*columns, strict=True), numbers, strict=True)
