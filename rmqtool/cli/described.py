"""What a command is, as its reference and its manual page need it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer.core

from rmqtool.cli.commands import COMMANDS, load_command


@dataclass(frozen=True)
class Item:
    """An argument or option. value: what stands behind it, empty for flags; choices: that may."""

    names: tuple[str, ...]
    value: str
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Described:
    """A command. usage: its arguments as they are typed; panels: options by the title they stand under."""

    name: str
    usage: str
    summary: str
    description: str
    arguments: tuple[Item, ...]
    panels: dict[str, list[Item]]
    examples: tuple[str, ...]


def describe(name: str) -> Described:
    """The command of `COMMANDS` with this name."""
    command = load_command(name)
    function = import_module(COMMANDS[name].module).command
    arguments = [item for item in command.params if not isinstance(item, typer.core.TyperOption)]
    panels: dict[str, list[Item]] = {}
    for item in command.params:
        if isinstance(item, typer.core.TyperOption):
            panels.setdefault(str(item.rich_help_panel or "Options"), []).append(_option(item))
    summary, _, description = (inspect.getdoc(function) or "").partition("\n\n")
    return Described(
        name,
        " ".join(map(_usage, arguments)),
        summary,
        description,
        tuple(Item((str(item.metavar or item.name),), "", (), _help(item)) for item in arguments),
        panels,
        function.examples,
    )


def _usage(item: Any) -> str:
    name = str(item.metavar or item.name.upper())
    return name if item.required else f"[{name}]"


def _option(item: typer.core.TyperOption) -> Item:
    choices = () if item.is_flag else tuple(map(str, item.type_descriptor.choices or ()))
    value = "" if item.is_flag else item.metavar or "VALUE"
    return Item((*item.opts, *item.secondary_opts), value, choices, _help(item))


def _help(item: Any) -> str:
    default = f" Default: {item.default}." if isinstance(item.default, str) else ""
    return f"{item.help}{default}"
