"""A progress bar on stderr, for work that takes longer than about a second, where a person can see it."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any

from rmqtool.output.sizes import human_bytes
from rmqtool.output.text import is_dumb, is_terminal

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

PATIENCE = 1.0
"""seconds before the bar appears, and after other output before it appears again"""

MOST = 0.99
"""of the bar while work goes on: what comes besides is known only when it comes"""

_PACE = 0.1
"""seconds between two looks of the bar"""


class Progress:
    """Counts bytes, or files where `total` is None: nobody knows how many there will be.

    `advance` and `reach` may be called from any thread; `clear` takes the bar off the screen.
    """

    def __init__(self, label: str, total: int | None, *, enabled: bool, color: bool) -> None:
        self._label = label
        self._total = total
        # a dumb terminal cannot take a bar back: all that is left of it is empty lines
        self._enabled = enabled and is_terminal(sys.stderr) and not is_dumb()
        self._color = color
        self._done = 0
        self._grown = 0, 0.0
        """bytes done when the total was told, and how much of the bar they had"""
        self._since = time.monotonic()
        self._due = self._since + PATIENCE
        self._bar: Any = None
        self._lock = Lock()

    def expect(self, total: int) -> None:
        """`total` bytes will be done in all, as is known only now."""
        with self._lock:
            self._grow(total)

    def expect_more(self, count: int) -> None:
        """`count` bytes more than are done now."""
        with self._lock:
            self._grow(self._done + count)

    def _grow(self, total: int) -> None:
        self._grown = self._done, self.share
        self._total = total

    @property
    def share(self) -> float:
        """How much of the bar is full: never less than before, though the total may grow."""
        done, share = self._grown
        left = (self._total or 0) - done
        return min(share + (1 - share) * (self._done - done) / left, MOST) if left > 0 else share

    def advance(self, count: int) -> None:
        """`count` more bytes are done."""
        with self._lock:
            self._done += count
            self._draw()

    def reach(self, done: int) -> None:
        """`done` in all are done."""
        with self._lock:
            self._done = done
            self._draw()

    def _draw(self) -> None:
        if not self._enabled or time.monotonic() < self._due:
            return
        if self._bar is None:
            self._bar = self._start()
        known = self._total is not None and self._done < self._total
        self._bar.update(
            self._bar.task_ids[0],
            completed=self.share,
            total=1 if known else None,  # a bar that goes to and fro: there is more than was thought
            text=self._text(time.monotonic() - self._since),
        )
        self._due = time.monotonic() + _PACE

    def _text(self, seconds: float) -> str:
        """How much is done, how fast, how long it will take: since the beginning."""
        if self._total is None:
            return f"{self._done:,} files"
        if self._done >= self._total:
            return f"{human_bytes(self._done)}, finishing"
        rate = self._done / seconds if seconds > 0 else 0
        left = f", {timedelta(seconds=int((self._total - self._done) / rate))} left" if rate else ""
        return f"{human_bytes(self._done)} of {human_bytes(self._total)}, {human_bytes(int(rate))}/s{left}"

    def clear(self) -> None:
        """Leaves the screen to other output; the bar comes back when there is none for a while."""
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
            self._due = time.monotonic() + PATIENCE

    def _start(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[text]}", markup=False),
            console=Console(stderr=True, no_color=not self._color),
            transient=True,
            expand=True,
        )
        bar.add_task(self._label, total=1, text="")
        bar.start()
        return bar

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
