"""The answer to "is it safe to start this broker?" in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.system_topics import TIMER_TOPIC
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.check.catalogue import Severity
from rmqtool.output.sizes import human_bytes
from rmqtool.recovery.outcome import Verdict
from rmqtool.store.names import escape_name
from rmqtool.store.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.recovery.existing import ExistingDamage
    from rmqtool.recovery.outcome import Outcome

STYLES = {
    Verdict.SAFE: "bold green",
    Verdict.DAMAGED: "bold red",
    Verdict.UNSAFE: "bold red",
    Verdict.UNCERTAIN: "bold yellow",
}
_MOST = 3
"""names that a headline lists"""
_CAUSES = ("DR-BLOCKED-DIRECTORY", "DR-QUEUES-DESTROYED", "DR-LOG-GONE")
"""what says the cause of all the rest, and what to do"""


def headline(outcomes: Sequence[Outcome], verdict: Verdict) -> str:
    """Begins with `Safe to start`, `DAMAGED`, `DO NOT START` or `Not certain`; then every kind of loss."""
    if verdict is Verdict.SAFE:
        late = sum(one.messages for one in outcomes[0].lags)
        more = f" {_many(late, 'message')} will be readable once the queues have caught up." if late else ""
        more += "".join(f" But {_table(path)} are missing already." for path in _unknown(outcomes))
        return f"Safe to start: nothing is lost, and no queue offset will be reused.{more}"
    if verdict is Verdict.DAMAGED:
        worst = max((one.already_damaged for one in outcomes), key=lambda one: (one.messages, one.bytes))
        more = " Next: rmqtool recover." if any(one.already_damaged.repairable for one in outcomes) else ""
        return f"DAMAGED: {_damage(worst)} already; a start destroys nothing more.{more}"
    if verdict is Verdict.UNCERTAIN:
        return f"Not certain: {'; '.join(_missing(outcomes))}."
    bad = next(one for one in outcomes if one.verdict is Verdict.UNSAFE)
    given = "" if all(one.verdict is Verdict.UNSAFE for one in outcomes) else f"with {bad.version} "
    reasons = list(_reasons(bad)) or list(_gravest(bad))[:2]
    reasons += [f"not read: {_some(bad.not_looked_at)}"] if bad.not_looked_at else []
    return f"DO NOT START: {given}{'; '.join(reasons)}."


def _unknown(outcomes: Sequence[Outcome]) -> list[str]:
    """Tables that a start cannot lose any more; of stores without them nobody can tell that they had any."""
    found = (found for one in outcomes for found in one.consequences if found.code in _UNKNOWN)
    return list(dict.fromkeys(one.paths[0] for one in found if one.paths))


def _damage(damage: ExistingDamage) -> str:
    """What is damaged, before `already`."""
    counted = [_many(damage.messages, "message")] if damage.messages else []
    size = [f"{human_bytes(damage.bytes)} of the log"] if damage.bytes else []
    files = [_some(damage.paths)] if damage.paths and not (counted or size) else []
    tables = [_table(path) for path in damage.config]
    found = " and ".join([*counted, *size, *files, *tables])
    single = damage.messages == 1 and not (size or tables)
    return f"{found} {'is' if single else 'are'} damaged or unreadable"


def _missing(outcomes: Sequence[Outcome]) -> Iterator[str]:
    unknown = [one.version for one in outcomes if not one.version_known]
    if unknown:
        yield f"release {unknown[0]} is not known here, the newest one that is known is {RELEASES[-1]}"
    if any(one.starts is None for one in outcomes):
        yield "the time budget ran out before the simulation finished"
        return
    names = list(dict.fromkeys(name for one in outcomes for name in one.not_looked_at))
    known = next((one.already_damaged for one in outcomes if one.already_damaged), None)
    if known is not None:
        yield f"{_damage(known)} already"
    yield "nothing seen speaks against a start" + (f", but not read: {_some(names)}" if names else "")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more:,} more" if more > 0 else "")


def _reasons(one: Outcome) -> Iterator[str]:
    """The cause that an operator acts on, then every kind of loss."""
    if one.lock is not None and one.lock.held:
        yield f"process {one.lock.pid} holds this store" if one.lock.pid else "a process holds this store"
    elif one.refusal is not None:
        where = f" ({one.refusal.path})" if one.refusal.path else ""
        yield f"the broker refuses: {one.refusal.message}{where}"
    causes = [found.message for found in one.consequences if found.code in _CAUSES]
    yield from causes
    yield from (found.message for found in one.consequences if found.code in _SAID)
    yield from _of_log(one)
    if not causes:
        yield from _of_queues(one)
    for table in one.config:
        if table.loses:
            yield f"{_table(table.path)} would load as {_LOADS[table.loads.value]}"


def _of_log(one: Outcome) -> Iterator[str]:
    if one.loss is not None and one.loss.messages:
        special = [text for topic, text in _WAITING.items() if topic in one.loss.topics]
        among = f", {' and '.join(special)} among them," if special else ""
        count = _many(one.loss.messages, "intact message")
        yield f"{count} ({human_bytes(one.loss.bytes)}){among} would be lost"
    if one.skipped:
        size = human_bytes(sum(end - start for start, end in one.skipped))
        yield f"{size} of the log would be passed over and never be readable"


def _of_queues(one: Outcome) -> Iterator[str]:
    queues = one.queues
    cut, reused = sum(queue.lost for queue in queues), sum(queue.repeated for queue in queues)
    if cut:
        entries = "consume queue entry" if cut == 1 else "consume queue entries"
        yield f"{cut:,} {entries} would be truncated; new messages would reuse their queue offsets"
    if reused:
        yield f"{_many(reused, 'queue offset')} would be reused by new messages"
    wrong, hidden = sum(queue.misplaced for queue in queues), sum(queue.hidden for queue in queues)
    if wrong:
        entries = "consume queue entry" if wrong == 1 else "consume queue entries"
        yield f"{wrong:,} {entries} would point to the wrong message"
    if hidden:
        count = _many(hidden, "message")
        yield f"{count} would have no consume queue entry: consumers will not receive them"
    harmed = {
        queue.topic for queue in queues if queue.lost or queue.repeated or queue.misplaced or queue.hidden
    }
    waiting = [text for topic, text in _WAITING.items() if topic in harmed]
    if waiting:
        yield f"{' and '.join(waiting)} are affected"


def _gravest(one: Outcome) -> Iterator[str]:
    """For what no count of the outcome shows."""
    for found in one.consequences:
        if found.severity is Severity.ERROR:
            yield found.message


def _table(path: str) -> str:
    name = path.rpartition("/")[2]
    what = {
        "consumerOffset.json": "consumer offsets",
        "lmqConsumerOffset.json": "consumer offsets",
        "delayOffset.json": "delay offsets",
        "topics.json": "topics",
        "subscriptionGroup.json": "consumer groups",
    }.get(name, "the config table")
    return f"{what} ({escape_name(path)})"


_UNKNOWN = ("DR-TOPICS-UNKNOWN", "DR-OFFSETS-UNKNOWN", "DR-DELAY-OFFSETS-UNKNOWN")
_WAITING = {SCHEDULE_TOPIC: "delayed messages", TIMER_TOPIC: "timers"}
_SAID = frozenset({"DR-BLOCKED-FILE", "DR-OTHER-OWNER", "DR-TABLE-UNREAD"})
"""consequences that no part of the outcome tells of"""
_LOADS = {
    "primary": "it is",
    "bak": "its older .bak",
    "empty": "an empty table",
    "refuses": "nothing, and refuse",
}


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
