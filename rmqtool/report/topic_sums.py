"""Sums by topic of all runs of a log, in one array: a table a run costs more than its sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rmqtool.query.stats.groups import Groups
from rmqtool.scan.fields import TopicSum

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


class TopicSums:
    """Memory goes with the number of topics."""

    def __init__(self) -> None:
        self._numbers: dict[str | None, int] = {}
        self._sums = np.empty((0, len(TopicSum)), np.int64)

    def add(self, topics: list[str | None], sums: Ints) -> None:
        """The sums of a run; each of its topics comes once."""
        known = self._numbers
        which = [known.setdefault(name, len(known)) for name in topics]
        if len(known) > len(self._sums):
            more = np.zeros((2 * len(known), len(TopicSum)), np.int64)
            more[:, TopicSum.FIRST_TIMESTAMP] = np.iinfo(np.int64).max
            more[:, (TopicSum.LARGEST, TopicSum.LAST_TIMESTAMP)] = np.iinfo(np.int64).min
            more[: len(self._sums)] = self._sums
            self._sums = more
        before = self._sums[which]
        both = before + sums
        for column in (TopicSum.LARGEST, TopicSum.LAST_TIMESTAMP):
            both[:, column] = np.maximum(before[:, column], sums[:, column])
        both[:, TopicSum.FIRST_TIMESTAMP] = np.minimum(
            before[:, TopicSum.FIRST_TIMESTAMP], sums[:, TopicSum.FIRST_TIMESTAMP]
        )
        self._sums[which] = both

    def table(self) -> pa.Table:
        """As `Groups.add_partial` takes them."""
        topics = pa.array(list(self._numbers), pa.string())
        sums = self._sums[: len(topics)]
        columns = {one.name.lower(): sums[:, one].copy() for one in TopicSum}
        return Groups(("topic",)).part(topic=topics, **columns)
