"""What a task reads of its partition: Arrow batches, and what it could not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool.errors import UnreadableError, VanishedError
from rmqtool.output.jsonrows import encode
from rmqtool.pipeline.opening import open_any
from rmqtool.pipeline.parts import PartOfLog
from rmqtool.pipeline.planning import FilesPartition, LogPartition, StorePartition
from rmqtool.pipeline.types import FINDINGS, SEGMENTS
from rmqtool.query.not_read import not_read
from rmqtool.query.select import Selector
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import End, Gap, Unreadable
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.scan.times import TIMES, as_time
from rmqtool.store.coverage import Incomplete, unreadable
from rmqtool.store.live import is_live
from rmqtool.store.names import as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql.datasource import InputPartition

    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.layout import Store

    Row = dict[str, Any]
    Lacking = Callable[[Row], None]


def batches(
    partition: InputPartition,
    options: SourceOptions,
    wanted: MessageFilter,
    columns: Sequence[str],
    lacking: Lacking,
) -> Iterator[pa.RecordBatch]:
    """The rows of a partition. lacking: is reported what is damaged or cannot be read (`store.coverage`)."""
    if isinstance(partition, LogPartition):
        if options.table == "segments":
            yield _segment(partition)
            return
        yield from _messages(partition, wanted, columns, lacking)
    elif isinstance(partition, FilesPartition):
        yield from _files(partition, options, lacking)
    elif isinstance(partition, StorePartition):
        yield from _findings(partition, options)


def refuse_unreadable(row: Row) -> None:
    """Ends a task that meets bytes that cannot be read; damage, which can be read, is passed over."""
    if row["reason"] == Incomplete.UNREADABLE:
        place, length = row.get("position") or 0, row.get("length") or 0
        hint = f"{row['error']} (option unreadable=skip reads the rest)"
        raise UnreadableError(row["path"], place, length, hint)


def _messages(
    partition: LogPartition, wanted: MessageFilter, columns: Sequence[str], lacking: Lacking
) -> Iterator[pa.RecordBatch]:
    store = partition.part.resolved()
    if store is None:
        return
    for hole in store.segments.holes():
        length = hole.end - hole.start
        lacking({"path": "commitlog", "physical_offset": hole.start, "length": length, "reason": "damage"})
    yield from messages(store, partition.store, wanted, columns, lacking, live=is_live(store))


def messages(
    store: Store,
    name: str,
    wanted: MessageFilter,
    columns: Sequence[str],
    lacking: Lacking,
    *,
    live: bool,
) -> Iterator[pa.RecordBatch]:
    """The messages of a part of a log, whose store is called `name`. live: its end may still move."""
    own = tuple(dict.fromkeys(TIMES.get(name, name) for name in columns if name != "store"))
    selector = Selector(wanted, choose_kernels(data_bytes(store.segments)))
    how = LogScan(
        columns=own or ("physical_offset",),
        choose=None if wanted.selects_all else selector.choose,
        options=ReadOptions.of(store, live=live),
    )
    for piece in scan_log(store.segments, how):
        if isinstance(piece.content, pa.RecordBatch):
            if piece.content.num_rows:
                yield _with(piece.content, name, columns)
        else:
            for row in not_read(piece.segment, piece.content):
                lacking(row)


def _with(batch: pa.RecordBatch, store: str, columns: Sequence[str]) -> pa.RecordBatch:
    made: list[Any] = []
    for name in columns:
        if name == "store":
            made.append(pa.repeat(as_text(store), batch.num_rows))
        else:
            made.append(as_time(batch[TIMES[name]]) if name in TIMES else batch[name])
    return pa.RecordBatch.from_arrays(made, names=list(columns))


def _files(partition: FilesPartition, options: SourceOptions, lacking: Lacking) -> Iterator[pa.RecordBatch]:
    from rmqtool.scan.file_rows import not_covered
    from rmqtool.scan.files import FileReader, RowBatch

    wanted = {"consumequeue": "unit", "index_items": "index_item"}[options.table]
    store = open_any(partition.store, config=options.config)
    with FileReader(store) as reader:
        for path in partition.files:
            file = store.file(path)
            if file is None:
                lacking(unreadable(path, "no such file or directory"))
                continue
            for item in reader.read(file):
                if isinstance(item, RowBatch):
                    if item.type == wanted:
                        yield _named(item.batch, partition.store)
                elif item["type"] == "gap":
                    lacking(not_covered(item))


def _named(batch: pa.RecordBatch, store: str) -> pa.RecordBatch:
    return batch.append_column("store", pa.repeat(as_text(store), batch.num_rows))


_FINDINGS_AT_ONCE = 1024


def _findings(partition: StorePartition, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    from rmqtool.check.verify import Verification

    rows: list[Row] = []
    store = open_any(partition.store, config=options.config)
    for one in Verification(store, ReadOptions.of(store)).findings():
        rows.append(finding_row(one.row(), partition.store))
        if len(rows) == _FINDINGS_AT_ONCE:
            yield pa.RecordBatch.from_pylist(rows, schema=FINDINGS)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=FINDINGS)


def finding_row(row: Row, store: str) -> Row:
    """A finding as a row of the table `findings`."""
    facts = {
        name: None if row[name] is None else encode(row[name]).decode() for name in ("expected", "found")
    }
    return row | facts | {"store": as_text(store)}


def _segment(partition: LogPartition) -> pa.RecordBatch:
    """The row of `segments` about one segment."""
    part = partition.part.whole
    segment, segments = part.segment, PartOfLog(part, (part.segment.base, part.segment.end))
    row: Row = {
        "store": as_text(partition.store),
        "path": segment.file.display_path,
        "segment": segment.base,
        "size": segment.size,
        "disk_bytes": segment.file.disk_bytes,
        "active": partition.part.active,
        "messages": 0,
        "bytes": 0,
        "gaps": 0,
        "gap_bytes": 0,
        "bad_crc": 0,
        "unreadable_bytes": 0,
    }
    try:
        for piece in scan_log(
            segments, LogScan(("store_size", "store_timestamp"), options=ReadOptions.of(part.store))
        ):
            _add(row, piece.content)
            row["bad_crc"] += 0 if piece.bad_bodies is None else len(piece.bad_bodies)
    except VanishedError as error:
        row["error"] = str(error)
    return pa.RecordBatch.from_pylist([row], schema=SEGMENTS)


def _add(row: Row, content: Any) -> None:
    if isinstance(content, pa.RecordBatch) and content.num_rows:
        row["messages"] += content.num_rows
        row["bytes"] += int(content["store_size"].to_numpy().sum(dtype="int64"))
        times = content["store_timestamp"]
        row["first_timestamp"] = row.get("first_timestamp", times[0].as_py())
        row["last_timestamp"] = times[-1].as_py()
    elif isinstance(content, Gap):
        row["gaps"] += 1
        row["gap_bytes"] += content.length
    elif isinstance(content, Unreadable):
        row["unreadable_bytes"] += content.length
        row["error"] = content.reason
    elif isinstance(content, End):
        row["end_offset"] = row["segment"] + content.position
        row["stop_reason"] = content.reason.name.lower()
