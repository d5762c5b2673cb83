"""Files other than a commit log, listed one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from rmqtool.cli.dump_log import SCHEMA, dump_log, unlisted
from rmqtool.errors import ExitCode, RmqtoolError, UsageError, worst
from rmqtool.output.columns import batch_columns
from rmqtool.output.tablerows import Column
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.select_units import UnitFilter
from rmqtool.scan.files import FileReader, Units
from rmqtool.store.config_json import ParseState
from rmqtool.store.layout import FileKind
from rmqtool.store.throttle import RateLimit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rmqtool.cli.context import Context
    from rmqtool.cli.filters import BodyOptions
    from rmqtool.cli.options import ReadOptions
    from rmqtool.output.rows import Rows
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

_DAMAGE_TYPES = frozenset({"gap"})
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


@dataclass
class _Counts:
    files: int = 0
    rows: int = 0
    gaps: int = 0
    by_type: dict[str, int] = field(default_factory=dict)
    not_covered: list[dict[str, Any]] = field(default_factory=list)
    undecoded: int = 0
    damaged: int = 0
    limited: bool = False

    def summary(self) -> dict[str, Any]:
        reason = "unreadable" if self.not_covered else "limit" if self.limited else None
        told: dict[str, Any] = {
            "files": self.files,
            "rows": self.rows,
            "gaps": self.gaps,
            "undecoded": self.undecoded,
            "damaged": self.damaged,
            "by_type": self.by_type,
            "complete": reason is None,
        }
        if reason is not None:
            told |= {"incomplete_reason": reason, "not_covered": self.not_covered}
        return told

    def exit_code(self) -> ExitCode:
        return worst(
            [
                ExitCode.DAMAGE if self.gaps or self.damaged else ExitCode.OK,
                ExitCode.INCOMPLETE if self.not_covered else ExitCode.OK,
                ExitCode.NEWER_FORMAT if 0 < self.undecoded == self.files else ExitCode.OK,
            ]
        )


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
    counts = _Counts(not_covered=unlisted(store, context))
    limit = RateLimit(read.bytes_per_second) if read.bytes_per_second else None
    files = [file for file in store.files if file.regular]
    total = sum(file.size for file in files)
    with (
        context.progress("reading", total) as progress,
        FileReader(store) as reader,
        context.rows(
            SCHEMA, _columns(context, kinds), csv_columns=_csv_columns(kinds), banner=_banner
        ) as rows,
    ):
        rows.covered = counts.summary
        choose = UnitFilter(wanted)
        for file in files:
            if choose.may_hold(file):
                if limit is not None:
                    limit.take(file.size)
                _write_file(rows, reader, file, choose, counts, slots=context.format in {"ndjson", "json"})
            progress.advance(file.size)
            if counts.limited:
                break
        rows.finish(counts.summary())
    for one in counts.not_covered:
        if "reason" in one:
            context.talk.warn(one["reason"])
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


def _write_file(
    rows: Rows, reader: FileReader, file: StoreFile, choose: UnitFilter, counts: _Counts, *, slots: bool
) -> None:
    counts.files += 1
    try:
        for item in reader.read(file):
            if isinstance(item, Units):
                if item.type == "index_slot" and not slots:
                    continue
                batch = choose.units(item.batch)
                if "state" in batch.schema.names:
                    counts.damaged += batch["state"].to_pylist().count("invalid")
                names, lists = batch_columns(batch)
                kind = [item.type] * batch.num_rows
                rows.write_columns(
                    ["type", *names], [kind, *lists], omit_null={"topic", "queue_id", "ext_tags_code"}
                )
                _count(counts, item.type, batch.num_rows)
            elif row := choose.row(item):
                rows.write_rows([row])
                _count(counts, row["type"], 1)
                counts.damaged += _is_damaged(row)
                if row.get("reason") == "unreadable":
                    place = {name: row[name] for name in ("path", "position", "length")}
                    counts.not_covered.append(place | {"reason": row["error"]})
            if choose.full:
                counts.limited = True
                return
    except RmqtoolError as error:
        counts.not_covered.append({"path": file.shown, "reason": str(error)})


def _is_damaged(row: Mapping[str, Any]) -> bool:
    """A file that was read, but not to its end or not as what it should be."""
    if row["type"] == "config":
        nothing = row["state"] == ParseState.EMPTY and row["detail"] is not None  # zeros, not an empty file
        return bool(nothing or row["state"] == ParseState.UNPARSABLE)
    return bool(row["type"] == "epoch_file" and row["crc"] == "bad")


def _count(counts: _Counts, kind: str, number: int) -> None:
    counts.rows += number
    counts.undecoded += kind == "undecoded"
    counts.by_type[kind] = counts.by_type.get(kind, 0) + number
    if kind in _DAMAGE_TYPES:
        counts.gaps += number


_QUEUE_COLUMNS = ["slot", "physical_offset", "size", "tags_code", "state"]
_TABLES: dict[FileKind, Sequence[str]] = {
    FileKind.CONSUMEQUEUE: _QUEUE_COLUMNS,
    FileKind.BATCHCONSUMEQUEUE: [*_QUEUE_COLUMNS, "store_timestamp", "base_offset", "batch_size"],
    FileKind.CONSUMEQUEUE_EXT: ["position", "address", "size", "tags_code", "store_timestamp", "bit_map_hex"],
    FileKind.INDEX: ["number", "slot", "key_hash", "physical_offset", "time_diff", "prev"],
}
_CSV: dict[FileKind, Sequence[str]] = {
    FileKind.CONSUMEQUEUE: ["path", "position", *_QUEUE_COLUMNS, "ext_tags_code"],
    FileKind.BATCHCONSUMEQUEUE: [
        "path",
        "position",
        *_TABLES[FileKind.BATCHCONSUMEQUEUE],
        "compacted_offset",
    ],
    FileKind.CONSUMEQUEUE_EXT: ["path", *_TABLES[FileKind.CONSUMEQUEUE_EXT]],
    FileKind.INDEX: ["path", *_TABLES[FileKind.INDEX]],
}


def _single(kinds: set[FileKind]) -> FileKind | None:
    known = kinds - {FileKind.UNKNOWN}
    return next(iter(known)) if len(known) == 1 else None


def _columns(context: Context, kinds: set[FileKind]) -> list[Column]:
    kind = _single(kinds)
    if kind not in _TABLES:
        return [Column("type"), Column("path", shrinks=True), Column("content", shrinks=True)]
    columns = [
        Column(name, right=name not in {"state", "bit_map_hex"}, shrinks=name == "bit_map_hex")
        for name in _TABLES[kind]
    ]
    return [
        Column(c.key, right=True, show=context.zone.iso) if c.key == "store_timestamp" else c for c in columns
    ]


def _csv_columns(kinds: set[FileKind]) -> list[str]:
    kind = _single(kinds)
    return ["type", *(("path", "content") if kind is None else _CSV.get(kind, ("path", "content")))]


_ROW_TYPES = frozenset({"unit", "ext_unit", "index_item", "index_slot"})


def _banner(row: Mapping[str, Any]) -> str | None:
    """Whatever is no unit or item, as NAME=VALUE across the table."""
    if row.get("type") in _ROW_TYPES or "type" not in row:
        return None
    return " ".join(_told(row))


def _told(row: Mapping[str, Any]) -> Iterator[str]:
    import json

    yield f"-- {row['type']} {row['path']}:"
    for name, value in row.items():
        if name not in {"type", "path"}:
            shown = json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
            yield f"{name}={shown}"
