"""What is made of a run of records before the checks that go in the order of the log see it.

Only here are bytes of records looked at, by any thread or process. An `Account` has none of them: it is small
enough to be kept, or sent to where the other checks run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.broker.settings import delay_levels
from rmqtool.check.covered import Extent
from rmqtool.check.further import FurtherRules
from rmqtool.check.index_keys import keys_of, unindexed
from rmqtool.check.levels import Level
from rmqtool.check.live import settled
from rmqtool.check.log import RecordCheck
from rmqtool.check.times import DAY_MS, times_of
from rmqtool.check.topics import odd_topics
from rmqtool.scan.fields import Field
from rmqtool.scan.lanes import Lanes, StretchedLanes
from rmqtool.scan.reader import BATCH_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.further import Further
    from rmqtool.check.index_keys import Keys, Unindexed
    from rmqtool.check.times import Times
    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.lanes import Placed
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

    Ints = npt.NDArray[np.int64]
    Deep = Callable[[Records, Segment, Kernels], list[Finding]]

_BASE = 2000
"""bytes of an account without its columns, about"""


@dataclass(frozen=True, slots=True)
class Account:
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

    def __call__(self, segment: Segment) -> Callable[[Records], Account]:
        """For the runs of one segment, in their order."""
        check = RecordCheck(segment, self.forced, self.odd_topics)
        if self.stretched:
            lanes: Lanes = StretchedLanes(self.kernels, BATCH_ROWS)
        else:
            lanes = Lanes(self.kernels, BATCH_ROWS, self.levels)
        hashing, outline = self.kernels.hashes, self.kernels.dispatch.outline
        keyed = unindexed if self.unindexed else keys_of

        def made(run: Records) -> Account:
            odd, even = outline(run.rows, DAY_MS)
            with_units = settled(run, segment.base, self.until)
            with_items = settled(run, segment.base, self.until, border=0)
            placed = lanes.placed(with_units, segment.base)
            fed: tuple[Further, ...] = ()
            if self.further is not None and not self.stretched:
                fed = self.further(with_units, placed, self.kernels)
            return Account(
                Extent.of(run.rows),
                list(check.records(run)) if check.wants(odd) else [],
                [] if self._deep is None else self._deep(run, segment, self.kernels),
                times_of(run.rows, even=bool(even)),
                placed,
                keyed(hashing, with_items, segment.base),
                run.rows[:, Field.POSITION].copy() if self.starts else None,
                fed,
            )

        return made

    @cached_property
    def _deep(self) -> Deep | None:
        """What looks into bodies, at the level that does."""
        if self.level is not Level.DEEP:
            return None
        from rmqtool.check.deep import inside

        return inside
