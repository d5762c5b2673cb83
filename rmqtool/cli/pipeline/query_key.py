"""`rmqtool pipeline query-key`: messages by any number of keys in many stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.pipeline.spark import CutOptions, SparkOptions, StoresArgument
from rmqtool.cli.query_filters import KeyQueryFilters
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.pipeline.query_key import KeysFound
    from rmqtool.query.message_filter import MessageFilter

SCHEMA = "rmqtool.query-key/1"


@verb(
    examples=[
        "rmqtool pipeline query-key '/backup/*/store' --keys-file keys.txt --format ndjson",
        "rmqtool pipeline query-key /data/a /data/b --key order-4711 --topic TopicTest --from -2h",
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
    source: Annotated[
        Literal["auto", "index", "scan"],
        typer.Option("--source", help="auto: the index for what it covers, the log for the rest."),
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
    matches. All tasks are sent all keys. What the indexes cover is looked up there, the rest of the logs is
    read.
    """
    from rmqtool.cli.pipeline.spark import check_installed, opened, source_options
    from rmqtool.cli.records import RecordOut, answer_code
    from rmqtool.output.tablerows import Column
    from rmqtool.query.by_key import KeySource

    check_installed()
    context = Context(output)
    keys = _keys(key, keys_file)
    chosen = filters.build(context.zone, subscription=subscription.build())
    say_ignored(context, chosen.subscription)
    options = source_options(stores, spark, chosen, cut)
    every = opened(options)
    with spark.session(context) as session:
        from rmqtool.pipeline.key_tasks import Asked
        from rmqtool.pipeline.local_rows import local_batches
        from rmqtool.pipeline.query_key import query_keys

        more = {"store": Column("store"), "matched_keys": None}
        with RecordOut(
            context, SCHEMA, bodies, more if not bodies.redacted else {"store": Column("store")}
        ) as out:
            asked = Asked(keys, _only_topic(chosen), chosen, KeySource(source), out.columns)
            found = query_keys(session, options, every, asked)
            for batch in local_batches(found.records):
                further = {
                    name: batch[name].to_pylist() for name in more if name == "store" or not bodies.redacted
                }
                out.write(batch.select(list(out.columns)), further)
            summary = _summary(found, keys, out.messages, hide=bool(bodies.redacted))
            out.finish(summary)
    return answer_code(out.messages, summary.get("not_covered", ()))


def _summary(found: KeysFound, keys: tuple[str, ...], listed: int, *, hide: bool) -> dict[str, Any]:
    from rmqtool.store.coverage import coverage

    missing = found.missing(keys)
    if hide:
        del missing["not_found"]
    parts = [one | {"store": path} for path, one in found.stores.items()]
    rows = [row | {"store": part["store"]} for part in parts for row in part.get("not_covered", ())]
    return {"messages": listed} | missing | {"stores": parts} | coverage(rows)


def _keys(given: list[str] | None, keys_file: str | None) -> tuple[str, ...]:
    from rmqtool.cli.query_key import read_keys

    if (given is None) == (keys_file is None):
        raise UsageError("give --key, or --keys-file")
    keys = given if keys_file is None else read_keys(keys_file)
    return tuple(dict.fromkeys(keys or ()))


def _only_topic(chosen: MessageFilter) -> str | None:
    """The topic that is meant alone: the index is then asked for no other."""
    if len(chosen.topics) != 1 or set(chosen.topics[0]) & set("*?["):
        return None
    return chosen.topics[0]
