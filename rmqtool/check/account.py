"""What is made of a run of records before the checks that go in the order of the log see it.

Only here are bytes of records looked at, by any thread or process. An `Account` has none of them: it is small
enough to be kept, or sent to where the other checks run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.check.index_match import keys_of
from rmqtool.check.levels import Level
from rmqtool.check.live import settled
from rmqtool.check.log import RecordCheck
from rmqtool.scan.lanes import Lanes

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import numpy as np
    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.index_match import Keys
    from rmqtool.check.reading import Reading
    from rmqtool.scan.events import Records
    from rmqtool.scan.lanes import Placed
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

    Deep = Callable[[Records, Segment, ModuleType], list[Finding]]

BATCH_ROWS = 4096
"""records that are looked at together: their bytes are then still in the cache when keys are hashed"""


@dataclass(frozen=True, slots=True)
class Account:
    """A run of records. rows: of the matrix (`fields.Field`).

    judged: what is wrong with the records by themselves. inside: and with what is in their bodies. placed,
    keys: what units and index items have to say.
    """

    rows: npt.NDArray[np.int64]
    judged: list[Finding]
    inside: list[Finding]
    placed: Placed
    keys: Keys

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return self.rows.nbytes + self.placed.columns.nbytes + self.keys.nbytes


@dataclass(frozen=True)
class Accounting:
    """How accounts are made. until: of a live store, see `check.live`. copies: rows are taken, not shown.

    forced: the broker wants `__CRC32#` in each record.
    """

    kernels: ModuleType
    level: Level = Level.DEFAULT
    until: int | None = None
    forced: bool = False
    copies: bool = True

    @classmethod
    def of(cls, store: Store, kernels: ModuleType, reading: Reading, until: int | None = None) -> Accounting:
        """As the settings of a store want it."""
        forced = store.config is not None and store.config.force_verify_prop_crc
        return cls(kernels, reading.level, until, forced, copies=reading.jobs > 1)

    def __call__(self, segment: Segment) -> Callable[[Records], Account]:
        """For the runs of one segment, in their order."""
        check = RecordCheck(segment, self.forced)
        lanes = Lanes(self.kernels, BATCH_ROWS)
        hashing = self.kernels.hashes

        def made(run: Records) -> Account:
            with_units = settled(run, segment.base, self.until)
            with_items = settled(run, segment.base, self.until, border=0)
            return Account(
                run.rows.copy() if self.copies else run.rows,
                list(check.records(run)),
                [] if self._deep is None else self._deep(run, segment, self.kernels),
                lanes.placed(with_units, segment.base),
                keys_of(hashing, with_items, segment.base),
            )

        return made

    @cached_property
    def _deep(self) -> Deep | None:
        """What looks into bodies, at the level that does."""
        if self.level is not Level.DEEP:
            return None
        from rmqtool.check.deep import inside

        return inside
