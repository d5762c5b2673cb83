"""A simulated start as a page for people: verdict, loss, what the start does, what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.sizes import human_bytes
from rmqtool.output.start_parts import (
    DISK,
    LAG,
    QUEUES,
    WHAT_IF,
    consequence_lines,
    disk_facts,
    start_facts,
    what_if_row,
)
from rmqtool.output.verdict import STYLES, headline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.output.page import Page
    from rmqtool.output.times import Zone
    from rmqtool.recovery.advice import Advice
    from rmqtool.recovery.loss import Loss
    from rmqtool.recovery.outcome import Outcome, QueueOutcome, Verdict

_FEW = 8
"""so many lines of a list are shown; JSON has them all"""
_NEAR = 5
"""percent of the disk below a threshold of cleaning from which on the page speaks of it"""


class StartPage:
    """Writes the sections one after the other; those without content are left out."""

    def __init__(self, page: Page, zone: Zone) -> None:
        self._page = page
        self._zone = zone

    def write(
        self,
        outcomes: Sequence[Outcome],
        of_all: Verdict,
        disk: dict[str, Any],
        advice: Sequence[Advice],
        scenarios: Sequence[tuple[str, Sequence[Outcome], Verdict]] = (),
    ) -> None:
        """outcomes: of every release in question, the last one first. scenarios: text, outcomes, verdict."""
        self._page.words(headline(outcomes, of_all), style=STYLES[of_all])
        self._scenarios(outcomes, of_all, scenarios)
        self._loss(outcomes[0].loss)
        for same in _grouped(outcomes):
            self._start(same)
        self._lag(outcomes[0])
        self._disk(disk)
        self._next(advice)
        if self._page.scrolled:
            self._page.raw_line("")
            self._page.words(headline(outcomes, of_all), style=STYLES[of_all])
            for one in advice[:1]:
                self._page.command(one.command, "→ ")
        self._page.close()

    def _scenarios(
        self,
        outcomes: Sequence[Outcome],
        of_all: Verdict,
        scenarios: Sequence[tuple[str, Sequence[Outcome], Verdict]],
    ) -> None:
        if not scenarios:
            return
        self._page.heading("What if")
        all_of_them = [("as it is", outcomes, of_all), *scenarios]
        rows = [what_if_row(number, of[0], verdict) for number, (_, of, verdict) in enumerate(all_of_them)]
        self._page.table(WHAT_IF, rows)
        for number, (text, _, _) in enumerate(all_of_them):
            self._page.line(f"{number:>2}  {text}")

    def _loss(self, loss: Loss | None) -> None:
        if loss is None or not loss.messages:
            return
        first, last = loss.first_timestamp, loss.last_timestamp
        ranges = [f"{one.start} to {one.end}" for one in loss.ranges if one.recoverable]
        topics = sorted(loss.topics.items(), key=lambda item: (-item[1], item[0]))
        self._page.heading("Would be lost")
        self._page.facts(
            [
                ("messages", f"{loss.messages:,} ({human_bytes(loss.bytes)})"),
                ("stored from", None if first is None else self._zone.iso(first)),
                ("to", None if last is None else self._zone.iso(last)),
            ]
        )
        self._list("topics", [f"{name}: {count:,}" for name, count in topics])
        self._list("still intact after the damage, at physical offsets", ranges)

    def _start(self, same: Sequence[Outcome]) -> None:
        """What a start does, of releases that do the same."""
        outcome, versions = same[0], [one.version for one in reversed(same)]
        names = versions[0] if len(same) == 1 else f"{', '.join(versions[:-1])} or {versions[-1]}"
        self._page.heading(f"What a broker {names} would do{': the same' if len(same) > 1 else ''}")
        self._page.facts(start_facts(outcome))
        for name, entries in _lists(outcome).items():
            self._list(name, entries)
        odd = _odd(outcome)
        if odd:
            self._page.heading("Affected queues")
            self._page.table(QUEUES, [{c.key: getattr(one, c.key) for c in QUEUES} for one in odd[:_FEW]])
            self._more(len(odd))
        self._list("configuration files", _tables(outcome))

    def _lag(self, outcome: Outcome) -> None:
        lags = sorted(outcome.lags, key=lambda one: -one.messages)
        if not lags:
            return
        self._page.heading("In the log and not yet in the queues: consumers cannot pull these")
        rows = [
            {
                "topic": one.topic,
                "queue_id": one.queue_id,
                "messages": one.messages,
                "bytes": human_bytes(one.bytes),
                "oldest": self._zone.iso(one.oldest_timestamp),
            }
            for one in lags[:_FEW]
        ]
        self._page.table(LAG, rows)
        self._more(len(lags))

    def _disk(self, disk: dict[str, Any]) -> None:
        """Only where the disk is about to change what happens."""
        if not (disk["expired"] or any(_is_near(one, disk["used_percent"]) for one in disk["thresholds"])):
            return
        self._page.heading("Disk: a broker cleans for the first time 60 s after its start")
        self._page.facts(disk_facts(disk))
        self._page.table(DISK, disk["thresholds"])
        self._list("past fileReservedTime, deleted by the next cleaning", disk["expired"])

    def _next(self, advice: Sequence[Advice]) -> None:
        self._page.heading("Do next")
        for one in advice:
            self._page.command(one.command)
            self._page.words(one.why, "      ")

    def _list(self, name: str, entries: Sequence[str]) -> None:
        """A name, and what belongs to it below."""
        if not entries:
            return
        self._page.line(f"  {name}:")
        for entry in entries[:_FEW]:
            self._page.words(entry, "    ")
        self._more(len(entries))

    def _more(self, count: int) -> None:
        if count > _FEW:
            self._page.line(f"    … and {count - _FEW:,} more, all of them with --json")


def _lists(outcome: Outcome) -> dict[str, Sequence[str]]:
    """What the start does to files, and what follows from it, by the name that stands above."""
    return {
        "deletes": outcome.deletes,
        "cuts": [f"{one.path} at {one.position}" for one in outcome.truncates],
        "passes over": [f"{start} to {end}" for start, end in outcome.skipped],
        "depends on timing": [one.message for one in outcome.timing_dependent],
        "not looked at": outcome.not_looked_at,
        "consequences": consequence_lines(outcome),
    }


def _odd(outcome: Outcome) -> list[QueueOutcome]:
    return [one for one in outcome.queues if one.lost or one.misplaced or one.repeated or one.hidden]


def _tables(outcome: Outcome) -> list[str]:
    tables = [one for one in outcome.config if one.loses or one.loads.value == "refuses"]
    return [f"{one.path}: {one.loads.value}" for one in tables]


def _grouped(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """Releases of which the page would say the same, in the order of the first of each."""
    groups: dict[str, list[Outcome]] = {}
    for one in outcomes:
        shown = (start_facts(one), _lists(one), _odd(one), _tables(one))
        groups.setdefault(repr(shown), []).append(one)
    return list(groups.values())


def _is_near(threshold: dict[str, Any], used_percent: int) -> bool:
    return bool(used_percent >= threshold["percent"] - _NEAR)
