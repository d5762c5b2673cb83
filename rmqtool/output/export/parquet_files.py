"""Parquet files below a directory, written a row group at a time, with a bound on those that are open."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from rmqtool.output.export.record_table import DELTAS, DICTIONARY, STATISTICS
from rmqtool.output.export.target import sync, writing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rmqtool.output.export.record_table import RecordTable

GROUP_ROWS = 1 << 17
GROUP_BYTES = 64 << 20
"""a row group ends with whichever comes first"""
OPEN_FILES = 64


@dataclass
class _Open:
    path: Path
    writer: pq.ParquetWriter


class ParquetFiles:
    """At most one open file in each place; a place is a directory below the root, "" the root itself.

    The file that was not written to for longest is closed where there would be too many open ones; what comes
    for its place later goes into another file with the next number. closed: files that are whole already.
    """

    def __init__(self, root: Path, table: RecordTable, compression: str, closed: Sequence[str] = ()) -> None:
        self._root = root
        self._table = table
        self._compression = compression
        self._open: dict[str, _Open] = {}
        self._unsynced: list[Path] = []
        self._taken = Counter(name.rpartition("/")[0] for name in closed)
        self.closed = list(closed)
        """files that are whole, relative to the directory, in the order in which they were closed"""

    def write(self, place: str, table: pa.Table) -> None:
        """Adds rows to the file of a place, as one row group or, where there are many, several."""
        one = self._opened(place)
        groups = max(-(-table.num_rows // GROUP_ROWS), -(-table.nbytes // GROUP_BYTES), 1)
        with writing(one.path):
            one.writer.write_table(table, row_group_size=max(-(-table.num_rows // groups), 1))

    def ensure(self, place: str) -> None:
        """Makes the file of a place even where nothing goes into it."""
        self._opened(place)

    def _opened(self, place: str) -> _Open:
        found = self._open.pop(place, None)
        if found is None:
            while len(self._open) >= OPEN_FILES:
                self._close(next(iter(self._open)))
            found = self._begin(place)
        self._open[place] = found
        return found

    def _begin(self, place: str) -> _Open:
        directory = self._root / place
        path = directory / f"part-{self._taken[place]:05d}.parquet"
        schema = self._table.schema
        known = set(schema.names)
        with writing(path):
            directory.mkdir(parents=True, exist_ok=True)
            writer = pq.ParquetWriter(
                path,
                schema,
                compression=self._compression,
                use_dictionary=[name for name in DICTIONARY if name in known],
                column_encoding={name: "DELTA_BINARY_PACKED" for name in DELTAS if name in known},
                write_statistics=[name for name in STATISTICS if name in known],
                sorting_columns=[pq.SortingColumn(schema.names.index("physical_offset"))],
            )
        return _Open(path, writer)

    def _close(self, place: str, metadata: Mapping[str, str] | None = None) -> None:
        one = self._open[place]
        with writing(one.path):
            if metadata:
                one.writer.add_key_value_metadata(dict(metadata))
            one.writer.close()
        del self._open[place]
        self._taken[place] += 1
        self._unsynced.append(one.path)
        self.closed.append(one.path.relative_to(self._root).as_posix())

    def close_all(self, metadata: Mapping[str, str] | None = None) -> None:
        """Closes every file; what was written so far is whole on the disk."""
        for place in list(self._open):
            self._close(place, metadata)
        while self._unsynced:
            with writing(self._unsynced[-1]):
                sync(self._unsynced[-1])
            self._unsynced.pop()

    def sizes(self) -> dict[str, int]:
        """Of the files that are closed."""
        return {name: (self._root / name).stat().st_size for name in self.closed}

    def further(self) -> ParquetFiles:
        """For more files beside those that are closed."""
        return ParquetFiles(self._root, self._table, self._compression, self.closed)

    def abandon(self) -> None:
        """Lets go of files that are not whole; the next start removes them."""
        for one in self._open.values():
            with suppress(OSError):
                one.writer.close()
        self._open.clear()
