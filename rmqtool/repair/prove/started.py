"""A start of a broker on a result, simulated, against one on the store as it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.broker.load import RefusedError
from rmqtool.broker.settings import settings_of
from rmqtool.check.catalogue import Severity
from rmqtool.check.compaction import check_compaction, compaction_files, damage_in, messages_of
from rmqtool.check.state import is_unclean
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.simulation import StartSimulation, simulate
from rmqtool.recovery.timers import TIMER_HARM
from rmqtool.repair.plan_words import counted as counted_words
from rmqtool.store.files import NotCopiedError
from rmqtool.store.kinds import COMPACTION_KINDS
from rmqtool.store.lock import LockState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rmqtool.broker.settings import StartSettings
    from rmqtool.recovery.consequences.consequence import Consequence
    from rmqtool.recovery.outcome import Outcome
    from rmqtool.scan.counted import Counted
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

    About = tuple[object, ...]

NOBODY = LockState(False, None, "this is not a start")
TWICE = "DR-OFFSETS-TWICE"
_COMPACTION_REFUSED = "compaction"
_OF_OWN_FILES = frozenset(
    {*TIMER_HARM, "DR-COMPACTION-CUT", "DR-COMPACTION-LEFT-OUT", "DR-REFUSE-COMPACTION"}
)
"""consequences of files that nothing else is made of"""


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


def given_twice(outcome: Outcome) -> Counter[About]:
    """How many queue offsets of messages each queue gives out again, by topic and number."""
    found: Counter[About] = Counter()
    for one in outcome.consequences:
        if one.code == TWICE:
            found[one.facts["topic"], one.facts["queue_id"]] = int(str(one.facts["count"]))
    return found


def untouched_harm_of(outcome: Outcome, changed: Collection[str]) -> dict[About, str]:
    """What timer files and compaction logs cost from which a plan takes nothing.

    changed: paths from which it takes some. A start that takes the timers' messages away, or that is refused
    earlier, does not come to that.
    """
    found = _in_words(
        one
        for one in outcome.consequences
        if one.code in _OF_OWN_FILES and not any(_lies_in(path, one.paths) for path in changed)
    )
    refusal = outcome.refusal
    if refusal is not None and refusal.code == _COMPACTION_REFUSED:
        found |= {about: words for about, words in harm_of(outcome).items() if about[0] == refusal.code}
    return found


def _lies_in(path: str, places: Collection[str]) -> bool:
    return any(path == place or path.startswith(place + "/") for place in places)


def _in_words(consequences: Iterable[Consequence]) -> dict[About, str]:
    return {
        (one.code, one.facts.get("topic"), one.facts.get("queue_id")): f"a start: {one.message} ({one.code})"
        for one in consequences
        if one.severity is Severity.ERROR
    }


@dataclass(frozen=True, slots=True)
class Begun:
    """A start that is planned. bytes: of the log, that it will read."""

    store: Store
    release: str
    settings: StartSettings
    reading: ReadOptions
    bytes: int

    def run(self) -> Outcome:
        """Goes through it."""
        return _simulation(self.store, self.release, self.settings, self.reading).run(look_back=LookBack(0))


def begin(store: Store, release: str, settings: StartSettings, counted: Counted) -> Begun:
    """Announces what a start will read that `costs_of` goes through: its columns are large, and not kept."""
    try:
        plan = _simulation(store, release, settings, counted.reading).load()
    except (RefusedError, NotCopiedError):
        plan = None
    size = 0 if plan is None else plan.bytes_to_scan
    counted.announce(size)
    return Begun(store, release, settings, counted.reading, size)


def _simulation(store: Store, release: str, settings: StartSettings, reading: ReadOptions) -> StartSimulation:
    return StartSimulation(store, release, settings, reading, NOBODY)


def costs_of(begun: Begun, counted: Counted, *, whole: bool = False) -> Costs:
    """What a start would cost. Where it costs something, with the segments in front of those that it reads.

    Only these tell whether blank units hide messages of theirs, and whether the last unit of a queue lies
    where its record states. whole: ask at once.
    """
    with counted.stage(begun.bytes):
        outcome = begun.run()
    if whole or harm_of(outcome) or lost_by(outcome):
        outcome = whole_start(begun.store, begun.release, begun.settings, counted)
    return Costs(outcome, harm_of(outcome), lost_by(outcome))


def whole_start(store: Store, release: str, settings: StartSettings, counted: Counted) -> Outcome:
    """A start, with the segments in front of those that it reads."""
    size = sum(one.size for one in store.segments)
    counted.announce(size)
    with counted.stage(size) as reading:
        return start_of(store, release, settings, reading, whole=True)


def compaction_bytes(store: Store) -> int:
    """What `left_in_compaction` reads."""
    if not settings_of(store).compaction:
        return 0
    return sum(one.size for one in compaction_files(store, *COMPACTION_KINDS))


def left_in_compaction(store: Store, size: int, counted: Counted) -> tuple[str, ...]:
    """What is not served of compaction logs, which nothing repairs. size: `compaction_bytes`, announced."""
    if not size:
        return ()
    with counted.stage(size) as reading:
        found = damage_in(check_compaction(store, reading, unclean=is_unclean(store)))
    if not found:
        return ()
    served = counted_words(messages_of(found), "message")
    return (f"compaction logs have damage: {served} cannot be served; rmqtool verify STORE lists it",)


def lost_by(outcome: Outcome) -> int:
    """Messages that a start takes away."""
    return 0 if outcome.loss is None else outcome.loss.messages
