"""A start that is watched: what its log holds, beside what the broker does with it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.broker.start import Key, Start
from rmqtool.query.lost_end import behind_end
from rmqtool.recovery.matching import UnitMatcher
from rmqtool.recovery.spans import QueueSpans
from rmqtool.recovery.witness import Witness

if TYPE_CHECKING:
    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.traits import Traits
    from rmqtool.scan.events import Records
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store


class ObservedStart(Start):
    """Keeps where the messages of each queue lie, signs of damage, and where units lead."""

    def __init__(
        self,
        store: Store,
        traits: Traits,
        settings: StartSettings,
        reading: ReadOptions,
        *,
        keep_units: bool = False,
    ) -> None:
        super().__init__(store, traits, settings, reading, keep_units=keep_units)
        self.spans = QueueSpans(reading.kernels, self._indexed)
        self.witness = Witness(reading.kernels)

    def before_log(self) -> None:
        """Makes the matcher, which is to know the queues as they were loaded."""
        _ = self.matcher

    def see(self, run: Records, base: int) -> None:
        """A run of records of the log, whether it is dispatched or not."""
        self.spans.take(run, base)
        self.witness.take(run, base)
        self.matcher.take(run, base)

    def _indexed(self, key: Key) -> int:
        """Where a queue ended before anything was dispatched to it."""
        queue = self.queues.get(key)
        return 0 if queue is None else queue.recovered_max

    @cached_property
    def matcher(self) -> UnitMatcher:
        """Holds what `see` is given against the queues as they were loaded."""
        return UnitMatcher(self)

    @cached_property
    def longer(self) -> tuple[str, int, int] | None:
        """An index file that leads behind the end of the log, how far, and where that end is."""
        return behind_end(self.store)
