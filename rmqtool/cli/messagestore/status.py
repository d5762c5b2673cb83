"""`rmqtool store status`: the counters of the process that writes a store, or what its files tell."""

from __future__ import annotations

from typing import Any

from rmqtool.cli.context import Context
from rmqtool.cli.messagestore.engine import DirPositional
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.store-status/1"


@verb(
    examples=["rmqtool store status /data/store", "rmqtool store status /data/store --json"],
    formats=("table", "json"),
)
def command(path: DirPositional, *, store: StoreOptions, output: OutputOptions) -> ExitCode:
    """Rates, latency and backlog of the writer of a store, or what its files show.

    Rates and latencies are those of the last ten seconds, as the writer publishes them every second. Without
    a writer, or with one that is a broker, only what files and disk show is given, and all else is null.
    Nothing is locked or written. Exit code 3: a directory cannot be listed.
    """
    from rmqtool.cli.left_out import unlisted
    from rmqtool.messagestore.status import status_of
    from rmqtool.store.required import require_root

    context = Context(output)
    opened = open_store(context, path, store)
    require_root(opened)
    left = unlisted(opened, context)
    found = status_of(opened)
    if context.format == "json":
        context.document(SCHEMA, found)
    else:
        _page(context, found)
    return ExitCode.INCOMPLETE if left else ExitCode.OK


def _page(context: Context, found: dict[str, Any]) -> None:
    from rmqtool.output.sizes import human_bytes

    put, get, page = found["put"], found["get"], context.page()
    latency = put["latency_ms"]
    page.heading(f"Written by process {found['pid'] or '?'}" if found["writer"] else "No writer")
    times = None
    if None not in latency.values():  # or somebody else made the file
        times = ", ".join(f"{name} {latency[name]:.3g} ms" for name in latency)
    flush, behind, sent = found["flush_behind_bytes"], found["dispatch_behind_bytes"], get["bytes"]
    page.facts(
        [
            ("messages put", put["messages"]),
            ("put a second", put["per_second"]),
            ("latency of a put", times),
            ("got a second", get["per_second"]),
            ("gets with messages", get["hit"]),
            ("gets without", get["miss"]),
            ("transferred", None if sent is None else human_bytes(sent)),
            ("not dispatched", None if behind is None else human_bytes(behind)),
            ("not flushed", None if flush is None else human_bytes(flush)),
            ("disk used", f"{found['disk_ratio']:.0%}"),
        ]
    )
    page.close()
