"""What commands that change a store have in common: plan, print, save, apply."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rmqtool.repair.plan import Checked, Planned
    from rmqtool.store.layout import Store

_CHANGING = "Changing"


@dataclass(frozen=True)
class ChangeOptions:
    """How a plan is carried out. Every command that changes an existing store takes it."""

    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="Carry out the plan; without it, print the plan and stop.",
            rich_help_panel=_CHANGING,
        ),
    ] = False
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Write a changed copy of the store into DIR, new or empty; the store itself is only read.",
            show_default=False,
            rich_help_panel=_CHANGING,
        ),
    ] = None
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="Change the store itself; needs --backup.", rich_help_panel=_CHANGING
        ),
    ] = False
    backup: Annotated[
        str | None,
        typer.Option(
            "--backup",
            metavar="DIR",
            help="Where --in-place keeps what it changes, for rmqtool undo; new or empty, not in the store.",
            show_default=False,
            rich_help_panel=_CHANGING,
        ),
    ] = None
    save_plan: Annotated[
        str | None,
        typer.Option(
            "--save-plan",
            metavar="FILE",
            help="Write the plan into a new file, with digests of all that it reads.",
            show_default=False,
            rich_help_panel=_CHANGING,
        ),
    ] = None
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="Do exactly what a saved plan says, or refuse when anything it read has changed.",
            show_default=False,
            rich_help_panel=_CHANGING,
        ),
    ] = None

    apply_unproven: Annotated[
        bool,
        typer.Option(
            "--apply-unproven",
            help="Carry out the plan even if checking its result found problems.",
            rich_help_panel=_CHANGING,
        ),
    ] = False

    follow_links: Annotated[
        bool,
        typer.Option(
            "--follow-links",
            help="Also write to and copy what links to outside the store lead to.",
            rich_help_panel=_CHANGING,
        ),
    ] = False

    def check(self) -> None:
        """Raises `UsageError` for combinations that mean nothing."""
        if self.output is not None and self.in_place:
            raise UsageError("--output and --in-place cannot be combined")
        if self.in_place and self.backup is None:
            raise UsageError("--in-place needs --backup DIR, where everything is kept that it changes")
        if self.backup is not None and not self.in_place:
            raise UsageError("--backup is for --in-place; --output leaves the store as it is")
        if self.apply and self.output is None and not self.in_place:
            raise UsageError("--apply needs --output DIR, or --in-place --backup DIR")
        if self.apply_unproven and not self.apply:
            raise UsageError("--apply-unproven is for --apply")
        if self.plan is not None and self.save_plan is not None:
            raise UsageError("--plan and --save-plan cannot be combined")
        for name, value in (("--output", self.output), ("--backup", self.backup)):
            if value is not None and not value:
                raise UsageError(f"{name} is empty")

    @property
    def words(self) -> tuple[str, ...]:
        """The target as it was typed, for the command to type next."""
        links = ("--follow-links",) if self.follow_links else ()
        if self.output is not None:
            return ("--output", self.output, *links)
        return ("--in-place", "--backup", str(self.backup), *links) if self.in_place else ()


@dataclass(frozen=True)
class ChangeRequest:
    """What a command asks for.

    open: opens the store, each time as it lies there then. parameters: all that planning depends on beside
    the store's bytes, plain JSON values; `given` names those that the command line asks for. plan: makes
    the plan from store, parameters and an empty work directory for what is large; what it leaves there may
    be taken by applying (`FromFile.movable`). alone: --output gets what the plan puts and no copy of the
    store, so that STORE may be a commitlog directory. reported: further keys of the summary, asked for once
    it was planned. keeps_evidence: with --output, what the copy lacks goes to
    `DIR.quarantine`. shown: parameters that summaries repeat. check: looks at the result of a plan that
    changes something, before it is printed or carried out.
    """

    command: str
    open: Callable[[], Store]
    parameters: dict[str, Any]
    given: Collection[str]
    plan: Callable[[Store, dict[str, Any], str], Planned]
    keeps_evidence: bool = False
    alone: bool = False
    reported: Callable[[], Mapping[str, Any]] | None = None
    check: Callable[[Store, Planned], Checked] | None = None

    def chosen(self, saved: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a saved plan; `UsageError` when the command line asks for something else."""
        for name in self.given:
            value = self.parameters[name]
            if value != saved.get(name):
                option = name.replace("_", "-")
                raise UsageError(f"--plan says {option} {saved.get(name)}, the command line {value}")
        return dict(saved)


def quarantine_of(output: str) -> str:
    """Where what a copy lacks is kept."""
    return f"{os.path.abspath(output)}.quarantine"
