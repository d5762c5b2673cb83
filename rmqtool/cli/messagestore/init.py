"""`rmqtool store init`: an empty store."""

from __future__ import annotations

from rmqtool.cli.context import Context
from rmqtool.cli.messagestore.engine import ConfigOptions, DirPositional, open_engine
from rmqtool.cli.options import OutputOptions, StoreOptions, resolve_store
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

SCHEMA = "rmqtool.store-init/1"


@verb(
    examples=[
        "rmqtool store init /data/store",
        "rmqtool store init /data/store --store-config broker.conf",
    ]
)
def command(path: DirPositional, *, config: ConfigOptions, output: OutputOptions) -> ExitCode:
    """Create an empty store, which a broker or store put can fill.

    DIR is created if it does not exist, and refused if it is not empty. A store does not keep its settings:
    give --store-config to the commands that fill it, too, until its first files exist.
    """
    from rmqtool.output.tablerows import Column
    from rmqtool.store.names import escape_name

    context = Context(output)
    place = resolve_store(path, StoreOptions(config.store_config))
    if place.is_dir() and any(place.iterdir()):
        raise UsageError(f"{escape_name(str(place))} is not empty")
    with open_engine(context, path, config, create=True) as store:
        made = {"root": escape_name(store.root), "version": store.release}
    with context.rows(SCHEMA, [Column("root", shrinks=True), Column("version")]) as rows:
        rows.write_rows([{"type": "store", **made}])
        rows.finish({"complete": True})
    return ExitCode.OK
