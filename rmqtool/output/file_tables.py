"""Listings of queue, index and other files for people: columns by kind, a line for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.tablerows import Column
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rmqtool.output.times import Zone

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


def columns(kinds: set[FileKind], zone: Zone) -> list[Column]:
    """The columns of a table; of one kind of file its own, else what all rows have."""
    kind = _single(kinds)
    if kind not in _TABLES:
        return [Column("type"), Column("path", shrinks=True), Column("content", shrinks=True)]
    shown = [
        Column(name, right=name not in {"state", "bit_map_hex"}, shrinks=name == "bit_map_hex")
        for name in _TABLES[kind]
    ]
    return [Column(c.key, right=True, show=zone.iso) if c.key == "store_timestamp" else c for c in shown]


def csv_columns(kinds: set[FileKind]) -> list[str]:
    """The keys that CSV has."""
    kind = _single(kinds)
    return ["type", *(("path", "content") if kind is None else _CSV.get(kind, ("path", "content")))]


_ROW_TYPES = frozenset({"unit", "ext_unit", "index_item", "index_slot"})


def banner(row: Mapping[str, Any]) -> str | None:
    """Whatever is not a unit or item, as NAME=VALUE across the table."""
    if row.get("type") in _ROW_TYPES or "type" not in row:
        return None
    return " ".join(_notes(row))


def _notes(row: Mapping[str, Any]) -> Iterator[str]:
    from rmqtool.output.jsonrows import encode

    yield f"-- {row['type']} {row['path']}:"
    for name, value in row.items():
        if name not in {"type", "path"}:
            shown = encode(value).decode() if isinstance(value, (dict, list)) else value
            yield f"{name}={shown}"
