"""`rmqtool store get`: messages of a queue, and those that follow."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from rmqtool.cli.completing import complete_groups
from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.messagestore.engine import (
    DirPositional,
    EngineOptions,
    RecoveryOptions,
    Stop,
    open_engine,
)
from rmqtool.cli.opened import open_log
from rmqtool.cli.options import (
    QUERY_FORMATS,
    OutputOptions,
    QueueArgument,
    StoreOptions,
    TopicArgument,
    VersionOptions,
)
from rmqtool.cli.parse import named, parse_text
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.cli.records import RecordOut
    from rmqtool.messagestore.store import MessageStore
    from rmqtool.query.offset_query import OffsetQuery
    from rmqtool.query.queue_follow import QueueFollow

SCHEMA = "rmqtool.store-get/1"
_MESSAGES = 32
"""of one pull (`maxTransferCountOnMessageInMemory`)"""


@verb(
    examples=[
        "rmqtool store get /data/store OrderTopic 0",
        "rmqtool store get /data/store OrderTopic 0 1284 -n 100 --filter 'TagA || TagB' --body",
        "rmqtool store get /data/store OrderTopic 0 max -f --format ndjson",
        "rmqtool store get /data/store OrderTopic 0 --group billing -n 100",
    ],
    formats=QUERY_FORMATS,
)
def command(
    path: DirPositional,
    topic: TopicArgument,
    queue: QueueArgument,
    offset: Annotated[
        str | None,
        typer.Argument(
            metavar="OFFSET",
            help="Queue offset, min or max (the last message); default min, or what --group committed.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        str | None,
        typer.Option(
            "--number",
            "-n",
            metavar="N",
            help="Messages to list; default 32, with -f all.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep listing new messages until Ctrl-C.")
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="NAME",
            help="Begin at this consumer group's committed offset, and commit what was listed.",
            show_default=False,
            autocompletion=complete_groups,
        ),
    ] = None,
    *,
    store: StoreOptions,
    recovery: RecoveryOptions,
    version: VersionOptions,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """Get messages of a queue, and with -f those that follow.

    Reads beside whoever writes the store, and takes no lock. With -f new messages appear within 50 ms;
    an OFFSET before the first message begins with that one. Exit code 1: there was no
    message.

    With --group the store is opened as for writing (exit code 5 beside its writer): delayed messages that
    are due are delivered, and what was listed is committed when the command ends.
    """
    from rmqtool.cli.queue_arguments import (
        parse_count,
        parse_queue,
        parse_queue_offset,
        say_queues,
        unlisted_queue,
    )
    from rmqtool.cli.records import RecordOut
    from rmqtool.output.tablerows import Column
    from rmqtool.query.offset_query import OffsetQuery
    from rmqtool.query.queue_follow import QueueFollow
    from rmqtool.query.served_queue import first_there, read_rules, served_queue
    from rmqtool.query.verdict import Question
    from rmqtool.scan.options import ReadOptions

    context = Context(output)
    with named("TOPIC"):
        parse_text(topic)
        if "/" in topic or topic in {".", ".."}:
            raise UsageError(f"'{topic}' is not a valid topic")
    number = parse_queue(queue)
    most = None if count is None else parse_count(count)
    wanted = subscription.build()
    if group is not None and (offset is not None or store.commitlog):
        raise UsageError(
            "--group cannot be combined with OFFSET or --commitlog: it begins at the group's committed offset"
        )
    if group is None and recovery.recovery != "refuse":
        raise UsageError("--recovery goes with --group: nothing is recovered to read")
    with ExitStack() as stack:
        member = None
        if group is not None:
            stack.enter_context(Stop())
            options = EngineOptions(recovery=recovery.recovery, store_config=store.store_config)
            engine = open_engine(context, path, options, release=version.release, deliver=follow)
            member = _Member(stack.enter_context(engine), group, topic, number)
            offset = member.begin()
        opened, unread = open_log(context, path, store)
        unread += unlisted_queue(context, opened, topic, number)
        say_ignored(context, wanted)
        rules = read_rules(opened, version.release)
        out = stack.enter_context(RecordOut(context, SCHEMA, bodies, {"slot": Column("slot")}))
        with served_queue(opened, topic, number, rules) as view:
            begin = parse_queue_offset(opened, view, topic, number, offset or "min", None)
            if not follow:
                asked = Question(topic, number, max(begin, first_there(view)))
                reading = ReadOptions.of(opened)
                query = OffsetQuery(opened, view, rules, asked, wanted, unread=unread, reading=reading)
                code = _once(context, query, out, most or _MESSAGES, member)
                say_queues(context, opened, topic, view)
                return code
        following = QueueFollow(opened, topic, number, begin, rules.traits, most, wanted, unread)
        return _follow(following, out, member)


def _once(
    context: Context, query: OffsetQuery, out: RecordOut, most: int, member: _Member | None
) -> ExitCode:
    """What is there. What was listed is committed when the output has it."""
    from rmqtool.cli.records import answer_code

    for batch, more in query.batches(most, out.columns):
        out.write(batch, more)
    out.finish(query.summary())
    if member is not None:
        context.out.flush()
        member.commit(query.reached)
    return answer_code(query.listed, query.not_covered())


def _follow(following: QueueFollow, out: RecordOut, member: _Member | None) -> ExitCode:
    """What is there, and what comes, until that is interrupted."""
    from rmqtool.cli.records import listing_code

    try:
        for found in following.batches(out.columns):
            if found is None:
                out.flush()
                if member is not None:
                    member.commit(following.at)
            elif found[0].num_rows:
                out.write(found[0], {"slot": found[1]})
    except KeyboardInterrupt:
        following.interrupted = True
    out.finish(following.summary())
    return listing_code(following.not_covered())


class _Member:
    """A consumer group that reads one queue through this command."""

    def __init__(self, engine: MessageStore, group: str, topic: str, queue_id: int) -> None:
        """Raises `UsageError` where the group may not consume."""
        self._engine, self._of = engine, (group, topic, queue_id)
        engine.groups.of_consumer(group)
        engine.deliver_due()

    def begin(self) -> str | None:
        """Where it goes on, None where it has not begun."""
        committed = self._engine.committed_offset(*self._of)
        return None if committed is None else str(committed)

    def commit(self, offset: int) -> None:
        """Everything in front of `offset` was listed."""
        if offset != self._engine.committed_offset(*self._of):
            self._engine.commit_offset(*self._of, offset)
