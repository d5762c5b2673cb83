"""A start that is watched: what its log holds, beside what the broker does with it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.broker.start import Key, Start
from rmqtool.recovery.matching import UnitMatcher
from rmqtool.recovery.spans import QueueSpans
from rmqtool.recovery.witness import Witness

if TYPE_CHECKING:
    from rmqtool.scan.events import Records


class ObservedStart(Start):
    """Keeps where the messages of each queue lie, signs of damage, and where units lead."""

    @cached_property
    def spans(self) -> QueueSpans:
        """Where the messages of each queue lie."""
        return QueueSpans(self.reading.kernels, self._indexed, is_batch=self._is_batch)

    @cached_property
    def witness(self) -> Witness:
        """Signs of damage."""
        return Witness(self.reading.kernels)

    def before_log(self) -> None:
        """Makes the matcher, which is to know the queues as they were loaded."""
        _ = self.matcher

    def see(self, run: Records, base: int) -> None:
        """A run of records of the log, whether it is dispatched or not."""
        self.witness.take(run, base)
        self.matcher.take(run, base, self.spans)

    def _indexed(self, key: Key) -> int:
        """Where a queue ended before anything was dispatched to it."""
        queue = self.queues.get(key)
        return 0 if queue is None else queue.recovered_max

    @cached_property
    def matcher(self) -> UnitMatcher:
        """Holds what `see` is given against the queues as they were loaded."""
        return UnitMatcher(self)
