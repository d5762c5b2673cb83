"""Records of one mapped file from some position on, up to the first that the broker does not take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.broker.record_check import Rules, Verdict, check_record
from rmqtool.broker.refused_rows import first_refused
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Status, Stop
from rmqtool.scan.opened import copied_bytes
from rmqtool.scan.parallel import WorkerContext
from rmqtool.scan.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.bytes import ByteSource

BATCH_ROWS = 16_384


class BudgetEndedError(Exception):
    """The time given to the work is over; `ReadOptions.advance` raises it."""


@dataclass(frozen=True, slots=True)
class Halt:
    """What begins at `position` is not a record that the broker takes; `verdict` says what it is."""

    position: int
    verdict: Verdict


@dataclass
class FileWalk:
    """Reads one file; iterate `walk`.

    base: physical offset of its first byte. limit: bytes of it that are mapped or count as data.
    """

    source: ByteSource
    base: int
    limit: int
    rules: Rules
    kernels: Kernels
    worker: WorkerContext = field(default_factory=WorkerContext)
    _windows: Windows = field(init=False)

    def __post_init__(self) -> None:
        self._windows = Windows(self.source, self.worker.stop)
        self._status = np.zeros(STATUS_WIDTH, np.int64)
        checks = Check.TEXT | (Check.CRC if self.rules.check_body else Check.FRAME)
        self._checks = int(checks)

    def walk(self, position: int) -> Iterator[Records | Halt]:
        """Runs of records from `position` on; the last item is a `Halt`. Rows belong to the reader."""
        while True:
            run, position, stop = self._run(position)
            if run is not None:
                self.worker.take(run.rows.nbytes + copied_bytes(self.source, run))
                refused = first_refused(run, self.source, self.limit, self.rules, self.kernels)
                if refused is not None:
                    index, verdict = refused
                    if index:
                        yield Records(run.rows[:index], run.window, run.origin)
                    yield Halt(int(run.rows[index, Field.POSITION]), verdict)
                    return
                yield run
            if stop is not Stop.ROWS_FULL:
                yield Halt(position, check_record(self.source, position, self.limit, self.rules))
                return

    def _run(self, position: int) -> tuple[Records | None, int, Stop]:
        need = 0
        rows = np.empty((BATCH_ROWS, ROW_WIDTH), np.int64)
        while True:
            window, origin = self._windows.at(position, need)
            self.kernels.walk(
                window, position - origin, origin, self.limit, self.base, self._checks, rows, self._status
            )
            if self._windows.had_fault():
                continue
            count, at, stop, expected = self._status[: Status.EXPECTED + 1].tolist()
            if stop == Stop.NEED_MORE:
                if count == 0:
                    need = expected
                    continue
                stop = Stop.ROWS_FULL
            return (Records(rows[:count], window, origin) if count else None), at, Stop(stop)
