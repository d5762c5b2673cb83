"""Records against the further queues that they feed, as far as these are there (`INNER_MULTI_DISPATCH`).

A broker appends a unit of a further queue behind the last one, whatever the record states, so that the unit
may lie at any slot; that there is none is what is found.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.broker.file_rules import has_light_queues, light_numbers_are_zero, lmq_of
from rmqtool.check.unplaced import Unplaced
from rmqtool.scan.events import Records
from rmqtool.scan.fields import DispatchColumn
from rmqtool.scan.multi import MultiDispatch, extra_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.partitions import Placed
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]

_AT_ONCE = 1 << 18
"""records without a unit at their slot that are looked for in whole queues together"""


@dataclass(frozen=True, slots=True)
class Further:
    """Physical offsets and stated slots of a run's records in one further queue, in the order of the log."""

    key: Key
    offsets: Ints
    slots: Ints

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return self.offsets.nbytes + self.slots.nbytes


@dataclass(frozen=True, slots=True)
class FurtherRules:
    """lmq: `enableLmq`."""

    lmq: bool

    @classmethod
    def of(cls, store: Store) -> FurtherRules | None:
        """None where neither a light queue nor a setting tells of them: most stores have none."""
        config = store.config
        given = config is not None and (config.is_set("enable_multi_dispatch") or config.is_set("enable_lmq"))
        if not given and not has_light_queues(store):
            return None
        return cls(light_numbers_are_zero(store) if is_off(store) else lmq_of(store))

    def __call__(self, run: Records, placed: Placed, kernels: Kernels) -> tuple[Further, ...]:
        """placed: of this run. What retry and system topics feed, as 4.9 has it, is not looked at."""
        if not kernels.building.feeds_further_queues(run.window, run.origin, run.rows):
            return ()
        columns = placed.columns
        records = Records(run.rows[columns[DispatchColumn.OWNER]], run.window, run.origin)
        there, topics = np.unique(columns[DispatchColumn.PARTITION], return_inverse=True)
        names = [placed.keys[partition][0] for partition in there.tolist()]
        extra = extra_rows(records, topics, names, kernels, MultiDispatch.USER_TOPICS, lmq=self.lmq)
        found: dict[Key, list[int]] = defaultdict(list)
        for place, (name, number) in enumerate(
            zip(extra.name_of.tolist(), extra.queue_ids.tolist(), strict=True)
        ):
            found[extra.names[name], number].append(place)
        return tuple(
            Further(key, columns[DispatchColumn.OFFSET][extra.records[places]], extra.slots[places])
            for key, places in found.items()
        )


def is_off(store: Store) -> bool:
    """Whether a broker with the settings that were given builds nothing of what records list."""
    config = store.config
    return config is not None and config.is_set("enable_multi_dispatch") and not config.enable_multi_dispatch


@dataclass
class FurtherCheck:
    """Takes runs in the order of the log; `unplaced` is right after `close`."""

    queues: Mapping[Key, QueueUnits]
    unplaced: dict[Key, Unplaced] = field(default_factory=dict)
    _waiting: dict[Key, list[tuple[Ints, Ints]]] = field(default_factory=lambda: defaultdict(list))
    _count: int = 0

    def take(self, found: tuple[Further, ...]) -> None:
        """What one run feeds."""
        for one in found:
            queue = self.queues.get(one.key)
            if queue is None or not queue.files:
                self._unplaced(one.key).behind.add(one.offsets, one.slots)
                continue
            elsewhere = (queue.gather(one.slots)[0] != one.offsets) & ~queue.lost(one.slots)
            if elsewhere.any():
                self._waiting[one.key].append((one.offsets[elsewhere], one.slots[elsewhere]))
                self._count += int(elsewhere.sum())
        if self._count >= _AT_ONCE:
            self.close()

    def close(self) -> None:
        """Looks for what is left."""
        for key, parts in self._waiting.items():
            offsets, slots = (np.concatenate(some) for some in zip(*parts, strict=True))
            queue = self.queues[key]
            missing = ~queue.holds(offsets)
            offsets, slots = offsets[missing], slots[missing]
            behind = slots >= queue.next_slot
            if len(offsets):
                self._unplaced(key).behind.add(offsets[behind], slots[behind])
                self._unplaced(key).add_inside(offsets[~behind], slots[~behind])
        self._waiting.clear()
        self._count = 0

    def _unplaced(self, key: Key) -> Unplaced:
        return self.unplaced.setdefault(key, Unplaced())
