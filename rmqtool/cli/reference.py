"""The command reference, made of the commands: `python -m rmqtool.cli.reference > docs/cli.md`."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer.core

from rmqtool.cli.commands import COMMANDS, load_command

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """\
# Commands

This page is generated from the program (`python -m rmqtool.cli.reference`) and checked in CI.
What all commands have in common, such as how times and offsets are written, is in the [guide](guide.md).
"""


def reference() -> str:
    """The whole page as Markdown."""
    parts = [_HEAD]
    for name in COMMANDS:
        parts += _command(name)
    return "\n".join(parts)


def _command(name: str) -> Iterator[str]:
    command = load_command(name)
    function = import_module(COMMANDS[name].module).command
    arguments = [item for item in command.params if not isinstance(item, typer.core.TyperOption)]
    options = [item for item in command.params if isinstance(item, typer.core.TyperOption)]
    usage = " ".join(_argument_name(item) for item in arguments)
    yield f"## rmqtool {name}\n"
    yield f"    rmqtool {name} [OPTIONS] {usage}\n"
    yield f"{inspect.getdoc(function)}\n"
    if arguments:
        yield from _table("Argument", [(f"`{item.metavar or item.name}`", item) for item in arguments])
    panels = dict.fromkeys(str(item.rich_help_panel or "Options") for item in options)
    for panel in panels:
        chosen = [item for item in options if str(item.rich_help_panel or "Options") == panel]
        yield from _table(panel, [(_option_name(item), item) for item in chosen])
    yield "Examples:\n"
    yield "\n".join(f"    {example}" for example in function.examples) + "\n"


def _argument_name(item: Any) -> str:
    name = item.metavar or item.name.upper()
    return str(name) if item.required else f"[{name}]"


def _option_name(item: typer.core.TyperOption) -> str:
    names = ", ".join(f"`{name}`" for name in (*item.opts, *item.secondary_opts))
    if item.is_flag:
        return names
    choices = item.type_descriptor.choices
    value = "\\|".join(map(str, choices)) if choices else item.metavar or "VALUE"
    return f"{names} {value}"


def _table(title: str, rows: list[tuple[str, Any]]) -> Iterator[str]:
    yield f"| {title} | |\n| --- | --- |"
    for name, item in rows:
        default = f" Default: {item.default}." if isinstance(item.default, str) else ""
        yield f"| {name} | {item.help}{default} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(reference())
