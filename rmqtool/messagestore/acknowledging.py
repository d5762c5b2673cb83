"""When a put is answered: behind the flush and the slaves that it waits for.

`CommitLog#handleDiskFlushAndHA`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rmqtool.messagestore.messages import PutStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.messagestore.flushing import Flusher
    from rmqtool.messagestore.replication.replicas import Replicas


class Acknowledging:
    """What puts wait for. synced: for the medium, so many seconds (`syncFlushTimeout`)."""

    def __init__(self, flusher: Flusher, replicas: Replicas, *, synced: bool, timeout: float) -> None:
        self._flusher, self._replicas, self._synced, self._timeout = flusher, replicas, synced, timeout
        self.waits = synced or replicas.waits
        """whether puts wait for anything"""

    def flushed(self, end: int) -> bool:
        """Waits for the medium up to physical offset `end`, where puts do; False when that took too long."""
        return not self._synced or self._flusher.flush_to(end, self._timeout)

    def wait(self, end: int) -> PutStatus:
        """Waits for all in front of physical offset `end`; where neither is so, the slaves' status counts."""
        status = PutStatus.PUT_OK if self.flushed(end) else PutStatus.FLUSH_DISK_TIMEOUT
        if self._replicas.waits and (replicated := self._replicas.wait(end)) is not PutStatus.PUT_OK:
            status = replicated
        return status

    def wait_for_each(self, ends: list[int]) -> list[PutStatus]:
        """The answer for each of some places behind one wait for all."""
        last = self.wait(max(ends))
        if last is PutStatus.PUT_OK:
            return [last] * len(ends)
        flushed = self._flusher.flushed
        return [
            PutStatus.PUT_OK if (not self._synced or end <= flushed) and self._replicas.have(end) else last
            for end in ends
        ]


class FutureAcks:
    """Answers in the background what waits, many at once."""

    def __init__(self, acknowledging: Acknowledging) -> None:
        self._acknowledging = acknowledging
        self._waiting: list[tuple[int, Callable[[PutStatus], object]]] = []
        self._guard = threading.Lock()
        self._wake = threading.Condition(self._guard)
        self._stopped = False
        self._thread: threading.Thread | None = None

    def add(self, end: int, answer: Callable[[PutStatus], object]) -> None:
        """Calls `answer` once all in front of physical offset `end` is where puts want it, or is not."""
        with self._guard:
            self._waiting.append((end, answer))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rmqtool-group-commit", daemon=True)
                self._thread.start()
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._guard:
                while not self._waiting and not self._stopped:
                    self._wake.wait()
                waiting, self._waiting = self._waiting, []
            if not waiting:
                return
            statuses = self._acknowledging.wait_for_each([end for end, _ in waiting])
            for (_, answer), status in zip(waiting, statuses, strict=True):
                answer(status)

    def close(self) -> None:
        """Ends it behind what waits."""
        with self._guard:
            self._stopped = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
