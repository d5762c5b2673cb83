"""A foretold start as the JSON document of `doctor`, and as a page for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.sizes import human_bytes
from rmqtool.output.tablerows import Column
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.output.page import Page
    from rmqtool.recovery.loss import Loss
    from rmqtool.recovery.outcome import Outcome


def start_document(outcome: Outcome) -> dict[str, Any]:
    """What is known of one start; keys as in the command-line contract."""
    refusal, lock = outcome.refusal, outcome.lock
    return {
        "version": outcome.version,
        "assumed_settings": outcome.assumed_settings,
        "lock": {"held": lock.held if lock else None, "pid": lock.pid if lock else None},
        "starts": outcome.starts,
        "refusal": None
        if refusal is None
        else {"code": refusal.code, "message": refusal.message, "path": refusal.path},
        "mode": outcome.mode.value,
        "start_segment": outcome.start_segment,
        "bytes_to_scan": outcome.bytes_to_scan,
        "stop_offset": outcome.stop_offset,
        "stop_reason": outcome.stop_reason.value if outcome.stop_reason else None,
        "min_physical_offset": outcome.min_physical_offset,
        "max_physical_offset": outcome.max_physical_offset,
        "deletes": list(outcome.deletes),
        "truncates": [{"path": one.path, "position": one.position} for one in outcome.truncates],
        "index_dropped": list(outcome.index_dropped),
        "queues": [
            {
                "topic": escape_name(one.topic),
                "queue_id": one.queue_id,
                "min_offset": one.min_offset,
                "max_offset": one.max_offset,
                "misplaced": one.misplaced,
                "lost": one.lost,
                "repeated": one.repeated,
                "hidden": one.hidden,
            }
            for one in outcome.queues
        ],
        "config": [{"path": one.path, "loads": one.loads.value} for one in outcome.config],
        "loss": _loss(outcome.loss),
        "skipped": [{"from": start, "to": end} for start, end in outcome.skipped],
        "timing_dependent": [{"what": one.what, "message": one.message} for one in outcome.timing_dependent],
        "consequences": [one.row() for one in outcome.consequences],
        "safe_to_start": outcome.safe_to_start,
        "not_looked_at": list(outcome.not_looked_at),
        "complete": outcome.complete,
    }


def _loss(loss: Loss | None) -> dict[str, Any] | None:
    if loss is None:
        return None
    return {
        "messages": loss.messages,
        "bytes": loss.bytes,
        "first_timestamp": loss.first_timestamp,
        "last_timestamp": loss.last_timestamp,
        "topics": {escape_name(name): count for name, count in sorted(loss.topics.items())},
        "ranges": [{"from": one.start, "to": one.end, "recoverable": one.recoverable} for one in loss.ranges],
    }


_VERDICTS = {
    True: ("Safe to start.", "green"),
    False: ("Do not start this broker yet.", "red"),
    None: ("Not certain: part of the store was not looked at.", "yellow"),
}


def write_start_page(page: Page, outcomes: Sequence[Outcome], *, safe: bool | None) -> None:
    """The verdict, then what each start would do."""
    text, style = _VERDICTS[safe]
    page.line(text, style)
    for outcome in outcomes:
        _one(page, outcome)
    page.close()


def _one(page: Page, outcome: Outcome) -> None:
    page.heading(f"A broker {outcome.version}")
    refusal, loss = outcome.refusal, outcome.loss
    where = f" ({refusal.path})" if refusal and refusal.path else ""
    page.facts(
        [
            ("starts", "yes" if refusal is None else f"no: {refusal.message}{where}"),
            ("recovery", outcome.mode.value),
            ("begins at", outcome.start_segment),
            ("reads at most", human_bytes(outcome.bytes_to_scan)),
            ("stops at", outcome.stop_offset),
            ("because of", outcome.stop_reason.value if outcome.stop_reason else None),
            ("log afterwards", f"{outcome.min_physical_offset} to {outcome.max_physical_offset}"),
            ("deletes", ", ".join(outcome.deletes) or None),
            ("truncates", ", ".join(f"{one.path} at {one.position}" for one in outcome.truncates) or None),
            ("loses", f"{loss.messages} intact messages" if loss and loss.messages else None),
            ("not looked at", ", ".join(outcome.not_looked_at) or None),
        ]
    )
    odd = [one for one in outcome.queues if one.lost or one.misplaced or one.repeated or one.hidden]
    if odd:
        names = ("topic", "queue_id", "min_offset", "max_offset", "lost", "misplaced", "repeated", "hidden")
        columns = [Column(name, shrinks=name == "topic", right=name != "topic") for name in names]
        page.heading("Queues that come to harm")
        page.table(columns, [{name: getattr(one, name) for name in names} for one in odd])
    tables = [one for one in outcome.config if one.loses or one.loads.value == "refuses"]
    if tables:
        page.heading("Configuration files")
        page.facts((one.path, one.loads.value) for one in tables)
