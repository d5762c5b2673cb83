"""When what was appended reaches the medium: group commit, and the service that flushes by time.

`CommitLog$GroupCommitService`, `CommitLog$FlushRealTimeService`. One flush at a time runs, without a lock
that an append would need; whoever waits for a place in the log becomes the one that flushes, for all.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.messagestore.log_files import LogFiles

_PAGE = 4096


class Flusher:
    """Puts the log onto the medium. on_flush: called behind each flush.

    flushed: physical offset up to which all is there. timestamp: store time (ms) of the last record in front
    of it. error: why nothing can be flushed any more; that never changes again.
    """

    def __init__(self, log: LogFiles) -> None:
        self._log = log
        self.on_flush: Callable[[], object] = int
        self._guard = threading.Lock()
        self._turn = threading.Condition(self._guard)
        self._busy = False
        self.flushed = log.end
        self.timestamp = 0
        self.error: OSError | None = None

    def flush_to(self, end: int, timeout: float | None = None) -> bool:
        """Waits until everything in front of physical offset `end` is on the medium; False when it is not.

        timeout: seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            mine = False
            try:
                with self._guard:
                    while self._busy and self.flushed < end and self.error is None:
                        left = None if until is None else until - time.monotonic()
                        if left is not None and (left <= 0 or not self._turn.wait(left)):
                            return self.flushed >= end
                        if left is None:
                            self._turn.wait()
                    if self.flushed >= end:
                        return True
                    if self.error is not None:
                        return False
                    self._busy = mine = True
                self._flush(end)
            finally:  # also of Ctrl-C, which finds a thread here as a rule: nobody else would have a turn
                if mine:
                    with self._guard:
                        self._busy = False
                        self._turn.notify_all()
            self.on_flush()

    def _flush(self, end: int) -> None:
        """One flush of all that is there, `end` included; this thread has the turn."""
        try:
            if self._log.committed < end:
                self._log.commit()
            stamp = self._log.committed_timestamp
            reached = self._log.sync(self.flushed)
        except OSError as error:
            self.error = error
            return
        self.flushed, self.timestamp = max(self.flushed, reached), stamp

    def flush_all(self) -> bool:
        """Everything that was written by now; False when it cannot be."""
        return self.flush_to(self._log.end)

    def flush_committed(self) -> bool:
        """As `flush_all`, less what is in a store pool."""
        return self.flush_to(self._log.committed)

    @property
    def behind(self) -> int:
        """Bytes of the log that are not known to be on the medium."""
        return max(self._log.end - self.flushed, 0)

    @property
    def dirty_pages(self) -> int:
        """Pages between what is committed and what is flushed (`MappedFile#isAbleToFlush`)."""
        return self._log.committed // _PAGE - self.flushed // _PAGE


class Periodic:
    """A thread that does something again and again. interval: seconds; work must not raise."""

    def __init__(self, name: str, interval: float, work: Callable[[], object]) -> None:
        self._interval, self._work = interval, work
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            self._work()

    def close(self) -> None:
        """Ends it behind the work that it does."""
        self._stop.set()
        self._thread.join()


class FlushService:
    """Flushes when enough pages wait, and all of it once in a while."""

    def __init__(self, flusher: Flusher, interval: float, least_pages: int, thorough: float) -> None:
        """Interval and thorough: seconds."""
        self._flusher, self._least, self._thorough = flusher, least_pages, thorough
        self._last = time.monotonic()
        self._periodic = Periodic("rmqtool-flush", interval, self._flush)

    def _flush(self) -> None:
        flusher, now = self._flusher, time.monotonic()
        due = now - self._last >= self._thorough
        if due or self._least <= 0 or flusher.dirty_pages >= self._least:
            flusher.flush_committed()
        if due:
            self._last = now

    def close(self) -> None:
        """Ends the thread."""
        self._periodic.close()


class CommitService:
    """Commits what is in the store pool (`CommitLog$CommitRealTimeService`). Intervals: seconds."""

    def __init__(self, log: LogFiles, interval: float, least_pages: int, thorough: float) -> None:
        self._log, self._least, self._thorough = log, least_pages, thorough
        self._last = time.monotonic()
        self.error: OSError | None = None
        """why the last commit failed"""
        self._periodic = Periodic("rmqtool-commit", interval, self._commit)

    def _commit(self) -> None:
        now = time.monotonic()
        due = now - self._last >= self._thorough
        if due:
            self._last = now
        try:
            self._log.commit(0 if due else self._least)
            self.error = None
        except OSError as error:
            self.error = error

    def close(self) -> None:
        """Ends the thread."""
        self._periodic.close()
