"""`rmqtool checkpoint set`: a checkpoint that the data proves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.changing import ChangeOptions, ChangeRequest
from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions, VersionOptions
from rmqtool.cli.parse import named, parse_int, parse_time
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

if TYPE_CHECKING:
    from rmqtool.repair.plan import Planned
    from rmqtool.store.layout import Store


def _value(flag: str, metavar: str, help_text: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=help_text, show_default=False)


@verb(
    examples=[
        "rmqtool checkpoint set /data/store",
        "rmqtool checkpoint set /data/store --in-place --backup /backup/checkpoint --apply",
        "rmqtool checkpoint set /data/store --logics 2024-05-01T08:00:00 --output /data/copy --apply",
    ]
)
def command(
    path: StoreArgument = None,
    physic: Annotated[
        str | None, _value("--physic", "TIME", "Store time up to which the log is complete.")
    ] = None,
    logics: Annotated[
        str | None, _value("--logics", "TIME", "Store time up to which the queues are whole.")
    ] = None,
    index: Annotated[
        str | None, _value("--index", "TIME", "Store time up to which the index is complete.")
    ] = None,
    master_flushed: Annotated[
        str | None, _value("--master-flushed", "OFFSET", "masterFlushedOffset, in bytes of the log.")
    ] = None,
    confirm: Annotated[
        str | None, _value("--confirm", "OFFSET", "confirmPhyOffset, in bytes of the log (5.x).")
    ] = None,
    *,
    change: ChangeOptions,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Write a checkpoint whose times the data proves.

    Values that are not given are the latest safe ones: see checkpoint show for their proof. With them the
    recovery of an unclean stop begins as late as is safe, and rebuilds what queues and index lack. Given
    values are taken as they are; one that is later than the data proves is named. Prints the plan and
    stops, unless --apply.
    """
    from rmqtool.cli.apply_session import apply_session
    from rmqtool.cli.checking import check_with
    from rmqtool.cli.proving import proven
    from rmqtool.repair.checkpoint import plan_checkpoint
    from rmqtool.repair.prove.checks import check_checkpoint

    context = Context(output)
    times = {"physic_msg_timestamp": physic, "logics_msg_timestamp": logics, "index_msg_timestamp": index}
    wanted: dict[str, int] = {}
    for name, text in times.items():
        if text is not None:
            with named(f"--{name.split('_')[0]}"):
                wanted[name] = parse_time(text, context.zone)
    offsets = {"master_flushed_offset": master_flushed, "confirm_physical_offset": confirm}
    for name, text in offsets.items():
        if text is not None:
            with named("--master-flushed" if name.startswith("master") else "--confirm"):
                wanted[name] = parse_int(text, minimum=0)

    def plan(opened: Store, parameters: dict[str, Any], work: str) -> Planned:
        del work
        found = proven(context, opened, read, VersionOptions(parameters["release"]))
        return plan_checkpoint(opened, found.release, parameters, found.proof, parameters["values"])

    open_it = partial(open_store, context, path, store, changing=True)
    first = open_it()
    request = ChangeRequest(
        command="checkpoint set",
        open=open_it,
        parameters={"release": version.release_of(first), "values": wanted},
        given=[name for name, typed in {"release": version.release, "values": wanted}.items() if typed],
        plan=plan,
        check=lambda opened, planned: check_with(check_checkpoint, context, opened, planned, read),
    )
    return apply_session(context, request, change)
