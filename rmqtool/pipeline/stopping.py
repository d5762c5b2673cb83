"""Ctrl-C and SIGTERM in a job that ends by itself between two questions to Java.

An exception in the middle of a question leaves the line to Java in disorder, and what would have to be said
at the end is lost with it. So the signal is noted, and the job looks at the note.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_asked() -> Iterator[threading.Event]:
    """An event that is set when somebody asks to stop; whoever asks a second time gets `KeyboardInterrupt`.

    In other threads than the main one, where Python lets nobody handle signals, it is never set. A signal
    that is ignored, as below nohup, stays so.
    """
    asked = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {one: signal.getsignal(one) for one in _SIGNALS}
    for one, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(one, note)
    try:
        yield asked
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
