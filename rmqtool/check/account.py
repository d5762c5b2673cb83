"""What is made of a run of records before the checks that go in the order of the log see it.

Only here are bytes of records looked at, by any thread or process. An `Account` has none of them: it is small
enough to be kept, or sent to where the other checks run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.broker.settings import delay_levels
from rmqtool.check.covered import Extent
from rmqtool.check.further import FurtherRules
from rmqtool.check.index_keys import Keys, Unindexed, keys_of, unindexed
from rmqtool.check.levels import Level
from rmqtool.check.live import records_before_border
from rmqtool.check.log import RecordCheck
from rmqtool.check.times import DAY_MS, Span, Times, times_of
from rmqtool.check.topics import odd_topics
from rmqtool.scan.fields import ROW_WIDTH, Check, Field
from rmqtool.scan.partitions import Partitions, StretchedPartitions
from rmqtool.scan.reader import BATCH_ROWS
from rmqtool.scan.sound import MOST_COLUMNS, Columned, ColumnRuns, SoundRuns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.further import Further
    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.partitions import Placed
    from rmqtool.scan.sound import Runs, Sound
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

    Ints = npt.NDArray[np.int64]
    Deep = Callable[[Records, Segment, Kernels], list[Finding]]

_NO_ROWS = np.empty((0, ROW_WIDTH), np.int64)
_BASE = 2000
"""bytes of an account without its columns, about"""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run of records.

    judged: what is wrong with the records by themselves. inside: and with what is in their bodies. times,
    placed, keys: what the checks in the order of the log want to know. starts: positions, for who asked.
    further: where the records belong besides their own queues.
    """

    extent: Extent
    judged: list[Finding]
    inside: list[Finding]
    times: Times
    placed: Placed
    keys: Keys | Unindexed
    starts: Ints | None = None
    further: tuple[Further, ...] = ()

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        own = 0 if self.starts is None else self.starts.nbytes
        own += sum(one.nbytes for one in self.further)
        return _BASE + own + self.placed.columns.nbytes + self.keys.nbytes


@dataclass(frozen=True)
class Accounting:
    """How accounts are made. until: of a live store, see `check.live`.

    further: of a store with light queues.
    forced: the broker wants `__CRC32#` in each record. stretched: no queue has a file (`CrossCheck`).
    unindexed: no index has one. starts: positions of records are wanted. odd_topics: see `topics.odd_topics`.
    levels: of the broker, ms.
    """

    kernels: Kernels
    level: Level = Level.DEFAULT
    until: int | None = None
    forced: bool = False
    stretched: bool = False
    unindexed: bool = False
    starts: bool = False
    odd_topics: frozenset[bytes] = frozenset()
    further: FurtherRules | None = None
    levels: Mapping[int, int] | None = None

    @classmethod
    def of(cls, store: Store, kernels: Kernels, level: Level, until: int | None = None) -> Accounting:
        """As the settings of a store want it."""
        forced = store.config is not None and store.config.force_verify_prop_crc
        return cls(
            kernels,
            level,
            until,
            forced,
            odd_topics=odd_topics(store),
            further=FurtherRules.of(store),
            levels=delay_levels(store.config),
        )

    def __call__(self, segment: Segment) -> RunAccounts:
        """For the runs of one segment, in their order."""
        return RunAccounts(self, segment)

    @property
    def summed(self) -> bool:
        """Whether nobody asks about single records that have nothing to tell."""
        return self._unasked and self.stretched and self.unindexed

    @property
    def columned(self) -> bool:
        """Whether of such records nothing is asked but their units and keys."""
        return self._unasked and not self.stretched and self.further is None

    @property
    def _unasked(self) -> bool:
        return self.until is None and not (self.forced or self.starts or self.level is Level.DEEP)

    @cached_property
    def deep(self) -> Deep | None:
        """What looks into bodies, at the level that does."""
        if self.level is not Level.DEEP:
            return None
        from rmqtool.check.deep import inside

        return inside


class RunAccounts:
    """Accounts of the runs of one segment, in their order."""

    def __init__(self, how: Accounting, segment: Segment) -> None:
        self._how, self._segment = how, segment
        self._check = RecordCheck(segment, how.forced, how.odd_topics)
        self.sound: Runs[Any] | None = None
        if how.stretched:
            partitions = StretchedPartitions(how.kernels, BATCH_ROWS)
            self._partitions: Partitions = partitions
            if how.summed:
                self.sound = SoundRuns(how.kernels, Check.VERIFY, partitions)
        else:
            self._partitions = Partitions(
                how.kernels, MOST_COLUMNS if how.columned else BATCH_ROWS, how.levels
            )
            if how.columned:
                self.sound = ColumnRuns(how.kernels, Check.VERIFY, self._partitions)

    def __call__(self, run: Records) -> RunSummary:
        """Of a run."""
        how, base = self._how, self._segment.base
        odd, even = how.kernels.dispatch.outline(run.rows, DAY_MS)
        with_units = records_before_border(run, base, how.until)
        with_items = records_before_border(run, base, how.until, border=0)
        placed = self._partitions.placed(with_units, base)
        fed: tuple[Further, ...] = ()
        if how.further is not None and not how.stretched:
            fed = how.further(with_units, placed, how.kernels)
        return RunSummary(
            Extent.of(run.rows),
            list(self._check.records(run)) if self._check.wants(odd) else [],
            [] if how.deep is None else how.deep(run, self._segment, how.kernels),
            times_of(run.rows, even=bool(even)),
            placed,
            (unindexed if how.unindexed else keys_of)(how.kernels.hashes, with_items, base),
            run.rows[:, Field.POSITION].copy() if how.starts else None,
            fed,
        )

    def of_sound(self, run: Sound | Columned, /) -> RunSummary:
        """Of a run by its sums, or by columns."""
        base = self._segment.base
        keys: Keys | Unindexed
        if isinstance(run, Columned):
            placed, keys = run.placed, Keys(run.hashes, run.owners, *run.places)
            if self._how.unindexed:
                keys = keys.unindexed()
        else:
            placed = run.stretches
            keys = Unindexed(base + run.keyed_start, base + run.keyed_end, run.keyed)
        extent = Extent(run.records, run.start, run.end, run.last_time)
        times = Times(_NO_ROWS, [Span(run.first_time, run.last_time, None)])
        return RunSummary(extent, [], [], times, placed, keys)
