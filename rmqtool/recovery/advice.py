"""What to do next, as commands that can be copied: the most urgent first."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.broker.record_check import ORDINARY_STOPS
from rmqtool.broker.timer_check import CHECK
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.timers import TIMER_HARM
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rmqtool.recovery.consequences.consequence import Consequence
    from rmqtool.recovery.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Advice:
    """A command line, of rmqtool or one that removes a link, and what it is good for."""

    command: str
    why: str


@dataclass(frozen=True, slots=True)
class Invocation:
    """How doctor was asked. options: those that say what lies where, for every following command.

    release: as given, None when every behaviour counted. journal: of an apply that was stopped in the middle.
    links: by their paths the links in the store that lead nowhere, where they lie and what they name.
    unrecoverable: says what to do where `recover` has no log to begin with, None where it has one; as it may
    read, it is asked only where `recover` would be advised.
    """

    store: str
    options: tuple[str, ...] = ()
    release: str | None = None
    journal: str | None = None
    links: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unrecoverable: Callable[[], str | None] = lambda: None

    def line(self, verb: str, *words: str, path: str | None = None) -> str:
        """A command on this store, or on a path in it."""
        options = () if path is not None else self.options
        return shlex.join(["rmqtool", verb, path or self.store, *words, *options])


def advise(outcomes: Sequence[Outcome], verdict: Verdict, asked: Invocation) -> list[Advice]:
    """Commands for this verdict; each once, at most six."""
    found: dict[str, Advice] = {}
    for one in _all(outcomes, verdict, asked):
        found.setdefault(one.command, one)
    return list(found.values())[:6]


def advise_findings(
    by_code: Mapping[str, int],
    by_severity: Mapping[str, int],
    asked: Invocation | None,
    *,
    partial: bool = False,
) -> list[Advice]:
    """Commands for what `verify` found: none where there are notes alone, or no whole store (asked None).

    partial: of a copy that lacks files, on which nothing is planned.
    """
    harm = by_severity.get("error", 0) + by_severity.get("warning", 0)
    if asked is None or not harm:
        return []
    found = [Advice(asked.line("doctor"), "is it safe to start this broker, and what would be lost?")]
    areas = {code.partition("-")[0] for code, count in by_code.items() if count}
    if partial:
        return found
    if (by_severity.get("error") and areas != {"CMP"}) or "X-GHOST" in by_code or areas & _REPAIRED:
        found.append(_recover(asked))
    return found


def _recover(asked: Invocation, foreign: Sequence[str] = ()) -> Advice:
    """`recover`, or what to do where it would refuse. foreign: paths of what keeps a broker from starting."""
    without = asked.unrecoverable()
    if without is not None:
        away = f"; {', '.join(foreign)}: move it out of the store, unless it is a segment under another name"
        return Advice(asked.line("info"), without + (away if foreign else ""))
    return Advice(
        asked.line("recover", *(("--as-version", asked.release) if asked.release else ())),
        "plans a repaired store that keeps every intact message; nothing is changed without --apply",
    )


_REPAIRED = {"CL", "CQ", "BCQ", "IDX", "CP"}
"""areas of findings, by the first part of their codes, that `recover` puts right"""


def _all(outcomes: Sequence[Outcome], verdict: Verdict, asked: Invocation) -> Iterator[Advice]:
    first = outcomes[0]
    if first.lock is not None and first.lock.held:
        yield Advice(asked.line("info"), "a process holds this store: stop that one, do not start a second")
    if asked.journal is not None:
        command = shlex.join(["rmqtool", "undo", asked.journal])
        yield Advice(command, "an apply was stopped in the middle: shows what it takes to put all back")
    yield from _about_links(outcomes, asked)
    for setting in sorted({one.refusal.setting for one in outcomes if one.refusal and one.refusal.setting}):
        release = ("--as-version", asked.release) if asked.release else ()
        yield Advice(
            asked.line("doctor", "--what-if", f"set {setting}", *release),
            f"what a start with {setting} in its configuration does: no other file than that has to change",
        )
    no_log = any("commitlog" in one.paths and one.code == _BLOCKED for one in _found(outcomes))
    if no_log and "commitlog" not in asked.links:
        yield Advice(
            asked.line("info"),
            "what there is; put the directory of the commit log back in the place of what is called "
            "commitlog, from a copy or another replica, before any broker starts",
        )
    gone = any(one.code in _LOG_MISSING for one in _found(outcomes))
    if asked.journal is None and (gone or any(_repairable(one, asked) for one in outcomes)):
        refused = {one.refusal.path for one in outcomes if one.refusal is not None}
        yield _recover(asked, sorted(path for path in refused if path and path.startswith("commitlog/")))
    for one in outcomes:
        yield from _about(one, asked)
    if verdict is Verdict.UNCERTAIN:
        yield from _uncertain(outcomes, asked)
    verdicts = {one.safe_to_start for one in outcomes}
    if len(verdicts) > 1 and asked.release is None:
        known = next(one.version for one in outcomes if one.safe_to_start is not False)
        yield Advice(
            asked.line("doctor", "--as-version", known),
            "releases differ here: ask for the one that will be started",
        )
    yield Advice(
        asked.line("verify"),
        "a start does not look at everything: whether every record, consume queue entry and index "
        "entry is right"
        if verdict is Verdict.SAFE
        else "all that is wrong in this store, with what to do about each finding",
    )


_OF_TABLES = frozenset({"DR-BATCH-TOPICS-UNKNOWN", "DR-CONFIG-EMPTY"})
"""harm to tables that `recover` repairs: what can be read of one that would load empty is kept"""


_LOG_MISSING = frozenset({"DR-QUEUES-DESTROYED", "DR-LOG-GONE"})
_BLOCKED = "DR-BLOCKED-DIRECTORY"
_IN_THE_WAY = frozenset({_BLOCKED, "DR-BLOCKED", "DR-BLOCKED-FILE"})
"""what `recover` moves away, but dead links, and all that is no log"""


def _found(outcomes: Sequence[Outcome]) -> Iterator[Consequence]:
    return (found for one in outcomes for found in one.consequences)


def _about_links(outcomes: Sequence[Outcome], asked: Invocation) -> Iterator[Advice]:
    """Links that lead nowhere and have a say: nobody but the user knows whether something is behind them."""
    said = {path for one in outcomes for path in one.not_looked_at}
    said |= {path for found in _found(outcomes) for path in found.paths}
    for path, (place, target) in asked.links.items():
        if path not in said:
            continue
        words = f"{path} is a link that leads nowhere, to {escape_name(target)}: mount the disk it leads to"
        if place == escape_name(place):
            remove = "; only if nothing is to come back from there, this removes the link, then ask again"
            yield Advice(shlex.join(["rm", place]), words + remove)
        else:
            yield Advice(asked.line("info"), f"{words}, or remove the link, then ask again")


def _repairable(one: Outcome, asked: Invocation) -> bool:
    """Whether `recover` keeps what a start costs, repairs what refuses it, or what is damaged already."""
    if one.refusal is not None:
        mine = one.refusal.path not in asked.links
        return mine and one.refusal.code != "lock-held" and one.refusal.setting is None
    if one.already_damaged.config or any(found.code in _OF_TABLES for found in one.consequences):
        return True
    blocking = (found.paths for found in one.consequences if found.code in _IN_THE_WAY)
    if any(set(paths).isdisjoint({"commitlog", *asked.links}) for paths in blocking):
        return True
    if any(found.code in TIMER_HARM and found.paths != (CHECK,) for found in one.consequences):
        return True
    harmed = any(
        queue.lost or queue.misplaced or queue.repeated or queue.hidden or queue.doubled
        for queue in one.queues
    )
    lost = one.loss is not None and one.loss.messages
    return one.start_segment is not None and bool(harmed or lost or one.already_damaged.repairable)


def _about(one: Outcome, asked: Invocation) -> Iterator[Advice]:
    refusal, loss = one.refusal, one.loss
    if refusal is not None and refusal.path is not None and refusal.path.startswith("config/"):
        path = f"{asked.store.rstrip('/')}/{refusal.path}"
        yield Advice(asked.line("dump", path=path), "the file that the broker cannot load")
    if loss is not None and loss.messages:
        low, high = loss.ranges[0].start, loss.ranges[-1].end
        words = ("--offset-range", f"{low}:{high}")
        yield Advice(
            asked.line("dump", *words, "--body", "base64", "--format", "ndjson"),
            "saves the intact messages that a start would give up; redirect it to another disk",
        )
    if one.stop_reason is not None and one.stop_reason not in ORDINARY_STOPS and one.stop_offset is not None:
        yield Advice(
            asked.line("show", str(one.stop_offset)),
            f"what is stored where recovery stops ({one.stop_reason})",
        )
    release = ("--as-version", asked.release) if asked.release else ()
    if any(queue.repeated or queue.misplaced or queue.hidden for queue in one.queues):
        scenarios = ("delete-consumequeue", "delete-consumequeue+remove-checkpoint")
        options = tuple(word for scenario in scenarios for word in ("--what-if", scenario))
        yield Advice(
            asked.line("doctor", *options, *release),
            "whether rebuilding the queues would help; nothing is deleted by asking",
        )


def _uncertain(outcomes: Sequence[Outcome], asked: Invocation) -> Iterator[Advice]:
    release = ("--as-version", asked.release) if asked.release else ()
    if any(one.unread_by_choice for one in outcomes):
        yield Advice(asked.line("doctor", "--full", *release), "looks at everything, however long that takes")
