"""What a notebook or a script calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.scan.log import LogScan, Piece, scan_log
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.table import DEFAULT_COLUMNS, table_schema
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

__all__ = ["open_store", "scan", "scan_events", "scan_replay", "table_schema"]


def open_store(
    path: str | os.PathLike[str],
    *,
    commitlog_roots: Iterable[str | os.PathLike[str]] = (),
    store_config: str | os.PathLike[str] | None = None,
) -> Store:
    """The inventory of a store, a folder in it or a single file.

    store_config: a broker.conf with sizes and switches. Raises `rmqtool.errors.UsageError` (no such path, not
    a store) and `StoreIOError` (no permission).
    """
    from rmqtool.store.config import load_broker_conf

    config = None if store_config is None else load_broker_conf(store_config)
    return Store.open(path, commitlog_roots=commitlog_roots, config=config)


def scan_events(store: Store, *, columns: Sequence[str] = DEFAULT_COLUMNS, jobs: int = 1) -> Iterator[Piece]:
    """Everything in the commit log in physical order: batches of records, fillers, gaps, tails, ends.

    columns: names of the record table (`table_schema`). jobs: threads over segments.
    """
    return scan_log(store.segments, LogScan(columns=columns, options=ReadOptions(jobs=jobs)))


def scan(
    store: Store, *, columns: Sequence[str] = DEFAULT_COLUMNS, jobs: int = 1
) -> Iterator[pa.RecordBatch]:
    """The records of the commit log as Arrow batches in physical order.

    Damage is passed over; `scan_events` tells of it. Memory is bounded by a few batches a job.
    """
    import pyarrow as pa

    for piece in scan_events(store, columns=columns, jobs=jobs):
        if isinstance(piece.content, pa.RecordBatch) and piece.content.num_rows:
            yield piece.content


def scan_replay(
    path: str | os.PathLike[str], *, columns: Sequence[str] = DEFAULT_COLUMNS
) -> Iterator[pa.RecordBatch]:
    """The records of a replayable file (docs/format/replay.md) as Arrow batches, in its order.

    `position` is the place in this file, `segment` null, `physical_offset` where the record lay. Raises
    `UnreadableError` where the file is cut or damaged, behind everything that could be read in front of it,
    and for an entry that holds no record.
    """
    from rmqtool.errors import UnreadableError
    from rmqtool.scan.replay_scan import ReplayScan
    from rmqtool.store.access import open_source

    with open_source(path, "pread") as source:
        entries = ReplayScan(source)
        for run in entries:
            yield from entries.batches(run, columns, source.name)
        for position, length in entries.strange:
            raise UnreadableError(source.name, position, length, "the entry holds no record")
        end = entries.end
        if end is not None and not end.whole:
            raise UnreadableError(source.name, end.position, source.size - end.position, end.stop.value)
