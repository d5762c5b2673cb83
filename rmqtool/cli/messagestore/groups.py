"""`rmqtool store groups`: how far consumer groups are."""

from __future__ import annotations

from typing import Any

from rmqtool.cli.context import Context
from rmqtool.cli.messagestore.engine import DirPositional
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.store-groups/1"
KEYS = ("group", "topic", "queue_id", "offset", "max_offset", "lag")


@verb(
    examples=[
        "rmqtool store groups /data/store",
        "rmqtool store groups /data/store --format ndjson",
    ]
)
def command(
    path: DirPositional, *, store: StoreOptions, read: ReadOptions, output: OutputOptions
) -> ExitCode:
    """List what consumer groups have committed, and how many messages they have yet to consume.

    Also beside a running broker, whose offsets are those that it wrote last, every five seconds. lag is empty
    where the queue has no files, and below 0 where the offset is beyond its end. Messages in the log
    that have lost their consume queue entry are counted, and make the answer incomplete.
    """
    from rmqtool.cli.left_out import unlisted, warned
    from rmqtool.output.tablerows import Column
    from rmqtool.query.config_lost import config_lost
    from rmqtool.query.group_lag import group_rows
    from rmqtool.store.consumer_offsets import offsets_file
    from rmqtool.store.coverage import coverage
    from rmqtool.store.required import require_root

    context = Context(output)
    opened = open_store(context, path, store)
    require_root(opened)
    left: list[dict[str, Any]] = [
        *unlisted(opened, context),
        *warned(config_lost(opened, offsets_file(opened)), context),
    ]
    columns = [
        Column(key, shrinks=key in {"group", "topic"}, right=key not in {"group", "topic"}) for key in KEYS
    ]
    groups: set[str] = set()
    with (
        context.progress("reading", 0) as progress,
        context.rows(SCHEMA, columns, csv_columns=("type", *KEYS)) as rows,
    ):
        count = 0
        reading = read.of_log(opened, progress.advance, expect=progress.expect_more)
        for row in group_rows(opened, left, reading):
            groups.add(row["group"])
            count += 1
            rows.write_rows([row])
        rows.finish({"groups": len(groups), "queues": count} | coverage(left))
    return ExitCode.INCOMPLETE if left else ExitCode.OK
