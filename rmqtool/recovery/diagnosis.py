"""One question to doctor: the releases, scenarios, time and reading that it is answered with."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from rmqtool.broker.log_walk import BudgetEndedError
from rmqtool.broker.settings import settings_of
from rmqtool.broker.traits import behaviours, traits_of
from rmqtool.recovery.lookback import ALLOWANCE, LookBack
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.scenarios import Scenario, parse_scenario
from rmqtool.recovery.what_if import Conditions, verdict_of
from rmqtool.store.lock import probe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rmqtool.broker.start import StartPlan
    from rmqtool.recovery.outcome import Outcome
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

SimulatedScenario = tuple[Scenario, list["Outcome"], Verdict]
"""a scenario, the outcomes after it, the verdict over them"""


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
        self.store, self.given = store, given
        if given is not None:
            traits_of(given)
        self._look_back = LookBack(None if full else ALLOWANCE)
        self._done = 0
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

    def _bytes_expected(self, plan: StartPlan, further: int) -> int:
        """What will have been read: until now, by a start with this plan, and by further ones like it."""
        first = plan.start_segment or 0
        in_front = self._look_back.bytes_ahead(one.file for one in self.store.segments if one.base < first)
        return self._done + in_front + plan.bytes_to_scan * (1 + further)

    def run(
        self,
        scenarios: Sequence[Scenario],
        reading: ReadOptions,
        on_plan: Callable[[str, StartPlan], object] = lambda _release, _plan: None,
        expect: Callable[[int], object] = int,
    ) -> None:
        """Simulates the start with every release, then every scenario.

        on_plan: gets release and plan. expect: gets the bytes that will have been read in all, as far as
        that is known when a start begins.
        """
        conditions = self._conditions(reading)
        left = sum(1 if one.release else len(self.releases) for one in scenarios) + len(self.releases)

        def planned(release: str | None, plan: StartPlan) -> None:
            nonlocal left
            left -= 1
            expect(self._bytes_expected(plan, max(left, 0)))
            if release is not None:
                on_plan(release, plan)

        for release in self.releases:
            self.outcomes.append(conditions.start(self.store, release, on_plan=partial(planned, release)))
        for scenario in scenarios:
            found: list[Outcome] = []
            self.scenarios.append((scenario, found, Verdict.UNCERTAIN))
            releases = [scenario.release] if scenario.release else self.releases
            found.extend(
                conditions.start(self.store, release, scenario, partial(planned, None))
                for release in releases
            )
            self.scenarios[-1] = scenario, found, verdict_of(found)

    def _conditions(self, reading: ReadOptions) -> Conditions:
        def advance(count: int) -> None:
            if self._until is not None and time.monotonic() > self._until:
                raise BudgetEndedError
            self._done += count
            reading.done(count)

        timed = replace(reading, advance=advance)
        return Conditions(settings_of(self.store), timed, probe(self.store.lock_path), self._look_back)
