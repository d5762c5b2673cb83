"""Forms that are written from front to back: NDJSON, CSV, raw records, replayable files."""

from __future__ import annotations

import io
import itertools
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from formats import replay
from rmqtool.errors import StoreIOError
from rmqtool.output.csvrows import CsvRows
from rmqtool.output.export.target import refused, writing
from rmqtool.output.jsonrows import NdjsonRows
from rmqtool.output.messages import OMIT_NULL
from rmqtool.output.stream import ByteOut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa
    from typing_extensions import Buffer

    from rmqtool.output.export.target import Target
    from rmqtool.output.messages import MessageShape
    from rmqtool.output.rows import Rows

State = dict[str, Any]


class Encoder(Protocol):
    """Writes records in one form."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Some records."""

    def end(self, summary: Mapping[str, Any]) -> None:
        """What stands behind the records."""


class Form(Protocol):
    """How a stream of records becomes bytes. columns: of the record table, as batches must have them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """See the class."""

    def encoder(self, out: ByteOut, *, fresh: bool) -> Encoder:
        """Writes to `out`. fresh: what stands in front of the records is to be written too."""


class StreamExport:
    """An export into one file in a form."""

    pause: float | None = 10.0

    def __init__(self, target: Target, form: Form) -> None:
        self.columns = form.columns
        self._target = target
        self._form = form

    def open(self, position: State | None) -> StreamFile:
        """Begins the file, or goes on behind `position`."""
        return StreamFile(self._target, self._form, position)


class StreamFile:
    """A file on its way, which can be cut back to where it was known to be right."""

    def __init__(self, target: Target, form: Form, position: State | None) -> None:
        self._target = target
        if position is not None:
            target.require("", position["length"])
        self._stream = _PartFile(target.part, target.open_part(fresh=position is None))
        if position is not None:
            with writing(target.part):
                self._stream.truncate(position["length"])
                self._stream.seek(position["length"])
        self._out = ByteOut(self._stream)
        self._encoder = form.encoder(self._out, fresh=position is None)

    def write(self, batch: pa.RecordBatch) -> None:
        """Some records."""
        self._encoder.write(batch)

    def position(self) -> State:
        """All that was written so far, on the disk, and where it ends."""
        self._out.flush()
        self._stream.sync()
        return {"length": self._stream.tell()}

    def finish(self, summary: Mapping[str, Any]) -> None:
        """The end of the file, and its name."""
        self._encoder.end(summary)
        self._out.flush()
        self._stream.sync()
        self._stream.close()
        self._target.publish()

    def close(self) -> None:
        """Leaves the file as it is."""
        with suppress(StoreIOError):  # the error that ended the export has been reported
            self._stream.close()


class _PartFile(io.BufferedWriter):
    """A file that says in one line what went wrong."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        super().__init__(io.FileIO(descriptor, "r+b"))

    def write(self, data: Buffer, /) -> int:
        """See `io`; raises `StoreIOError`."""
        try:
            return super().write(data)
        except OSError as error:
            raise refused(self._path, error) from error

    def flush(self) -> None:
        """See `io`; raises `StoreIOError`."""
        with writing(self._path):
            super().flush()

    def sync(self) -> None:
        """Makes what was written last."""
        self.flush()
        with writing(self._path):
            os.fsync(self.fileno())


@dataclass(frozen=True)
class RowForm:
    """NDJSON as `dump` writes it, with the summary as its last line; or CSV with a header, see `CsvRows`.

    summary: False leaves it out, for a file that is one of many.
    """

    shape: MessageShape
    schema: str
    csv: bool
    spreadsheet: bool = False
    int64_as_string: bool = False
    summary: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the shape."""
        return self.shape.columns

    def encoder(self, out: ByteOut, *, fresh: bool) -> _RowEncoder:
        """See `Form`."""
        rows: Rows
        if self.csv:
            keys = ["type", *self.shape.keys]
            rows = CsvRows(out, self.schema, keys, lambda _: None, header=fresh, spreadsheet=self.spreadsheet)
        else:
            rows = NdjsonRows(out, self.schema, int64_as_string=self.int64_as_string)
        return _RowEncoder(rows, self.shape, closing=self.summary)


class _RowEncoder:
    def __init__(self, rows: Rows, shape: MessageShape, *, closing: bool) -> None:
        self._rows = rows
        self._shape = shape
        self._closing = closing

    def write(self, batch: pa.RecordBatch) -> None:
        names, lists = self._shape.rows(batch)
        self._rows.write_columns(names, lists, omit_null=OMIT_NULL)

    def end(self, summary: Mapping[str, Any]) -> None:
        if self._closing:
            self._rows.finish(summary)


class RawForm:
    """The records as they are stored, and nothing else."""

    columns = ("record",)

    def encoder(self, out: ByteOut, *, fresh: bool) -> _RawEncoder:  # noqa: ARG002 - there is no header
        """See `Form`."""
        return _RawEncoder(out)


class _RawEncoder:
    def __init__(self, out: ByteOut) -> None:
        self._out = out

    def write(self, batch: pa.RecordBatch) -> None:
        self._out.write(_bytes_of(batch["record"]))

    def end(self, summary: Mapping[str, Any]) -> None:
        pass


@dataclass(frozen=True)
class ReplayForm:
    """The replayable file of docs/format/replay.md. made: gives what is written in the place of a record."""

    made: Callable[[bytes], bytes] | None = None
    columns = ("record",)

    def encoder(self, out: ByteOut, *, fresh: bool) -> _ReplayEncoder:
        """See `Form`."""
        if fresh:
            out.write(replay.header())
        return _ReplayEncoder(out, self.made)


class _ReplayEncoder:
    """Entries are put together as columns."""

    def __init__(self, out: ByteOut, made: Callable[[bytes], bytes] | None) -> None:
        self._out, self._made = out, made

    def write(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        records = batch["record"]
        if self._made is not None:
            records = pa.array(map(self._made, records.to_pylist()), pa.binary())
        heads = pa.array(_heads(records), pa.binary())
        self._out.write(_bytes_of(pc.binary_join_element_wise(heads, records, b"")))

    def end(self, summary: Mapping[str, Any]) -> None:
        self._out.write(replay.end(summary["messages"]))


def _heads(records: pa.Array) -> list[bytes]:
    """Length and CRC-32 of each record, as `formats.replay.EntryHead`."""
    import zlib

    import numpy as np

    from formats.primitives import dtype_of

    bounds = _offsets(records)
    view = memoryview(records.buffers()[2])
    heads = np.empty(len(records), dtype_of(replay.EntryHead))
    heads["length"] = np.diff(bounds)
    places = bounds.tolist()
    heads["crc"] = [zlib.crc32(view[start:end]) for start, end in itertools.pairwise(places)]
    raw = heads.tobytes()
    width = heads.itemsize
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def _offsets(column: pa.Array) -> Any:
    """Where the values of a binary column begin in its buffer, and the end of the last."""
    import numpy as np

    whole = np.frombuffer(column.buffers()[1], np.int32)
    return whole[column.offset : column.offset + len(column) + 1]


def _bytes_of(column: pa.Array) -> bytes:
    """All values of a binary column behind each other."""
    if not len(column):
        return b""
    bounds = _offsets(column)
    return bytes(memoryview(column.buffers()[2])[int(bounds[0]) : int(bounds[-1])])
