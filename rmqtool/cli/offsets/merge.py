"""`rmqtool offsets merge`: offsets of two tables in one."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.changing import ChangeOptions, ChangeRequest
from rmqtool.cli.context import Context
from rmqtool.cli.offsets.options import OffsetFilters, offsets_at
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, StoreOptions, StorePositional, VersionOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

if TYPE_CHECKING:
    from rmqtool.repair.plan import Planned
    from rmqtool.store.layout import Store


@verb(
    examples=[
        "rmqtool offsets merge /data/store /backup/slave/store",
        "rmqtool offsets merge /data/store consumerOffset.json.bak --policy max --group 'order-*'",
        "rmqtool offsets merge /data/store /data/slave --policy prefer-b --output copy --apply",
    ]
)
def command(
    path: StorePositional,
    other: Annotated[
        str,
        typer.Argument(
            metavar="OTHER",
            help="B: another store, or a consumerOffset.json, lmqConsumerOffset.json or delayOffset.json, "
            "also a .bak or a copy.",
            show_default=False,
        ),
    ],
    policy: Annotated[
        Literal["max", "min", "prefer-a", "prefer-b"],
        typer.Option(
            "--policy",
            help="Which offset stays where both have one: max consumes nothing twice, min loses nothing, "
            "prefer-a that of STORE, prefer-b that of OTHER.",
        ),
    ] = "max",
    *,
    filters: OffsetFilters,
    change: ChangeOptions,
    store: StoreOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Merge the stored offsets of another store or table into those of STORE.

    What only STORE has stays, what only OTHER has is added; offsets diff lists what differs. Offsets of a
    store that does not have the same log may lie outside the queues: check the result with offsets audit.
    Prints the plan and stops, unless --apply.
    """
    from rmqtool.cli.apply_session import apply_session
    from rmqtool.repair.offset_tables import plan_merge
    from rmqtool.repair.prove.tables import check_offsets
    from rmqtool.store.names import escape_name

    context = Context(output)
    chosen = filters.build()
    theirs, _ = offsets_at(context, other, chosen)

    def plan(opened: Store, parameters: dict[str, Any], work: str) -> Planned:
        del work
        return plan_merge(opened, parameters["release"], parameters, theirs)

    open_it = partial(open_store, context, path, store, changing=True)
    parameters = {
        "release": version.release_of(open_it()),
        "other": escape_name(os.path.abspath(other)),
        "policy": policy,
        **chosen.parameters,
    }
    request = ChangeRequest(
        command="offsets merge",
        open=open_it,
        parameters=parameters,
        given=[
            *(["release"] if version.release else []),
            "other",
            "policy",
            *(name for name, value in chosen.parameters.items() if value),
        ],
        plan=plan,
        check=check_offsets,
    )
    return apply_session(context, request, change)
