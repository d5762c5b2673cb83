"""`rmqtool sql`: a store as tables of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import RedactionOptions
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import FORMATS as ROW_FORMATS
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreOptions, StorePositional
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqtool.query.sql.session import SqlSession
    from rmqtool.scan.options import ReadOptions as LogOptions
    from rmqtool.store.coverage import Incomplete
    from rmqtool.store.layout import Store

SCHEMA = "rmqtool.sql/1"


@verb(
    examples=[
        'rmqtool sql /data/store "select topic, count(*) from messages group by topic"',
        "rmqtool sql /data/store \"select * from messages where store_time >= '2026-11-21 03:00+00'\"",
        "rmqtool sql /data/store \"select path, slot from consumequeue where state <> 'ok'\"",
        'rmqtool sql /data/store "describe messages"',
        'rmqtool sql /data/store "select * from messages" --redact body,keys --format parquet > seen.parquet',
    ],
    formats=(*ROW_FORMATS, "parquet"),
)
def command(
    path: StorePositional,
    statement: Annotated[str, typer.Argument(metavar="SQL", help="One query of DuckDB's SQL.")],
    *,
    store: StoreOptions,
    read: ReadOptions,
    redaction: RedactionOptions,
    output: OutputOptions,
) -> ExitCode:
    """SQL over messages, queues, index, offsets and topics of a store.

    Tables: messages (the record table, with born_time and store_time), consumequeue, index_items,
    consumer_offsets, topics. Only the columns in use are made, and segments outside of the times and offsets
    in the condition are not read. Nothing outside of the store can be read, and nothing is written. Needs
    the extra sql: pip install 'rmqtool[sql]'. With --redact the query itself, conditions and joins included,
    sees no more than is shown.
    """
    from rmqtool.cli.left_out import beside_tables
    from rmqtool.cli.records import answer_code
    from rmqtool.output.text import is_terminal
    from rmqtool.store.required import require_log

    context = Context(output)
    if not statement.strip():
        raise UsageError("SQL is empty")
    if context.format == "parquet" and is_terminal(_stdout()):
        raise UsageError("--format parquet goes into a file or a pipe, not to a terminal")
    opened = open_store(context, path, store)
    require_log(opened)
    missing = beside_tables(opened, context)
    with (
        context.progress("reading", sum(one.size for one in opened.segments)) as progress,
        _session(
            opened,
            read.of_log(opened, progress.advance, expect=progress.expect_more),
            redaction.redacted,
        ) as session,
    ):
        answer = _Answer(context, opened, session, missing, redaction.redacted)
        try:
            result = session.run(statement)
            if context.format == "parquet":
                answer.parquet(result)
            else:
                answer.rows(result)
        except KeyboardInterrupt:
            answer.interrupted()
            raise
    return answer_code(answer.count, answer.not_covered)


def _session(opened: Store, reading: LogOptions, redacted: frozenset[str]) -> SqlSession:
    """A session in which what is redacted cannot be asked for."""
    from rmqtool.output.redacted_table import RedactedTable
    from rmqtool.query.sql.session import SqlSession

    hiding = RedactedTable(redacted) if redacted else None
    return SqlSession(opened, reading, hiding, hashes=not redacted - {"body"})


def _stdout() -> Any:
    import sys

    return sys.stdout


class _Answer:
    """A result on its way out."""

    def __init__(
        self,
        context: Context,
        opened: Store,
        session: SqlSession,
        missing: list[dict[str, Any]],
        redacted: frozenset[str],
    ) -> None:
        self._context = context
        self._opened = opened
        self._session = session
        self._missing = missing
        self._redacted = redacted
        self.count = 0
        self.not_covered: list[dict[str, Any]] = []
        self._closed = False

    def summary(self) -> dict[str, Any]:
        """The closing summary; behind it `not_covered` is what the tables lack that were read."""
        from rmqtool.cli.left_out import warned
        from rmqtool.query.sql.left_out import left_out
        from rmqtool.store.coverage import coverage

        lacking = self._session.lacking
        # who interrupts does not wait for the end of the log to be looked for
        tables = frozenset[str]() if lacking.interrupted.is_set() else lacking.scanned
        beforehand = warned(left_out(self._opened, tables, self._session.reading), self._context)
        self.not_covered = [*self._missing, *beforehand, *lacking.rows.values()]
        reported: dict[str, Any] = {"rows": self.count, "segments_read": len(self._session.messages.opened)}
        if self._redacted:
            reported["redaction"] = sorted(self._redacted)
        return reported | coverage(self.not_covered)

    def _left(self, reason: Incomplete) -> list[dict[str, Any]]:
        return [{"path": "commitlog", "reason": reason.value}]

    def interrupted(self) -> None:
        """The summary of an answer that was cut short, where no rows have closed with it."""
        from rmqtool.output.rows import cut_short
        from rmqtool.store.coverage import Incomplete

        if self._closed:
            return
        reason = Incomplete.INTERRUPTED
        summary = cut_short(self.summary(), reason, self._left(reason))
        if self._context.format == "parquet":
            self._context.console.closing(summary)
            return
        with self._context.rows(SCHEMA, []) as rows:
            rows.finish(summary)

    def rows(self, result: pa.RecordBatchReader) -> None:
        """As rows."""
        from rmqtool.output.result_rows import is_number, row_columns, row_names
        from rmqtool.output.tablerows import Column

        names = row_names(result.schema)
        numbers = [is_number(field.type) for field in result.schema]
        shown = [  # where a terminal is too narrow, columns are left out from the right
            Column(name, right=number, shrinks=not number, gives=place)
            for place, (name, number) in enumerate(zip(names, numbers, strict=True))
        ]
        with self._context.rows(SCHEMA, shown, csv_columns=names) as rows:
            rows.covered, rows.left = self.summary, self._left
            self._closed = True  # by leaving it, whatever happens
            for batch in self._session.batches(result):
                kinds = ["row"] * batch.num_rows
                rows.write_columns(["type", *names], [kinds, *row_columns(batch)])
                self.count += batch.num_rows
            rows.finish(self.summary())

    def parquet(self, result: pa.RecordBatchReader) -> None:
        """As one Parquet file on standard output."""
        from rmqtool.output.stream import as_file
        from rmqtool.query.sql.parquet import write_parquet

        out = as_file(self._context.out)
        for rows in write_parquet(result.schema, self._session.batches(result), out):
            self.count += rows
        self._context.out.flush()
        self._context.console.closing(self.summary())
