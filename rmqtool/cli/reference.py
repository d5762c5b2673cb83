"""The command reference, made of the commands: `python -m rmqtool.cli.reference > docs/cli.md`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rmqtool.cli.commands import COMMANDS
from rmqtool.cli.described import Item, describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    command = describe(name)
    yield f"## rmqtool {name}\n"
    yield f"    rmqtool {name} [OPTIONS] {command.usage}\n"
    yield "\n\n".join(filter(None, (command.summary, command.description))) + "\n"
    if command.arguments:
        yield from _table("Argument", command.arguments)
    for title, options in command.panels.items():
        yield from _table(title, options)
    yield "Examples:\n"
    yield "\n".join(f"    {example}" for example in command.examples) + "\n"


def _table(title: str, rows: Iterable[Item]) -> Iterator[str]:
    yield f"| {title} | |\n| --- | --- |"
    for one in rows:
        names = ", ".join(f"`{name}`" for name in one.names)
        value = "\\|".join(one.choices) or one.value
        yield f"| {' '.join(filter(None, (names, value)))} | {one.help} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(reference())
