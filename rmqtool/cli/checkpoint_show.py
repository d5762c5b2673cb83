"""`rmqtool checkpoint show`: the checkpoint beside what the data proves."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions, VersionOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, PlanRefusedError

if TYPE_CHECKING:
    from rmqtool.cli.proving import Proven
    from rmqtool.store.layout import Store

SCHEMA = "rmqtool.checkpoint-show/1"


@verb(
    examples=[
        "rmqtool checkpoint show /data/store",
        "rmqtool checkpoint show /data/store --as-version 4.9.8 --json",
    ],
    formats=("table", "json"),
)
def command(
    path: StoreArgument = None,
    *,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """The checkpoint, and what the data proves about it.

    Reads the whole log, every body checked, and the ends of all queues: the store time of the last valid
    record, of the oldest message that no queue has yet, the end of the newest index file. Beside each field
    stands the latest value that is safe, and for both the segment in which the recovery of an unclean stop
    would begin. Exit 1 when a time is later than the data proves, so that such a recovery would begin
    too late; 3 when a part of the log cannot be seen.
    """
    from formats.checkpoint import TIMES
    from rmqtool.cli.opened import log_left_out
    from rmqtool.cli.proving import proven
    from rmqtool.store.required import require_root

    context = Context(output)
    opened = open_store(context, path, store)
    require_root(opened)
    left = log_left_out(context, opened)
    try:
        found = proven(context, opened, read, version)
    except PlanRefusedError as error:
        if context.format == "json":
            context.document(SCHEMA, _unproven(opened, version, str(error)))
        raise
    late = [name for name in TIMES if found.stored[name] > found.safe[name]]
    if context.format == "json":
        context.document(SCHEMA, _document(found, late, left))
    else:
        _page(context, found, late)
    if left:
        return ExitCode.INCOMPLETE
    return ExitCode.DAMAGE if late else ExitCode.OK


def _unproven(store: Store, version: VersionOptions, reason: str) -> dict[str, Any]:
    """What is known of a checkpoint where a broker refuses the store."""
    from formats.checkpoint import CHECKPOINT_FIELDS
    from rmqtool.repair.checkpoint import PATH, stored_values

    stored: dict[str, int] | dict[str, None] = dict.fromkeys(CHECKPOINT_FIELDS)
    with suppress(PlanRefusedError):  # which is the reason then
        stored = stored_values(store)
    return {
        "release": version.release_of(store),
        "exists": store.file(PATH) is not None,
        "fields": {name: {"stored": value, "safe": None, "too_late": None} for name, value in stored.items()},
        "proof": None,
        "abnormal_start": None,
        "refusal": reason,
        "complete": False,
        "incomplete_reason": "damage",
    }


def _document(found: Proven, late: list[str], left: list[dict[str, Any]]) -> dict[str, Any]:
    proof = found.proof
    return {
        "release": found.release,
        "exists": found.exists,
        "fields": {
            name: {"stored": value, "safe": found.safe[name], "too_late": name in late}
            for name, value in found.stored.items()
        },
        "proof": {
            "log_end": proof.log_end,
            "stop_reason": proof.stop_reason.value,
            "last_physical_offset": proof.last_offset,
            "last_store_timestamp": proof.last_timestamp,
            "undispatched_messages": proof.lacking,
            "oldest_undispatched_timestamp": proof.lacking_timestamp,
            "index_end_physical_offset": proof.index_end_offset,
            "index_end_timestamp": proof.index_end_timestamp,
        },
        "abnormal_start": {
            "stored": _start(found.start_stored),
            "safe": _start(found.start_safe),
        },
        "refusal": None,
        "complete": not left,
        **({"incomplete_reason": "unreadable", "not_covered": left} if left else {}),
    }


def _start(plan: Any) -> dict[str, int | None] | None:
    if plan is None:
        return None
    return {"start_segment": plan.start_segment, "bytes_to_scan": plan.bytes_to_scan}


def _page(context: Context, found: Proven, late: list[str]) -> None:
    from formats.checkpoint import TIMES
    from rmqtool.output.sizes import human_bytes
    from rmqtool.output.tablerows import Column

    def shown(name: str, value: int) -> str:
        return f"{value} {context.zone.iso(value)}" if name in TIMES and value > 0 else str(value)

    page, proof = context.page(), found.proof
    page.heading("Checkpoint" if found.exists else "There is no checkpoint: a broker reads zeros")
    rows = [
        {
            "field": name,
            "stored": shown(name, value),
            "safe": shown(name, found.safe[name]),
            "verdict": "too late" if name in late else "ok",
        }
        for name, value in found.stored.items()
    ]
    if page.width is None:
        page.table((Column("field"), Column("stored"), Column("safe"), Column("verdict")), rows)
    else:  # two times with their numbers are wider than most terminals
        for row in rows:
            page.facts([(row["field"], row["verdict"])])
            page.facts([("  stored", row["stored"]), ("  safe", row["safe"])])
    page.heading("Proof")
    last = None if proof.last_timestamp is None else context.zone.iso(proof.last_timestamp)
    lacking = None if proof.lacking_timestamp is None else context.zone.iso(proof.lacking_timestamp)
    page.facts(
        [
            ("release", found.release),
            ("valid log ends at", f"{proof.log_end} ({proof.stop_reason.value})"),
            ("last record", None if last is None else f"{proof.last_offset}, stored {last}"),
            (
                "without an entry",
                f"{proof.lacking} messages" + (f", the oldest {lacking}" if lacking else ""),
            ),
            ("index ends at", proof.index_end_offset),
        ]
    )
    page.heading("Recovery of an unclean stop would begin")
    for name, plan in (("as it is", found.start_stored), ("with safe values", found.start_safe)):
        if plan is not None and plan.start_segment is not None:
            most = human_bytes(plan.bytes_to_scan)
            page.line(f"  {name}: in segment {plan.start_segment}, at most {most} to scan")
    page.close()
