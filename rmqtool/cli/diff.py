"""`rmqtool diff`: two stores against each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.opened import log_left_out, open_store
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.query.diff.compare import Comparison
    from rmqtool.store.layout import Store

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
            help="Write the messages that only this one has, with --to FILE.",
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
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --to.")] = False,
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
    from rmqtool.output.incident_table import columns
    from rmqtool.query.diff.compare import Comparison
    from rmqtool.store.coverage import coverage

    context = Context(output)
    if (export_only_in is None) != (to is None):
        raise UsageError("--export-only-in and --to FILE go together")
    stores = [open_store(context, path, StoreOptions()) for path in (first, second)]
    left = [row for one in stores for row in log_left_out(context, one)]
    target = None if to is None else _target(to, stores, force=force)
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
                rows.write_columns(names, values, omit_null=("uniq_key", "keys"))
            verdict = found.verdict
            judged = {"verdict": verdict.verdict, "keep": verdict.keep, "why": verdict.why}
            exported = None
            if target is not None and export_only_in is not None:
                store = stores[export_only_in == "b"]
                exported = _export(found, export_only_in, store, target, options)
            not_compared = {"not_looked_at": ["consume queues", "index", "config"]}
            rows.finish(
                found.summary()
                | judged
                | ({"exported": exported} if exported is not None else {})
                | not_compared
                | coverage([*left, *found.not_covered()])
            )
    if left or found.not_covered():
        return ExitCode.INCOMPLETE
    return ExitCode.OK if verdict.verdict == "equal" else ExitCode.DAMAGE


def _target(to: str, stores: list[Store], *, force: bool) -> Any:
    """The file that is written; nothing of it is left where it may not be."""
    from rmqtool.output.export.target import Target
    from rmqtool.repair.places import lies_in

    path = Path(to)
    if not path.name or path.name in {".", ".."}:
        raise UsageError(f"--to: '{to}' is not a valid file name")
    for store in stores:
        if lies_in(to, store):
            raise UsageError(f"--to: {to} lies in a store, where nothing is written")
    target = Target(path, directory=False)
    target.begin(force=force, resume=False, options={"diff": True})
    return target


def _export(found: Comparison, which: str, store: Store, target: Any, options: Any) -> dict[str, Any]:
    from rmqtool.output.export.run import ExportRun
    from rmqtool.output.export.streams import ReplayForm, StreamExport
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.modes import only_for, readers_of

    only_for(readers_of(store))
    places = found.exclusive(which)
    destination = StreamExport(target, ReplayForm())
    run = ExportRun(store, MessageFilter(), replace(options, advance=None), destination, target, places)
    run.run({"diff": True}, None)
    return {"path": str(target.path), "messages": len(places)}
