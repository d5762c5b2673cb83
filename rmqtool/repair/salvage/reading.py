"""Records of one file wherever they lie, in batches; holes are skipped unread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Stop
from rmqtool.scan.windows import Windows
from rmqtool.store.access import open_source
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import Event
    from types import TracebackType
    from typing import Self

    from rmqtool.repair.salvage.sources import Source
    from rmqtool.store.access import OpenMode

LONGEST = 64 << 20
"""bytes of the largest record that is looked for; brokers take 4 MiB by default"""

BATCH_ROWS = 32_768
"""records at once: 7 MiB of rows"""

STEP = 8 << 20
"""bytes that are searched before the file is asked whether a hole follows"""

LEADING_ZEROS = 3
"""with so many zero bytes of its total size a record may begin"""


class RecordReader:
    """One file, opened for carving. Used as a context manager; not shared between threads.

    `at`: file position up to which everything was looked at. `source.unreadable`: what could not be read,
    which counts as zeros.
    """

    def __init__(self, source: Source, how: OpenMode, stop: Event | None = None) -> None:
        self.source = ZeroFilledSource(open_source(source.location, how, name=source.path), source.size)
        self.at = 0
        self.kernels = choose_kernels(source.size)
        self._carve = self.kernels.carve
        self._windows = Windows(self.source, stop)
        self._rows = np.empty((BATCH_ROWS, ROW_WIDTH), np.int64)
        self._status = np.zeros(STATUS_WIDTH, np.int64)

    def records(
        self, start: int, end: int, *, follows: int = -1, advance: Callable[[int], object] | None = None
    ) -> Iterator[Records]:
        """Valid records that begin in `[start, end)`, in batches that last until the next one is asked for.

        follows: the physical offset of a record that is known to begin at `start`.
        """
        self.at, need = start, 0
        while self.at < end:
            before = self.at
            if follows < 0 and not need and not self._over_hole(end):
                break
            window, origin = self._windows.at(self.at, need)
            stop, wanted, new, count = self._call(window, origin, min(end, self.at + STEP), follows)
            if self._windows.had_fault():
                continue
            self.at, follows = new[0], new[1]
            need = wanted if stop == Stop.NEED_MORE else 0
            if not need and self.at == before and count == 0:
                if origin + window.size >= self.source.size:
                    break  # fewer bytes than a header are left
                self._windows.forget()
            if count:
                yield Records(self._rows[:count], window, origin)
            if advance is not None:
                advance(self.at - before)
        if self.at < end:
            if advance is not None:
                advance(end - self.at)
            self.at = end

    def _call(
        self, window: np.ndarray[tuple[int], np.dtype[np.uint8]], origin: int, border: int, follows: int
    ) -> tuple[int, int, tuple[int, int], int]:
        """(stop, bytes wanted, (position to go on at, what follows there), number of rows)."""
        self._carve.carve(
            window,
            self.at - origin,
            border - origin,
            origin,
            self.source.size,
            LONGEST,
            follows,
            self._rows,
            self._status,
        )
        count, at, stop, wanted, follows = self._status.tolist()
        return stop, wanted, (at, follows), count

    def _over_hole(self, end: int) -> bool:
        """Goes to the next byte that may not be zero; False when none is left before `end`."""
        data = self.source.next_data(self.at)
        if data is None or data >= end:
            return False
        self.at = max(self.at, data - LEADING_ZEROS)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.source.close()
