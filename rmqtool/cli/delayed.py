"""`rmqtool delayed`: messages that wait for a delay level."""

from __future__ import annotations

from rmqtool.cli.context import Context
from rmqtool.cli.moment import AtOption, moment
from rmqtool.cli.opened import open_log_and_offsets
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.delayed/1"
KEYS = (
    "level",
    "deliver_timestamp",
    "overdue_ms",
    "topic",
    "queue_id",
    "physical_offset",
    "keys",
    "uniq_key",
)


@verb(
    examples=[
        "rmqtool delayed /data/store",
        "rmqtool delayed /backup/store --at 2024-05-01T08:00:00 --format ndjson",
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
    """Pending delayed messages: real topic, level, when they are due, how long they are overdue.

    From the commit log and delayOffset.json: what lies before the offset of its level was delivered and is
    not listed. The summary has each level with its offset, how many are pending, how many are overdue, and
    when the next one is due. Timers of arbitrary time (rmq_sys_wheel_timer) are not read. The delay levels
    are those of --store-config, if given.
    """
    from rmqtool.output.incident_table import columns
    from rmqtool.query.views.delayed import Delayed
    from rmqtool.store.consumer_offsets import DELAY_OFFSETS
    from rmqtool.store.coverage import coverage

    context = Context(output)
    opened, left = open_log_and_offsets(context, path, store, DELAY_OFFSETS)
    with context.progress("reading", sum(one.size for one in opened.segments)) as progress:
        found = Delayed(opened, read.of_log(opened, progress.advance), moment(at, context.zone))
        csv_columns = ("type", *KEYS, "store_timestamp", "queue_offset")
        with context.rows(SCHEMA, columns(KEYS, context.zone), csv_columns=csv_columns) as rows:
            rows.write_rows(found.rows())
            timers = ["timers of arbitrary time"] * any(one.path == "timerwheel" for one in opened.files)
            not_looked_at = {"not_looked_at": timers} if timers else {}
            rows.finish(found.summary() | not_looked_at | coverage([*left, *found.left]))
    if context.format == "table":
        for one in found.summary()["by_level"]:
            due = context.zone.iso(one["next_timestamp"])
            late = f", {one['overdue']:,} overdue" if one["overdue"] else ""
            context.console.note(
                f"level {one['level']}: {one['messages']:,} waiting{late}, next due {due}, "
                f"offset {'none' if one['offset'] is None else one['offset']}"
            )
    return ExitCode.INCOMPLETE if left or found.left else ExitCode.OK
