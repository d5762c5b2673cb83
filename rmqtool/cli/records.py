"""Records that a query found, written in the form that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.errors import ExitCode, UsageError, worst
from rmqtool.output.log_table import columns
from rmqtool.output.messages import OMIT_NULL, MessageShape
from rmqtool.output.rows import cut_short
from rmqtool.store.coverage import Incomplete

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Self

    import pyarrow as pa

    from rmqtool.cli.context import Context
    from rmqtool.cli.filters import BodyOptions
    from rmqtool.output.rows import Rows
    from rmqtool.output.tablerows import Column


class RecordOut:
    """Where batches of records go. A context manager; `finish` closes it with the summary.

    more: keys that rows have besides those of the record table, and how a table shows them.
    """

    def __init__(
        self,
        context: Context,
        schema: str,
        bodies: BodyOptions,
        more: Mapping[str, Column | None] | None = None,
    ) -> None:
        self._context = context
        self._whole = context.format in {"raw", "hex"}
        if self._whole:
            refuse_shaping(context, bodies)
        form = bodies.body or ("none" if context.format in {"table", "csv"} else "auto")
        shape = MessageShape(form, bodies.body_sha256, bodies.redacted, one_body=context.format == "table")
        self._shape = shape
        self._schema = schema
        self._more = dict(more or {})
        self.rows: Rows | None = None
        self.messages = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the record table that batches must have."""
        return ("physical_offset", "record") if self._whole else self._shape.columns

    def __enter__(self) -> Self:
        if not self._whole:
            context = self._context
            shown = columns(self._shape, context.zone)
            shown[5:5] = [column for column in self._more.values() if column is not None]
            keys = ["type", *self._shape.keys, *self._more]
            self.rows = context.rows(self._schema, shown, csv_columns=keys)
            self.rows.covered = self._covered
            self.rows.left = _left
            self.rows.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.rows is not None:
            self.rows.__exit__(kind, error, trace)
        elif isinstance(error, KeyboardInterrupt):
            reason = Incomplete.INTERRUPTED
            self.finish(cut_short(self._covered(), reason, _left(reason)))

    def _covered(self) -> dict[str, Any]:
        return {"messages": self.messages}

    def write(self, batch: pa.RecordBatch, more: Mapping[str, Sequence[Any]] | None = None) -> None:
        """Writes a batch with `columns`; `more` has a list for each further key."""
        self.messages += batch.num_rows
        if self.rows is None:
            self._write_bytes(batch)
            return
        names, lists = self._shape.rows(batch)
        further = dict(more or {})
        self.rows.write_columns([*names, *further], [*lists, *further.values()], omit_null=OMIT_NULL)

    def flush(self) -> None:
        """Everything written so far becomes visible."""
        if self.rows is not None:
            self.rows.flush()
        else:
            self._context.out.flush()

    def finish(self, summary: Mapping[str, Any]) -> None:
        """The closing summary."""
        if self.rows is not None:
            self.rows.finish(summary)
        else:
            self._context.out.flush()
            self._context.console.closing(summary)

    def _write_bytes(self, batch: pa.RecordBatch) -> None:
        from rmqtool.output.hexview import plain_hex_lines

        out, look = self._context.out, self._context.text_style
        pairs = zip(batch["physical_offset"].to_pylist(), batch["record"].to_pylist(), strict=True)
        for offset, record in pairs:
            if self._context.format == "raw":
                out.write(record)
            else:
                out.write(look.encode("\n".join([*plain_hex_lines(record, look, base=offset), "", ""])))


def _left(reason: Incomplete) -> list[dict[str, Any]]:
    """Of an answer that was cut short before it was known what it would be."""
    return [{"path": "commitlog", "reason": reason.value}]


def refuse_shaping(context: Context, bodies: BodyOptions) -> None:
    """What means nothing for whole records is said, not ignored."""
    form = f"--format {context.format}"
    if bodies.redacted:
        raise UsageError(f"--redact cannot be combined with {form}, which shows whole records")
    if bodies.body or bodies.body_sha256:
        raise UsageError(f"--body and --body-sha256 cannot be combined with {form}, which shows records")


def answer_code(listed: int, not_covered: Sequence[Mapping[str, Any]]) -> ExitCode:
    """Exit code of a query: 1 when nothing was found, 3 when something in its scope was not looked at."""
    return worst([listing_code(not_covered), ExitCode.OK if listed else ExitCode.DAMAGE])


def listing_code(not_covered: Sequence[Mapping[str, Any]]) -> ExitCode:
    """Exit code of an answer that may well be empty: 3 when something in its scope was not looked at."""
    reasons = {str(row["reason"]) for row in not_covered}
    if Incomplete.INTERRUPTED in reasons:
        return ExitCode.INTERRUPTED
    return ExitCode.INCOMPLETE if reasons - {Incomplete.LIMIT} else ExitCode.OK
