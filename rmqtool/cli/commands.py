"""The table of commands, loaded one at a time.

`rmqtool --help` and completion must not pay for commands that do not run: the group knows names and one-line
helps, and imports a command's module when the command is called.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import typer
import typer.core
import typer.main

from rmqtool.cli.arguments import VerbCommand, flags_without_type

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Entry:
    """One command: the module that has it under the name `command`, and its help in one line."""

    module: str
    help: str


COMMANDS: dict[str, Entry] = {
    "info": Entry("rmqtool.cli.info", "What lies in a store: files, topics, queues, release, state."),
    "dump": Entry("rmqtool.cli.dump", "Decode every byte of a store, a folder in it or a single file."),
    "verify": Entry(
        "rmqtool.cli.verify",
        "Is this store right? Every record, unit and index item, and each against the others.",
    ),
    "doctor": Entry("rmqtool.cli.doctor", "May this broker be started, and what would it do?"),
    "show": Entry("rmqtool.cli.show", "One record in full, with an annotated hex view."),
    "query-key": Entry("rmqtool.cli.query_key", "Messages by key, through the index and the log."),
    "query-id": Entry("rmqtool.cli.query_id", "Messages by offset message id or unique client id."),
    "query-offset": Entry(
        "rmqtool.cli.query_offset", "Messages of a queue by offset, as the broker answers."
    ),
    "query-time": Entry("rmqtool.cli.query_time", "The queue offset that belongs to a point in time."),
    "tail": Entry("rmqtool.cli.tail", "The last messages, and with -f those that follow."),
    "stats": Entry("rmqtool.cli.stats", "What the messages of a store add up to."),
    "export": Entry(
        "rmqtool.cli.export",
        "Messages into a file: NDJSON, CSV, Parquet, raw records, or one to send them again from.",
    ),
    "sql": Entry("rmqtool.cli.sql", "SQL over messages, queues, index, offsets and topics of a store."),
    "explain": Entry(
        "rmqtool.cli.explain",
        "RocketMQ log lines: their meaning, normal or not, what to look at, the next command.",
    ),
    "pipeline verify": Entry("rmqtool.cli.pipeline.verify", "All checks over many stores, on Spark."),
    "pipeline export": Entry(
        "rmqtool.cli.pipeline.export", "Messages of many stores into one directory, on Spark."
    ),
    "pipeline query-key": Entry(
        "rmqtool.cli.pipeline.query_key", "Messages by any number of keys in many stores, on Spark."
    ),
    "pipeline sql": Entry("rmqtool.cli.pipeline.sql", "Spark's SQL over many stores."),
    "pipeline stats": Entry(
        "rmqtool.cli.pipeline.stats", "What the messages of many stores add up to, on Spark."
    ),
    "pipeline stream": Entry(
        "rmqtool.cli.pipeline.stream", "Messages of live stores into files as they come, on Spark."
    ),
}
"""commands by name; those of two words belong to a group"""

GROUPS: dict[str, str] = {
    "pipeline": "The same work over many stores, on Spark: a laptop or a cluster.",
}
"""help of the groups in one line"""


_HELP = {"help_option_names": ["-h", "--help"]}


class LazyGroup(typer.core.TyperGroup):
    """The program. Holds stand-ins with name and one-line help, and loads the command that is called."""

    group: str | None = None
    """the group of which this is the list, None for the program itself"""

    def __init__(self, **attributes: Any) -> None:
        attributes["commands"] = dict(_stand_ins(self.group))
        super().__init__(**attributes)

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, flags without a type."""
        return flags_without_type(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that is called, with its options."""
        name, found, rest = super().resolve_command(ctx, args)
        whole = f"{self.group} {name}" if self.group else str(name)
        return name, found and (load_group(whole) if whole in GROUPS else load_command(whole)), rest


def _stand_ins(group: str | None) -> Iterator[tuple[str, typer.core.TyperCommand]]:
    """What a list shows: the commands of a group, or those without one and the groups."""
    for whole, entry in COMMANDS.items():
        first, _, second = whole.partition(" ")
        if group is not None and first == group:
            yield second, typer.core.TyperCommand(second, help=entry.help)
        elif group is None:
            yield first, typer.core.TyperCommand(first, help=GROUPS[first] if second else entry.help)


def load_group(name: str) -> typer.core.TyperGroup:
    """The list of the commands of a group."""
    kind = type("Group", (LazyGroup,), {"group": name})
    return cast(
        "LazyGroup",
        kind(name=name, help=GROUPS[name], context_settings=_HELP),
    )


def load_command(name: str) -> typer.core.TyperCommand:
    """Imports the module of `name` and builds its command."""
    function = import_module(COMMANDS[name].module).command
    examples = "\n\n".join(f"$ {example}" for example in function.examples)
    app = typer.Typer(add_completion=False, context_settings=_HELP)
    app.command(
        name.rpartition(" ")[2],
        cls=VerbCommand,
        help=_flowing(function),
        epilog=_no_markup(f"Examples:\n\n{examples}"),
    )(function)
    return cast("VerbCommand", typer.main.get_command(app))


def _flowing(function: Any) -> str:
    """The docstring with one line a paragraph, as typer wants it to wrap the text itself."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return _no_markup("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))


def _no_markup(text: str) -> str:
    return text.replace("[", r"\[")
