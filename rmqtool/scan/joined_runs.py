"""Runs of records joined over what lies between them, for who asks for the records alone.

A log with many holes gives runs of a few records each; what is done in columns with every run by itself costs
as much for three records as for thousands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field
from rmqtool.scan.segment import BATCH_ROWS, STEP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from rmqtool.scan.events import Event

_LARGE = BATCH_ROWS // 4
"""rows of a run that is handed on as it is"""


class RunJoiner:
    """Runs of one window together: up to `BATCH_ROWS`, from `STEP` bytes. Add all, ask for the rest."""

    def __init__(self) -> None:
        self._first: Records | None = None
        self._held: list[npt.NDArray[np.int64]] = []
        self._count = 0

    def add(self, run: Records) -> Iterator[Records]:
        """What is complete with this run, whose rows may be overwritten afterwards."""
        rows, first = run.rows, self._first
        if first is not None:
            far = int(rows[-1, Field.POSITION]) - int(self._held[0][0, Field.POSITION]) > STEP
            if far or run.window is not first.window or self._count + len(rows) > BATCH_ROWS:
                yield from self.rest()
        if self._first is None and len(rows) >= _LARGE:
            yield run
            return
        self._first = run if self._first is None else self._first
        self._held.append(rows.copy())
        self._count += len(rows)

    def rest(self) -> Iterator[Records]:
        """What was held back."""
        first, held = self._first, self._held
        self._first, self._held, self._count = None, [], 0
        if first is not None:
            rows = held[0] if len(held) == 1 else np.concatenate(held)
            yield Records(rows, first.window, first.origin)


def joined_runs(events: Iterable[Event]) -> Iterator[Records]:
    """All records of a scan in order, joined."""
    joiner = RunJoiner()
    for event in events:
        if isinstance(event, Records):
            yield from joiner.add(event)
    yield from joiner.rest()
