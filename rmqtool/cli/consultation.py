"""One question to doctor: the releases, cures, time and reading that it is answered with."""

from __future__ import annotations

import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from rmqtool.output.sizes import human_bytes
from rmqtool.output.start_document import completeness, start_document
from rmqtool.recovery.cures import Cure, parse_cure
from rmqtool.recovery.lookback import ALLOWANCE, LookBack
from rmqtool.recovery.reading import BudgetEndedError, Reading
from rmqtool.recovery.settings import settings_of
from rmqtool.recovery.traits import behaviours, traits_of
from rmqtool.recovery.what_if import Conditions, safe_for_all
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.log import data_bytes
from rmqtool.store.access import Access
from rmqtool.store.disk import disk_outlook
from rmqtool.store.live import is_live
from rmqtool.store.lock import probe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.cli.context import Context
    from rmqtool.cli.options import ReadOptions, VersionOptions
    from rmqtool.output.progress import Progress
    from rmqtool.recovery.advice import Advice
    from rmqtool.recovery.outcome import Outcome, StartPlan
    from rmqtool.store.layout import Store


class Consultation:
    """Run it once; an interrupt leaves what was found up to then.

    outcomes: of every release in question, the last one first. treated: cure, its outcomes, whether it makes
    a start safe.
    """

    def __init__(
        self,
        context: Context,
        store: Store,
        read: ReadOptions,
        version: VersionOptions,
        *,
        full: bool,
        budget: float | None,
    ) -> None:
        self._until = None if budget is None else time.monotonic() + budget
        self.context, self.store, self.read = context, store, read
        self.given = version.as_version
        if self.given is not None:
            traits_of(self.given)
        self._look_back = LookBack(None if full else ALLOWANCE)
        self.outcomes: list[Outcome] = []
        self.treated: list[tuple[Cure, list[Outcome], bool | None]] = []

    def parse(self, texts: Sequence[str]) -> list[Cure]:
        """The cures asked for, each once."""
        return [parse_cure(text, self.store) for text in dict.fromkeys(texts)]

    @cached_property
    def releases(self) -> list[str]:
        """The release given, or one for each behaviour that the disk does not exclude, the last first."""
        if self.given is not None:
            return [self.given]
        return list(reversed(behaviours(self.store.release.releases)))

    @property
    def safe(self) -> bool | None:
        """The verdict over all releases."""
        return safe_for_all(self.outcomes) if self.outcomes else None

    @cached_property
    def disk(self) -> dict[str, Any]:
        """How full the disk is."""
        return disk_outlook(self.store)

    def run(self, cures: Sequence[Cure]) -> None:
        """Foretells the start with every release, then every cure."""
        total = sum(one.size for one in self.store.segments) * len(self.releases) * (1 + len(cures))
        with self.context.progress("reading", total) as progress:
            conditions = self._conditions(progress)
            for release in self.releases:
                tell = partial(self._tell, release)
                self.outcomes.append(conditions.start(self.store, release, on_plan=tell))
            for cure in cures:
                found: list[Outcome] = []
                self.treated.append((cure, found, None))
                releases = [cure.release] if cure.release else self.releases
                found.extend(conditions.start(self.store, release, cure) for release in releases)
                self.treated[-1] = cure, found, safe_for_all(found)

    def _conditions(self, progress: Progress) -> Conditions:
        store, read = self.store, self.read
        access = Access.of(read.bytes_per_second, careful=read.safe_io, live=is_live(store))

        def advance(count: int) -> None:
            if self._until is not None and time.monotonic() > self._until:
                raise BudgetEndedError
            progress.advance(count)

        kernels = choose_kernels(data_bytes(store.segments))
        reading = Reading(kernels, access, read.job_count, advance)
        return Conditions(settings_of(store), reading, probe(store.lock_path), self._look_back)

    def _tell(self, release: str, plan: StartPlan) -> None:
        where = "no commit log" if plan.start_segment is None else f"segment {plan.start_segment}"
        most = human_bytes(plan.bytes_to_scan)
        self.context.talk.note(f"{release}: {plan.mode} recovery from {where}, at most {most} to scan")

    def document(self, advice: Sequence[Advice], *, interrupted: bool) -> dict[str, Any]:
        """The whole answer; keys as in the command-line contract."""
        told: dict[str, Any] = start_document(self.outcomes[0]) if self.outcomes else {}
        every = [*self.outcomes, *(one for _, found, _ in self.treated for one in found)]
        told.pop("incomplete_reason", None)
        return {
            **told,
            "version_source": "given" if self.given is not None else "inferred",
            "versions_considered": [one.version for one in self.outcomes],
            "disk": self.disk,
            "what_if": [
                {"cure": cure.text, **start_document(found[0]), "safe_to_start": safe}
                for cure, found, safe in self.treated
                if found
            ],
            "advice": [{"command": one.command, "why": one.why} for one in advice],
            "safe_to_start": None if interrupted else self.safe,
            **completeness(every, interrupted=interrupted),
        }
