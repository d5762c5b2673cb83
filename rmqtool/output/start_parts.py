"""Facts and table rows of a simulated start, in the words of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.check.catalogue import Severity
from rmqtool.output.sizes import human_bytes
from rmqtool.output.tablerows import Column

if TYPE_CHECKING:
    from rmqtool.recovery.outcome import Outcome, Verdict

_STARTS = {True: "yes", False: "no", None: "?"}
_STOPS = {
    "zero_tail": "the ordinary end of data",
    "blank": "the end of the last segment",
    "end": "the end of the last segment",
    "bad_magic": "bytes that are not a record (bad magic)",
    "bad_crc": "a body that does not match its CRC",
    "bad_size": "a record whose size does not fit its fields",
    "bad_fields": "a field that points outside its record, or an invalid number",
    "bad_property_crc": "properties that do not fit their CRC",
    "no_dup_info": "a record without DUP_INFO",
    "no_files": "no files",
    "too_large": "a stated size that no Java array has",
}


def start_facts(outcome: Outcome) -> list[tuple[str, Any]]:
    """What recovery does, in short."""
    refusal, lock = outcome.refusal, outcome.lock
    unclean = "abnormal: unclean shutdown (abort file present)"
    reason = outcome.stop_reason
    timers = any(one.code == "DR-UNCHECKED-TIMERS" for one in outcome.consequences)
    return [
        ("starts", f"no: {refusal.message}" if refusal else _STARTS[outcome.starts]),
        ("refused over", refusal.path if refusal else None),
        ("lock", None if lock is None else f"{'held' if lock.held else 'free'} ({lock.reason})"),
        ("recovery", "normal: clean shutdown" if outcome.mode.value == "normal" else unclean),
        ("begins at", None if outcome.start_segment is None else f"segment {outcome.start_segment}"),
        ("scans at most", None if outcome.start_segment is None else human_bytes(outcome.bytes_to_scan)),
        ("stops at", outcome.stop_offset),
        ("because of", None if reason is None else _STOPS[reason.value]),
        ("log afterwards", _range(outcome)),
        ("queues", f"{len(outcome.queues):,}" if outcome.queues else None),
        ("index dropped", f"{len(outcome.index_dropped)} files" if outcome.index_dropped else None),
        ("timers", "entries of the timer log are not compared with their messages" if timers else None),
    ]


def _range(outcome: Outcome) -> str | None:
    if outcome.starts is None or (outcome.refusal is not None and outcome.start_segment is None):
        return None
    return f"{outcome.min_physical_offset} to {outcome.max_physical_offset}"


def consequence_lines(outcome: Outcome) -> list[str]:
    """Errors and warnings, a line for each code: its first case, and how many there are more."""
    kinds: dict[str, list[str]] = {}
    for one in outcome.consequences:
        if one.severity is not Severity.NOTE:
            kinds.setdefault(one.code, []).append(one.message)
    return [
        f"{code}: {messages[0]}{f' (and {len(messages) - 1:,} more like it)' if messages[1:] else ''}"
        for code, messages in kinds.items()
    ]


def what_if_row(number: int, outcome: Outcome, verdict: Verdict) -> dict[str, Any]:
    """One workaround in the table that compares them. verdict: over every release in question."""
    moved = [one for one in outcome.queues if one.lost or one.misplaced or one.repeated or one.hidden]
    return {
        "number": number,
        "starts": _STARTS[outcome.starts],
        "mode": outcome.mode.value,
        "from": outcome.start_segment,
        "scan": human_bytes(outcome.bytes_to_scan),
        "kept": None if outcome.starts is None else outcome.max_physical_offset,
        "lost": None if outcome.loss is None else outcome.loss.messages,
        "moved": len(moved),
        "deletes": len(outcome.deletes),
        "verdict": verdict.value,
    }


def disk_facts(disk: dict[str, Any]) -> list[tuple[str, Any]]:
    """How full the disk is, and what comes next."""
    coming = disk["next_threshold"]
    return [
        ("used", f"{disk['used_percent']} %, {human_bytes(disk['usable_bytes'])} usable"),
        (
            "next threshold",
            None
            if coming is None
            else f"{coming['percent']} % in {human_bytes(coming['bytes_until'])} ({coming['name']})",
        ),
        ("cleaning", f"deleteWhen={disk['delete_when']}, fileReservedTime={disk['file_reserved_hours']}h"),
    ]


WHAT_IF = (
    Column("number", "", right=True, width=2),
    Column("starts"),
    Column("mode"),
    Column("from", right=True),
    Column("scan", right=True),
    Column("kept", "kept to", right=True),
    Column("lost", right=True),
    Column("moved", right=True),
    Column("deletes", right=True),
    Column("verdict"),
)
QUEUES = (
    Column("topic", shrinks=True),
    Column("queue_id", "queue", right=True),
    Column("min_offset", "min", right=True),
    Column("max_offset", "max", right=True),
    Column("lost", right=True),
    Column("misplaced", "wrong slot", right=True),
    Column("repeated", "reused", right=True),
    Column("hidden", "unreachable", right=True),
)
LAG = (
    Column("topic", shrinks=True),
    Column("queue_id", "queue", right=True),
    Column("messages", right=True),
    Column("bytes", right=True),
    Column("oldest"),
)
DISK = (
    Column("percent", "above %", right=True),
    Column("passed", show=lambda passed: "PASSED" if passed else "no"),
    Column("effect", "then"),
)
