"""`rmqtool config check`: which of each table and its `.bak` a broker would load."""

from __future__ import annotations

from typing import Any

from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, StoreArgument, StoreOptions, VersionOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.config-check/1"
KEYS = ("path", "primary", "bak", "loads", "entries", "entries_lost", "detail")


@verb(
    examples=[
        "rmqtool config check /data/store",
        "rmqtool config check /data/store --as-version 4.9.7 --json",
    ]
)
def command(
    path: StoreArgument = None,
    *,
    store: StoreOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Check the JSON tables in config/ and their .bak: what each is, and which a broker would load.

    loads is primary, bak, empty (the broker starts with nothing in the table) or refuses (it does not start).
    lost counts entries that can still be read in one of the files and that the broker would not have; config
    salvage brings them back. Exit code 1 says that a table is not loaded as it should be.
    """
    from rmqtool.broker.traits import traits_of
    from rmqtool.cli.left_out import unlisted
    from rmqtool.output.incident_table import columns
    from rmqtool.recovery.config_tables import Loads, config_outcomes
    from rmqtool.repair.config_union import united
    from rmqtool.store.coverage import coverage, unreadable
    from rmqtool.store.required import require_root
    from rmqtool.store.rocksdb import databases_of_tables

    context = Context(output)
    opened = open_store(context, path, store)
    require_root(opened)
    release = version.release_of(opened)
    names = {file.display_path.removesuffix(".bak"): file.path.removesuffix(".bak") for file in opened.files}
    bad = lost = count = 0
    salvageable = False
    directories = {path for path, _ in opened.listing.unsavable()}
    left = unlisted(opened, context, config=True)
    left += [unreadable(one, "a database, which is not decoded") for one in databases_of_tables(opened)]
    with context.rows(SCHEMA, columns(KEYS, context.zone), csv_columns=("type", *KEYS, "loses")) as rows:
        for outcome in config_outcomes(opened, traits_of(release)):
            one = united(opened, names[outcome.path], traits_of(release))
            in_the_way = [where for where in (outcome.path, f"{outcome.path}.bak") if where in directories]
            directories.difference_update(in_the_way)
            wrong = outcome.loses or outcome.loads is Loads.REFUSES
            salvageable |= wrong
            wrong |= bool(in_the_way)
            count, bad, lost = count + 1, bad + wrong, lost + one.lost
            left += [
                unreadable(where, one.detail or "cannot be read")
                for where, state in ((outcome.path, one.primary), (f"{outcome.path}.bak", one.bak))
                if state == "unreadable"
            ]
            row = {
                "type": "config",
                "path": outcome.path,
                "primary": one.primary,
                "bak": one.bak,
                "loads": str(outcome.loads),
                "entries": one.entries,
                "entries_lost": one.lost,
                "loses": wrong,
                "detail": one.detail,
            }
            rows.write_rows([row | _not_saved(*in_the_way)])
        alone = {"type": "config", "primary": "missing", "bak": "missing", "loads": "empty", "entries": 0}
        alone |= {"entries_lost": 0, "loses": True}
        rows.write_rows(
            alone | {"path": one.removesuffix(".bak")} | _not_saved(one) for one in sorted(directories)
        )
        count, bad = count + len(directories), bad + len(directories)
        source = "given" if version.release else "inferred"
        counts = {"tables": count, "damaged": bad, "entries_lost": lost}
        rows.finish(counts | {"version": release, "version_source": source} | coverage(left))
    if salvageable and not context.console.quiet:
        context.console.note("next: config salvage shows what it would write")
    return ExitCode.INCOMPLETE if left else ExitCode.DAMAGE if bad else ExitCode.OK


def _not_saved(*paths: str) -> dict[str, Any]:
    """What directories where brokers write a table or its `.bak` change in its row: it is never saved."""
    states = {"bak" if path.endswith(".bak") else "primary": "unparsable" for path in paths}
    detail = f"{' and '.join(paths)} is a directory, which no broker can replace: move it out of the store"
    return states | {"detail": detail} if paths else {}
