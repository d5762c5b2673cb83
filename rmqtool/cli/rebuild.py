"""`rmqtool rebuild`: consume queues and index rebuilt from the commit log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.changing import ChangeOptions, ChangeRequest
from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions, VersionOptions
from rmqtool.cli.rebuild_select import SelectOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, worst

if TYPE_CHECKING:
    from rmqtool.repair.plan import Planned
    from rmqtool.repair.rebuild import Rebuilt
    from rmqtool.store.layout import Store


@dataclass(frozen=True)
class RebuildChangeOptions(ChangeOptions):
    """The same where `--output` gets no copy of the store."""

    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Write the rebuilt directories (consumequeue, index …) alone into DIR, new or empty; the "
            "log is not copied.",
            show_default=False,
            rich_help_panel="Changing",
        ),
    ] = None


@verb(
    examples=[
        "rmqtool rebuild /data/store",
        "rmqtool rebuild /data/store --what cq,index --output /data/derived --apply",
        "rmqtool rebuild /data/store --what index --in-place --backup /backup/index --apply",
        "rmqtool rebuild /data/store --topic OrderTopic --restore-topics --output /data/restored --apply",
        "rmqtool rebuild /data/store --topic 'Order*' --queue 3 --in-place --backup /backup/orders --apply",
    ]
)
def command(
    path: StoreArgument = None,
    *,
    select: SelectOptions,
    change: RebuildChangeOptions,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Rebuild consume queues and index from the commit log.

    The bytes are those that a broker of the release writes when it starts without queues and index. They are
    compared with the existing files, and the plan lists what differs. Existing index files keep their
    names; new ones are named after the store time of their first message. Queues without a record in the
    log stay as they are. After damage messages keep their queue offsets. Prints the plan and stops, unless
    --apply.
    Exit code 1 says that the plan has changes or that the log is damaged, 3 that bytes could not be read.
    """
    from rmqtool.cli.apply_session import apply_session
    from rmqtool.cli.checking import check_with
    from rmqtool.repair.prove.built import check_rebuild
    from rmqtool.repair.rebuild import rebuild
    from rmqtool.repair.rebuild_options import RebuildOptions
    from rmqtool.repair.rebuild_report import exit_code_of, summary_of, warnings_of

    context = Context(output)
    found: list[Rebuilt] = []

    def plan(opened: Store, parameters: dict[str, Any], work: str) -> Planned:
        with context.progress("building", sum(one.size for one in opened.segments)) as progress:
            how = read.of_log(opened, progress.advance)
            found.append(rebuild(opened, RebuildOptions.of(parameters), work, how, context.zone.info))
        for line in warnings_of(found[-1]):
            context.console.warn(line)
        return found[-1].planned

    open_it = partial(open_store, context, path, store, changing=True)
    first = open_it()
    options = select.build(version.release_of(first), complete=change.output is not None, tz=output.tz)
    parameters = options.parameters()
    usual = RebuildOptions(options.release).parameters()
    typed = {"what": select.what, "release": version.release}
    request = ChangeRequest(
        command="rebuild",
        open=open_it,
        parameters=parameters,
        given=[name for name in usual if parameters[name] != usual[name] or typed.get(name) is not None],
        plan=plan,
        alone=True,
        reported=lambda: summary_of(found[-1]),
        check=lambda opened, planned: check_with(check_rebuild, context, opened, planned, read),
    )
    code = apply_session(context, request, change)
    return worst([code, exit_code_of(found[-1])])
