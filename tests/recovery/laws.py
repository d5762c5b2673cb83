"""What the consequences simulated for a damaged store must have in common with what the real store did."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fixtures import base_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fixtures import DamageCase
    from rmqtool.recovery.consequences.consequence import Consequence
    from rmqtool.recovery.outcome import Outcome

PROBED = ("OrderTopic", 0)
"""the queue that got one message once everything had come to rest"""


NOTHING = re.compile(
    r"(?<![\w,./])0 (\w+ ){0,2}(entry|entries|messages|records|files|timers|topics|ranges)\b"
)
"""a count of nothing, which a sentence leaves out"""


def contradictions(outcome: Outcome, case: DamageCase) -> list[str]:
    """What was simulated otherwise than it was seen; empty when all is well."""
    result = case.result
    codes = {one.code for one in outcome.consequences}
    refuses = any(code.startswith("DR-REFUSE-") for code in codes) or "DR-LOCK-HELD" in codes
    found = [
        *_files(outcome, case),
        *(one.message for one in outcome.consequences if NOTHING.search(one.message)),
    ]
    if result["load"] != "ok" or result.get("start", "ok") != "ok":
        return found if refuses else [*found, "no refusal"]
    if refuses:
        found.append("a refusal")
    if (result.get("dispatchBehindBytes", 0) < 0) != ("DR-DISPATCH-AHEAD" in codes):
        found.append("dispatching behind the end of the log")
    return [*found, *_queues(outcome, result), *_probe(outcome, case), *_readable(outcome, case)]


def of(outcome: Outcome, *codes: str) -> list[Consequence]:
    """Those with one of the codes."""
    return [one for one in outcome.consequences if one.code in codes]


def paths(outcome: Outcome, *codes: str) -> set[str]:
    """All paths that they name."""
    return {path for one in of(outcome, *codes) for path in one.paths}


def _files(outcome: Outcome, case: DamageCase) -> Iterator[str]:
    """Files of the log and the index that were deleted, each under a code that says why."""
    seen = set(case.result.get("filesAfterLoad", {}).get("deleted", ()))
    reported = paths(outcome, "DR-SEGMENTS-DELETED", "DR-LOOKAHEAD-DELETED", "DR-EMPTY-FILE-DELETED")
    log = {path for path in reported if path.startswith("commitlog/")}
    if log != {path for path in seen if path.startswith("commitlog/")}:
        yield "deleted files of the log"
    if paths(outcome, "DR-INDEX-DROPPED") != {path for path in seen if path.startswith("index/")}:
        yield "deleted index files"
    if seen and of(outcome, "DR-LOCK-HELD") and paths(outcome, "DR-SECOND-START") != seen:
        yield "what a second start deletes"


def _queues(outcome: Outcome, result: dict[str, Any]) -> Iterator[str]:
    end = result["afterLoad"]["maxPhyOffset"]
    rest = result["afterLoad"] if result["afterDrain"] == "same" else result["afterDrain"]
    too_far = {name for name, bounds in rest["queues"].items() if bounds[2] > end}
    if too_far != {_name(one) for one in of(outcome, "DR-STALE-MAX", "DR-PRE-BLANK-TAIL")}:
        yield "queues that know more than the log has"
    for one in of(outcome, "DR-PHANTOM-UNIT"):
        slot = one.facts["start"]
        low, high = rest["queues"][_name(one)][:2]
        oddities = (result.get("readOddities") or {}).get(_name(one), [])
        if slot >= high or not (low > slot or [slot, "undecodable"] in oddities):
            yield "a unit that is none"


def _name(one: Consequence) -> str:
    return f"{one.facts['topic']}-{one.facts['queue_id']}"


def _probe(outcome: Outcome, case: DamageCase) -> Iterator[str]:
    """The queue offset that the next message got; in a log that was cut before it may be free again."""
    probe = case.result.get("probePut") or {}
    if probe.get("status") != "PUT_OK":
        return
    base = base_facts(case.base)
    before = base["queues"]["OrderTopic-0"][1]
    whole = case.result["afterLoad"]["maxPhyOffset"] >= base["maxPhyOffset"]
    twice = [
        one
        for one in of(outcome, "DR-OFFSETS-TWICE", "DR-QUEUE-CUT", "DR-QUEUES-DESTROYED", "DR-MESSAGES-LOST")
        if (one.facts.get("topic", PROBED[0]), one.facts.get("queue_id", 0)) == PROBED
    ]
    if whole and probe["queueOffset"] < before and not twice:
        yield "an offset is given twice"
    for one in twice:
        if one.code == "DR-OFFSETS-TWICE" and one.facts["start"] != probe["queueOffset"]:
            yield "which offset is given twice"


def _readable(outcome: Outcome, case: DamageCase) -> Iterator[str]:
    """Fewer messages, and nobody says so; without its first files a log looks like an expired one."""
    readable = case.result.get("readable")
    fewer = isinstance(readable, int) and readable < base_facts(case.base)["messages"]
    grave = [one for one in outcome.consequences if one.severity != "note"]
    if fewer and not grave and outcome.min_physical_offset <= 0:
        yield "fewer messages can be read"
