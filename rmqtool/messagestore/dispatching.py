"""New records to queues and index, in bulk: `DefaultMessageStore$ReputMessageService`.

A thread does it; whoever reads and finds the queues behind does it himself, so that a get sees every message
whose put has returned.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.broker.dispatch import MultiDispatchError
from rmqtool.broker.index_files import IndexFile, IndexFiles, IndexNames
from rmqtool.errors import RmqtoolError, StoreIOError
from rmqtool.messagestore.appending import REOPEN
from rmqtool.messagestore.auto_reset import AutoResetEvent
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Status, Stop
from rmqtool.scan.keys import key_hashes

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.broker.files import StoreFiles
    from rmqtool.broker.start import Start
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.bytes import Window
    from rmqtool.store.layout import Store

_ROWS = 1 << 14
_WINDOW = 8 << 20
_AWAITED, _IDLE = 0.001, 1.0
"""seconds between two passes while readers wait, and until somebody wakes the thread"""
_MUCH = 16 << 20
"""bytes behind the last pass for which the longer of `Dispatching.pauses` is made"""


class Index:
    """The index of a store that is written. names: of new files by the clock, as brokers name them."""

    def __init__(self, store: Store, start: Start, rules: FileRules, files: StoreFiles) -> None:
        kernels = start.reading.kernels
        # a header that did not reach the disk: a broker goes on there and indexes all records again
        lost = () if start.clean else start.index.untimed
        for path in lost:
            files.remove(path)
        stay = [store.file(path) for path in start.index.kept if path not in lost]
        kept = [one for one in stay if one is not None]
        last = IndexFile(kept[-1].path, rules, files, kernels, kept=kept[-1]) if kept else None
        if last is not None and not start.clean:
            last.restore_slots(kept[-1])
        names = IndexNames(behind=kept[-1].name if kept else "")
        self.files = IndexFiles(rules, files, kernels, names.next_name, last)
        self._kernels = kernels
        self._before = int(start.checkpoint.index_msg_timestamp)
        self._kept = [one.path for one in kept]
        self.slots = rules.hash_slots
        """of each file"""

    @property
    def paths(self) -> list[str]:
        """The files, the oldest first; some may have expired."""
        return [*self._kept, *self.files.paths]

    @property
    def timestamp(self) -> int:
        """Store time (ms) of the last record in the last file that is full (`indexMsgTimestamp`)."""
        return max(self._before, self.files.full_timestamp)

    def take(self, run: Records, base: int) -> None:
        """A run of records that are dispatched."""
        hashes, owners = key_hashes(self._kernels.hashes, run)
        offsets = run.rows[:, Field.POSITION] + base
        self.files.put(hashes, owners, offsets, run.rows[:, Field.STORE_TIMESTAMP].copy())

    def close(self) -> None:
        """Writes what is in memory only."""
        self.files.close()


class Dispatching:
    """Makes queues and index follow the log.

    offset: physical offset up to which queues and index have all. timestamp: store time (ms) of the last
    record in front of it. error: why it cannot go on. limit: up to where records may be dispatched now.
    pauses: least and most seconds between two passes while records keep coming and nobody waits: most while
    much comes, as it costs less together; but another process that reads the files waits as long.
    """

    pauses = 0.05, 0.2

    def __init__(
        self, start: Start, log: LogReader, files: StoreFiles, index: Index | None, limit: Callable[[], int]
    ) -> None:
        self._start, self._log, self._index, self.limit = start, log, index, limit
        self._kernels: Kernels = start.reading.kernels
        self.files = files
        self.lock = threading.RLock()
        """over queues and index, in memory and as files"""
        self.offset = self._taken = start.log.max_offset
        self.timestamp = 0
        self.error: RmqtoolError | None = None
        self._rows = np.empty((_ROWS, ROW_WIDTH), np.int64)
        self._status = np.zeros(STATUS_WIDTH, np.int64)
        self._need = 0
        self._arriving = threading.Lock()
        self._arrived = threading.Condition(self._arriving)
        """reported when queues have grown"""
        self.waiting = 0
        """readers that wait for that; counted under `_arriving`"""
        self._hurry = AutoResetEvent()
        """one of them came while nobody waited"""
        self.on_wake: Callable[[], object] | None = None
        """called as well when the log has grown"""
        self._wake = AutoResetEvent()
        self._idle = False
        """the thread sleeps until `wake`"""
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="rmqtool-reput", daemon=True)
        if index is not None:
            start.dispatcher.watch = index.take

    def begin(self) -> None:
        """Starts the thread."""
        self._thread.start()

    @property
    def behind(self) -> int:
        """Bytes that wait."""
        return max(self.limit() - self.offset, 0)

    def wake(self) -> None:
        """There may be something to do."""
        if self._idle:
            self._wake.set()
        if self.on_wake is not None:
            self.on_wake()

    def announce(self) -> None:
        """Readers look again: queues in memory have grown, or the store was closed."""
        if self.waiting:
            with self._arriving:
                self._arrived.notify_all()

    def wait(self, seconds: float, done: Callable[[], bool] | None = None) -> None:
        """Until queues have grown, or until `done`, at most so long; the thread hurries meanwhile."""
        until = time.monotonic() + seconds
        with self._arriving:
            try:
                self.waiting += 1
                self._hurry.set()
                while done is None or not done():
                    left = min(until - time.monotonic(), threading.TIMEOUT_MAX)
                    if not left > 0:  # a wait that is no number ends, too
                        break
                    self._arrived.wait(left)
                    if done is None:
                        break
            finally:
                self.waiting -= 1

    def catch_up(self) -> None:
        """Dispatches everything up to the limit. Raises the error that stopped it."""
        end = self.limit()
        if self.offset < end:
            with self.lock:
                if self.error is None:  # what was taken in front of an error may be what another process cut
                    self._pass(end)
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        while not self._stopped:
            if self.offset >= self.limit():
                self._idle = True
                if self.offset >= self.limit():
                    self._wake.wait(_IDLE)
                self._wake.clear()
                self._idle = False
                continue
            try:
                self.catch_up()
            except RmqtoolError:
                return
            if self.waiting:
                time.sleep(_AWAITED)
            elif not self._stopped:
                least, most = self.pauses
                if not self._hurry.wait(least) and self.behind >= _MUCH:
                    self._hurry.wait(most - least)
                self._hurry.clear()

    def _pass(self, end: int) -> None:
        try:
            self._taken = max(self._taken, self._start.log.min_offset)  # a slave's first segment
            while self._taken < end and self.error is None and self._some(end):
                pass
            self._start.dispatcher.flush()
            self.offset = self._taken  # who finds it there waits for no lock
        except RmqtoolError as error:
            self.error = error
        except MultiDispatchError as error:
            self.error = StoreIOError(f"dispatching stops at a list of queue offsets: {error}")
        except OSError as error:
            self.error = StoreIOError(f"dispatching: {error.strerror}")
        except BaseException as error:  # Ctrl-C, in the thread of a reader: queues and index are half done
            self.error = StoreIOError(f"dispatching was interrupted by {type(error).__name__}: {REOPEN}")
            raise
        with self._arriving:
            self._arrived.notify_all()

    def _some(self, end: int) -> bool:
        """Records from `_taken` on, up to `end` or as many as there is room for.

        False where the log ends within a record, the rest of which a master has not sent yet.
        """
        size = self._start.log.size
        position = self._taken % size
        base = self._taken - position
        wanted = min(end - self._taken, max(self._need, _WINDOW), size - position)
        rows, status = self._rows, self._status

        def walked() -> Window:
            window = self._log.read(self._taken, wanted)
            self._kernels.walk(window, 0, position, size, base, int(Check.TEXT), rows, status)
            return window

        window = self._log.retried(walked, (self._taken,))
        count, at, stop, expected = status[: Status.EXPECTED + 1].tolist()
        if count:
            run = Records(rows[:count], window, position)
            self._log.without_fault(lambda: self._start.dispatcher.take(run, base), self._taken)
            self.timestamp = int(rows[count - 1, Field.STORE_TIMESTAMP])
        self._taken, self._need = base + at, 0
        if stop in {Stop.BLANK, Stop.END, Stop.SHORT}:
            self._taken = base + size
        elif stop == Stop.NEED_MORE and not count and expected > len(window):
            self._need = expected
            return bool(self._taken + expected <= end)
        elif not count and stop != Stop.ROWS_FULL:
            self.error = StoreIOError(f"at {self._taken} lies no record: {Stop(stop).name.lower()}")
        return True

    def stop(self) -> None:
        """Ends the thread behind what it does."""
        self._stopped = True
        self._wake.set()
        self._hurry.set()
        self._thread.join()

    def close(self) -> None:
        """Writes and syncs what is in memory only. Raises `StoreIOError`."""
        with self.lock:
            if self._index is not None:
                self._index.close()
            self.files.sync()
