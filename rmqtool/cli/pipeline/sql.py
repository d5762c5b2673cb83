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
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.pipeline.sql import SqlResult
    from rmqtool.store.coverage import Incomplete
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
        typer.Argument(metavar="STORE…", help="Stores; patterns are expanded.", show_default=False),
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
    from rmqtool.cli.pipeline.spark import check_installed, opened, refuse_no_utf8, source_options
    from rmqtool.cli.records import answer_code
    from rmqtool.query.message_filter import MessageFilter

    check_installed()
    context = Context(output)
    options = source_options(list(stores), spark, MessageFilter(), cut)
    if not statement.strip():
        raise UsageError("SQL is empty")
    refuse_no_utf8(SQL=statement, store_config=spark.store_config)
    options, every = opened(context, options)
    answer = _Answer(context, every, options)
    try:
        with spark.session(context) as session:
            from rmqtool.pipeline.sql import sql

            with sql(session, options, every, statement) as result:
                answer.write(result)
    except KeyboardInterrupt:
        answer.interrupted()
        raise
    return answer_code(answer.count, answer.lacking)


class _Answer:
    """A result on its way out. lacking: rows of `not_covered`, with their store."""

    def __init__(self, context: Context, stores: dict[str, Store], options: SourceOptions) -> None:
        from rmqtool.cli.left_out import beside_tables

        self._context = context
        self._stores = stores
        self._closed = False
        self.count = 0
        self.lacking = [
            *options.left_out,
            *(
                row | {"store": path}
                for path, store in stores.items()
                for row in beside_tables(store, context)
            ),
        ]

    def write(self, result: SqlResult) -> None:
        """All rows, and the summary."""
        from rmqtool.output.result_rows import is_number, row_columns, row_names
        from rmqtool.output.tablerows import Column
        from rmqtool.pipeline.local_rows import local_batches
        from rmqtool.pipeline.types import arrow_of

        schema = arrow_of(result.frame.schema)
        names = row_names(schema)
        shown = [Column(name, right=is_number(field.type)) for name, field in zip(names, schema, strict=True)]
        self.lacking += result.not_covered
        with self._context.rows(SCHEMA, shown, csv_columns=names) as rows:
            rows.covered, rows.left = self._summary, self._left
            self._closed = True  # by leaving it, whatever happens
            for batch in local_batches(result.frame):
                rows.write_columns(["type", *names], [["row"] * batch.num_rows, *row_columns(batch)])
                self.count += batch.num_rows
            self._add_left_out(result)
            rows.finish(self._summary())

    def _add_left_out(self, result: SqlResult) -> None:
        """What the tables that were read lack beforehand, as the local command has it."""
        from rmqtool.cli.left_out import warned
        from rmqtool.pipeline.gone import gone_since
        from rmqtool.query.sql.left_out import left_out
        from rmqtool.scan.options import ReadOptions

        for path, store in self._stores.items():
            rows = [
                *left_out(store, result.tables, ReadOptions.of(store)),
                *gone_since(store, path, result.tables),
            ]
            found = warned(rows, self._context)
            self.lacking += [row | {"store": path} for row in found]

    def _summary(self) -> dict[str, Any]:
        from rmqtool.store.coverage import coverage

        return {"rows": self.count} | coverage(self.lacking)

    def _left(self, reason: Incomplete) -> list[dict[str, Any]]:
        return [{"path": "commitlog", "reason": reason.value, "store": path} for path in self._stores]

    def interrupted(self) -> None:
        """The summary of an answer that was cut short, where no rows have closed with it."""
        from rmqtool.output.rows import cut_short
        from rmqtool.store.coverage import Incomplete

        if not self._closed:
            reason = Incomplete.INTERRUPTED
            with self._context.rows(SCHEMA, []) as rows:
                rows.finish(cut_short(self._summary(), reason, self._left(reason)))
