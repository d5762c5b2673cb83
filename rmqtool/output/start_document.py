"""A simulated start as the JSON document of `doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.recovery.outcome import Verdict
from rmqtool.store.coverage import Incomplete
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.recovery.advice import Advice
    from rmqtool.recovery.diagnosis import Diagnosis
    from rmqtool.recovery.existing import ExistingDamage
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
        "min_physical_offset": None if outcome.starts is None else outcome.min_physical_offset,
        "max_physical_offset": None if outcome.starts is None else outcome.max_physical_offset,
        "confirm_offset": outcome.confirm_offset,
        "reput_from": outcome.reput_from,
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
        "dispatch_lag": [
            {
                "topic": escape_name(one.topic),
                "queue_id": one.queue_id,
                "messages": one.messages,
                "bytes": one.bytes,
                "oldest_timestamp": one.oldest_timestamp,
            }
            for one in outcome.lags
        ],
        "timing_dependent": [{"what": one.what, "message": one.message} for one in outcome.timing_dependent],
        "consequences": [one.row() for one in outcome.consequences],
        "verdict": outcome.verdict.value,
        "safe_to_start": outcome.safe_to_start,
        "already_damaged": _damage(outcome.already_damaged),
        "version_known": outcome.version_known,
        "not_looked_at": list(outcome.not_looked_at),
        **completeness([outcome]),
    }


def diagnosis_document(
    asked: Diagnosis, disk: dict[str, Any], advice: Sequence[Advice], *, interrupted: bool
) -> dict[str, Any]:
    """The whole answer of `doctor`; keys as in the command-line contract."""
    reported: dict[str, Any] = start_document(asked.outcomes[0]) if asked.outcomes else {}
    every = [*asked.outcomes, *(one for _, found, _ in asked.scenarios for one in found)]
    reported.pop("incomplete_reason", None)
    overall = Verdict.UNCERTAIN if interrupted else asked.verdict
    return {
        **reported,
        "version_source": "given" if asked.given is not None else "inferred",
        "versions_considered": [one.version for one in asked.outcomes],
        "disk": disk,
        "what_if": [
            {
                "cure": scenario.text,
                **start_document(found[0]),
                "verdict": verdict.value,
                "safe_to_start": verdict.safe,
            }
            for scenario, found, verdict in asked.scenarios
            if found
        ],
        "advice": [{"command": one.command, "why": one.why} for one in advice],
        "verdict": overall.value,
        "safe_to_start": overall.safe,
        **completeness(every, interrupted=interrupted),
    }


def completeness(outcomes: Sequence[Outcome], *, interrupted: bool = False) -> dict[str, Any]:
    """`complete` of several starts together, and why it is false."""
    if not interrupted and all(one.complete for one in outcomes):
        return {"complete": True}
    reason = Incomplete.BUDGET if any(one.unread_by_choice for one in outcomes) else Incomplete.UNREADABLE
    return {
        "complete": False,
        "incomplete_reason": (Incomplete.INTERRUPTED if interrupted else reason).value,
    }


def _damage(damage: ExistingDamage) -> dict[str, Any]:
    return {
        "messages": damage.messages,
        "bytes": damage.bytes,
        "paths": list(damage.paths),
        "config": list(damage.config),
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
