"""`rmqtool store replicate`: a store as the slave of a master, or as the master of slaves."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.messagestore.engine import DirPositional, EngineOptions, Stop, open_engine, read_settings
from rmqtool.cli.options import OutputOptions, VersionOptions
from rmqtool.cli.parse import named, parse_int
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, StoreIOError, UsageError

if TYPE_CHECKING:
    from rmqtool.messagestore.store import MessageStore

SCHEMA = "rmqtool.store-replicate/1"
_LOOK = 0.2
"""seconds between two looks at how far it is"""
_PORTS = (1 << 16) - 1
_KEYS = ("role", "address", "begin_offset", "end_offset", "bytes")


@verb(
    examples=[
        "rmqtool store replicate /data/copy --from 10.0.0.7:10912",
        "rmqtool store replicate /data/copy --from 10.0.0.7:10912 --once",
        "rmqtool store replicate /data/store --listen 10912",
        "rmqtool store replicate /data/store --listen 0.0.0.0:10912",
    ]
)
def command(
    path: DirPositional,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="HOST:PORT", help="Follow this master; haListenPort.", show_default=False
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="[HOST:]PORT",
            help="Send to slaves that connect here; without HOST only from this machine.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="With --from: end when the master has no more; it must be there.")
    ] = False,
    *,
    engine: EngineOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Copy a log between brokers, as a slave or as a master, until Ctrl-C.

    Speaks the default HA protocol with RocketMQ's brokers and with itself; the log arrives byte for byte, and
    queues and index are made of it. A slave without files, in a directory that is empty or not there, gets
    the master's last segment, as a broker does. One whose log does not go on where the master's does is
    refused, with both offsets: exit code 1. Whoever reaches the address of --listen reads the whole log;
    there is no encryption and no password. Topics and consumer offsets are not part of the protocol.
    """
    from rmqtool.output.rows import cut_short
    from rmqtool.store.coverage import Incomplete

    context = Context(output)
    if (source is None) == (listen is None):
        raise UsageError("one of --from and --listen says which end this is")
    if once and source is None:
        raise UsageError("--once goes with --from")
    follows = source is not None
    with named("--from" if follows else "--listen"):
        address = _address(str(source if follows else listen), needs_host=follows)
    settings = read_settings(engine, {"brokerRole": "SLAVE"} if follows else {})
    if not follows and settings.broker_role == "SLAVE":
        raise UsageError("--listen is for a master, and the settings say brokerRole=SLAVE")
    with (
        Stop() as stop,
        open_engine(context, path, engine, create=follows, release=version.release, config=settings) as store,
        _rows(context) as rows,
    ):
        begin = store.end
        stop.defer()
        if follows:
            _follow(context, store, address, stop, once=once)
        else:
            address = _serve(context, store, address, stop)
        row = {
            "role": "slave" if follows else "master",
            "address": f"{address[0]}:{address[1]}",
            "begin_offset": begin,
            "end_offset": store.end,
            "bytes": store.end - begin,
        }
        rows.write_rows([{"type": "replication", **row}])
        if once and stop.asked:
            left = [
                {"path": str(source), "position": row["end_offset"], "reason": Incomplete.INTERRUPTED.value}
            ]
            rows.finish(cut_short(row, Incomplete.INTERRUPTED, left))
            return ExitCode.INTERRUPTED
        rows.finish({**row, "complete": True})
    return ExitCode.OK


def _rows(context: Context) -> Any:
    from rmqtool.output.tablerows import Column

    return context.rows(SCHEMA, [Column(key, right=key not in _KEYS[:2]) for key in _KEYS])


def _address(text: str, *, needs_host: bool) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if needs_host and not host:
        raise UsageError(f"'{text}' is not HOST:PORT")
    return host.strip("[]") or "127.0.0.1", parse_int(port if colon else text, minimum=0, maximum=_PORTS)


def _follow(
    context: Context, store: MessageStore, address: tuple[str, int], stop: Stop, *, once: bool
) -> None:
    """Until it is asked to stop, or with `once` has all. Raises why it cannot go on."""
    following = store.follow(*address)
    with context.progress("following") as progress:
        begin = store.end
        while not _asked(stop) and following.error is None:
            progress.reach(max(store.end - begin, 0))
            if once and following.caught_up.is_set():
                break
            if once and following.unreachable is not None:
                raise StoreIOError(following.unreachable)
    if following.error is not None:
        raise following.error


def _serve(context: Context, store: MessageStore, address: tuple[str, int], stop: Stop) -> tuple[str, int]:
    address = store.listen(*address)
    context.console.note(f"listening on {address[0]}:{address[1]}; Ctrl-C ends it")
    known: dict[str, int] = {}
    while not _asked(stop):
        now = dict(store.slaves)
        for name in now.keys() - known.keys():
            context.console.note(f"slave {name} is connected")
        for name in known.keys() - now.keys():
            context.console.note(f"slave {name} is gone; it has the log up to {known[name]}")
        known = now
    return address


def _asked(stop: Stop) -> bool:
    select.select([stop.descriptor], [], [], _LOOK)
    return stop.asked
