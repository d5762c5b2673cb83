"""Records on their way to one queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Run:
    """Records for one queue in the order of the log.

    offsets: physical offset fields. sizes: total sizes. slots: queue offsets. ordinary: whether the record
    lies where its field says. bases, counts: first queue offset and number of the messages in it, which
    only batch queues ask for. INT64 columns.
    """

    offsets: Ints
    sizes: Ints
    slots: Ints
    ordinary: Flags
    bases: Ints
    counts: Ints

    def __getitem__(self, part: slice) -> Run:
        return Run(
            self.offsets[part],
            self.sizes[part],
            self.slots[part],
            self.ordinary[part],
            self.bases[part],
            self.counts[part],
        )

    def __len__(self) -> int:
        return len(self.offsets)


def leave(run: Records, base: int) -> None:
    """A run that is not dispatched."""
    del run, base


def offsets(run: Records) -> Any:
    """Physical offset fields of a run."""
    return run.rows[:, Field.STORED_PHYSICAL_OFFSET]


def some(run: Records, base: int, which: Any, take: Callable[[Records, int], None]) -> None:
    """Hands over those records of a run that `which` chooses, if there are any."""
    if which.all():
        take(run, base)
    elif which.any():
        take(Records(run.rows[which], run.window, run.origin), base)
