"""What derived files are built from, put into a file by one process and built by another.

A part of a log goes through `QueueBuilder` and `IndexFiles`' place as always, but its columns are kept:
`QueueSpool` and `KeySpool` write them as they come, and another process that reads the parts in the order of
the log builds the same files. Queues are dealt out to buckets, so that one reader gets some of them.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from rmqtool.broker.index_files import FileEnd
from rmqtool.broker.queue_records import QueueRecords
from rmqtool.errors import StoreIOError
from rmqtool.scan.fields import DispatchColumn
from rmqtool.store.writing import open_regular, way_to_own

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType
    from typing import Self

    import numpy.typing as npt

    from rmqtool.build.queues import QueueSink

    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]
    Key = tuple[str, int]

KEY = np.dtype([("hash", "<i4"), ("time", "<i8"), ("offset", "<i8")])
"""a key for the index, with store timestamp (ms) and offset of its record"""

_KEPT = (
    DispatchColumn.SLOT,
    DispatchColumn.OFFSET,
    DispatchColumn.SIZE,
    DispatchColumn.CODE,
    DispatchColumn.TIME,
)
_PLAIN, _BATCHES, _MERGED = 0, 1, 2
"""what follows the columns of a frame: nothing, the counts of batches, whether records are the queue's own"""


def bucket_of(key: Key, buckets: int) -> int:
    """The bucket of a queue, the same in every process."""
    return zlib.crc32(f"{key[0]}/{key[1]}".encode()) % buckets


class SpoolFile:
    """A new file that is written from its beginning. A context manager. Raises `StoreIOError`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self._file: BinaryIO

    def __enter__(self) -> Self:
        try:
            self._file = open(self.path, "xb", buffering=0)
        except OSError as error:
            raise StoreIOError(f"{self.path}: {error.strerror}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, data: bytes) -> tuple[int, int]:
        """Position and length of the bytes written."""
        position, view = self.size, memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise StoreIOError(f"{self.path}: {error.strerror}") from error
        self.size += len(data)
        return position, len(data)


class QueueSpool:
    """Keeps the columns of queues. places: for each bucket the (position, length) of its frames, in order."""

    def __init__(self, file: SpoolFile, buckets: int) -> None:
        self._file = file
        self.places: list[list[tuple[int, int]]] = [[] for _ in range(buckets)]

    def append(self, key: Key, run: QueueRecords, lost: int) -> None:
        """See `ConsumeQueue.append`."""
        kind, more = _PLAIN, b""
        if run.counts is not None:
            kind, more = _BATCHES, run.messages.tobytes()
        elif run.own is not None:
            kind, more = _MERGED, run.own.astype(np.int64).tobytes()
        name = key[0].encode()
        head = np.array([len(name), key[1], len(run), kind, lost], np.int64).tobytes()
        kept = run.columns[np.array(_KEPT)[:, None], run.chosen]
        kept[_KEPT.index(DispatchColumn.SLOT)] = run.bases
        placed = self._file.add(b"".join((head, name, kept.tobytes(), more)))
        self.places[bucket_of(key, len(self.places))].append(placed)


def feed(data: bytes, sink: QueueSink, lost: int) -> None:
    """The columns in one frame to queues. lost: records that may be missing in front of the whole part."""
    head = np.frombuffer(data, np.int64, 5)
    length, queue_id, count, kind, more_lost = head.tolist()
    start = head.nbytes
    key = data[start : start + length].decode(), queue_id
    values = np.frombuffer(data[start + length :], np.int64)
    columns = np.zeros((len(DispatchColumn), count), np.int64)
    columns[np.array(_KEPT)] = values[: len(_KEPT) * count].reshape(len(_KEPT), count)
    rest, chosen = values[len(_KEPT) * count :], np.arange(count, dtype=np.int64)
    counts, own = (rest if kind == _BATCHES else None), (rest != 0 if kind == _MERGED else None)
    sink.append(key, QueueRecords(columns, chosen, counts=counts, own=own), lost + more_lost)


@dataclass
class KeySpool:
    """Keeps the keys of a part, in the place of `IndexFiles`.

    keys: how many. first: store timestamp (ms) of the record that the first file would be named after, None
    without records. last: the last record.
    """

    file: SpoolFile
    keys: int = 0
    first: int | None = None
    last: FileEnd = field(default_factory=FileEnd)

    def put(self, hashes: Int32s, owners: Int32s, offsets: Ints, times: Ints) -> None:
        """See `IndexFiles.put`."""
        if not len(offsets):
            return
        if self.first is None:
            self.first = int(times[owners[0]]) if len(owners) else int(times[0])
        rows = np.empty(len(hashes), KEY)
        rows["hash"], rows["time"], rows["offset"] = hashes, times[owners], offsets[owners]
        self.file.add(rows.tobytes())
        self.keys += len(rows)
        self.last = FileEnd(int(times[-1]), int(offsets[-1]))

    def close(self) -> None:
        """Nothing is held back."""


def read_frames(path: str, places: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """The frames at these places of a spool file, one at a time. Raises `StoreIOError`.

    What is in them is believed, names of topics too: for root, nobody else may change their directory.
    """
    folder, name = os.path.split(path)
    try:
        with (
            way_to_own(folder, "the directory of a task") as held,
            open(open_regular(f"{held.here}/{name}"), "rb") as file,
        ):
            for position, length in places:
                file.seek(position)
                data = file.read(length)
                if len(data) < length:
                    raise StoreIOError(f"{path} ends at {position + len(data)}")
                yield data
    except OSError as error:
        raise StoreIOError(f"{path}: {error.strerror}") from error


def read_keys(path: str, start: int, count: int, at_once: int = 1 << 16) -> Iterator[npt.NDArray[np.void]]:
    """Keys of a spool file from number `start` on, some at a time, as rows of `KEY`."""
    places = [
        (at * KEY.itemsize, min(at_once, start + count - at) * KEY.itemsize)
        for at in range(start, start + count, at_once)
    ]
    for data in read_frames(path, places):
        yield np.frombuffer(data, KEY)
