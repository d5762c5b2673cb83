"""An event that resets itself when it is waited for, and that no interrupt can leave locked.

`threading.Event` and `threading.Condition` release their lock in Python: a KeyboardInterrupt right there, or
what a handler of another signal raises, leaves it held for good. Where the main thread takes a lock, it is
one whose `with` is C, conditions share it, and events are these.
"""

from __future__ import annotations

import threading


class AutoResetEvent:
    """Any thread may set it; one thread waits for it."""

    def __init__(self) -> None:
        self._unset = threading.Lock()
        self._unset.acquire()

    def set(self) -> None:
        """Whoever waits goes on, now or when it waits next."""
        try:
            self._unset.release()
        except RuntimeError:  # it is set
            return

    def wait(self, seconds: float) -> bool:
        """Whether it was set by then; it no longer is."""
        return self._unset.acquire(timeout=seconds)

    def clear(self) -> None:
        """It is not set."""
        self._unset.acquire(blocking=False)
