"""The table of commands, loaded one at a time.

`rmqtool --help` and completion must not pay for commands that do not run: the group knows names and one-line
helps, and imports a command's module when the command is called.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import typer
import typer.core
import typer.main

from rmqtool.cli.arguments import VerbCommand, flags_without_type

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Entry:
    """One command: the module that has it under the name `command`, and its help in one line."""

    module: str
    help: str


@dataclass(frozen=True)
class Group:
    """Commands under one name: its help in one line, and examples."""

    help: str
    examples: tuple[str, ...] = ()


GROUPS: dict[str, Group] = {
    "checkpoint": Group("The checkpoint: what it says, what the data proves, setting it."),
    "offsets": Group(
        "Stored offsets of consumer groups and delay levels: check, clamp, merge, compare.",
        (
            "rmqtool offsets audit /data/store",
            "rmqtool offsets diff /data/store /backup/slave/store",
        ),
    ),
    "config": Group(
        "The JSON tables in config/ and their .bak: check, salvage.",
        ("rmqtool config check /data/store", "rmqtool config salvage /data/store"),
    ),
    "store": Group(
        "The message store from the shell: put and get messages without a broker.",
        (
            "rmqtool store init /data/store",
            "rmqtool store put /data/store OrderTopic --body hello",
            "rmqtool store put /data/store --flush sync --format ndjson - < messages.ndjson",
            "rmqtool store get /data/store OrderTopic 0 -f",
        ),
    ),
    "pipeline": Group("The same work over many stores, on Spark: a laptop or a cluster."),
}
"""commands that have commands of their own"""

COMMANDS: dict[str, Entry] = {
    "info": Entry("rmqtool.cli.info", "What a store contains: files, topics, queues, release, state."),
    "dump": Entry("rmqtool.cli.dump", "Decode every byte of a store, a folder in it or a single file."),
    "verify": Entry(
        "rmqtool.cli.verify",
        "Is this store right? Every record, queue entry and index entry, each against the others.",
    ),
    "doctor": Entry("rmqtool.cli.doctor", "Is it safe to start this broker, and what will it do?"),
    "show": Entry("rmqtool.cli.show", "One record in full, with an annotated hex view."),
    "query-key": Entry("rmqtool.cli.query_key", "Messages by key, through the index and the log."),
    "query-id": Entry("rmqtool.cli.query_id", "Messages by offset message id or unique client id."),
    "query-offset": Entry(
        "rmqtool.cli.query_offset", "Messages of a queue by offset, as the broker answers."
    ),
    "query-time": Entry("rmqtool.cli.query_time", "The queue offset that belongs to a point in time."),
    "tail": Entry("rmqtool.cli.tail", "The last messages, and with -f those that follow."),
    "stats": Entry("rmqtool.cli.stats", "Message counts, sizes and rates of a store."),
    "export": Entry(
        "rmqtool.cli.export",
        "Messages into a file: NDJSON, CSV, Parquet, raw records, or one to send them again from.",
    ),
    "sql": Entry("rmqtool.cli.sql", "SQL over messages, queues, index, offsets and topics of a store."),
    "salvage": Entry(
        "rmqtool.cli.salvage",
        "Carve intact records out of fragments, disk images and undeleted files, into a new store.",
    ),
    "recover": Entry(
        "rmqtool.cli.recover",
        "The store as it should be after a stop: every intact record kept, also behind damage.",
    ),
    "explain": Entry(
        "rmqtool.cli.explain",
        "RocketMQ log lines: their meaning, normal or not, what to look at, the next command.",
    ),
    "rebuild": Entry("rmqtool.cli.rebuild", "Rebuild consume queues and index from the commit log."),
    "undo": Entry("rmqtool.cli.undo", "Puts back what an in-place command changed, from its journal."),
    "checkpoint show": Entry(
        "rmqtool.cli.checkpoint_show", "The checkpoint, and what the data proves about it."
    ),
    "checkpoint set": Entry("rmqtool.cli.checkpoint_set", "A checkpoint whose times the data proves."),
    "offsets audit": Entry(
        "rmqtool.cli.offsets.audit",
        "Check the stored offsets of consumer groups, delay levels and light queues against their queues.",
    ),
    "offsets clamp": Entry(
        "rmqtool.cli.offsets.clamp",
        "Set the offsets that lie outside their queues to a bound of the queue, or to a time.",
    ),
    "offsets merge": Entry(
        "rmqtool.cli.offsets.merge",
        "Merge the stored offsets of another store or table into those of STORE.",
    ),
    "offsets diff": Entry("rmqtool.cli.offsets.diff", "Compare the stored offsets of two stores or tables."),
    "config check": Entry(
        "rmqtool.cli.config.check",
        "Check the JSON tables in config/ and their .bak: what each is, and which a broker would load.",
    ),
    "config salvage": Entry(
        "rmqtool.cli.config.salvage",
        "Write the tables in config/ that a broker would not load, from all that can be read of them.",
    ),
    "store init": Entry(
        "rmqtool.cli.messagestore.init", "Make an empty store, which a broker or store put can fill."
    ),
    "store put": Entry(
        "rmqtool.cli.messagestore.put",
        "Put one message, or many from standard input, and say where each is.",
    ),
    "store load": Entry(
        "rmqtool.cli.messagestore.load", "Put the messages of a replayable file, which export has made."
    ),
    "store get": Entry(
        "rmqtool.cli.messagestore.get", "Get messages of a queue, and with -f those that follow."
    ),
    "store replicate": Entry(
        "rmqtool.cli.messagestore.replicate",
        "Copy a log between brokers, as a slave or as a master, until Ctrl-C.",
    ),
    "store topic": Entry("rmqtool.cli.messagestore.topic", "Show a topic, make it, change it or delete it."),
    "store group": Entry(
        "rmqtool.cli.messagestore.group", "Show a consumer group, make it, change it or delete it."
    ),
    "store groups": Entry(
        "rmqtool.cli.messagestore.groups",
        "List what consumer groups have committed, and how many messages are in front of them.",
    ),
    "store commit": Entry(
        "rmqtool.cli.messagestore.commit", "Commit an open transaction: its message goes to its topic."
    ),
    "store rollback": Entry(
        "rmqtool.cli.messagestore.rollback", "Roll back an open transaction: nobody gets its message."
    ),
    "store status": Entry(
        "rmqtool.cli.messagestore.status",
        "What the writer of a store does: rates, latency, how far it is behind; or what the files tell.",
    ),
    "store expire": Entry(
        "rmqtool.cli.messagestore.expire",
        "Delete segments older than fileReservedTime, whatever the hour, and what leads to nothing else.",
    ),
    "store bench": Entry(
        "rmqtool.cli.messagestore.bench",
        "Measure the message store beside Java's, SQLite, RocksDB, LevelDB, LMDB and a file.",
    ),
    "pipeline verify": Entry("rmqtool.cli.pipeline.verify", "All checks over many stores, on Spark."),
    "pipeline export": Entry(
        "rmqtool.cli.pipeline.export", "Messages of many stores into one directory, on Spark."
    ),
    "pipeline rebuild": Entry(
        "rmqtool.cli.pipeline.rebuild", "Rebuild consume queues and index of many stores, on Spark."
    ),
    "pipeline query-key": Entry(
        "rmqtool.cli.pipeline.query_key", "Messages by any number of keys in many stores, on Spark."
    ),
    "pipeline sql": Entry("rmqtool.cli.pipeline.sql", "Spark's SQL over many stores."),
    "pipeline stats": Entry(
        "rmqtool.cli.pipeline.stats", "Message counts, sizes and rates of many stores, on Spark."
    ),
    "pipeline stream": Entry(
        "rmqtool.cli.pipeline.stream", "Messages of live stores into files as they come, on Spark."
    ),
}
"""every command by its name; of a group: the name of the group, a blank, its own"""


class LazyGroup(typer.core.TyperGroup):
    """The program, or a group of it: stand-ins with name and one-line help; what is called is loaded.

    prefix: what stands before the names of the group's commands in `COMMANDS`.
    """

    def __init__(self, prefix: str = "", **attributes: Any) -> None:
        self._prefix = prefix
        attributes["commands"] = {
            name: typer.core.TyperCommand(name, help=text) for name, text in _members(prefix).items()
        }
        super().__init__(**attributes)

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, flags without a type."""
        return flags_without_type(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that is called, with its options."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and _load(self._prefix + str(name)), rest


def _members(prefix: str) -> dict[str, str]:
    """Names in a group with their help, groups in it once, in the order of `COMMANDS`."""
    found: dict[str, str] = {}
    for name, entry in COMMANDS.items():
        if name.startswith(prefix):
            first, blank, _ = name.removeprefix(prefix).partition(" ")
            found[first] = GROUPS[prefix + first].help if blank else entry.help
    return found


def _load(name: str) -> Any:
    if name in COMMANDS:
        return load_command(name)
    group = GROUPS[name]
    return LazyGroup(f"{name} ", name=name, help=group.help, epilog=_examples(group.examples))


@cache
def load_command(name: str) -> typer.core.TyperCommand:
    """Imports the module of `name` and builds its command, once a process."""
    function = import_module(COMMANDS[name].module).command
    app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
    app.command(
        name.rpartition(" ")[2],
        cls=VerbCommand,
        help=_flowing(function),
        epilog=_examples(function.examples),
    )(function)
    return cast("VerbCommand", typer.main.get_command(app))


def _examples(lines: Sequence[str]) -> str | None:
    listed = "\n\n".join(f"$ {line}" for line in lines)
    return _no_markup(f"Examples:\n\n{listed}") if lines else None


def _flowing(function: Any) -> str:
    """The docstring with one line a paragraph, as typer wants it to wrap the text itself."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return _no_markup("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))


def _no_markup(text: str) -> str:
    return text.replace("[", r"\[")
