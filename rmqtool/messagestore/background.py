"""What works beside an open store: flushes, commits of the store pool, checkpoints, counters for others."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError
from rmqtool.messagestore.flushing import CommitService, FlushService, Periodic
from rmqtool.messagestore.statistics import publish, withdraw

if TYPE_CHECKING:
    from contextlib import ExitStack

    from rmqtool.messagestore.dispatching import Dispatching
    from rmqtool.messagestore.flushing import Flusher
    from rmqtool.messagestore.log_files import LogFiles
    from rmqtool.messagestore.opening import Opened
    from rmqtool.messagestore.settings import StoreSettings
    from rmqtool.messagestore.state_files import StateFiles
    from rmqtool.messagestore.statistics import Statistics

_CHECKPOINT = 1.0
"""seconds between two checkpoints, as since 5.0"""


class Background:
    """Starts the threads. stack: ends them, also where something fails meanwhile."""

    def __init__(
        self,
        settings: StoreSettings,
        opened: Opened,
        log: LogFiles,
        flusher: Flusher,
        dispatching: Dispatching,
        state: StateFiles,
        statistics: Statistics,
        stack: ExitStack,
    ) -> None:
        self._settings, self._opened, self._start = settings, opened, opened.start
        self._flusher, self._dispatching, self._state = flusher, dispatching, state
        self._statistics = statistics
        config = settings.config
        self._flushing = (
            None
            if settings.sync_flush
            else FlushService(
                flusher,
                config.flush_interval_commit_log / 1000,
                config.flush_commit_log_least_pages,
                config.flush_commit_log_thorough_interval / 1000,
            )
        )
        self._commits = (
            CommitService(
                log,
                config.commit_interval_commit_log / 1000,
                config.commit_commit_log_least_pages,
                config.commit_commit_log_thorough_interval / 1000,
            )
            if settings.pools(opened.release)
            else None
        )
        self._queues_synced = time.monotonic()
        self._logical = int(self._start.checkpoint.logics_msg_timestamp)
        self._physical = int(self._start.checkpoint.physic_msg_timestamp)
        self._indexed = self._index_timestamp()
        self._checkpoints = Periodic("rmqtool-checkpoint", _CHECKPOINT, self._keep_checkpoint)
        stack.callback(self.close_flushing)
        stack.callback(self._checkpoints.close)

    @property
    def error(self) -> Exception | None:
        """Why the last commit failed."""
        return None if self._commits is None else self._commits.error

    def close_checkpoints(self) -> None:
        """No checkpoint and no counters from now on."""
        self._checkpoints.close()
        withdraw(self._opened.held.folder)

    def close_flushing(self) -> None:
        """No flush and no commit from now on."""
        for service in (self._flushing, self._commits):
            if service is not None:
                service.close()

    def _keep_checkpoint(self) -> None:
        """What brokers write every second, with queues that are synced less often."""
        interval = self._settings.config.flush_consume_queue_thorough_interval / 1000
        before = self._physical, self._logical
        try:
            if self._dispatching.error is None and time.monotonic() - self._queues_synced >= interval:
                self._sync_queues()
            self._physical = max(self._physical, self._flusher.timestamp)
            if before != (self._physical, self._logical):
                self._write_checkpoint()
        except RmqtoolError as error:
            self._dispatching.error = error
        self._statistics.tick()
        with suppress(RmqtoolError):  # a store goes on without counters
            publish(self._opened.held.folder, self._statistics.now())

    def _sync_queues(self) -> None:
        dispatching = self._dispatching
        with dispatching.lock:
            stamp, indexed = dispatching.timestamp, self._index_timestamp()
            dispatching.files.sync()
        self._logical, self._indexed = max(self._logical, stamp), indexed
        self._queues_synced = time.monotonic()

    def _index_timestamp(self) -> int:
        index = self._opened.index
        return 0 if index is None else index.timestamp

    def _write_checkpoint(self) -> None:
        confirm = max(self._start.confirm, 0)
        self._state.checkpoint(self._physical, self._logical, self._indexed, confirm)

    def last_checkpoint(self) -> None:
        """The one of a store that closes, behind all flushes. Raises `StoreIOError`."""
        self._physical = max(self._physical, self._flusher.timestamp)
        self._logical = max(self._logical, self._dispatching.timestamp)
        self._indexed = self._index_timestamp()
        self._write_checkpoint()
