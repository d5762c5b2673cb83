"""Steps that an interrupt must not tear apart: it is held back until they are done."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_HELD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def whole_step() -> Iterator[None]:
    """Runs the block to its end; an interrupt that came meanwhile is raised behind it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in _HELD}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
        for one in came:
            signal.raise_signal(one)
