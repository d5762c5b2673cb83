"""Starts under the same conditions, on the store as it is and in a scenario that is only simulated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rmqtool.recovery.consequences.twice import of_both
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.outcome import Verdict, verdict_of_all
from rmqtool.recovery.simulation import StartSimulation
from rmqtool.recovery.store_after_start import store_after
from rmqtool.recovery.truncation import lost_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.start import StartPlan
    from rmqtool.recovery.outcome import Outcome, QueueOutcome
    from rmqtool.recovery.scenarios import Scenario
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store
    from rmqtool.store.lock import LockState


@dataclass(frozen=True)
class Conditions:
    """What every start of one question has in common; settings are those of the store as it is."""

    settings: StartSettings
    reading: ReadOptions
    lock: LockState | None = None
    look_back: LookBack = field(default_factory=LookBack)

    def start(
        self,
        store: Store,
        release: str,
        scenario: Scenario | None = None,
        on_plan: Callable[[StartPlan], object] | None = None,
    ) -> Outcome:
        """The outcome of a start with `release`, or with the release of the scenario, in the scenario."""
        if scenario is None:
            return self._begin(store, release).run(on_plan, self.look_back)
        if scenario.switches:
            conditions = replace(self, settings=replace(self.settings, **dict(scenario.switches)))
            return conditions.start(store, release, replace(scenario, switches=()), on_plan)
        changed = scenario.applied(store)
        wanted = scenario.release or release
        if not scenario.twice:
            return self._begin(changed, wanted).run(on_plan, self.look_back)
        return self._twice(changed, wanted)

    def _begin(self, store: Store, release: str, *, keep_units: bool = False) -> StartSimulation:
        return StartSimulation(store, release, self.settings, self.reading, self.lock, keep_units=keep_units)

    def _twice(self, store: Store, release: str) -> Outcome:
        """The second of two starts; what either deletes or loses counts."""
        first = self._begin(store, release, keep_units=True)
        before = first.run(look_back=self.look_back)
        if before.starts is None:
            return before
        second = self._begin(store_after(first.start, started=before.starts), release)
        gone = set(first.start.log.deleted)
        second.also_lost = [part for part in lost_parts(first.start) if part.file.path in gone]
        after = second.run(look_back=self.look_back)
        return replace(
            after,
            deletes=tuple(sorted({*before.deletes, *after.deletes})),
            index_dropped=(*before.index_dropped, *after.index_dropped),
            queues=_both(before, after),
            skipped=(*before.skipped, *after.skipped),
            consequences=of_both(before.consequences, after.consequences),
        )


def _both(before: Outcome, after: Outcome) -> tuple[QueueOutcome, ...]:
    """Queues after the second start, with the units that the first one lost or put wrong."""
    first = {(one.topic, one.queue_id): one for one in before.queues}
    return tuple(
        replace(one, lost=one.lost + harmed.lost - harmed.later, misplaced=one.misplaced + harmed.misplaced)
        if (harmed := first.get((one.topic, one.queue_id))) is not None
        else one
        for one in after.queues
    )


def verdict_of(outcomes: Sequence[Outcome]) -> Verdict:
    """The verdict over all of them."""
    return verdict_of_all(one.verdict for one in outcomes)
