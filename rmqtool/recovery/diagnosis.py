"""One question to doctor: the releases, scenarios, time and reading that it is answered with."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from rmqtool.broker.log_walk import BudgetEndedError
from rmqtool.broker.settings import settings_of
from rmqtool.broker.traits import behaviours, traits_of
from rmqtool.recovery.lookback import ALLOWANCE, LookBack
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.scenarios import Scenario, parse_scenario
from rmqtool.recovery.what_if import Conditions, verdict_of
from rmqtool.scan.counted import Counted
from rmqtool.store.lock import probe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rmqtool.broker.start import StartPlan
    from rmqtool.recovery.outcome import Outcome
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

SimulatedScenario = tuple[Scenario, list["Outcome"], Verdict]
"""a scenario, the outcomes after it, the verdict over them"""
_Wanted = tuple[str, Scenario | None]
"""a start: the release, and what was done to the store before"""


class Diagnosis:
    """Run it once; an interrupt leaves what was found up to then.

    given: the release asked about, None for all that the disk does not exclude; raises `UsageError` for an
    unknown one. full: read all old segments. budget: seconds from now on after which the answer is what is
    certain by then. outcomes: of every release in question, the last one first.
    """

    def __init__(
        self, store: Store, given: str | None, *, full: bool = False, budget: float | None = None
    ) -> None:
        self._until = None if budget is None else time.monotonic() + budget
        self._meanwhile: Callable[[], object] | None = None
        self.store, self.given = store, given
        if given is not None:
            traits_of(given)
        self._look_back = LookBack(None if full else ALLOWANCE)
        self.outcomes: list[Outcome] = []
        self.scenarios: list[SimulatedScenario] = []

    def parse(self, texts: Sequence[str]) -> list[Scenario]:
        """The scenarios asked for, each once. Raises `UsageError`."""
        return [parse_scenario(text, self.store) for text in dict.fromkeys(texts)]

    @cached_property
    def releases(self) -> list[str]:
        """The release given, or one for each behaviour that the disk does not exclude, the last first."""
        if self.given is not None:
            return [self.given]
        return list(reversed(behaviours(self.store.release.releases)))

    @property
    def verdict(self) -> Verdict:
        """The verdict over all releases."""
        return verdict_of(self.outcomes)

    def run(
        self,
        scenarios: Sequence[Scenario],
        reading: ReadOptions,
        on_plan: Callable[[str, StartPlan], object] = lambda _release, _plan: None,
        expect: Callable[[int], object] = int,
    ) -> None:
        """Simulates the start with every release, then every scenario.

        on_plan: gets release and plan. expect: gets the bytes that will have been read in all; once more as
        soon as releases that begin alike part over what the log holds.
        """
        counted = Counted(reading)
        conditions = self._conditions(counted.reading)
        wanted: list[_Wanted] = [(release, None) for release in self.releases]
        asked = [(one, [one.release] if one.release else self.releases) for one in scenarios]
        wanted += [(release, one) for one, releases in asked for release in releases]
        shares = _Shares(conditions, dict(zip(wanted, self._shares(conditions, wanted), strict=True)), expect)
        plans: list[StartPlan] = []

        def start(release: str, scenario: Scenario | None) -> Outcome:
            counted.expect(shares.begin(release, scenario))

            def planned(plan: StartPlan) -> None:
                if all(plan is not one for one in plans):  # it shares none
                    counted.expect(shares.plan(plan))
                plans.append(plan)
                if scenario is None:
                    on_plan(release, plan)

            self._meanwhile = shares.foresee
            outcome = conditions.start(release, scenario, planned)
            self._meanwhile = None
            counted.finish()
            return outcome

        for release in self.releases:
            self.outcomes.append(start(release, None))
        for scenario, releases in asked:
            found: list[Outcome] = []
            self.scenarios.append((scenario, found, Verdict.UNCERTAIN))
            found.extend(start(release, scenario) for release in releases)
            self.scenarios[-1] = scenario, found, verdict_of(found)

    def _shares(self, conditions: Conditions, wanted: Sequence[_Wanted]) -> list[int]:
        """What will be read for each start: nothing for one that shares another, as far as plans tell.

        With a budget nobody has the time to plan scenarios: the first release is taken to read what it reads
        without.
        """
        plans: list[StartPlan | None] = []
        for release, scenario in wanted:
            if scenario is None or self._until is None:
                plans.append(conditions.plan(release, scenario))
            else:
                first = all(scenario is not one for _, one in wanted[: len(plans)])
                plans.append(plans[0] if first else None)
        firsts = [plan.start_segment or 0 if plan is not None else 0 for plan in plans]
        fronts = [
            (scenario, [one.file for one in self.store.segments if one.base < first])
            for (_, scenario), first in zip(wanted, firsts, strict=True)
        ]
        return [
            0 if plan is None else ahead + plan.bytes_to_scan * _times(one)
            for ahead, plan, (_, one) in zip(self._look_back.bytes_ahead(fronts), plans, wanted, strict=True)
        ]

    def _conditions(self, reading: ReadOptions) -> Conditions:
        def advance(count: int) -> None:
            if self._until is not None and time.monotonic() > self._until:
                raise BudgetEndedError
            if self._meanwhile is not None:
                self._meanwhile()
            reading.done(count)

        timed = replace(reading, advance=advance)
        return Conditions(
            self.store, settings_of(self.store), timed, probe(self.store.lock_path), self._look_back
        )


def _times(scenario: Scenario | None) -> int:
    """How many starts a scenario has."""
    return 2 if scenario is not None and scenario.twice else 1


class _Shares:
    """What each start reads, and all together: told whenever it is more than was thought."""

    def __init__(
        self, conditions: Conditions, known: dict[_Wanted, int], expect: Callable[[int], object]
    ) -> None:
        self._conditions, self._known, self._expect = conditions, known, expect
        self._coming = list(known)
        self._now: _Wanted = "", None
        self._scanned = 0
        self._lock = Lock()
        expect(sum(known.values()))

    def begin(self, release: str, scenario: Scenario | None) -> int:
        """What the next start reads."""
        self._now = release, scenario
        self._coming.remove(self._now)
        self._scanned = 0
        return self._known[self._now]

    def plan(self, plan: StartPlan) -> int:
        """What the start reads more than was thought, as is known before the log is read."""
        self._scanned = plan.bytes_to_scan * _times(self._now[1])
        more = max(self._scanned - self._known[self._now], 0)
        self._add(self._now, more)
        return more

    def foresee(self) -> None:
        """Looks whether the start, as it reads, has parted from releases that were to share it."""
        with self._lock:
            scenario = self._now[1]
            siblings = [one for one in self._coming if one[1] is scenario] if self._scanned else []
            for one in siblings:
                others = [release for release, _ in siblings if self._known[release, scenario]]
                if not self._known[one] and not self._conditions.is_shared(*one, others):
                    self._add(one, self._scanned)

    def _add(self, one: _Wanted, count: int) -> None:
        if count:
            self._known[one] += count
            self._expect(sum(self._known.values()))
