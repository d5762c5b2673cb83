"""`rmqtool offsets audit`: stored offsets against their queues."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rmqtool.cli.context import Context
from rmqtool.cli.offsets.options import OffsetFilters, note_unmatched
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions, VersionOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.offsets-audit/1"
KEYS = (
    "kind",
    "group",
    "topic",
    "queue_id",
    "offset",
    "min_offset",
    "max_offset",
    "lag",
    "next_timestamp",
    "state",
)


@verb(
    examples=[
        "rmqtool offsets audit /data/store",
        "rmqtool offsets audit /data/store --group 'order-*' --format ndjson",
        "rmqtool offsets audit /data/store --kind delay",
    ]
)
def command(
    path: StoreArgument = None,
    *,
    filters: OffsetFilters,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Check the stored offsets of consumer groups, delay levels and light queues against their queues.

    Each offset with the queue's min and max offset, lag and the store time of the next message (for a delay
    level also when that is due). below_min: messages of the group have expired. beyond_max: the group
    receives nothing until the queue has come that far. unknown_queue: the store has no such queue. missing:
    the queue has messages, the group has no offset there. Exit code 1 says that an offset is wrong; offsets
    clamp corrects those outside their queues.
    """
    from rmqtool.cli.left_out import unlisted, warned
    from rmqtool.output.incident_table import columns
    from rmqtool.query.config_lost import config_lost
    from rmqtool.query.offsets.audit import audit
    from rmqtool.query.served_queue import read_rules
    from rmqtool.store.consumer_offsets import DELAY_OFFSETS, offsets_file
    from rmqtool.store.coverage import coverage
    from rmqtool.store.required import require_root

    context = Context(output)
    opened = open_store(context, path, store)
    require_root(opened)
    chosen, rules = filters.build(), read_rules(opened, version.release)
    left: list[dict[str, Any]] = [
        *unlisted(opened, context),
        *warned(config_lost(opened, offsets_file(opened), DELAY_OFFSETS), context),
    ]
    states: Counter[str] = Counter()
    wrong = 0
    with (
        context.progress("reading", 0) as progress,
        context.rows(
            SCHEMA, columns(KEYS, context.zone), csv_columns=("type", *KEYS, "level", "deliver_timestamp")
        ) as rows,
    ):
        reading = read.of_log(opened, progress.advance, expect=progress.expect_more)
        for one in audit(opened, rules, chosen, left, reading):
            states[str(one.state)] += 1
            wrong += one.wrong
            rows.write_rows([one.row])
        note_unmatched(context, filters, bool(states))
        counts = {"offsets": sum(states.values()), "wrong": wrong, "by_state": dict(states)}
        version_used = {"version": rules.version, "version_source": rules.source}
        rows.finish(counts | version_used | coverage(left))
    if wrong and not context.console.quiet:
        context.console.note("next: rmqtool offsets clamp shows what it would set")
    return ExitCode.INCOMPLETE if left else ExitCode.DAMAGE if wrong else ExitCode.OK
