"""Parquet files: one, or a directory partitioned by topic and day."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rmqtool.output.export.partitions import partitions
from rmqtool.output.export.record_table import DELTAS, DICTIONARY, STATISTICS
from rmqtool.output.export.target import MARKER, sync, writing
from rmqtool.output.jsonrows import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rmqtool.output.export.record_table import RecordTable
    from rmqtool.output.export.target import Target

State = dict[str, Any]

GROUP_ROWS = 1 << 17
GROUP_BYTES = 64 << 20
"""a row group ends with whichever comes first"""
HELD_BYTES = 192 << 20
"""bytes that wait for their row groups, over all partitions"""
OPEN_FILES = 64

SUMMARY_KEY = "rmqtool.export"
"""key of a file's metadata under which the summary lies, as JSON"""


@dataclass
class _Part:
    """A file on its way: what waits for its next row group, and the writer while one is open."""

    path: Path
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    writer: pq.ParquetWriter | None = None


class ParquetParts:
    """Parquet files below a directory, several at once within a bound of memory and of open files.

    A file that had to be closed is followed by another one with the next number.
    """

    def __init__(self, root: Path, table: RecordTable, compression: str, closed: Sequence[str] = ()) -> None:
        self._root = root
        self._table = table
        self._compression = compression
        self._parts: dict[str, _Part] = {}
        self._held = 0
        self._taken = Counter(name.rpartition("/")[0] for name in closed)
        self.closed = list(closed)
        """files that are whole, relative to the directory, in the order in which they were begun"""

    def add(self, place: str, batch: pa.RecordBatch) -> None:
        """Takes records for the file of a partition."""
        part = self._parts.get(place)
        if part is None:
            part = self._parts[place] = _Part(self._next(place))
        part.waiting.append(batch)
        size = batch.nbytes
        part.rows += batch.num_rows
        part.bytes += size
        self._held += size
        if part.rows >= GROUP_ROWS or part.bytes >= GROUP_BYTES:
            self._flush(part)
        while self._held > HELD_BYTES:
            self._flush(max(self._parts.values(), key=lambda one: one.bytes))

    def _next(self, place: str) -> Path:
        directory = self._root / place
        directory.mkdir(parents=True, exist_ok=True)
        return directory / f"part-{self._taken[place]:05d}.parquet"

    def _flush(self, part: _Part) -> pq.ParquetWriter:
        """Writes what waits; the writer, open."""
        if part.writer is None:
            while sum(one.writer is not None for one in self._parts.values()) >= OPEN_FILES:
                self._close(next(place for place, one in self._parts.items() if one.writer is not None))
            part.writer = self._writer(part.path)
        if part.waiting:
            table = pa.Table.from_batches(part.waiting, self._table.schema)
            with writing(part.path):
                part.writer.write_table(table, row_group_size=max(part.rows, 1))
        self._held -= part.bytes
        part.waiting, part.rows, part.bytes = [], 0, 0
        return part.writer

    def _writer(self, path: Path) -> pq.ParquetWriter:
        schema = self._table.schema
        known = set(schema.names)
        with writing(path):
            return pq.ParquetWriter(
                path,
                schema,
                compression=self._compression,
                use_dictionary=[name for name in DICTIONARY if name in known],
                column_encoding={name: "DELTA_BINARY_PACKED" for name in DELTAS if name in known},
                write_statistics=[name for name in STATISTICS if name in known],
                sorting_columns=[pq.SortingColumn(schema.names.index("physical_offset"))],
            )

    def _close(self, place: str, metadata: Mapping[str, str] | None = None) -> None:
        part = self._parts[place]
        writer = self._flush(part)
        with writing(part.path):
            if metadata:
                writer.add_key_value_metadata(dict(metadata))
            writer.close()
            sync(part.path)
        del self._parts[place]
        self._taken[place] += 1
        self.closed.append(part.path.relative_to(self._root).as_posix())

    def further(self) -> ParquetParts:
        """For more files beside those that are closed."""
        return ParquetParts(self._root, self._table, self._compression, self.closed)

    def abandon(self) -> None:
        """Lets go of files that are not whole; the next start removes them."""
        for part in self._parts.values():
            if part.writer is not None:
                with suppress(OSError):
                    part.writer.close()
        self._parts.clear()

    def ensure(self, place: str) -> None:
        """Makes the file of a partition even where nothing goes into it."""
        if place not in self._parts:
            self._parts[place] = _Part(self._next(place))

    def close_all(self, metadata: Mapping[str, str] | None = None) -> None:
        """Closes every file; what was added so far is whole on the disk."""
        for place in list(self._parts):
            self._close(place, metadata)


class ParquetExport:
    """An export into one Parquet file, or with `keys` into a directory partitioned by them."""

    def __init__(
        self, target: Target, table: RecordTable, compression: str, keys: Sequence[str] = ()
    ) -> None:
        self.columns = table.columns
        self.pause: float | None = 300.0 if keys else None
        self._target = target
        self._table = table
        self._compression = compression
        self._keys = tuple(keys)

    def open(self, position: State | None) -> ParquetFile | PartitionedParquet:
        """Begins, or goes on behind `position`."""
        files = begin_parts(self._target, self._table, self._compression, position)
        if self._keys:
            return PartitionedParquet(self._target, self._table, files, self._keys)
        return ParquetFile(self._target, self._table, files)


class ParquetFile:
    """One file. An interrupted export leaves parts, which are put together when it has come to its end."""

    def __init__(self, target: Target, table: RecordTable, files: ParquetParts) -> None:
        self._target = target
        self._table = table
        self._files = files

    def write(self, batch: pa.RecordBatch) -> None:
        """Some records."""
        self._files.add("", self._table.arrange(batch))

    def position(self) -> State:
        """All that was written so far, whole on the disk, and where it is."""
        self._files.close_all()
        return {"files": self._files.closed}

    def finish(self, summary: Mapping[str, Any]) -> None:
        """The end of the file, and its name."""
        metadata = {SUMMARY_KEY: encode(summary).decode()}
        if not self._files.closed:
            self._files.ensure("")
            self._files.close_all(metadata)
        else:
            self._files.close_all()
            self._join(metadata)
        self._target.publish(self._target.part / self._files.closed[-1])

    def _join(self, metadata: Mapping[str, str]) -> None:
        """All parts as one file, row group by row group."""
        parts = [self._target.part / name for name in self._files.closed]
        joined = self._files.further()
        for path in parts:
            with pq.ParquetFile(path) as source:
                for number in range(source.num_row_groups):
                    for batch in source.read_row_group(number).to_batches():
                        joined.add("", batch.cast(self._table.schema))
        joined.ensure("")
        joined.close_all(metadata)
        self._files = joined

    def close(self) -> None:
        """Leaves the files as they are."""
        self._files.abandon()


class PartitionedParquet:
    """A directory `topic=…/day=…`, by topic and by the day of the store time in UTC."""

    def __init__(self, target: Target, table: RecordTable, files: ParquetParts, keys: Sequence[str]) -> None:
        self._target = target
        self._table = table
        self._files = files
        self._keys = tuple(keys)

    def write(self, batch: pa.RecordBatch) -> None:
        """Some records, each to its partition."""
        made = self._table.arrange(batch)
        for place, part in partitions(made, self._keys):
            self._files.add(place, part)

    def position(self) -> State:
        """All that was written so far, whole on the disk, and where it is."""
        self._files.close_all()
        return {"files": self._files.closed}

    def finish(self, summary: Mapping[str, Any]) -> None:
        """The end of all files, and the name of the directory, in which the summary lies too."""
        self._files.close_all()
        part = self._target.part
        with writing(part):
            (part / MARKER).write_bytes(encode(summary) + b"\n")
            sync(part / MARKER)
            for directory, _, _ in os.walk(part):
                sync(Path(directory))
        self._target.publish(part)

    def close(self) -> None:
        """Leaves the files as they are."""
        self._files.abandon()


def begin_parts(target: Target, table: RecordTable, compression: str, position: State | None) -> ParquetParts:
    """The directory of parts: a fresh one, or the one of `position` without what came behind it."""
    root = target.part
    with writing(root):
        if position is None:
            root.mkdir()
            return ParquetParts(root, table, compression)
        known = set(position["files"])
        for path in root.rglob("*.parquet"):
            if path.relative_to(root).as_posix() not in known:
                path.unlink()
        return ParquetParts(root, table, compression, position["files"])
