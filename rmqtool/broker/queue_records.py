"""Records on their way to one queue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.fields import DispatchColumn

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

NO_CODE = (1 << 63) - 1
"""in a column of tags codes: not known; neither a hash nor a time"""


@dataclass(frozen=True, slots=True)
class QueueRecords:
    """Records for one queue.

    columns: `fields.DispatchColumn`, of several queues. chosen: the places of its own in them,
    in the order of the log. By column: `in_place`, whether the record lies where its field says (None: all);
    `first`, `counts`, the first queue offset and the number of the messages in it, which only batch queues
    ask for (None: one message, at its slot). own: which of the chosen name this queue as their own, where
    others came by multi-dispatch (None: all).
    """

    columns: Ints
    chosen: Ints
    in_place: Flags | None = None
    first: Ints | None = None
    counts: Ints | None = None
    own: Flags | None = None

    def __len__(self) -> int:
        return len(self.chosen)

    def behind(self, count: int) -> QueueRecords:
        """Without the first of them."""
        own = None if self.own is None else self.own[count:]
        return replace(self, chosen=self.chosen[count:], own=own)

    def without_others(self) -> QueueRecords:
        """Only those that name this queue as their own."""
        return self if self.own is None else replace(self, chosen=self.chosen[self.own], own=None)

    @property
    def slots(self) -> Ints:
        """Queue offsets."""
        return self._column(DispatchColumn.SLOT)

    @property
    def offsets(self) -> Ints:
        """Physical offsets."""
        return self._column(DispatchColumn.OFFSET)

    @property
    def sizes(self) -> Ints:
        """Bytes of the whole records."""
        return self._column(DispatchColumn.SIZE)

    @property
    def codes(self) -> Ints:
        """Tags codes, or `NO_CODE`."""
        return self._column(DispatchColumn.CODE)

    @property
    def times(self) -> Ints:
        """Store timestamps (ms)."""
        return self._column(DispatchColumn.TIME)

    @property
    def bases(self) -> Ints:
        """Queue offset of the first message in each."""
        return self.slots if self.first is None else self.first[self.chosen]

    @property
    def messages(self) -> Ints:
        """Number of messages in each."""
        return np.ones(len(self), np.int64) if self.counts is None else self.counts[self.chosen]

    def _column(self, row: DispatchColumn) -> Ints:
        found: Ints = self.columns[row, self.chosen]
        return found
