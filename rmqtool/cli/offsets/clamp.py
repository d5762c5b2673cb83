"""`rmqtool offsets clamp`: offsets outside their queues put back into them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.changing import ChangeOptions, ChangeRequest
from rmqtool.cli.context import Context
from rmqtool.cli.offsets.options import OffsetFilters
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, StoreArgument, StoreOptions, VersionOptions
from rmqtool.cli.parse import named, parse_time
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

if TYPE_CHECKING:
    from rmqtool.repair.plan import Planned
    from rmqtool.store.layout import Store

_BOUNDS = ("nearest", "min", "max")


@verb(
    examples=[
        "rmqtool offsets clamp /data/store",
        "rmqtool offsets clamp /data/store --kind delay --in-place --backup /backup/offsets --apply",
        "rmqtool offsets clamp /data/store --group billing --to 2024-05-01T08:00:00 --output copy --apply",
    ]
)
def command(
    path: StoreArgument = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="WHERE",
            help="nearest (below min: min, beyond max: max), min, max, or a TIME.",
        ),
    ] = "nearest",
    *,
    filters: OffsetFilters,
    change: ChangeOptions,
    store: StoreOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Set offsets outside their queues to a bound of the queue, or to a time.

    Offsets inside their queues stay, and so does everything else in the files. Offsets of queues that do not
    exist are listed and stay. Prints the plan and stops, unless --apply.
    """
    from rmqtool.cli.apply_session import apply_session
    from rmqtool.repair.offset_tables import plan_clamp
    from rmqtool.repair.prove.tables import check_offsets

    context = Context(output)
    with named("--to"):
        target = to if to in _BOUNDS else parse_time(to, context.zone)
    chosen = filters.build()

    def plan(opened: Store, parameters: dict[str, Any], work: str) -> Planned:
        del work
        return plan_clamp(opened, parameters["release"], parameters)

    open_it = partial(open_store, context, path, store, changing=True)
    parameters = {"release": version.release_of(open_it()), "to": target, **chosen.parameters}
    request = ChangeRequest(
        command="offsets clamp",
        open=open_it,
        parameters=parameters,
        given=[
            *(["release"] if version.release else []),
            *(["to"] if to != "nearest" else []),
            *(name for name, value in chosen.parameters.items() if value),
        ],
        plan=plan,
        check=check_offsets,
    )
    return apply_session(context, request, change)
