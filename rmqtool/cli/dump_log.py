"""Records of a commit log, listed in physical order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.errors import ExitCode, UsageError, worst
from rmqtool.output.messages import OMIT_NULL, MessageShape
from rmqtool.output.tablerows import Column
from rmqtool.query.select import Selector
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Blank, End, Gap, Tail, TailContent, Unreadable
from rmqtool.scan.log import LogScan, Piece, data_bytes, scan_log
from rmqtool.scan.sample import Sample
from rmqtool.store.live import is_live
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from rmqtool.cli.context import Context
    from rmqtool.cli.filters import BodyOptions
    from rmqtool.cli.options import ReadOptions
    from rmqtool.output.rows import Rows
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Hole, Segment

SCHEMA = "rmqtool.dump/1"

_NARROW = 100
"""columns of a terminal below which a table shows only what tells records apart"""

_EVENT_KEYS = ("length", "content", "reason", "expected", "found")
"""what rows that are no record have besides their place"""


@dataclass
class Counts:
    """What was listed and what was met on the way."""

    messages: int = 0
    bytes: int = 0
    blanks: int = 0
    gaps: int = 0
    gap_bytes: int = 0
    bad_crc: int = 0
    bad_inner: int = 0
    tail: str | None = None
    first_offset: int | None = None
    end_offset: int | None = None
    not_covered: list[dict[str, Any]] = field(default_factory=list)
    limited: bool = False

    def summary(self) -> dict[str, Any]:
        """The closing summary."""
        reason = "unreadable" if self.not_covered else "limit" if self.limited else None
        told: dict[str, Any] = {
            "messages": self.messages,
            "bytes": self.bytes,
            "blanks": self.blanks,
            "gaps": self.gaps,
            "gap_bytes": self.gap_bytes,
            "bad_crc": self.bad_crc,
            "first_offset": self.first_offset,
            "end_offset": self.end_offset,
            "tail": self.tail,
            "complete": reason is None,
        }
        if self.bad_inner:
            told["bad_inner"] = self.bad_inner
        if reason is not None:
            told |= {"incomplete_reason": reason, "not_covered": self.not_covered}
        return told

    def exit_code(self) -> ExitCode:
        """Damage is what cannot be what a broker left there on purpose."""
        damaged = self.gaps or self.bad_crc or self.bad_inner or self.tail == TailContent.GARBAGE
        return worst(
            [
                ExitCode.DAMAGE if damaged else ExitCode.OK,
                ExitCode.INCOMPLETE if self.not_covered else ExitCode.OK,
            ]
        )


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
    if context.format in {"raw", "hex"} and unwrap:
        raise UsageError(f"--unwrap and --format {context.format} exclude each other")
    return _Listing(context, store, wanted, bodies, read, unwrap=unwrap).run()


def unlisted(store: Store, context: Context, *, commitlog: bool = False) -> list[dict[str, Any]]:
    """Directories that could not be listed, as rows of `not_covered`; each was noted, or is warned of.

    commitlog: only those that may hold segments.
    """
    roots = {str(root) for root in store.roots}
    found = []
    for one in store.directories:
        path = escape_name(one.path)
        holds_segments = path.rsplit("/", 1)[-1] == "commitlog" or one.location in roots
        if one.error is not None and (holds_segments or not commitlog):
            if context.talk.quiet:
                context.talk.warn(f"{path}: {one.error}")
            found.append({"path": path, "error": one.error})
    return found


class _Listing:
    def __init__(
        self,
        context: Context,
        store: Store,
        wanted: MessageFilter,
        bodies: BodyOptions,
        read: ReadOptions,
        *,
        unwrap: bool,
    ) -> None:
        self._context = context
        self._store = store
        self._segments = store.segments
        self._wanted = wanted
        self._read = read
        self._unwrap = unwrap
        self._counts = Counts(not_covered=unlisted(store, context, commitlog=True))
        form = bodies.body or ("none" if context.format in {"table", "csv"} else "auto")
        tables = context.format == "table"
        self._shape = MessageShape(form, bodies.body_sha256, bodies.redacted, one_body=tables)
        self._holes = {hole.after.base: hole for hole in store.segments.holes()}
        if context.format in {"raw", "hex"} and self._shape.redacted:
            raise UsageError(
                f"--redact means nothing with --format {context.format}, which shows whole records"
            )
        if context.format in {"raw", "hex"} and (bodies.body or bodies.body_sha256):
            raise UsageError(
                f"--body and --body-sha256 mean nothing with --format {context.format}, which shows records"
            )

    def run(self) -> ExitCode:
        total = data_bytes(self._segments)
        with self._context.progress("reading", sum(one.size for one in self._segments)) as progress:
            selector = Selector(self._wanted, choose_kernels(total))
            pieces = scan_log(
                self._segments,
                LogScan(
                    columns=self._columns(),
                    choose=selector.choose,
                    wanted=selector.may_hold,
                    jobs=self._read.job_count,
                    safe_io=self._read.safe_io,
                    bytes_per_second=self._read.bytes_per_second,
                    live=is_live(self._store),
                    advance=progress.advance,
                ),
            )
            if self._context.format in {"raw", "hex"}:
                self._write_records(pieces)
            else:
                self._write_rows(pieces)
        return self._counts.exit_code()

    def _columns(self) -> tuple[str, ...]:
        if self._context.format in {"raw", "hex"}:
            return ("physical_offset", "store_size", "record")
        extra = ("plain_body",) if self._unwrap and "plain_body" not in self._shape.columns else ()
        return (*self._shape.columns, *extra)

    def _write_rows(self, pieces: Iterable[Piece]) -> None:
        columns = _table_columns(self._context, self._shape)
        inner = ("number", "body_position") if self._unwrap else ()
        keys = ["type", *self._shape.keys, *inner, *_EVENT_KEYS]
        with self._context.rows(SCHEMA, columns, csv_columns=keys, banner=_banner) as rows:
            rows.covered = self._counts.summary
            for batch, others in self._limited(pieces):
                if batch is not None and batch.num_rows:
                    self._write_batch(rows, batch)
                rows.write_rows(others)
            rows.finish(self._counts.summary())

    def _write_batch(self, rows: Rows, batch: pa.RecordBatch) -> None:
        from rmqtool.output.inner import has_inner, with_inner

        if self._unwrap and has_inner(batch):
            listed, bad = with_inner(batch, self._shape)
            self._counts.bad_inner += bad
            rows.write_rows(listed)
            return
        shown = batch.drop_columns(["plain_body"]) if self._hides_plain(batch) else batch
        names, lists = self._shape.rows(shown)
        rows.write_columns(names, lists, omit_null=OMIT_NULL)

    def _hides_plain(self, batch: pa.RecordBatch) -> bool:
        return "plain_body" in batch.schema.names and "plain_body" not in self._shape.columns

    def _write_records(self, pieces: Iterable[Piece]) -> None:
        out = self._context.out
        for batch, _ in self._limited(pieces):
            if batch is None:
                continue
            for offset, record in zip(
                batch["physical_offset"].to_pylist(), batch["record"].to_pylist(), strict=True
            ):
                out.write(record if self._context.format == "raw" else self._hex(offset, record))
        out.flush()
        self._context.talk.closing(self._counts.summary())

    def _hex(self, offset: int, record: bytes) -> bytes:
        from rmqtool.output.hexview import plain_hex_lines

        look = self._context.look
        return look.encode("\n".join([*plain_hex_lines(record, look, base=offset), "", ""]))

    def _limited(
        self, pieces: Iterable[Piece]
    ) -> Iterator[tuple[pa.RecordBatch | None, list[dict[str, Any]]]]:
        """Batches and rows of other kinds as they are to be shown, within `limit` and `sample`."""
        sample = None if self._wanted.sample is None else Sample(self._wanted.sample)
        left = self._wanted.limit
        held: list[dict[str, Any]] = []
        for piece in pieces:
            batch, others = self._take(piece)
            if sample is not None:
                held += others
                if batch is not None:
                    sample.offer(batch)
                continue
            if batch is not None and left is not None:
                if batch.num_rows > left:
                    batch, self._counts.limited = batch.slice(0, left), True
                left -= batch.num_rows
            self._count(batch)
            yield batch, others
            if self._counts.limited:
                return
        if sample is not None:
            self._counts.limited = sample.dropped
            for batch in sample.batches(left):
                self._count(batch)
                yield from _merged(batch, held)
            yield None, held

    def _count(self, batch: pa.RecordBatch | None) -> None:
        if batch is None or not batch.num_rows:
            return
        self._counts.messages += batch.num_rows
        offsets, sizes = batch["physical_offset"], batch["store_size"]
        self._counts.bytes += sum(sizes.to_numpy().tolist())
        if self._counts.first_offset is None:
            self._counts.first_offset = offsets[0].as_py()
        self._counts.end_offset = offsets[-1].as_py() + sizes[-1].as_py()

    def _take(self, piece: Piece) -> tuple[pa.RecordBatch | None, list[dict[str, Any]]]:
        counts, content = self._counts, piece.content
        counts.bad_crc += piece.bad_bodies
        others = self._hole_before(piece.segment)
        if isinstance(content, Blank):
            counts.blanks += 1
            if self._wanted.selects_all:
                others.append(_event_row("blank", piece.segment, content))
        elif isinstance(content, Gap):
            counts.gaps += 1
            counts.gap_bytes += content.length
            others.append(_event_row("gap", piece.segment, content) | _why(content))
        elif isinstance(content, Tail):
            counts.tail = content.content
            row = _event_row("tail", piece.segment, content) | {"content": content.content.value}
            if content.content is not TailContent.ZERO:
                row |= {"records": content.records, **_why(content)}
            if self._wanted.selects_all or content.content is TailContent.GARBAGE:
                others.append(row)
        elif isinstance(content, Unreadable):
            row = _event_row("gap", piece.segment, content) | {
                "reason": "unreadable",
                "error": content.reason,
            }
            counts.not_covered.append({key: row[key] for key in ("path", "position", "length", "error")})
            others.append(row)
        elif not isinstance(content, End):
            return content, others
        return None, others

    def _hole_before(self, segment: Segment) -> list[dict[str, Any]]:
        hole = self._holes.pop(segment.base, None)
        if hole is None:
            return []
        self._counts.gaps += 1
        self._counts.gap_bytes += hole.end - hole.start
        return [_hole_row(hole)]


def _merged(
    batch: pa.RecordBatch, rows: list[dict[str, Any]]
) -> Iterator[tuple[pa.RecordBatch, list[dict[str, Any]]]]:
    """Parts of the batch, each with the rows that follow it; `rows`, in physical order too, is used up."""
    offsets = batch["physical_offset"].to_numpy()
    start = 0
    while start < len(offsets):
        end = int(offsets.searchsorted(rows[0]["physical_offset"])) if rows else len(offsets)
        part = batch.slice(start, max(end - start, 0))
        start = max(end, start)
        following = offsets[start] if start < len(offsets) else None
        between: list[dict[str, Any]] = []
        while rows and following is not None and rows[0]["physical_offset"] <= following:
            between.append(rows.pop(0))
        yield part, between


def _event_row(kind: str, segment: Segment, event: Blank | Gap | Tail | Unreadable) -> dict[str, Any]:
    row: dict[str, Any] = {
        "type": kind,
        "path": segment.file.shown,
        "segment": segment.base,
        "position": event.position,
        "physical_offset": segment.base + event.position,
        "length": event.length,
    }
    if isinstance(event, Blank) and event.stored_length != event.length:
        row["stored_length"] = event.stored_length
    return row


def _why(event: Gap | Tail) -> dict[str, Any]:
    return {"reason": event.reason.name.lower(), "expected": event.expected, "found": event.found}


def _hole_row(hole: Hole) -> dict[str, Any]:
    return {
        "type": "gap",
        "path": hole.before.file.shown,
        "segment": hole.before.base,
        "position": hole.start - hole.before.base,
        "physical_offset": hole.start,
        "length": hole.end - hole.start,
        "reason": "missing",
        "expected": hole.start,
        "found": hole.end,
    }


def _banner(row: Mapping[str, Any]) -> str | None:
    """Everything that is no record, as one line across the table."""
    kind = row.get("type", "message")
    if kind in {"message", "inner_message"}:
        return None
    if kind == "inner_error":
        return f"-- batch at {row['physical_offset']}: {row['reason']}"
    place = f"-- {kind} at {row['physical_offset']}, {row['length']} bytes"
    if kind == "blank":
        return f"{place} to the end of {row['path']}"
    told = row.get("reason", "")
    if kind == "tail":
        records = f", {row['records']} records in it" if row.get("records") else ""
        return f"{place} of {row['content']} content{records}"
    if told == "unreadable":
        return f"{place}: unreadable, {row['error']}"
    return f"{place}: {told}, expected {row['expected']}, found {row['found']}"


def _table_columns(context: Context, shape: MessageShape) -> list[Column]:
    columns = [
        Column("physical_offset", "offset", right=True, width=8),
        Column("store_timestamp", "stored", show=context.zone.iso),
        Column("topic", shrinks=True, style="cyan"),
        Column("queue_id", "q", right=True),
        Column("queue_offset", "q.offset", right=True),
        Column("crc"),
    ]
    if context.look.width is None or context.look.width >= _NARROW:
        columns += [
            Column("store_size", "size", right=True),
            Column("tags", shrinks=True),
            Column("keys", shrinks=True),
        ]
    if shape.body_sha256:
        columns.append(Column("body_sha256"))
    if shape.body != "none" and "body" not in shape.redacted:
        columns.append(Column("body"))
    return columns
