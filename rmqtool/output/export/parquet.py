"""Parquet files: one, or a directory partitioned by topic and day."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rmqtool.output.export.parquet_files import GROUP_BYTES, GROUP_ROWS, ParquetFiles
from rmqtool.output.export.partitions import Waiting
from rmqtool.output.export.target import MARKER, sync, writing
from rmqtool.output.jsonrows import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rmqtool.output.export.record_table import RecordTable
    from rmqtool.output.export.target import Target

State = dict[str, Any]

HELD_BYTES = 128 << 20
"""bytes that wait for their row groups, over all partitions; half of them may go on waiting"""

SUMMARY_KEY = "rmqtool.export"
"""key of a file's metadata under which the summary lies, as JSON"""


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
        for name, size in (position or {}).get("sizes", {}).items():
            self._target.require(f"/{name}", size)
        root = self._target.open_parts(fresh=position is None)
        files = begin_parts(root, self._table, self._compression, position)
        if self._keys:
            return PartitionedParquet(self._target, root, files, self._table, self._keys)
        return ParquetFile(self._target, root, files, self._table)


class ParquetFile:
    """One file. An interrupted export leaves parts, which are put together when it has come to its end."""

    def __init__(self, target: Target, root: Path, files: ParquetFiles, table: RecordTable) -> None:
        self._target = target
        self._root = root
        self._table = table
        self._files = files
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Some records."""
        self._add(self._table.arrange(batch))

    def _add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Writes what waits as one row group, or makes the file where nothing does."""
        if self._waiting:
            self._files.write("", pa.Table.from_batches(self._waiting, self._table.schema))
        else:
            self._files.ensure("")
        self._waiting, self._rows, self._bytes = [], 0, 0

    def position(self) -> State:
        """All that was written so far, whole on the disk, and where it is."""
        if self._waiting:
            self._flush()
        self._files.close_all()
        return {"files": self._files.closed, "sizes": self._files.sizes()}

    def finish(self, summary: Mapping[str, Any]) -> None:
        """The end of the file, and its name."""
        metadata = {SUMMARY_KEY: encode(summary).decode()}
        if self._files.closed:
            self.position()
            self._join()
        self._flush()
        self._files.close_all(metadata)
        self._target.publish(self._files.closed[-1])

    def _join(self) -> None:
        """All parts into one more, row group by row group."""
        parts = [self._root / name for name in self._files.closed]
        self._files = self._files.further()
        for path in parts:
            with pq.ParquetFile(path) as source:
                for number in range(source.num_row_groups):
                    for batch in source.read_row_group(number).to_batches():
                        self._add(batch.cast(self._table.schema))

    def close(self) -> None:
        """Leaves the files as they are."""
        self._files.abandon()


class PartitionedParquet:
    """A directory `topic=…/day=…`, by topic and by the day of the store time in UTC."""

    def __init__(
        self, target: Target, root: Path, files: ParquetFiles, table: RecordTable, keys: Sequence[str]
    ) -> None:
        self._target = target
        self._root = root
        self._table = table
        self._files = files
        self._waiting = Waiting(keys)

    def write(self, batch: pa.RecordBatch) -> None:
        """Some records, each to its partition."""
        self._waiting.add(self._table.arrange(batch))
        if self._waiting.bytes >= HELD_BYTES:
            self._flush(HELD_BYTES // 2)

    def _flush(self, leave: int = 0) -> None:
        for place, rows in self._waiting.taken(leave):
            self._files.write(place, rows)

    def position(self) -> State:
        """All that was written so far, whole on the disk, and where it is."""
        self._flush()
        self._files.close_all()
        return {"files": self._files.closed, "sizes": self._files.sizes()}

    def finish(self, summary: Mapping[str, Any]) -> None:
        """The end of all files, and the name of the directory, in which the summary lies too."""
        self.position()
        with writing(self._root):
            (self._root / MARKER).write_bytes(encode(summary) + b"\n")
            sync(self._root / MARKER)
            for directory, _, _ in os.walk(self._root):
                sync(Path(directory))
        self._target.publish()

    def close(self) -> None:
        """Leaves the files as they are."""
        self._files.abandon()


def begin_parts(root: Path, table: RecordTable, compression: str, position: State | None) -> ParquetFiles:
    """Files of the directory of parts: a fresh one, or the one of `position` without what came behind it."""
    if position is None:
        return ParquetFiles(root, table, compression)
    known = set(position["files"])
    with writing(root):
        for path in root.rglob("*.parquet"):
            if path.relative_to(root).as_posix() not in known:
                path.unlink()
    return ParquetFiles(root, table, compression, position["files"])
