"""A start of a broker on a result, simulated, against one on the store as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.check.catalogue import Severity
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.simulation import simulate
from rmqtool.store.lock import LockState

if TYPE_CHECKING:
    from rmqtool.broker.settings import StartSettings
    from rmqtool.recovery.outcome import Outcome
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

_NOBODY = LockState(False, None, "this is no start")


def start_of(
    store: Store, release: str, settings: StartSettings, reading: ReadOptions, *, whole: bool = False
) -> Outcome:
    """What a start would do. whole: with the segments in front of those that it reads."""
    back = LookBack(None if whole else 0)
    return simulate(store, release, settings, reading=reading, lock=_NOBODY, look_back=back)


def harm_of(outcome: Outcome) -> dict[tuple[object, ...], str]:
    """Every consequence that costs something, by what it is about, in words."""
    found: dict[tuple[object, ...], str] = {}
    if outcome.refusal is not None:
        one = outcome.refusal
        found[one.code, one.path] = f"{one.path or '.'}: a broker refuses to start: {one.message}"
    for consequence in outcome.consequences:
        if consequence.severity is Severity.ERROR:
            about = consequence.code, consequence.facts.get("topic"), consequence.facts.get("queue_id")
            found[about] = f"a start: {consequence.message} ({consequence.code})"
    return found


def lost_by(outcome: Outcome) -> int:
    """Messages that a start takes away."""
    return 0 if outcome.loss is None else outcome.loss.messages
