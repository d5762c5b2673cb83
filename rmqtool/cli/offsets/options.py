"""Options that the commands of `rmqtool offsets` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from rmqtool.cli.context import Context
    from rmqtool.query.offsets.places import Chosen, Place
    from rmqtool.store.layout import Store

KINDS = ("consumer", "delay", "lmq")
_PANEL = "Filters"


@dataclass(frozen=True)
class OffsetFilters:
    """Which offsets are meant."""

    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="GLOB",
            help="Offsets of these consumer groups; repeatable.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="GLOB",
            help="Offsets in queues of these topics; repeatable.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="consumer, delay (delayOffset.json) or lmq; repeatable. Default: all.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None

    def build(self) -> Chosen:
        """As data. Raises `UsageError` for an unknown kind."""
        from rmqtool.query.offsets.places import Chosen

        for one in self.kind or ():
            if one not in KINDS:
                raise UsageError(f"--kind: '{one}' must be one of: {', '.join(KINDS)}")
        return Chosen(tuple(self.group or ()), tuple(self.topic or ()), tuple(self.kind or ()))


def note_unmatched(context: Context, filters: OffsetFilters, found: bool) -> None:
    """Says that nothing has these names."""
    if not found and (filters.group or filters.topic or filters.kind):
        context.console.note("no stored offset matches --group, --topic and --kind")


def offsets_at(context: Context, path: str, chosen: Chosen) -> tuple[dict[Place, int], Store | None]:
    """Offsets of a store or of one table, which may be copied away; the store, where it is one."""
    from rmqtool.cli.opened import open_store
    from rmqtool.cli.options import StoreOptions
    from rmqtool.query.offsets.compared import is_table, offsets_of_file, offsets_of_store
    from rmqtool.store.required import require_root

    if is_table(path):
        return offsets_of_file(path, chosen), None
    opened = open_store(context, path, StoreOptions())
    require_root(opened)
    return offsets_of_store(opened, chosen), opened
