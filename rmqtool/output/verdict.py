"""The answer to "may I start this broker?" in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.check.catalogue import Severity
from rmqtool.output.sizes import human_bytes
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.recovery.outcome import Outcome

STYLES = {True: "bold green", False: "bold red", None: "bold yellow"}


def verdict(outcomes: Sequence[Outcome], safe: bool | None) -> str:
    """Begins with `Safe to start`, `DO NOT START` or `Not certain`; the gravest reasons follow."""
    if safe is None:
        return f"Not certain: {_missing(outcomes)}"
    if safe:
        late = sum(one.messages for one in outcomes[0].lags)
        more = f" {_many(late, 'message')} will be readable once the queues have caught up." if late else ""
        return f"Safe to start: nothing is lost, and no queue offset is given out twice.{more}"
    bad = next(one for one in outcomes if one.safe_to_start is False)
    given = "" if all(one.safe_to_start is False for one in outcomes) else f"with {bad.version} "
    reasons = list(_reasons(bad)) or list(_gravest(bad))
    return f"DO NOT START: {given}{'; '.join(reasons[:2])}."


def _missing(outcomes: Sequence[Outcome]) -> str:
    if any(one.starts is None for one in outcomes):
        return "the time given was over before the start was gone through to its end."
    names = {name for one in outcomes for name in one.not_looked_at}
    return f"nothing seen speaks against a start, but {_many(len(names), 'part')} of it not looked at."


def _reasons(one: Outcome) -> Iterator[str]:
    if one.lock is not None and one.lock.held:
        yield f"process {one.lock.pid} holds this store" if one.lock.pid else "a process holds this store"
    elif one.refusal is not None:
        where = f" ({one.refusal.path})" if one.refusal.path else ""
        yield f"the broker refuses: {one.refusal.message}{where}"
    if one.loss is not None and one.loss.messages:
        yield f"{_many(one.loss.messages, 'intact message')} ({human_bytes(one.loss.bytes)}) would be lost"
    queues = one.queues
    for count, text in (
        (sum(queue.repeated for queue in queues), "would be given to new messages a second time"),
        (sum(queue.lost for queue in queues), "would be taken from their queues"),
        (sum(queue.misplaced for queue in queues), "would point to the wrong message"),
        (sum(queue.hidden for queue in queues), "would be out of reach before their queue's beginning"),
    ):
        if count:
            yield f"{_many(count, 'queue offset')} {text}"
    if one.skipped:
        size = human_bytes(sum(end - start for start, end in one.skipped))
        yield f"{size} of the log would be passed over and never be readable"
    for table in one.config:
        if table.loses:
            yield f"{escape_name(table.path)} would load as {_LOADS[table.loads.value]}"


def _gravest(one: Outcome) -> Iterator[str]:
    """For what no count of the outcome shows."""
    for found in one.consequences:
        if found.severity is Severity.ERROR:
            yield found.message


_LOADS = {
    "primary": "it is",
    "bak": "its older .bak",
    "empty": "an empty table",
    "refuses": "nothing, and refuse",
}


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
