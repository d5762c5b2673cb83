"""The commit log as a repair leaves it, for those who make queues, index and state of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.check.ranges import Ranges
from rmqtool.repair.keep.counted import Ahead, blanks_between
from rmqtool.repair.keep.headers import SMALLEST_RECORD

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    from rmqtool.repair.keep.donor import DonorRange
    from rmqtool.repair.keep.fill import Filled
    from rmqtool.repair.keep.model import Frame, Hole, QueueKey, Run, Survey
    from rmqtool.repair.keep.order import Order
    from rmqtool.repair.keep.overlay import Patch
    from rmqtool.repair.keep.placing import PlacedSegment
    from rmqtool.repair.keep.room import Missing


@dataclass(frozen=True, slots=True)
class Repaired:
    """A hole and what it becomes: bytes from `patch.position` of its segment on.

    filled: None for zeros, and for what a donor gave.
    """

    hole: Hole
    patch: Patch
    filled: Filled | None
    donated: DonorRange | None = None


@dataclass
class RepairedLog:
    """Segments in order with their patches.

    end: behind the last record. without: positions of queues that no hole has room for. twice: queues whose
    offsets were given out twice, left as they are. skipping: those of them that skip queue offsets. blanks:
    how many positions of each queue no record took, and stay as blank units. crowded: queues that miss more
    of them than the log ever had room for, left as they are too. ahead: light queues whose units count.
    undecided: as in `Order`, with the frames of those that do not stay as they are. contested: as `Claims`
    has them. behind: whole messages behind the end of the log that no queue takes. dropped: entries of light
    queues, as `Dropped`, that lead to whole messages.
    """

    segments: list[PlacedSegment]
    end: int
    survey: Survey
    repaired: list[Repaired] = field(default_factory=list)
    without: list[Missing] = field(default_factory=list)
    twice: list[QueueKey] = field(default_factory=list)
    skipping: set[QueueKey] = field(default_factory=set)
    blanks: dict[QueueKey, int] = field(default_factory=dict)
    crowded: list[QueueKey] = field(default_factory=list)
    ahead: Ahead = field(default_factory=Ahead)
    undecided: list[tuple[tuple[Run, Frame | None], tuple[Run, Frame | None]]] = field(default_factory=list)
    contested: list[Frame] = field(default_factory=list)
    behind: list[Frame] = field(default_factory=list)
    dropped: list[tuple[QueueKey, tuple[int, int]]] = field(default_factory=list)

    @property
    def unplaced(self) -> list[Frame]:
        """Whole messages that no queue takes."""
        filled = (one.filled for one in self.repaired if one.filled is not None)
        return [*(frame for one in filled for frame in one.unplaced), *self.behind]

    @property
    def left(self) -> frozenset[QueueKey]:
        """Queues that stay as they are. One that only skips does not, where it is known where its units lie.

        Units of a batch queue are found by search.
        """
        known = (key for key in self.skipping if key[0] in self.survey.batches or key in self.ahead.by_queue)
        return frozenset((*self.twice, *self.crowded)).difference(known)

    @property
    def uneven(self) -> bool:
        """Whether queues have blank units, or units elsewhere than where their records state."""
        return bool(self.blanks or self.twice or self.crowded)

    @property
    def written(self) -> Ranges:
        """Holes that got records."""
        found = Ranges()
        for one in self.repaired:
            if one.filled is not None:
                found.add(one.hole.start, one.hole.end, "written")
        return found

    @cached_property
    def by_base(self) -> dict[int, list[Repaired]]:
        """What was repaired of each segment. Ask when all is."""
        found: dict[int, list[Repaired]] = {}
        for one in self.repaired:
            found.setdefault(one.hole.placed.base, []).append(one)
        return found

    @property
    def rewrites(self) -> bool:
        """Whether it puts anything else into the log than what a donor gave, and zeros behind its end."""
        return any(one.filled is not None for one in self.repaired)

    def as_it_is(self, queues: Iterable[QueueKey]) -> RepairedLog:
        """The log without its repairs, and these queues stay as they are."""
        here = [one for one in self.repaired if one.filled is None]
        return RepairedLog(self.segments, self.end, self.survey, here, crowded=[*queues], ahead=self.ahead)

    def of(self, placed: PlacedSegment) -> list[Repaired]:
        """What was repaired of one segment."""
        return self.by_base.get(placed.base, [])

    def patches(self, placed: PlacedSegment) -> tuple[Patch, ...]:
        """The patches of one segment."""
        return tuple(one.patch for one in self.of(placed))


def leave_blank(made: RepairedLog, light: Counter[QueueKey]) -> None:
    """Counts blank units; all of them together are no more than records that holes may have held."""
    wanted = light.copy()
    for one in made.without:
        if one.key[0] not in made.survey.batches:  # whose units are found by search, not by place
            wanted[one.key] += one.count
    room = sum(hole.length for hole in made.survey.holes) // SMALLEST_RECORD
    for key, count in sorted(wanted.items(), key=lambda item: (item[1], item[0])):
        room -= count
        if room < 0:
            made.crowded.append(key)
        else:
            made.blanks[key] = count


def place_skipping(made: RepairedLog, order: Order, skipping: Ahead) -> None:
    """Entries of queues that skip queue offsets are built, too, where they lie or lay.

    Blank ones between them are no more than records that the log has room for.
    """
    room = sum(placed.size for placed in made.segments) // SMALLEST_RECORD
    for key in sorted(order.skipping & skipping.by_queue.keys()):
        blanks = blanks_between(skipping, key, order.chosen[key])
        if blanks is not None and blanks <= room:
            made.ahead.by_queue[key] = skipping.by_queue[key]
            made.blanks.update({key: blanks} if blanks else {})
            room -= blanks
