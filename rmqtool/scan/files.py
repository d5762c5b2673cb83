"""What one file of a store holds: Arrow batches of units and items, rows of everything else."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from formats.consumequeue import is_ext_address
from rmqtool.scan.events import Gap, Tail
from rmqtool.scan.extensions import Extensions
from rmqtool.scan.file_rows import Row, RowBatch, event_row, readable, undecodable, unreadable_rows
from rmqtool.scan.index_rows import read_index
from rmqtool.scan.small_files import (
    read_abort,
    read_checkpoint,
    read_config,
    read_epoch,
    read_identity,
    read_lock,
)
from rmqtool.scan.unit_batches import QueueFile, read_units
from rmqtool.scan.units import BATCH_UNIT, UNIT, LogRange
from rmqtool.store.access import Access
from rmqtool.store.beside import folder_beside
from rmqtool.store.layout import FileKind
from rmqtool.store.patched import ZeroFilledSource
from rmqtool.store.whole import TooLongError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.scan.extension import ExtensionLookup
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]

__all__ = ["FileReader", "Row", "RowBatch"]


@dataclass
class FileReader:
    """Reads files of one store; what several files need is found once.

    access: how they are opened. They are small, and copied: what was read stays as it was.
    """

    store: Store
    access: Access = field(default_factory=lambda: Access("pread"))
    extensions: Extensions = field(init=False)

    def __post_init__(self) -> None:
        self.extensions = Extensions(self.store, self.access)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.extensions.__exit__(*error)

    def open(self, file: StoreFile) -> ZeroFilledSource:
        """The bytes of a file, copied, with zeros where they cannot be read."""
        return ZeroFilledSource(file.open(self.access), file.size)

    def read(self, file: StoreFile) -> Iterator[RowBatch | Row]:
        """Everything in `file`, in file order.

        A row of type `undecoded` stands for what cannot be taken apart.
        """
        try:
            yield from _READERS.get(file.kind, _undecoded)(self, file)
        except TooLongError as error:
            yield undecodable(file, b"", str(error))

    @cached_property
    def log_range(self) -> LogRange | None:
        """What the commit log of the store covers; None when none is at hand."""
        around = folder_beside(self.store, "commitlog")
        if around is None or not len(around.segments):
            return None
        segments = around.segments
        holes = [(hole.start, hole.end) for hole in segments.holes()]
        return LogRange(
            segments.first_offset, segments.end_offset, np.array(holes, np.int64).reshape(len(holes), 2)
        )


def _undecoded(_: FileReader, file: StoreFile) -> Iterator[RowBatch | Row]:
    reason = f"{file.kind} files are not decoded by this release"
    yield {"type": "undecoded", "path": file.display_path, "kind": file.kind.value, "reason": reason}


def _queue(reader: FileReader, file: StoreFile) -> Iterator[RowBatch | Row]:
    place = QueueFile(file.display_path, file.base_offset or 0, file.topic, file.queue_id)
    batch = file.kind is FileKind.BATCHCONSUMEQUEUE
    lookup = None if batch else reader.extensions.of(file.topic, file.queue_id)
    width = (BATCH_UNIT if batch else UNIT).itemsize
    with reader.open(file) as source:
        for item in read_units(source, place, batch=batch, log=reader.log_range):
            if isinstance(item, (Gap, Tail)):
                yield event_row("gap" if isinstance(item, Gap) else "tail", file.display_path, item)
            else:
                units = readable(item, item["position"].to_numpy(), width, source)
                yield RowBatch("unit", units if lookup is None else _resolved(units, lookup))
        yield from unreadable_rows(file, source)


def _resolved(batch: pa.RecordBatch, lookup: ExtensionLookup) -> pa.RecordBatch:
    """The batch with what its extension addresses resolve to."""
    import pyarrow as pa

    codes = batch["tags_code"].to_pylist()
    found = [lookup.tags_code(code) if is_ext_address(code) else None for code in codes]
    return batch.append_column("ext_tags_code", pa.array(found, pa.int64()))


def _extension(reader: FileReader, file: StoreFile) -> Iterator[RowBatch | Row]:
    from rmqtool.scan.extension import EndMarker, ExtensionUnit, read_extension

    with reader.open(file) as source:
        for item in read_extension(source, file.base_offset or 0):
            if isinstance(item, ExtensionUnit):
                row = asdict(item)
                row["store_timestamp"] = row.pop("msg_store_time")
                row["bit_map_hex"] = row.pop("bit_map").hex()
                yield {"type": "ext_unit", "path": file.display_path, **row}
            elif isinstance(item, EndMarker):
                yield {"type": "ext_end", "path": file.display_path, "position": item.position}
            else:
                yield event_row("gap" if isinstance(item, Gap) else "tail", file.display_path, item)
        yield from unreadable_rows(file, source)


_READERS: dict[FileKind, Callable[[FileReader, StoreFile], Iterator[RowBatch | Row]]] = {
    FileKind.CONSUMEQUEUE: _queue,
    FileKind.BATCHCONSUMEQUEUE: _queue,
    FileKind.CONSUMEQUEUE_EXT: _extension,
    FileKind.INDEX: read_index,
    FileKind.CHECKPOINT: read_checkpoint,
    FileKind.ABORT: read_abort,
    FileKind.ABORT_BAK: read_abort,
    FileKind.LOCK: read_lock,
    FileKind.EPOCH: read_epoch,
    FileKind.BROKER_IDENTITY: read_identity,
    FileKind.CONFIG: read_config,
    FileKind.CONFIG_BAK: read_config,
    FileKind.CONFIG_TMP: read_config,
    FileKind.TIMERMETRICS: read_config,
    FileKind.COMPACTION_POSITION: read_config,
}
