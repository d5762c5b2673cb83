"""Records of a commit log, listed in physical order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.cli.opened import log_left_out
from rmqtool.errors import ExitCode, UsageError
from rmqtool.output.log_table import EVENT_KEYS, banner, columns
from rmqtool.output.messages import OMIT_NULL, MessageShape
from rmqtool.output.redaction import hide_read_bytes
from rmqtool.output.rows import cut_short
from rmqtool.query.counts import LogCounts
from rmqtool.query.log_listing import LogListing
from rmqtool.query.scope import Scope
from rmqtool.query.select import Selector
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.options import data_bytes
from rmqtool.store.coverage import Incomplete

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    import pyarrow as pa

    from rmqtool.cli.context import Context
    from rmqtool.cli.filters import BodyOptions
    from rmqtool.cli.options import ReadOptions
    from rmqtool.output.rows import Rows
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.query.replay_listing import ReplayListing
    from rmqtool.store.layout import Store

    Listed = tuple[pa.RecordBatch | None, list[dict[str, Any]]]

SCHEMA = "rmqtool.dump/1"


def dump_log(
    context: Context,
    store: Store,
    wanted: MessageFilter,
    bodies: BodyOptions,
    read: ReadOptions,
    *,
    unwrap: bool,
) -> ExitCode:
    """Lists the records of all segments of `store` that `wanted` passes."""
    refuse_options(context, bodies, unwrap=unwrap)
    missing = log_left_out(context, store)
    counts = LogCounts(not_covered=missing, redaction=bodies.redacted)
    shape = shape_of(context, bodies)
    segments = store.segments
    selector = Selector(wanted, choose_kernels(data_bytes(segments)))
    scope = Scope(segments, wanted)
    listing = LogListing(segments, wanted, scope.may_hold, counts)
    counts.skipped = lambda: scope.skipped
    out = Dump(context, listing, shape, unwrap=unwrap)
    with context.progress("reading", sum(one.size for one in segments)) as progress:
        pieces = scan_log(
            segments,
            LogScan(
                columns=out.scanned,
                choose=selector.choose,
                wanted=scope.may_hold,
                options=read.of_log(store, progress.advance),
            ),
        )
        out.write(listing.pieces(pieces))
    return counts.exit_code()


def shape_of(context: Context, bodies: BodyOptions) -> MessageShape:
    """What a row of a record holds."""
    form = bodies.body or ("none" if context.format in {"table", "csv"} else "auto")
    return MessageShape(form, bodies.body_sha256, bodies.redacted, one_body=context.format == "table")


def refuse_options(context: Context, bodies: BodyOptions, *, unwrap: bool) -> None:
    """What means nothing for whole records is said, not ignored."""
    if context.format not in {"raw", "hex"}:
        return
    form = f"--format {context.format}"
    if unwrap:
        raise UsageError(f"--unwrap and {form} cannot be combined")
    if bodies.redacted:
        raise UsageError(f"--redact cannot be combined with {form}, which shows whole records")
    if bodies.body or bodies.body_sha256:
        raise UsageError(f"--body and --body-sha256 cannot be combined with {form}, which shows records")


class Dump:
    """A listing on its way out."""

    def __init__(
        self, context: Context, listing: LogListing | ReplayListing, shape: MessageShape, *, unwrap: bool
    ) -> None:
        self._context = context
        self._listing = listing
        self._counts = listing.counts
        self._shape = shape
        self._unwrap = unwrap
        self._whole = context.format in {"raw", "hex"}

    @property
    def scanned(self) -> tuple[str, ...]:
        """Columns of the record table that are needed."""
        if self._whole:
            return ("physical_offset", "store_size", "record")
        return tuple(dict.fromkeys((*self._shape.columns, *(("plain_body",) if self._unwrap else ()))))

    def write(self, pieces: Iterable[Listed]) -> None:
        """Writes what the listing gives, and the summary."""
        if self._whole:
            self._write_records(pieces)
        else:
            self._write_rows(pieces)

    def _write_rows(self, pieces: Iterable[Listed]) -> None:
        context = self._context
        shown = columns(self._shape, context.zone)
        inner = ("number", "body_position") if self._unwrap else ()
        keys = ["type", *self._shape.keys, *inner, *EVENT_KEYS]
        with context.rows(SCHEMA, shown, csv_columns=keys, banner=banner) as rows:
            rows.covered = self._counts.summary
            rows.left = self._listing.left
            for batch, others in pieces:
                if batch is not None and batch.num_rows:
                    self._write_batch(rows, batch)
                rows.write_rows(map(hide_read_bytes, others) if self._shape.redacted else others)
            rows.finish(self._counts.summary())

    def _write_batch(self, rows: Rows, batch: pa.RecordBatch) -> None:
        from rmqtool.output.inner import has_inner, with_inner

        if self._unwrap and has_inner(batch):
            listed, bad = with_inner(batch, self._shape)
            self._counts.bad_inner += bad
            rows.write_rows(listed)
            return
        names, lists = self._shape.rows(batch)
        rows.write_columns(names, lists, omit_null=OMIT_NULL)

    def _write_records(self, pieces: Iterable[Listed]) -> None:
        out = self._context.out
        try:
            for batch, _ in pieces:
                if batch is None:
                    continue
                for offset, record in zip(
                    batch["physical_offset"].to_pylist(), batch["record"].to_pylist(), strict=True
                ):
                    out.write(record if self._context.format == "raw" else self._hex(offset, record))
            out.flush()
        except KeyboardInterrupt:
            left = self._listing.left(Incomplete.INTERRUPTED)
            self._context.console.closing(cut_short(self._counts.summary(), Incomplete.INTERRUPTED, left))
            raise
        self._context.console.closing(self._counts.summary())

    def _hex(self, offset: int, record: bytes) -> bytes:
        from rmqtool.output.hexview import plain_hex_lines

        look = self._context.text_style
        return look.encode("\n".join([*plain_hex_lines(record, look, base=offset), "", ""]))
