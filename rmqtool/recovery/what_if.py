"""Starts under the same conditions, on the store as it is and in a scenario that is only simulated."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from rmqtool.broker.load import RefusedError
from rmqtool.broker.log_walk import BudgetEndedError
from rmqtool.broker.traits import ObservedTraits, is_known
from rmqtool.recovery.consequences.twice import of_both
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.outcome import Verdict, verdict_of_all
from rmqtool.recovery.scenarios import Scenario
from rmqtool.recovery.simulation import StartSimulation
from rmqtool.recovery.store_after_start import store_after
from rmqtool.recovery.truncation import lost_parts
from rmqtool.store.files import NotCopiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.start import StartPlan
    from rmqtool.broker.traits import Traits
    from rmqtool.recovery.outcome import Outcome, QueueOutcome
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store
    from rmqtool.store.lock import LockState


_AS_IT_IS = Scenario("")


def _without_words(scenario: Scenario) -> Scenario:
    """The same for all releases, however it was asked for."""
    return replace(scenario, text="", release=None)


@dataclass(frozen=True, slots=True)
class _Known:
    """A start that was simulated to its end: the releases that its traits are those of have the same."""

    traits: ObservedTraits
    plan: StartPlan | None
    outcome: Outcome


@dataclass(slots=True)
class _Begun:
    """A start, simulated as far as its plan; `run` goes on with it, once."""

    traits: ObservedTraits
    run: StartSimulation | None


@dataclass(frozen=True)
class Conditions:
    """What every start of one question has in common: a store, with its settings as it is.

    The log is read once for all releases that the store gives no reason to start differently on it.
    """

    store: Store
    settings: StartSettings
    reading: ReadOptions
    lock: LockState | None = None
    look_back: LookBack = field(default_factory=LookBack)
    _known: dict[Scenario, list[_Known]] = field(default_factory=dict, init=False)
    _begun: dict[Scenario, list[_Begun]] = field(default_factory=dict, init=False)

    def plan(self, release: str, scenario: Scenario | None = None) -> StartPlan | None:
        """What is known before the log is read; None also where the log is read for another release anyway.

        Files of queues are read for it, and once more by the start in a scenario.
        """
        scenario = scenario or _AS_IT_IS
        wanted = scenario.release or release
        begun = self._begun.setdefault(_without_words(scenario), [])
        if any(one.traits.are_those_of(wanted) for one in begun):
            return None
        traits = ObservedTraits(wanted)
        run = self._simulation(scenario.applied(self.store), wanted, scenario, traits)
        plan = None
        with suppress(RefusedError, BudgetEndedError, NotCopiedError):
            plan = run.load()
        if scenario.twice:
            _ = traits.normal_start  # which the start behind a stop in order asks for
        # of scenarios there may be many, each with the state of all queues
        begun.append(_Begun(traits, run if plan is not None and scenario is _AS_IT_IS else None))
        return plan

    def start(
        self,
        release: str,
        scenario: Scenario | None = None,
        on_plan: Callable[[StartPlan], object] | None = None,
    ) -> Outcome:
        """The outcome of a start with `release`, or with the release of the scenario, in the scenario."""
        scenario = scenario or _AS_IT_IS
        wanted = scenario.release or release
        known = self._known.setdefault(_without_words(scenario), [])
        same = next((one for one in known if one.traits.are_those_of(wanted)), None)
        if same is not None:
            if on_plan is not None and same.plan is not None:
                on_plan(same.plan)
            return replace(same.outcome, version=wanted, version_known=is_known(wanted))
        begun = self._taken(wanted) if scenario is _AS_IT_IS else None
        traits = self._asked_again(wanted, scenario) if begun is None else begun.traits
        first = None if begun is None else begun.run
        if first is None:
            first = self._simulation(
                scenario.applied(self.store), wanted, scenario, traits, again=scenario.twice
            )
        outcome = first.run(on_plan, self.look_back)
        if scenario.twice and outcome.starts is not None:
            lies = store_after(first.start, started=outcome.starts)
            outcome = self._again(first, outcome, self._simulation(lies, wanted, scenario, traits))
        if outcome.starts is not None:  # None: the time given to it was over
            known.append(_Known(traits, first.start.plan, outcome))
        return outcome

    def is_shared(self, release: str, scenario: Scenario | None, others: Iterable[str]) -> bool:
        """Whether a start that was begun goes, as far as it has come, as one with this release.

        others: releases with a start of their own that was not begun, one of which may do so, too.
        """
        begun = self._begun.get(_without_words(scenario or _AS_IT_IS), [])
        alike = (all(start.traits.are_alike(release, one) for start in begun) for one in others)
        return any(one.traits.are_those_of(release) for one in begun) or any(alike)

    def _asked_again(self, release: str, scenario: Scenario) -> ObservedTraits:
        """For a start from the beginning, in the place of one that came to its plan."""
        traits = ObservedTraits(release)
        begun = self._begun.setdefault(_without_words(scenario), [])
        for one in begun:
            if one.traits.are_those_of(release):
                one.traits = traits
                return traits
        begun.append(_Begun(traits, None))
        return traits

    def _taken(self, release: str) -> _Begun | None:
        """The start of a release that was begun for its plan."""
        for one in self._begun.get(_AS_IT_IS, []):
            if one.run is not None and one.run.release == release:
                taken, one.run = replace(one), None
                return taken
        return None

    def _simulation(
        self, lies: Store, release: str, scenario: Scenario, asked: ObservedTraits, *, again: bool = False
    ) -> StartSimulation:
        """again: another start follows on what it leaves."""
        return StartSimulation(
            lies,
            release,
            replace(self.settings, **dict(scenario.switches)),
            self.reading,
            self.lock,
            keep_units=again,
            traits=cast("Traits", asked),
        )

    def _again(self, first: StartSimulation, before: Outcome, second: StartSimulation) -> Outcome:
        """The second of two starts; what either deletes or loses counts."""
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
