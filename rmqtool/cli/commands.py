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

from rmqtool.cli.arguments import Documented, VerbCommand, flags_without_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
        "Is this store right? Every record, consume queue entry and index entry, each against the others.",
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
    "report": Entry(
        "rmqtool.cli.report",
        "The incident record in one HTML file: verdict, findings, map, volume, groups, plan, what was done.",
    ),
    "map": Entry(
        "rmqtool.cli.map",
        "A map of the commit log: every segment drawn, records by topic, damage, the unwritten tail.",
    ),
    "export": Entry(
        "rmqtool.cli.export",
        "Export messages to a file: NDJSON, CSV, Parquet, raw records, or a file to send them again from.",
    ),
    "sql": Entry("rmqtool.cli.sql", "SQL over messages, queues, index, offsets and topics of a store."),
    "salvage": Entry(
        "rmqtool.cli.salvage",
        "Carve intact records out of fragments, disk images and undeleted files, into a new store.",
    ),
    "recover": Entry(
        "rmqtool.cli.recover",
        "Repair a store: every intact record is kept, also after damage, and every queue offset.",
    ),
    "explain": Entry(
        "rmqtool.cli.explain",
        "RocketMQ log lines: their meaning, normal or not, what to look at, the next command.",
    ),
    "rebuild": Entry("rmqtool.cli.rebuild", "Rebuild consume queues and index from the commit log."),
    "undo": Entry("rmqtool.cli.undo", "Restore what an in-place command changed, from its journal."),
    "checkpoint show": Entry(
        "rmqtool.cli.checkpoint_show", "The checkpoint, and what the data proves about it."
    ),
    "checkpoint set": Entry("rmqtool.cli.checkpoint_set", "Write a checkpoint whose times the data proves."),
    "delayed": Entry(
        "rmqtool.cli.delayed",
        "Pending delayed messages: real topic, level, when they are due, how long they are overdue.",
    ),
    "half": Entry(
        "rmqtool.cli.half",
        "Open transactions: half messages that are neither committed nor rolled back.",
    ),
    "retry": Entry("rmqtool.cli.retry", "Messages that consumers sent back, in their retry topics."),
    "dlq": Entry("rmqtool.cli.dlq", "Dead-letter messages: those that were retried too often."),
    "trace": Entry(
        "rmqtool.cli.trace",
        "Follow a message over its copies: half, committed, scheduled, delivered, retried, dead-lettered.",
    ),
    "assign": Entry(
        "rmqtool.cli.assign",
        "Which client of a consumer group gets which queues of a topic, and what moves.",
    ),
    "diff": Entry(
        "rmqtool.cli.diff",
        "Compare the commit logs of two stores: what both have, where they differ, which one to keep.",
    ),
    "offsets audit": Entry(
        "rmqtool.cli.offsets.audit",
        "Check the stored offsets of consumer groups, delay levels and light queues against their queues.",
    ),
    "offsets clamp": Entry(
        "rmqtool.cli.offsets.clamp",
        "Set offsets outside their queues to a bound of the queue, or to a time.",
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
    "schema": Entry(
        "rmqtool.cli.schema", "JSON Schemas of what the commands print as JSON, and of plans and journals."
    ),
    "store init": Entry(
        "rmqtool.cli.messagestore.init", "Create an empty store, which a broker or store put can fill."
    ),
    "store put": Entry(
        "rmqtool.cli.messagestore.put",
        "Put one message, or many from standard input, and report where each is stored.",
    ),
    "store load": Entry(
        "rmqtool.cli.messagestore.load", "Put the messages of a replayable file, which export wrote."
    ),
    "store get": Entry(
        "rmqtool.cli.messagestore.get", "Get messages of a queue, and with -f those that follow."
    ),
    "store replicate": Entry(
        "rmqtool.cli.messagestore.replicate",
        "Copy a log between brokers, as a slave or as a master, until Ctrl-C.",
    ),
    "store topic": Entry("rmqtool.cli.messagestore.topic", "Show, create, change or delete a topic."),
    "store group": Entry(
        "rmqtool.cli.messagestore.group", "Show, create, change or delete a consumer group."
    ),
    "store groups": Entry(
        "rmqtool.cli.messagestore.groups",
        "List what consumer groups have committed, and how many messages they have yet to consume.",
    ),
    "store commit": Entry(
        "rmqtool.cli.messagestore.commit", "Commit an open transaction: its message goes to its topic."
    ),
    "store rollback": Entry(
        "rmqtool.cli.messagestore.rollback", "Roll back an open transaction: its message is never delivered."
    ),
    "store status": Entry(
        "rmqtool.cli.messagestore.status",
        "Rates, latency and backlog of the writer of a store, or what its files show.",
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
        "rmqtool.cli.pipeline.export", "Export messages of many stores to one directory, on Spark."
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
        "rmqtool.cli.pipeline.stream", "Export messages of live stores to files as they arrive, on Spark."
    ),
}
"""every command by its name; of a group: the name of the group, a blank, its own"""


AREAS: dict[str, tuple[str, ...]] = {
    "Inspect": ("info", "dump", "show", "tail", "stats", "explain", "map", "report"),
    "Verify": ("verify", "doctor", "checkpoint", "offsets", "config", "diff"),
    "Query": (
        *("query-key", "query-id", "query-offset", "query-time", "trace", "delayed", "half", "retry", "dlq"),
        *("assign", "export", "sql"),
    ),
    "Repair": ("recover", "rebuild", "salvage", "undo"),
    "Store": ("store",),
    "Fleet": ("pipeline",),
}
"""where `rmqtool --help` lists what; what no area has stands in front of the last one"""

ABOUT: dict[str, str] = {
    "help": "Help of a command: rmqtool help [COMMAND], with all options: COMMAND --help-all.",
    "version": "The version of rmqtool.",
}
"""commands about the program itself"""

INTENDED = {
    "repair": "recover", "fix": "recover", "check": "verify", "fsck": "verify", "diagnose": "doctor",
    "ls": "info", "list": "info", "inspect": "info", "cat": "dump", "decode": "dump", "follow": "tail",
    "key": "query-key", "find": "query-key", "get": "query-offset", "offset": "query-offset",
    "time": "query-time", "carve": "salvage", "revert": "undo", "rollback": "undo", "log": "explain",
    "compare": "diff", "spark": "pipeline", "put": "store put", "query": "query-key", "search": "query-key",
}  # fmt: skip
"""what people type → the command that does it"""


class LazyGroup(typer.core.TyperGroup):
    """The program, or a group of it: stand-ins with name and one-line help; what is called is loaded.

    prefix: what stands before the names of the group's commands in `COMMANDS`.
    """

    def __init__(self, prefix: str = "", examples: Sequence[str] = (), **attributes: Any) -> None:
        self._prefix = prefix
        self._examples = examples
        self._own = _members(prefix)
        names = self._own if prefix else {**self._own, **ABOUT}
        attributes["commands"] = {
            name: typer.core.TyperCommand(name, help=text) for name, text in names.items()
        }
        super().__init__(**attributes)

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, flags without a type."""
        return flags_without_type(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Turns `help COMMAND` into `COMMAND --help`, `version` into `--version`."""
        if not self._prefix and not ctx.resilient_parsing and args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        elif not self._prefix and args == ["version"]:
            args = ["--version"]
        elif args == ["--help-all"]:
            args = ["--help"]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that is called, with its options."""
        meant = None if self._prefix or args[0] in self.commands else INTENDED.get(args[0])
        if meant in COMMANDS or meant in GROUPS:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{meant}'?")
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and _load(self._prefix + str(name)), rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The commands by area, and the first things to type."""
        from rmqtool.cli.helping import group_page

        if self._prefix:
            areas = {"Commands": self._own}
            more = f"More with {ctx.command_path} COMMAND --help."
            formatter.write(group_page(ctx.command_path, str(self.help), areas, self._examples, more))
            return
        listed = {name for names in AREAS.values() for name in names}
        areas = {area: _chosen(self._own, names) for area, names in AREAS.items()}
        areas["More"] = _chosen(self._own, [name for name in self._own if name not in listed]) | ABOUT
        shown = {area: rows for area, rows in areas.items() if rows}
        text = (self.help or "").split("\n", 1)[0]
        formatter.write(group_page(ctx.command_path, text, shown, FIRST, str(self.epilog or "")))


FIRST = (
    "rmqtool doctor /data/store         # is it safe to start this broker?",
    "rmqtool verify /data/store         # is every record, queue and index entry right?",
    "rmqtool recover /data/store        # plans a repaired store; nothing is changed",
    "rmqtool query-key /data/store KEY  # is my message there?",
)
"""examples of the program's own help"""


def _chosen(rows: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: rows[name] for name in names if name in rows}


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
    return LazyGroup(f"{name} ", group.examples, name=name, help=group.help)


@cache
def load_command(name: str) -> typer.core.TyperCommand:
    """Imports the module of `name` and builds its command, once a process."""
    function = import_module(COMMANDS[name].module).command
    app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
    doc = inspect.getdoc(function) or ""
    summary = doc.split("\n", 1)[0]
    app.command(name.rpartition(" ")[2], cls=VerbCommand, help=summary)(function)
    command = cast("VerbCommand", typer.main.get_command(app))
    command.documented = Documented(doc, tuple(function.examples))
    return command
