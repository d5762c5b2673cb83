"""Replayable files as runs of records: frames and CRCs by a kernel, columns as of a commit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.replay import END_SIZE, ENTRY_HEAD_SIZE, HEADER_SIZE
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import LARGEST_RECORD, ROW_WIDTH, STATUS_WIDTH, Check, EntryStop, Status
from rmqtool.scan.parallel import WorkerContext
from rmqtool.scan.parts import parts
from rmqtool.scan.replay import ReplayEnd, ReplayStop, end_of, refuse_header
from rmqtool.scan.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.bytes import ByteSource

BATCH_ROWS = 16_384

_STOPS = {
    EntryStop.CUT: ReplayStop.CUT,
    EntryStop.BAD_LENGTH: ReplayStop.BAD_LENGTH,
    EntryStop.BAD_CRC: ReplayStop.BAD_CRC,
}


class ReplayScan:
    """Iterate once over the runs of records of a replayable file; afterwards `end` says how it ended.

    Positions are bytes of this file; where a record lay is what it says itself (`stored_physical_offset`).
    `strange` holds (position, length) of entries that are whole and hold no record; reading goes on behind
    them. longest: bytes of the largest record of use; an entry that has more, and more than a window, is
    passed over, its CRC not asked, and is among the strange ones. Raises what `refuse_header`
    raises.
    """

    def __init__(
        self,
        source: ByteSource,
        *,
        checks: Check = Check.ALL,
        kernels: Kernels | None = None,
        batch_rows: int = BATCH_ROWS,
        longest: int = LARGEST_RECORD,
    ) -> None:
        import numpy as np

        self._source = source
        self._windows = Windows(source)
        self._checks = int(checks)
        self._most = ENTRY_HEAD_SIZE + max(longest, source.window_bytes)
        self._kernels = kernels or choose_kernels(source.size)
        self._rows = np.empty((batch_rows, ROW_WIDTH), np.int64)
        self._status = np.zeros(STATUS_WIDTH, np.int64)
        self._count = 0
        self.strange: list[tuple[int, int]] = []
        self.end: ReplayEnd | None = None
        head = source.window(0, HEADER_SIZE).tobytes()
        if refuse_header(head, source.name):
            self.end = ReplayEnd(ReplayStop.CUT, len(head), 0)

    def __iter__(self) -> Iterator[Records]:
        position = HEADER_SIZE
        while self.end is None:
            window, origin, stop, position, length = self._walk(position)
            count = int(self._status[Status.COUNT])
            if count:
                self._count += count
                yield Records(self._rows[:count], window, origin)
            if stop is EntryStop.NO_RECORD:
                self.strange.append((position, ENTRY_HEAD_SIZE + length))
                self._count += 1
                position += ENTRY_HEAD_SIZE + length
            elif stop is EntryStop.MARKER:
                raw = self._source.window(position, END_SIZE + 1).tobytes()
                self.end = end_of(raw, position, self._count)
            elif stop is not EntryStop.ROWS_FULL:
                self.end = ReplayEnd(_STOPS[stop], position, self._count)

    def batches(self, run: Records, columns: Sequence[str], path: str) -> Iterator[pa.RecordBatch]:
        """A run, or some rows of it, as batches of the record table; `segment` is null in them."""
        from rmqtool.scan.table import PLAIN_COLUMNS, to_batch

        plain = not PLAIN_COLUMNS.isdisjoint(columns)
        for part in parts(run, WorkerContext(), plain=plain):
            yield to_batch(
                part.records, base=None, path=path, kernels=self._kernels, columns=columns, plain=part.plain
            )

    def _walk(self, position: int) -> tuple[npt.NDArray[np.uint8], int, EntryStop, int, int]:
        """Reads on from `position`, with a larger window where an entry needs one."""
        need = 0
        while True:
            window, origin = self._windows.at(position, need)
            size = self._source.size
            self._kernels.walk_entries(
                window, position - origin, origin, size, self._checks, self._rows, self._status
            )
            count, at, stop, expected, found = self._status[: Status.FOUND + 1].tolist()
            if stop != EntryStop.NEED_MORE:
                return window, origin, EntryStop(stop), at, found
            if count:
                return window, origin, EntryStop.ROWS_FULL, at, found
            if expected > self._most:
                ends = len(self._source.window(at + expected - 1, 1)) > 0
                stop = EntryStop.NO_RECORD if ends else EntryStop.CUT
                return window, origin, stop, at, expected - ENTRY_HEAD_SIZE
            need = expected
