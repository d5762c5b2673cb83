"""What a survey of a log tells: runs of intact records by queue, and ranges that are not intact records."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from rmqtool.scan.events import TailContent
from rmqtool.scan.multi import LMQ_PREFIX

if TYPE_CHECKING:
    from rmqtool.repair.keep.placing import PlacedSegment

QueueKey = tuple[str, int]
"""topic and queue number"""
Position = tuple[QueueKey, int]
"""a queue and a queue offset"""

UNUSED = f"tail-{TailContent.ZERO.value}"
"""reason of a hole that is the unused rest of the last segment"""


@dataclass(slots=True)
class Run:
    """Records of one queue with consecutive queue offsets, no other record of that queue between them.

    In a batch queue a record takes as many queue offsets as it has messages.

    first, last: queue offsets. start, first_end: physical offsets of the first record. last_start, end:
    of the last one. Of the inside of another run they are bounds, and first_end is -1.
    """

    key: QueueKey
    first: int
    last: int
    start: int
    last_start: int
    end: int
    first_end: int = -1

    @property
    def count(self) -> int:
        """Queue offsets: records, but in a batch queue."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Header:
    """Fixed fields of what may be a record, and as much of the rest as can be read.

    framed: its lengths add up. sound: its body has the CRC that it states. own_place: the stored physical
    offset is where it lies. topic, properties: raw bytes; None where they cannot be known. headless: size and
    magic are not those that lie there, but those with which all the rest is right.
    """

    size: int
    magic: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    sys_flag: int
    born_timestamp: int
    store_timestamp: int
    born_host: tuple[bytes, int]
    store_host: tuple[bytes, int]
    reconsume_times: int
    prepared_transaction_offset: int
    topic: bytes | None
    properties: bytes | None
    framed: bool
    sound: bool
    own_place: bool
    headless: bool = False

    @property
    def nameless(self) -> bool:
        """Whether it is right but for a topic that no queue has."""
        return self.framed and self.sound and self.own_place and text_of(self.topic) is None


class Trust(IntEnum):
    """How a unit is known: by neighbours, by nothing for or against, by its queue's name alone, or not."""

    PROVEN = 0
    OPEN = 1
    ALONE = 2
    REFUTED = 3


@dataclass(slots=True)
class Frame:
    """A range that held, or may have held, one record. slot: which place in which queue it has to fill."""

    start: int
    end: int
    header: Header | None = None
    key: QueueKey | None = None
    slot: int | None = None
    count: int = 1
    """positions from `slot` on, more than one in batch queues only"""
    trust: Trust = Trust.OPEN
    """of a frame that a unit tells"""
    suspect: bool = False
    """a whole record that is out of place, not a broken one"""
    further: bool = False
    """a unit of a further queue tells it, none of its own queue"""
    number: int | None = None
    """queue id of what was there, as further queues tell that take the number of their records"""
    moved: bool = False
    """a record that states another place: it may lie over any others that were here"""

    @property
    def length(self) -> int:
        """Bytes."""
        return self.end - self.start

    @property
    def unplaced(self) -> bool:
        """Whether it is a whole message that no queue takes: by its topic, or as it is out of place."""
        header = self.header
        whole = header is not None and (header.nameless or (self.suspect and header.framed and header.sound))
        return whole and self.key is None


@dataclass(slots=True)
class Hole:
    """Physical offsets [start, end) of one segment without an intact record.

    to_end: it reaches the end of its segment. before: start of the intact record in front of it, in the same
    segment. timestamp: store time of the last intact record before it. behind: the highest of the next ones
    after it, None where none follow. trailer: that record ends in a
    `__CRC32#` property.
    """

    placed: PlacedSegment
    start: int
    end: int
    before: int | None = None
    timestamp: int = 0
    behind: int | None = None
    trailer: bool = False
    frames: list[Frame] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)

    @property
    def length(self) -> int:
        """Bytes."""
        return self.end - self.start

    @property
    def to_end(self) -> bool:
        """Whether the segment ends with it."""
        return self.end == self.placed.end


@dataclass(slots=True)
class Blanked:
    """A filler with intact records behind it, from the physical offset `start` on to the end of its segment.

    usual: store time of records in front of it. later, older: records up to the next such filler by that
    time. open: holes behind which no intact record was met. The rest as in `Survey`, in front of it.
    """

    placed: PlacedSegment
    start: int
    usual: int
    last_start: int
    last_timestamp: int
    highest_timestamp: int
    data_end: int
    open: tuple[Hole, ...]
    later: int = 0
    older: int = 0


@dataclass(frozen=True, slots=True)
class Torn:
    """A record at a physical offset with the properties that are whole, of the same length."""

    placed: PlacedSegment
    start: int
    key: QueueKey
    slot: int
    record: bytes


@dataclass
class Survey:
    """All of a log. holes: by start. data_end: behind the last record at its own place.

    stale_from: where the gap of the last segment begins behind which the scan finds an earlier life of it.
    fillers: the position where the filler of a segment begins, by base. doubts: those with records behind
    them, in order. torn: records whose body is right and some of whose properties are not. batches: topics of
    batch queues. in_front: of a filler, store time of the last record in front of it, and whether it has a
    trailer. light: positions of records in queues that are not their own (multi-dispatch). uncounted: of
    whole records that state a position in such a queue and get no unit, by physical offset.
    """

    segments: list[PlacedSegment]
    runs: dict[QueueKey, list[Run]] = field(default_factory=dict)
    holes: list[Hole] = field(default_factory=list)
    data_end: int = 0
    stale_from: int | None = None
    messages: int = 0
    last_timestamp: int = 0
    highest_timestamp: int = 0
    last_start: int = 0
    fillers: dict[int, int] = field(default_factory=dict)
    doubts: list[Blanked] = field(default_factory=list)
    torn: list[Torn] = field(default_factory=list)
    light: dict[QueueKey, list[Run]] = field(default_factory=dict)
    uncounted: dict[QueueKey, list[tuple[int, int]]] = field(default_factory=dict)
    batches: frozenset[str] = frozenset()
    in_front: dict[int, tuple[int, bool]] = field(default_factory=dict)

    def is_light(self, key: QueueKey) -> bool:
        """Whether the queue takes records of other topics, as far as the log or its name tell."""
        return key not in self.runs and (key in self.light or key[0].startswith(LMQ_PREFIX))

    def forget_uncounted(self, start: int, end: int) -> None:
        """What lies in [start, end) is not part of the log."""
        self.uncounted = {
            key: [one for one in there if not start <= one[0] < end] for key, there in self.uncounted.items()
        }


def joined(holes: list[Hole]) -> list[Hole]:
    """Holes in order, those that touch in one segment as one."""
    made: list[Hole] = []
    for hole in sorted(holes, key=lambda one: (one.start, one.end)):
        last = made[-1] if made else None
        if last is not None and last.placed is hole.placed and hole.start <= last.end:
            last.end = max(last.end, hole.end)
            last.frames += hole.frames
            last.reasons |= hole.reasons
            last.behind = hole.behind
        elif hole.end > hole.start:
            made.append(hole)
    return made


def text_of(topic: bytes | None) -> str | None:
    """A topic as text; None where it is none, or no queue can have its name (`Start._writable`)."""
    if not topic or b"\0" in topic:
        return None
    try:
        return topic.decode()
    except UnicodeDecodeError:
        return None
