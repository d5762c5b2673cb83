"""`rmqtool query-key`: messages by key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.key_lines import key_lines
from rmqtool.cli.near import say_unknown_topics
from rmqtool.cli.opened import open_log
from rmqtool.cli.options import QUERY_FORMATS, OutputOptions, ReadOptions, StoreOptions, StorePositional
from rmqtool.cli.parse import named, parse_int, parse_text
from rmqtool.cli.query_filters import KeyQueryFilters
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.output.tablerows import Column
    from rmqtool.query.key_query import KeyQuery
    from rmqtool.query.wanted_keys import WantedKeys

SCHEMA = "rmqtool.query-key/1"


@verb(
    examples=[
        "rmqtool query-key /data/store TopicTest order-4711",
        "rmqtool query-key /data/store order-4711 --from -2h --body",
        "rmqtool query-key /data/store - AC1400031234567890AB0F2C3D4E0001 --source scan",
        "rmqtool query-key /data/store TopicTest --keys-file keys.txt --format ndjson",
        "rmqtool query-key /data/store TopicTest order-4711 --filter 'TagA || TagB' --queue 3",
        "rmqtool query-key /data/store order-4711 --duplicates",
    ],
    formats=QUERY_FORMATS,
)
def command(
    path: StorePositional,
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC]",
            help="Topic, also as a glob; if omitted or '-', all topics that queues or topics.json name.",
            show_default=False,
        ),
    ] = None,
    second: Annotated[
        str | None,
        typer.Argument(metavar="KEY", help="An element of KEYS, or a UNIQ_KEY.", show_default=False),
    ] = None,
    keys_file: Annotated[
        str | None,
        typer.Option(
            "--keys-file",
            metavar="FILE",
            help="Many keys, one a line, in one pass; also a FIFO, - is standard input.",
            show_default=False,
        ),
    ] = None,
    most: Annotated[
        str | None,
        typer.Option("--max", metavar="N", help="List N messages at most, the latest.", show_default=False),
    ] = None,
    source: Annotated[
        Literal["auto", "index", "scan"],
        typer.Option("--source", help="auto: the index for what it covers, the log for the rest."),
    ] = "auto",
    duplicates: Annotated[
        bool,
        typer.Option(
            "--duplicates",
            help="Only messages that are there more than once, by UNIQ_KEY; batches and copies apart.",
        ),
    ] = False,
    by_key: Annotated[
        bool, typer.Option("--by-key", help="With --duplicates: by the elements of KEYS asked for.")
    ] = False,
    *,
    store: StoreOptions,
    read: ReadOptions,
    filters: KeyQueryFilters,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """Messages by key, through the index and the log.

    An element of KEYS or a UNIQ_KEY, in one topic or in all. Candidates of the index are read and
    compared by their real topic and key; one that only has the same hash is counted as a collision. What no
    valid index file covers is read from the log, so that the answer is complete, or says why it is not.
    Rolled back transactions are never in the index and come from the log only. Filters choose among the
    messages with the key. With --duplicates a message is listed when its topic has another one with the same
    UNIQ_KEY that is neither of the same batch nor a copy that the broker made (delayed, half, retried, dead,
    timed).
    """
    from rmqtool.cli.records import RecordOut, answer_code
    from rmqtool.query.by_key import KeySource
    from rmqtool.query.duplicates.found import Twice
    from rmqtool.query.key_query import KeyQuery
    from rmqtool.query.wanted_keys import WantedKeys

    context = Context(output)
    wanted = _wanted(first, second, keys_file)
    limit = None if most is None else _count(most)
    if by_key and not duplicates:
        raise UsageError("--by-key goes with --duplicates")
    if filters.topic and wanted.topic is not None:
        raise UsageError("TOPIC and --topic cannot be combined")
    opened, unread = open_log(context, path, store)
    if wanted.topic is not None and set("*?") & set(wanted.topic):
        filters, wanted = replace(filters, topic=[wanted.topic]), WantedKeys(wanted.keys)
    chosen = filters.build(
        context.zone, resolve=opened.segments.physical_offset, subscription=subscription.build()
    )
    say_ignored(context, chosen.subscription)
    topics = chosen.topics if wanted.topic is None else (wanted.topic,)
    say_unknown_topics(context, opened, topics)
    with context.progress("reading", 0) as progress:
        reading = read.of_log(opened, progress.advance, expect=progress.expect_more)
        twice = Twice(opened.segments, wanted, by_key=by_key) if duplicates else None
        query = KeyQuery(opened, wanted, KeySource(source), reading, chosen, limit, twice, unread)
        with RecordOut(context, SCHEMA, bodies, more := _more(query, bodies)) as out:
            for batch, keys in query.batches(out.columns):
                out.write(batch, {name: keys[name] for name in more})
            for note in query.notes():
                context.console.note(note)
            out.finish(query.summary(out.messages, hide=bodies.redacted))
    _say(context, query)
    return answer_code(out.messages, query.not_covered())


def _more(query: KeyQuery, bodies: BodyOptions) -> dict[str, Column | None]:
    """Further keys of the rows: which of the wanted keys, and which that others have, too; both are keys."""
    from rmqtool.output.tablerows import Column

    more: dict[str, Column | None] = {}
    if len(query.wanted.keys) > 1:
        more["matched_keys"] = None
    if query.twice is not None:
        more["shared_keys"] = Column("shared_keys", "shared keys", shrinks=True)
    return {} if bodies.redacted else more


def _wanted(first: str | None, second: str | None, keys_file: str | None) -> WantedKeys:
    from rmqtool.query.wanted_keys import WantedKeys

    if keys_file is None:
        topic, key = (first, second) if second is not None else (None, first)
        if key is None:
            raise UsageError("KEY is missing: give a key, or --keys-file")
        keys = [key]
    elif second is not None:
        raise UsageError("KEY and --keys-file cannot be combined")
    else:
        topic, keys = first, list(key_lines(keys_file))
    if topic is not None:
        with named("TOPIC"):
            parse_text(topic)
    with named("KEY"):
        keys = [parse_text(key) for key in keys]
    return WantedKeys(keys, None if topic in {None, "-"} else topic)


def _count(text: str) -> int:
    with named("--max"):
        return parse_int(text, minimum=1)


def _say(context: Context, query: KeyQuery) -> None:
    from rmqtool.query.topics import known_topics

    for path, why in query.answer.setbacks.items():
        context.console.note(f"{path} was not used: {why}")
    topic = query.wanted.topic
    if topic is not None and not query.answer.matches and topic not in known_topics(query.store):
        context.console.note(f"no queue and no entry in topics.json names topic {topic}")
    if topic is None and query.answer.topics:
        number = query.answer.topics
        context.console.note(
            f"the index was asked for {number} topics; one without queue and without entry in topics.json "
            "is found with --source scan"
        )
