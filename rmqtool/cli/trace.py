"""`rmqtool trace`: one message over all its copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_log_and_offsets
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreOptions, StorePositional
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCHEMA = "rmqtool.trace/1"
KEYS = (
    "stage",
    "store_timestamp",
    "topic",
    "queue_id",
    "queue_offset",
    "physical_offset",
    "consumed_by",
    "not_consumed_by",
)


@verb(
    examples=[
        "rmqtool trace /data/store order-4711",
        "rmqtool trace /data/store 7F0000010A2F18B4AAC2123456780000 --json",
        "rmqtool trace /data/store order-4711 --source scan",
    ]
)
def command(
    path: StorePositional,
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY|ID",
            help="An element of KEYS, a unique client id, or an offset message id.",
            show_default=False,
        ),
    ],
    source: Annotated[
        Literal["auto", "index", "scan"],
        typer.Option(
            "--source", help="auto: the index for what it covers, the log for the rest. Default: auto."
        ),
    ] = "auto",
    *,
    store: StoreOptions,
    read: ReadOptions,
    output: OutputOptions,
) -> ExitCode:
    """Follow a message over its copies: half, committed, scheduled, delivered, retried, dead-lettered.

    Copies are found by their unique client id, in order of store time, each with the groups that have
    consumed it (consumed_by) and those that have not. A half message without a commit is rolled back
    where an op message settles it. Records of the trace topic about it are decoded. A key of several
    messages gives all of them.
    """
    from rmqtool.output.incident_table import columns
    from rmqtool.query.by_key import KeySource
    from rmqtool.query.views.trace import Trace
    from rmqtool.store.coverage import Incomplete, coverage, each_once

    context = Context(output)
    opened, left = open_log_and_offsets(context, path, store)
    with context.progress("reading", 0) as progress:
        found = Trace(
            opened, key, read.of_log(opened, progress.advance, expect=progress.expect_more), KeySource(source)
        )
        steps = found.rows()
    contexts = [one for one in steps if one["type"] == "trace"]
    csv_columns = ("type", *KEYS, "uniq_key", "reconsume_times")
    with context.rows(
        SCHEMA, columns(KEYS, context.zone), csv_columns=csv_columns, banner=_context_line(context)
    ) as rows:
        rows.write_rows(steps)
        missing = each_once([*left, *found.left])
        if found.truncated:
            missing.append({"path": "commitlog", "reason": Incomplete.LIMIT.value})
        counts = {"steps": len(steps) - len(contexts), "traces": len(contexts), "uniq_keys": found.uniq_keys}
        rows.finish(counts | coverage(missing))
    if not steps:
        context.console.note(f"no message has the key or id '{key}'")
    if left or found.left:
        return ExitCode.INCOMPLETE
    return ExitCode.OK if steps else ExitCode.DAMAGE


def _context_line(context: Context) -> Callable[[Mapping[str, Any]], str | None]:
    """A context of a trace record, in one line."""

    def banner(row: Mapping[str, Any]) -> str | None:
        if row["type"] != "trace":
            return None
        time = row.get("timestamp")
        when = context.zone.iso(time) if isinstance(time, int) else "-"
        names = ("group", "client_host", "store_host", "success", "cost_ms", "retry_times", "state")
        facts = "  ".join(f"{name} {row[name]}" for name in names if name in row)
        return f"client: {row['trace_type']}  {when}  {facts}"

    return banner
