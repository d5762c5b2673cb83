"""A start of a broker on a result, simulated, against one on the store as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.check.catalogue import Severity
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.simulation import simulate
from rmqtool.recovery.timers import TIMER_HARM
from rmqtool.store.lock import LockState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rmqtool.broker.settings import StartSettings
    from rmqtool.recovery.consequences.consequence import Consequence
    from rmqtool.recovery.outcome import Outcome
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

    About = tuple[object, ...]

NOBODY = LockState(False, None, "this is not a start")


@dataclass(frozen=True, slots=True)
class Costs:
    """A start, what it harms by what that is about, in words, and how many messages it takes away."""

    outcome: Outcome
    harm: dict[About, str]
    lost: int

    def in_words(self, harm: Iterable[str]) -> tuple[str, ...]:
        """Some of the harm, and the messages."""
        lost = (f"a start takes {self.lost} messages away (DR-MESSAGES-LOST)",) if self.lost else ()
        return (*harm, *lost)


def start_of(
    store: Store, release: str, settings: StartSettings, reading: ReadOptions, *, whole: bool = False
) -> Outcome:
    """What a start would do. whole: with the segments in front of those that it reads."""
    back = LookBack(None if whole else 0)
    return simulate(store, release, settings, reading=reading, lock=NOBODY, look_back=back)


def harm_of(outcome: Outcome) -> dict[About, str]:
    """Every consequence that costs something, by what it is about, in words."""
    found: dict[About, str] = {}
    if outcome.refusal is not None:
        one = outcome.refusal
        found[one.code, one.path] = f"{one.path or '.'}: a broker refuses to start: {one.message}"
    return found | _in_words(outcome.consequences)


def timer_harm_of(outcome: Outcome, changed: Collection[str]) -> dict[About, str]:
    """What timer files cost from which a plan takes nothing. changed: paths from which it takes some.

    A start that takes the timers' messages away, or that is refused, does not come to that.
    """
    return _in_words(
        one
        for one in outcome.consequences
        if one.code in TIMER_HARM and not any(_lies_in(path, one.paths) for path in changed)
    )


def _lies_in(path: str, places: Collection[str]) -> bool:
    return any(path == place or path.startswith(place + "/") for place in places)


def _in_words(consequences: Iterable[Consequence]) -> dict[About, str]:
    return {
        (one.code, one.facts.get("topic"), one.facts.get("queue_id")): f"a start: {one.message} ({one.code})"
        for one in consequences
        if one.severity is Severity.ERROR
    }


def costs_of(store: Store, release: str, settings: StartSettings, reading: ReadOptions) -> Costs:
    """What a start would cost. Where it costs something, with the segments in front of those that it reads.

    Only these tell whether blank units hide messages of theirs.
    """
    start = start_of(store, release, settings, reading)
    if harm_of(start) or lost_by(start):
        start = start_of(store, release, settings, reading, whole=True)
    return Costs(start, harm_of(start), lost_by(start))


def lost_by(outcome: Outcome) -> int:
    """Messages that a start takes away."""
    return 0 if outcome.loss is None else outcome.loss.messages
