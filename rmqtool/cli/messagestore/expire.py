"""`rmqtool store expire`: old segments go now."""

from __future__ import annotations

from rmqtool.cli.context import Context
from rmqtool.cli.messagestore.engine import DirPositional, EngineOptions, open_engine
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.store-expire/1"
_KEYS = ("segments", "bytes", "messages", "queue_files", "index_files")


@verb(
    examples=[
        "rmqtool store expire /data/store",
        "rmqtool store expire /data/store --store-config broker.conf --json",
    ]
)
def command(path: DirPositional, *, engine: EngineOptions, output: OutputOptions) -> ExitCode:
    """Delete segments older than fileReservedTime, whatever the hour, and what leads to nothing else.

    What a broker does at deleteWhen: segments by the age of their files, never the last one, and then the
    consume queue and index files in which nothing is left. There is no undo. The summary says how many
    files, bytes of the log and messages went.
    """
    from rmqtool.output.tablerows import Column

    context = Context(output)
    with open_engine(context, path, engine) as store, context.progress("expiring"):
        gone = store.expire()._asdict()
    with context.rows(SCHEMA, [Column(key, right=True) for key in _KEYS]) as rows:
        rows.write_rows([{"type": "expired", **gone}])
        rows.finish({**gone, "complete": True})
    return ExitCode.OK
