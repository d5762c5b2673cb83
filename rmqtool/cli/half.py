"""`rmqtool half`: transactions that are open."""

from __future__ import annotations

from rmqtool.cli.context import Context
from rmqtool.cli.moment import AtOption, moment
from rmqtool.cli.opened import open_log_and_offsets
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.half/1"
KEYS = ("type", "topic", "group", "age_ms", "checks", "physical_offset", "transaction_id")


@verb(
    examples=[
        "rmqtool half /data/store",
        "rmqtool half /backup/store --at 2024-05-01T08:00:00 --json",
    ]
)
def command(
    path: StoreArgument = None,
    at: AtOption = "now",
    *,
    store: StoreOptions,
    read: ReadOptions,
    output: OutputOptions,
) -> ExitCode:
    """Open transactions: half messages that are neither committed nor rolled back.

    Each with its real topic, producer group, age and how often the broker has asked for it; then op messages
    that settle a half message which the log does not have. Those of half messages that have expired are not
    reported.
    """
    from rmqtool.output.incident_table import columns
    from rmqtool.query.views.half import HalfMessages
    from rmqtool.store.coverage import coverage

    context = Context(output)
    opened, left = open_log_and_offsets(context, path, store)
    with context.progress("reading", sum(one.size for one in opened.segments)) as progress:
        found = HalfMessages(opened, read.of_log(opened, progress.advance), moment(at, context.zone))
        found.read()
        csv_columns = (*KEYS, "queue_id", "queue_offset", "born_timestamp")
        with context.rows(SCHEMA, columns(KEYS, context.zone), csv_columns=csv_columns) as rows:
            rows.write_rows(found.rows())
            rows.finish(found.summary() | coverage([*left, *found.left]))
    return ExitCode.INCOMPLETE if left or found.left else ExitCode.OK
