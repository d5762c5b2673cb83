"""`rmqtool pipeline sql`: Spark's SQL over many stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.pipeline.spark import CutOptions, SparkOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.pipeline.sql import SqlResult
    from rmqtool.store.layout import Store

SCHEMA = "rmqtool.sql/1"


@verb(
    examples=[
        "rmqtool pipeline sql '/backup/*/store' \"select store, topic, count(*) from messages group by all\"",
        (
            'rmqtool pipeline sql /data/a /data/b "select a.uniq_key from messages a join messages b on '
            'a.uniq_key = b.uniq_key and a.store < b.store"'
        ),
    ]
)
def command(
    stores: Annotated[
        list[str],
        typer.Argument(metavar="STORE…", help="Stores, also as patterns.", show_default=False),
    ],
    statement: Annotated[str, typer.Argument(metavar="SQL", help="One query of Spark's SQL.")],
    *,
    spark: SparkOptions,
    cut: CutOptions,
    output: OutputOptions,
) -> ExitCode:
    """Spark's SQL over many stores.

    Tables: messages (the record table, with born_time and store_time), consumequeue, index_items,
    consumer_offsets, topics, each with the column store. Only the columns in use are made, and segments
    outside of the times and offsets in the condition are not read. Nothing but the stores is read, and
    nothing is written.
    """
    from rmqtool.cli.pipeline.spark import check_installed, opened, source_options
    from rmqtool.cli.records import answer_code
    from rmqtool.query.message_filter import MessageFilter

    check_installed()
    context = Context(output)
    options = source_options(list(stores), spark, MessageFilter(), cut)
    if not statement.strip():
        raise UsageError("SQL is empty")
    every = opened(context, options)
    missing = _missing(context, every, statement)
    with spark.session(context) as session:
        from rmqtool.pipeline.sql import sql

        with sql(session, options, every, statement) as result:
            result.not_covered[:0] = missing
            count, lacking = _write(context, result)
    return answer_code(count, lacking)


def _missing(context: Context, stores: dict[str, Store], statement: str) -> list[dict[str, Any]]:
    """What the tables lack beforehand, as the local command has it, with its store."""
    from rmqtool.cli.left_out import end_left_out, tables_left_out

    return [
        row | {"store": path}
        for path, store in stores.items()
        for row in (*tables_left_out(store, context, statement), *end_left_out(store, statement))
    ]


def _write(context: Context, result: SqlResult) -> tuple[int, list[dict[str, Any]]]:
    from rmqtool.output.result_rows import is_number, row_columns, row_names
    from rmqtool.output.tablerows import Column
    from rmqtool.pipeline.local_rows import local_batches
    from rmqtool.pipeline.types import arrow_of
    from rmqtool.store.coverage import coverage

    schema = arrow_of(result.frame.schema)
    names = row_names(schema)
    shown = [Column(name, right=is_number(field.type)) for name, field in zip(names, schema, strict=True)]
    count = 0
    with context.rows(SCHEMA, shown, csv_columns=names) as rows:
        for batch in local_batches(result.frame):
            rows.write_columns(["type", *names], [["row"] * batch.num_rows, *row_columns(batch)])
            count += batch.num_rows
        rows.finish({"rows": count} | coverage(result.not_covered))
    return count, result.not_covered
