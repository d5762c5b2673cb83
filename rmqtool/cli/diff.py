"""`rmqtool diff`: two stores against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.opened import log_left_out, open_store
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.query.diff.verdict import Verdict

SCHEMA = "rmqtool.diff/1"
KEYS = ("state", "from", "to", "messages", "topic", "queue_id", "queue_offset", "uniq_key", "store_timestamp")


@verb(
    examples=[
        "rmqtool diff /data/store /backup/slave/store",
        "rmqtool diff /data/master /data/slave --format ndjson",
        "rmqtool diff /data/master /data/slave --export-only-in b --to only-slave.replay",
    ]
)
def command(
    first: Annotated[str, typer.Argument(metavar="STORE", help="A: a store.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="OTHER", help="B: a store.", show_default=False)],
    export_only_in: Annotated[
        Literal["a", "b"] | None,
        typer.Option(
            "--export-only-in",
            help="Write the messages that only this store has to the file of --to.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="New file of --export-only-in: replayable, as export makes one for store load.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --to if it exists.")] = False,
    *,
    read: ReadOptions,
    output: OutputOptions,
) -> ExitCode:
    """Compare the commit logs of two stores: what both have, where they differ, which one to keep.

    First byte by byte over the physical range that both have, then by records where bytes differ, then by
    messages (topic, unique id, birth, body): only_a, only_b, moved (the same message at another physical
    offset), changed (at the same place with other bytes). Consume queues, index and tables are not compared:
    rebuild makes the first two from the log, offsets diff compares stored offsets. Exit code 0: equal, 1:
    different.
    """
    from rmqtool.cli.file_beside import file_beside
    from rmqtool.cli.replay_target import write_replay
    from rmqtool.output.incident_table import columns
    from rmqtool.query.diff.compare import Comparison
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.coverage import coverage

    context = Context(output)
    if (export_only_in is None) != (to is None):
        raise UsageError("--export-only-in and --to FILE go together")
    stores = [open_store(context, path, StoreOptions()) for path in (first, second)]
    left = [row for one in stores for row in log_left_out(context, one)]
    target = None if to is None else file_beside(to, stores, "--to", force=force)
    with context.progress(
        "comparing", sum(one.size for store in stores for one in store.segments)
    ) as progress:
        options = read.of_log(stores[0], progress.advance)
        options = replace(options, live=options.live or read.of_log(stores[1]).live, input_bytes=None)
        found = Comparison(stores[0], stores[1], options)
        table = columns(KEYS, context.zone)
        with context.rows(
            SCHEMA, table, csv_columns=("type", *KEYS, "physical_offset", "b_physical_offset")
        ) as rows:
            for row in found.ranges():
                rows.write_rows([row])
            for names, values in found.messages():
                rows.write_columns(names, values, omit_null=("keys",))
            verdict = found.verdict
            judged = {"verdict": verdict.verdict, "keep": verdict.keep, "why": verdict.why}
            exported = None
            if target is not None and export_only_in is not None:
                store = stores[export_only_in == "b"]
                places = found.exclusive(export_only_in)
                exported = write_replay(store, target, options, MessageFilter(), places)
            not_compared = {"not_looked_at": ["consume queues", "index", "config"]}
            rows.finish(
                found.summary()
                | judged
                | ({"exported": exported} if exported is not None else {})
                | not_compared
                | coverage([*left, *found.not_covered()])
            )
    if context.format == "table":
        _conclude(context, verdict, {"a": found.only_a, "b": found.only_b}, export_only_in)
    if left or found.not_covered():
        return ExitCode.INCOMPLETE
    return ExitCode.OK if verdict.verdict == "equal" else ExitCode.DAMAGE


def _conclude(context: Context, verdict: Verdict, only: dict[str, int], exported: str | None) -> None:
    """The verdict in words, and what to do with what only the other one has."""
    said = {
        "equal": "The stores are equal",
        "a_ahead": "A is ahead of B",
        "b_ahead": "B is ahead of A",
        "diverged": "The stores have diverged",
    }[verdict.verdict]
    context.console.note(f"{said}: {verdict.why}.")
    if verdict.keep == "both":
        return
    other = "b" if verdict.keep == "a" else "a"
    written = only[other] and exported is None
    context.console.note(
        f"Keep {verdict.keep.upper()}"
        + (f"; --export-only-in {other} --to FILE writes what only {other.upper()} has." if written else ".")
    )
