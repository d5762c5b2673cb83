"""Files other than a commit log, listed one after the other."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rmqtool.cli.dump_log import SCHEMA, dump_log
from rmqtool.cli.left_out import unlisted, unopened
from rmqtool.errors import ExitCode, UsageError
from rmqtool.output.columns import batch_columns
from rmqtool.output.file_tables import banner, columns, csv_columns
from rmqtool.query.counts import FileCounts
from rmqtool.query.file_listing import FileListing
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.select_units import UnitFilter
from rmqtool.scan.files import FileReader, RowBatch
from rmqtool.store.layout import FileKind
from rmqtool.store.throttle import RateLimit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.cli.context import Context
    from rmqtool.cli.filters import BodyOptions
    from rmqtool.cli.options import ReadOptions
    from rmqtool.output.rows import Rows
    from rmqtool.store.layout import Store

_UNIT_FILTERS = frozenset(
    {
        "topics",
        "queues",
        "offset_from",
        "offset_to",
        "queue_offset_from",
        "queue_offset_to",
        "limit",
    }
)
_OMIT_NULL = frozenset({"topic", "queue_id", "ext_tags_code"})
"""keys that a unit has only when they say something"""


def dump_files(
    context: Context,
    store: Store,
    wanted: MessageFilter,
    bodies: BodyOptions,
    read: ReadOptions,
    *,
    unwrap: bool,
) -> ExitCode:
    """Lists what the files of `store` hold; a commit log among them is listed by `dump_log` instead."""
    kinds = {file.kind for file in store.files}
    if FileKind.COMMITLOG in kinds:
        if kinds - {FileKind.COMMITLOG, FileKind.UNKNOWN}:
            raise UsageError(f"{store.given} holds a commit log and other files: name one of them")
        return dump_log(context, store, wanted, bodies, read, unwrap=unwrap)
    _refuse_options(context, wanted, bodies, kinds, unwrap=unwrap)
    choose = UnitFilter(wanted)
    chosen = [file for file in store.files if choose.may_hold(file)]
    counts = FileCounts(not_covered=[*unlisted(store, context), *unopened(chosen, context)])
    files = [file for file in chosen if file.regular]
    listing = FileListing(files, choose, counts, slots=context.format in {"ndjson", "json"})
    reported = len(counts.not_covered)
    limit = RateLimit(read.bytes_per_second) if read.bytes_per_second else None
    shown = columns(kinds, context.zone)
    with (
        context.progress("reading", sum(file.size for file in files)) as progress,
        FileReader(store) as reader,
        context.rows(SCHEMA, shown, csv_columns=csv_columns(kinds), banner=banner) as rows,
    ):
        rows.covered = counts.summary
        rows.left = listing.left
        for file in files:
            if limit is not None:
                limit.take(file.size)
            _write_file(rows, listing.read(reader, file))
            progress.advance(file.size)
            if listing.full:
                break
        for one in counts.not_covered[reported:]:
            if "error" in one:
                context.console.warn(f"{one['path']}: {one['error']}")
        rows.finish(counts.summary())
    return counts.exit_code()


def _refuse_options(
    context: Context, wanted: MessageFilter, bodies: BodyOptions, kinds: set[FileKind], *, unwrap: bool
) -> None:
    """What means nothing here is said, not ignored."""
    if context.format in {"raw", "hex"}:
        raise UsageError(f"--format {context.format} is for records; these files have none")
    if unwrap or bodies.body or bodies.body_sha256 or bodies.redact:
        raise UsageError(
            "--unwrap, --body, --body-sha256 and --redact are for records; these files have none"
        )
    empty = MessageFilter()
    given = {one.name for one in fields(wanted) if getattr(wanted, one.name) != getattr(empty, one.name)}
    units = kinds & {FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE}
    allowed = (
        _UNIT_FILTERS
        if units
        else {"limit", "offset_from", "offset_to"}
        if FileKind.INDEX in kinds
        else {"limit"}
    )
    if given - allowed:
        names = ", ".join(sorted(given - allowed))
        raise UsageError(f"filters by {names} are for records; these files have none")


def _write_file(rows: Rows, items: Iterable[RowBatch | dict[str, Any]]) -> None:
    for item in items:
        if isinstance(item, RowBatch):
            names, lists = batch_columns(item.batch)
            kind = [item.type] * item.batch.num_rows
            omit = _OMIT_NULL - {"topic"} if "topic_hex" in names else _OMIT_NULL
            rows.write_columns(["type", *names], [kind, *lists], omit_null=omit)
        else:
            rows.write_rows([item])
