"""`rmqtool pipeline query-key`: messages by any number of keys in many stores."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.key_lines import key_lines
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.parse import named, parse_text
from rmqtool.cli.pipeline.spark import CutOptions, SparkOptions, StoresArgument
from rmqtool.cli.query_filters import KeyQueryFilters
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.pipeline.keys.query import KeysFound

SCHEMA = "rmqtool.query-key/1"


@verb(
    examples=[
        "rmqtool pipeline query-key '/backup/*/store' --keys-file keys.txt --format ndjson",
        "rmqtool pipeline query-key /data/a /data/b --key order-4711 --key-topic TopicTest --from -2h",
    ]
)
def command(
    stores: StoresArgument = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="KEY", help="An element of KEYS, or a UNIQ_KEY; repeatable."),
    ] = None,
    keys_file: Annotated[
        str | None,
        typer.Option(
            "--keys-file",
            metavar="FILE",
            help="Many keys, one a line; - reads standard input.",
            show_default=False,
        ),
    ] = None,
    key_topic: Annotated[
        str | None,
        typer.Option(
            "--key-topic",
            metavar="TOPIC",
            help="Look the keys up in this topic only, as TOPIC of query-key does; --topic chooses among "
            "what has the keys.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        Literal["auto", "index", "scan"],
        typer.Option("--source", help="auto: the index for what it covers, the log for the rest."),
    ] = "auto",
    join: Annotated[
        Literal["auto", "broadcast", "shuffle"],
        typer.Option(
            "--join",
            help="broadcast: all tasks are sent all keys; shuffle: keys are a table that no task holds; "
            "auto: broadcast up to 100,000 keys.",
        ),
    ] = "auto",
    *,
    spark: SparkOptions,
    cut: CutOptions,
    filters: KeyQueryFilters,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """Messages by any number of keys in many stores, on Spark.

    Rows are those of query-key, by store and physical offset, each with its store and the keys that it
    matches. What the indexes cover is looked up there, the rest of the logs is read.
    """
    from rmqtool.cli.pipeline.spark import check_installed, opened_logs, source_options, with_left_out
    from rmqtool.cli.records import RecordOut, answer_code
    from rmqtool.output.tablerows import Column
    from rmqtool.query.by_key import KeySource

    check_installed()
    context = Context(output)
    keys = _keys(key, keys_file)
    if key_topic is not None:
        with named("--key-topic"):
            parse_text(key_topic)
        if filters.topic:
            raise UsageError("--key-topic and --topic cannot be combined")
        if set("*?") & set(key_topic):
            filters, key_topic = replace(filters, topic=[key_topic]), None
    chosen = filters.build(context.zone, subscription=subscription.build())
    say_ignored(context, chosen.subscription)
    options = source_options(stores, spark, chosen, cut)
    options, every, unread = opened_logs(context, options)
    with spark.session(context) as session, ExitStack() as stack:
        from rmqtool.pipeline.keys.key_request import Join, KeyRequest
        from rmqtool.pipeline.keys.query import KeySearch
        from rmqtool.pipeline.local_rows import local_batches

        shown: dict[str, Column | None] = {"store": Column("store")}
        if not bodies.redacted:
            shown["matched_keys"] = None
        with RecordOut(context, SCHEMA, bodies, shown) as out:
            search = KeySearch(session, options, every, stack, unread, named=not bodies.redacted)
            asked = KeyRequest(key_topic, chosen, KeySource(source), out.columns)
            found = search.find(asked, keys, Join(join))
            for batch in local_batches(found.records):
                out.write(batch.select(list(out.columns)), {name: batch[name].to_pylist() for name in shown})
            summary = with_left_out(_summary(found, out.messages, hide=bool(bodies.redacted)), options)
            out.finish(summary)
    return answer_code(out.messages, summary.get("not_covered", ()))


def _summary(found: KeysFound, listed: int, *, hide: bool) -> dict[str, Any]:
    from rmqtool.store.coverage import coverage

    missing = found.missing()
    if hide:
        del missing["not_found"]
    parts: list[dict[str, Any]] = [{"store": path} | one for path, one in found.stores.items()]
    rows = [row | {"store": part["store"]} for part in parts for row in part.get("not_covered", ())]
    reported: dict[str, Any] = {"messages": listed, "join": found.join.value}
    if any("kept_back" in part for part in parts):
        reported["kept_back"] = sum(part["kept_back"] for part in parts)
    return reported | missing | {"stores": parts} | coverage(rows)


def _keys(given: list[str] | None, keys_file: str | None) -> Iterator[str]:
    if (given is None) == (keys_file is None):
        raise UsageError("give --key, or --keys-file")
    if keys_file is not None:
        return key_lines(keys_file)
    with named("--key"):
        return iter([parse_text(one) for one in given or ()])
