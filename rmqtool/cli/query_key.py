"""`rmqtool query-key`: messages by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import QUERY_FORMATS, OutputOptions, ReadOptions, StoreOptions, StorePositional
from rmqtool.cli.parse import named, parse_int, parse_time
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.query.key_query import KeyQuery
    from rmqtool.query.wanted_keys import WantedKeys

SCHEMA = "rmqtool.query-key/1"


@verb(
    examples=[
        "rmqtool query-key /data/store TopicTest order-4711",
        "rmqtool query-key /data/store order-4711 --from -2h --body",
        "rmqtool query-key /data/store - AC1400031234567890AB0F2C3D4E0001 --source scan",
        "rmqtool query-key /data/store TopicTest --keys-file keys.txt --format ndjson",
    ],
    formats=QUERY_FORMATS,
)
def command(
    path: StorePositional,
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC]",
            help="Topic; absent or -: all topics that queues or topics.json name.",
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
            help="Many keys, one a line, in one pass; - reads standard input.",
            show_default=False,
        ),
    ] = None,
    store_from: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Stored at or after TIME.", show_default=False),
    ] = None,
    store_to: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Stored before TIME.", show_default=False)
    ] = None,
    most: Annotated[
        str | None,
        typer.Option("--max", metavar="N", help="List N messages at most, the latest.", show_default=False),
    ] = None,
    source: Annotated[
        Literal["auto", "index", "scan"],
        typer.Option("--source", help="auto: the index for what it covers, the log for the rest."),
    ] = "auto",
    *,
    store: StoreOptions,
    read: ReadOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """Messages by key, through the index and the log.

    An element of KEYS or a UNIQ_KEY, in one topic or in all. Candidates of the index are read and
    compared by their real topic and key; what has only the same hash is counted as a collision. What no
    sound index file covers is read from the log, so that the answer is complete, or says why it is not.
    Rolled back transactions are never in the index and come from the log only.
    """
    from rmqtool.cli.records import RecordOut, answer_code
    from rmqtool.query.by_key import KeySource
    from rmqtool.query.key_query import KeyQuery

    context = Context(output)
    wanted = _wanted(first, second, keys_file)
    window = (_moment("--from", store_from, context), _moment("--to", store_to, context))
    limit = None if most is None else _count(most)
    opened = open_store(context, path, store)
    with context.progress("reading", sum(one.size for one in opened.segments)) as progress:
        reading = read.of_log(opened, progress.advance)
        query = KeyQuery(opened, wanted, window, KeySource(source), reading, limit)
        several = {"matched_keys": None} if len(wanted.keys) > 1 and not bodies.redacted else {}
        with RecordOut(context, SCHEMA, bodies, several) as out:
            for batch, matched in query.batches(out.columns):
                out.write(batch, {"matched_keys": matched} if several else None)
            out.finish(query.summary(out.messages, hide=bodies.redacted))
    _say(context, query)
    return answer_code(out.messages, query.not_covered())


def _wanted(first: str | None, second: str | None, keys_file: str | None) -> WantedKeys:
    from rmqtool.query.wanted_keys import WantedKeys

    if keys_file is None:
        topic, key = (first, second) if second is not None else (None, first)
        if key is None:
            raise UsageError("KEY is missing: give a key, or --keys-file")
        keys = [key]
    elif second is not None:
        raise UsageError("KEY and --keys-file exclude each other")
    else:
        topic, keys = first, read_keys(keys_file)
    for one in (topic or "", *keys):
        try:
            one.encode()
        except UnicodeEncodeError as error:
            raise UsageError("a topic or key is no UTF-8 text") from error
    return WantedKeys(keys, None if topic in {None, "-"} else topic)


def read_keys(name: str) -> list[str]:
    """The keys in a file, one a line; `-` is standard input."""
    import sys

    try:
        if name == "-":
            raw = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as stream:
                raw = stream.read()
        lines = raw.decode("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"--keys-file: {name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--keys-file: {name} is no UTF-8 text") from error
    keys = [line.strip() for line in lines if line.strip()]
    if not keys:
        raise UsageError(f"--keys-file: {name} holds no key")
    return keys


def _moment(option: str, text: str | None, context: Context) -> int | None:
    if text is None:
        return None
    with named(option):
        return parse_time(text, context.zone)


def _count(text: str) -> int:
    with named("--max"):
        return parse_int(text, minimum=1)


def _say(context: Context, query: KeyQuery) -> None:
    for path, why in query.answer.setbacks.items():
        context.talk.note(f"{path} was not used: {why}")
    if query.wanted.topic is None and query.answer.topics:
        number = query.answer.topics
        context.talk.note(
            f"the index was asked for {number} topics; one without queue and without entry in topics.json "
            "is found with --source scan"
        )
