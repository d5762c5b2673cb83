"""What one file of a store holds: Arrow batches of units and items, rows of everything else."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formats.consumequeue import is_ext_address
from rmqtool.scan.events import Gap, Tail
from rmqtool.scan.units import BATCH_UNIT, UNIT, LogRange, QueueFile, read_units
from rmqtool.store.access import Access
from rmqtool.store.kinds import TOP_DIRECTORIES
from rmqtool.store.layout import FileKind
from rmqtool.store.patched import PatchedSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.scan.extension import ExtensionLookup
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Units:
    """Many rows of one type as a batch."""

    type: str
    batch: pa.RecordBatch


@dataclass
class FileReader:
    """Reads files of one store; what several files need is found once.

    access: how they are opened. They are small, and copied: what was read stays as it was.
    """

    store: Store
    access: Access = field(default_factory=lambda: Access("pread"))
    _extensions: dict[tuple[str, int], ExtensionLookup | None] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def open(self, file: StoreFile) -> PatchedSource:
        """The bytes of a file, copied, with zeros where they cannot be read."""
        return PatchedSource(file.open(self.access), file.size)

    def read(self, file: StoreFile) -> Iterator[Units | Row]:
        """Everything in `file`, in file order.

        A row of type `undecoded` stands for what cannot be taken apart.
        """
        return _READERS.get(file.kind, _undecoded)(self, file)

    def _beside(self, *parts: str) -> Store | None:
        """Another folder of the store that the files were taken from; None when there is none."""
        from rmqtool.store.layout import Store, StoreForm

        if self.store.form is StoreForm.STORE:
            return self.store
        place = self.store.root.joinpath(*parts)
        inside = "/" in self.store.scope or self.store.scope in TOP_DIRECTORIES
        return Store.open(place, config=self.store.config) if inside and place.is_dir() else None

    @cached_property
    def log_range(self) -> LogRange | None:
        """What the commit log of the store covers; None when none is at hand."""
        around = self._beside("commitlog")
        if around is None or not len(around.segments):
            return None
        segments = around.segments
        holes = tuple((hole.start, hole.end) for hole in segments.holes())
        return LogRange(segments.first_offset, segments.end_offset, holes)

    def extension(self, topic: str | None, queue_id: int | None) -> ExtensionLookup | None:
        """The extension files of a queue; None when there are none."""
        from rmqtool.scan.extension import ExtensionLookup

        if topic is None or queue_id is None:
            return None
        key = topic, queue_id
        if key not in self._extensions:
            around = self._beside(FileKind.CONSUMEQUEUE_EXT, topic, str(queue_id))
            queues = around.queues(FileKind.CONSUMEQUEUE_EXT) if around is not None else ()
            files = [
                (file.base_offset or 0, self._open.enter_context(file.open(self.access)))
                for queue in queues
                if (queue.topic, queue.queue_id) == key
                for file in queue.files
            ]
            self._extensions[key] = ExtensionLookup(files) if files else None
        return self._extensions[key]


def _event(kind: str, path: str, event: Gap | Tail) -> Row:
    row: Row = {"type": kind, "path": path, "position": event.position, "length": event.length}
    if isinstance(event, Tail):
        return row | {"content": event.content.value}
    return row | {"reason": event.reason.name.lower(), "expected": event.expected, "found": event.found}


def _unreadable(file: StoreFile, source: PatchedSource) -> Iterator[Row]:
    """The ranges of a file that could not be read, when it has been read to its end."""
    source.notice_cut()
    for bad in source.unreadable:
        row = {"type": "gap", "path": file.shown, "position": bad.start, "length": bad.length}
        yield row | {"reason": "unreadable", "error": bad.reason}


def _readable(batch: pa.RecordBatch, starts: Ints, width: int, source: PatchedSource) -> pa.RecordBatch:
    """The rows of a batch whose bytes, `width` from `starts` on, could be read."""
    import numpy as np
    import pyarrow as pa

    lost = np.zeros(len(starts), bool)
    for bad in source.unreadable:
        lost |= (starts < bad.end) & (starts + width > bad.start)
    return batch.filter(pa.array(~lost)) if lost.any() else batch


def _undecoded(_: FileReader, file: StoreFile) -> Iterator[Units | Row]:
    reason = f"{file.kind} files are not decoded by this release"
    yield {"type": "undecoded", "path": file.shown, "kind": file.kind.value, "reason": reason}


def _queue(reader: FileReader, file: StoreFile) -> Iterator[Units | Row]:
    place = QueueFile(file.shown, file.base_offset or 0, file.topic, file.queue_id)
    batch = file.kind is FileKind.BATCHCONSUMEQUEUE
    lookup = None if batch else reader.extension(file.topic, file.queue_id)
    width = (BATCH_UNIT if batch else UNIT).itemsize
    with reader.open(file) as source:
        for item in read_units(source, place, batch=batch, log=reader.log_range):
            if isinstance(item, (Gap, Tail)):
                yield _event("gap" if isinstance(item, Gap) else "tail", file.shown, item)
            else:
                units = _readable(item, item["position"].to_numpy(), width, source)
                yield Units("unit", units if lookup is None else _resolved(units, lookup))
        yield from _unreadable(file, source)


def _resolved(batch: pa.RecordBatch, lookup: ExtensionLookup) -> pa.RecordBatch:
    """The batch with what its extension addresses resolve to."""
    import pyarrow as pa

    codes = batch["tags_code"].to_pylist()
    found = [lookup.tags_code(code) if is_ext_address(code) else None for code in codes]
    return batch.append_column("ext_tags_code", pa.array(found, pa.int64()))


def _extension(reader: FileReader, file: StoreFile) -> Iterator[Units | Row]:
    from rmqtool.scan.extension import EndMarker, ExtensionUnit, read_extension

    with reader.open(file) as source:
        for item in read_extension(source, file.base_offset or 0):
            if isinstance(item, ExtensionUnit):
                row = asdict(item)
                row["store_timestamp"] = row.pop("msg_store_time")
                row["bit_map_hex"] = row.pop("bit_map").hex()
                yield {"type": "ext_unit", "path": file.shown, **row}
            elif isinstance(item, EndMarker):
                yield {"type": "ext_end", "path": file.shown, "position": item.position}
            else:
                yield _event("gap" if isinstance(item, Gap) else "tail", file.shown, item)
        yield from _unreadable(file, source)


def _index(reader: FileReader, file: StoreFile) -> Iterator[Units | Row]:
    with reader.open(file) as source:
        yield from _index_parts(reader, file, source)
        yield from _unreadable(file, source)


def _index_parts(reader: FileReader, file: StoreFile, source: PatchedSource) -> Iterator[Units | Row]:
    """Header, slots and items; without a header that can be read nobody knows how many there are."""
    import numpy as np

    from formats.index import FIRST_ITEM, item_position, slot_position
    from rmqtool.scan.index import ITEM, SLOT, read_header, read_items, read_slots
    from rmqtool.store.index_geometry import index_geometry

    geometry = index_geometry(file, reader.store.config)
    width = ITEM.itemsize
    header = read_header(source)
    if source.unreadable:
        return
    if header is None:
        yield _short(file, 40)
        return
    yield {
        "type": "index_header",
        "path": file.shown,
        **asdict(header),
        "slots": geometry.slots,
        "items": geometry.items,
        "geometry_source": geometry.source.value,
    }
    if header.index_count <= FIRST_ITEM:
        return
    if geometry.slots is None or geometry.items is None:
        yield {
            "type": "undecoded",
            "path": file.shown,
            "kind": file.kind.value,
            "reason": geometry.detail,
        }
        return
    for batch in read_slots(source, file.shown, geometry.slots):
        places = slot_position(0) + batch["slot"].to_numpy().astype(np.int64) * SLOT.itemsize
        yield Units("index_slot", _readable(batch, places, SLOT.itemsize, source))
    end = min(header.index_count, geometry.items)
    for batch in read_items(source, file.shown, geometry.slots, end):
        places = item_position(0, geometry.slots) + batch["number"].to_numpy().astype(np.int64) * width
        yield Units("index_item", _readable(batch, places, width, source))


def _short(file: StoreFile, wanted: int) -> Row:
    return {
        "type": "gap",
        "path": file.shown,
        "position": 0,
        "length": file.size,
        "reason": "short",
        "expected": wanted,
        "found": file.size,
    }


_TEXT_LIMIT = 64 << 20
"""bytes of a text file that are read; a topic table of a large broker has a few"""


def _content(reader: FileReader, file: StoreFile) -> bytes:
    with file.open(reader.access) as source:
        return source.window(0, min(source.size, _TEXT_LIMIT)).tobytes()


def _undecodable(file: StoreFile, raw: bytes, reason: str) -> Row:
    shown = raw[:64].hex()
    return {
        "type": "gap",
        "path": file.shown,
        "position": 0,
        "length": file.size,
        "reason": reason,
        "expected": None,
        "found": shown,
    }


def _checkpoint(reader: FileReader, file: StoreFile) -> Iterator[Units | Row]:
    from formats.checkpoint import CHECKPOINT_HEAD_SIZE, CHECKPOINT_SIZE, parse_checkpoint

    raw = _content(reader, file)
    parsed = parse_checkpoint(raw)
    names = [name for name in parsed if name not in {"_io", "reserved"}]
    yield {
        "type": "checkpoint",
        "path": file.shown,
        **{name: int(parsed[name]) for name in names},
        "length": file.size,
        "rest_is_zero": not any(raw[CHECKPOINT_HEAD_SIZE:]),
    }
    if file.size < CHECKPOINT_SIZE:
        yield _short(file, CHECKPOINT_SIZE)


def _abort(reader: FileReader, file: StoreFile) -> Iterator[Units | Row]:
    from formats.checkpoint import Abort
    from formats.errors import FormatError

    raw = _content(reader, file)
    try:
        yield {"type": file.kind.value, "path": file.shown, "pid": Abort.parse(raw)}
    except FormatError as error:
        yield _undecodable(file, raw, str(error))


def _lock(reader: FileReader, file: StoreFile) -> Iterator[Units | Row]:
    from rmqtool.store.lock import probe

    state = probe(file.location)
    raw = _content(reader, file)
    told = {"held": state.held, "pid": state.pid, "reason": state.reason}
    yield {"type": "lock", "path": file.shown, "content_hex": raw[:64].hex(), **told}


def _epoch(reader: FileReader, file: StoreFile) -> Iterator[Units | Row]:
    from formats.checkpoint import EpochFile
    from formats.errors import FormatError

    raw = _content(reader, file)
    try:
        parsed = EpochFile.parse(raw)
    except FormatError as error:
        yield _undecodable(file, raw, str(error))
        return
    yield {
        "type": "epoch_file",
        "path": file.shown,
        "count": parsed.count,
        "crc": "ok" if parsed.crc == parsed.computed_crc else "bad",
        "stored_crc": parsed.crc,
        "computed_crc": parsed.computed_crc,
    }
    for number, entry in enumerate(parsed.entries):
        yield {"type": "epoch", "path": file.shown, "number": number, **entry._asdict()}


def _identity(reader: FileReader, file: StoreFile) -> Iterator[Units | Row]:
    from formats.checkpoint import BrokerIdentity
    from formats.errors import FormatError

    raw = _content(reader, file)
    try:
        yield {"type": "broker_identity", "path": file.shown, **BrokerIdentity.parse(raw)._asdict()}
    except FormatError as error:
        yield _undecodable(file, raw, str(error))


def _config(reader: FileReader, file: StoreFile) -> Iterator[Units | Row]:
    from rmqtool.store.config_json import parse_config

    parsed = parse_config(_content(reader, file))
    row: Row = {"type": "config", "path": file.shown, "state": parsed.state.value, "detail": parsed.detail}
    yield row | {"content": parsed.data}


_READERS: dict[FileKind, Callable[[FileReader, StoreFile], Iterator[Units | Row]]] = {
    FileKind.CONSUMEQUEUE: _queue,
    FileKind.BATCHCONSUMEQUEUE: _queue,
    FileKind.CONSUMEQUEUE_EXT: _extension,
    FileKind.INDEX: _index,
    FileKind.CHECKPOINT: _checkpoint,
    FileKind.ABORT: _abort,
    FileKind.ABORT_BAK: _abort,
    FileKind.LOCK: _lock,
    FileKind.EPOCH: _epoch,
    FileKind.BROKER_IDENTITY: _identity,
    FileKind.CONFIG: _config,
    FileKind.CONFIG_BAK: _config,
    FileKind.CONFIG_TMP: _config,
    FileKind.TIMERMETRICS: _config,
    FileKind.COMPACTION_POSITION: _config,
}
