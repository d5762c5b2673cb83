"""One pull of a broker, played through: which records it delivers, with which status and next offset.

`DefaultMessageStore#getMessage` with default settings, by the traits of a release.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from formats.consumequeue import PRE_BLANK_SIZE
from rmqtool.broker.queue_view import slots_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rmqtool.broker.queue_view import Units
    from rmqtool.broker.traits import Traits

    Passes = Callable[[int, int, int], bool]


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
_TOGETHER = 64
"""units that are looked at together"""


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


_LIMITS = PullLimits()


class ServedLog(Protocol):
    """What a pull asks of the log; `broker.log_view.LogView` says what each answers."""

    @property
    def low(self) -> int:
        """Lowest physical offset, -1 without files."""
        ...

    @property
    def high(self) -> int:
        """Physical offset behind the last record."""
        ...

    def holds(self, physical_offset: int, size: int) -> bool:
        """Whether so many bytes from there on lie in one file."""
        ...

    def file_behind(self, physical_offset: int) -> int:
        """Physical offset at which the next file begins."""
        ...


class ServedQueue(Protocol):
    """What a pull asks of a queue; `broker.queue_view.QueueView` says what each answers."""

    @property
    def log(self) -> ServedLog:
        """The log that units lead to."""
        ...

    @property
    def traits(self) -> Traits:
        """What the release does."""
        ...

    @property
    def width(self) -> int:
        """Bytes of a unit."""
        ...

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message that is served."""
        ...

    @property
    def max_offset(self) -> int:
        """Queue offset of the next message."""
        ...

    def slice_from(self, offset: int, most: int) -> tuple[int, Units] | None:
        """Up to `most` units of one file, and the queue offset of the first of them."""
        ...

    def next_file_offset(self, offset: int) -> int:
        """Queue offset at which the next file begins."""
        ...


@dataclass(frozen=True, slots=True)
class Delivered:
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


@dataclass(slots=True)
class Pull:
    """Answer to one pull."""

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    delivered: list[Delivered] = field(default_factory=list)
    skipped: int = 0
    """units that lead to no record, or are skipped with one that does, where the log reaches back so far"""
    first_skipped: int | None = None
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
    answer = Pull(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, view.min_offset, view.max_offset)
    low, high = answer.min_offset, answer.max_offset
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
        self.bytes = 0
        self.messages = 0
        self.removed_until: int | None = None
        self.damaged = False
        self.hot, self.high = limits.hot, view.log.high

    def run(self) -> None:
        """Fills the answer."""
        answer, view = self.answer, self.view
        reach = max(self.limits.filtered, self.count * view.width)
        found = view.slice_from(self.offset, reach // view.width + 1)
        if found is None:
            answer.status = GetMessageStatus.OFFSET_FOUND_NULL
            answer.next_begin_offset = view.next_file_offset(self.offset)
            return
        answer.status, answer.next_begin_offset = GetMessageStatus.NO_MATCHED_MESSAGE, self.offset
        for slot, unit in zip(slots_of(*found), _plain(found[1]), strict=True):
            if (slot - self.offset) * view.width >= reach or slot >= answer.max_offset:
                break
            physical_offset, size, tags_code, number = unit
            if self.is_full(physical_offset, size, number):
                break
            answer.next_begin_offset = slot + number
            answer.suggest_pulling_from_slave = self.high - physical_offset > self.hot
            self.take(slot, physical_offset, size, tags_code, number)

    def take(self, slot: int, physical_offset: int, size: int, tags_code: int, number: int) -> None:
        """Delivers the record of a unit, or notes why not."""
        log, answer = self.view.log, self.answer
        if self.removed_until is not None and physical_offset < self.removed_until:
            self.skip(slot)
            return
        if self.passes is not None and not self.passes(tags_code, physical_offset, size):
            return
        foreign = physical_offset == 0 < log.low
        if not log.holds(log.low if foreign else physical_offset, size):
            if not self.bytes:
                answer.status = GetMessageStatus.MESSAGE_WAS_REMOVING
            self.removed_until = log.file_behind(physical_offset)
            self.damaged = size != PRE_BLANK_SIZE and physical_offset >= log.low
            self.skip(slot)
            return
        self.bytes += size
        self.messages += number
        self.removed_until = None
        answer.status = GetMessageStatus.FOUND
        answer.delivered.append(Delivered(slot, physical_offset, size, number, tags_code, foreign))

    def skip(self, slot: int) -> None:
        """Counts a unit that is not delivered because of one whose record is gone and has not expired."""
        if self.damaged:
            if not self.answer.skipped:
                self.answer.first_skipped = slot
            self.answer.skipped += 1

    def is_full(self, physical_offset: int, size: int, number: int) -> bool:
        """`DefaultMessageStore#isTheBatchFull`."""
        if not self.bytes:
            return False
        traits = self.view.traits
        if self.messages + number > self.count if traits.pull_counts_batches else self.messages >= self.count:
            return True
        in_memory = self.high - physical_offset <= self.hot
        most_bytes, most_messages = self.limits.in_memory if in_memory else self.limits.on_disk
        too_long = max(self.bytes + size, self.bytes + 1) > _MAX_PULL_BYTES
        if traits.pull_counts_batches and too_long:
            return True
        return self.bytes + size > most_bytes or self.messages > most_messages - 1


def _plain(units: Units) -> Iterator[tuple[int, int, int, int]]:
    """(physical offset, size, tags code, messages) of each unit."""
    batches = "batch_size" in (units.dtype.names or ())
    for start in range(0, len(units), _TOGETHER):
        part = units[start : start + _TOGETHER]
        columns: list[list[Any]] = [part[name].tolist() for name in ("physical_offset", "size", "tags_code")]
        numbers = part["batch_size"].tolist() if batches else [1] * len(part)
        yield from zip(*columns, numbers, strict=True)
