"""`rmqtool offsets diff`: two tables of offsets, entry by entry."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.offsets.options import OffsetFilters, offsets_at
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.offsets-diff/1"
KEYS = ("kind", "group", "topic", "queue_id", "a", "b", "ahead", "state")


@verb(
    examples=[
        "rmqtool offsets diff /data/store /backup/slave/store",
        "rmqtool offsets diff /data/store/config/consumerOffset.json consumerOffset.json.bak --json",
        "rmqtool offsets diff /data/store /backup/store --group 'order-*'",
    ]
)
def command(
    first: Annotated[
        str,
        typer.Argument(metavar="STORE", help="A: a store, or one table of offsets.", show_default=False),
    ],
    second: Annotated[
        str,
        typer.Argument(metavar="OTHER", help="B: a store, or one table of offsets.", show_default=False),
    ],
    *,
    filters: OffsetFilters,
    output: OutputOptions,
) -> ExitCode:
    """Compare the stored offsets of two stores or tables.

    A row for each entry that differs; ahead is how far B is ahead of A. Exit code 0: equal, 1: different.
    """
    from rmqtool.cli.left_out import damaged_settings
    from rmqtool.output.incident_table import columns
    from rmqtool.query.offsets.compared import differing
    from rmqtool.store.consumer_offsets import DELAY_OFFSETS, offsets_file
    from rmqtool.store.coverage import coverage

    context = Context(output)
    chosen = filters.build()
    found, left = [], []
    for path in (first, second):
        offsets, opened = offsets_at(context, path, chosen)
        found.append(offsets)
        if opened is not None:
            left += damaged_settings(opened, context, offsets_file(opened), DELAY_OFFSETS)
    states: Counter[str] = Counter()
    with context.rows(SCHEMA, columns(KEYS, context.zone), csv_columns=("type", *KEYS, "level")) as rows:
        for one in differing(*found):
            states[str(one.state)] += 1
            rows.write_rows([one.row])
        same = sum(found[1].get(place) == offset for place, offset in found[0].items())
        counts = {"differences": sum(states.values()), "equal": same, "by_state": dict(states)}
        rows.finish(counts | coverage(left))
    return ExitCode.INCOMPLETE if left else ExitCode.DAMAGE if states else ExitCode.OK
