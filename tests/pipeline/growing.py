"""A log that appears little by little in files of full size, as brokers make them, without a broker."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fixtures.builder import HandmadeLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SECONDS = 0.05


class GrowingStore:
    """It never ends; steps of growth do anywhere, also within a record."""

    def __init__(self, root: Path, *, segment_size: int = 1 << 18) -> None:
        self.root = root
        self._log = HandmadeLog(segment_size=segment_size)
        self._shown = 0
        (root / "commitlog").mkdir(parents=True)

    @property
    def offsets(self) -> list[int]:
        """Physical offsets of the records that are there, whole."""
        return [one.physical_offset for one in self._log.records if one.end <= self._shown]

    def grow(self, size: int) -> None:
        """Appends bytes."""
        stop = self._shown + size
        while self._log.end_offset < stop:
            number = len(self._log.records)
            self._log.put(f"Topic{number % 3}", b"x" * (number % 200), {"TAGS": "a"})
        for base, data in self._log.segments.items():
            low, high = max(self._shown, base), min(stop, base + len(data))
            if low >= high:
                continue
            path = self.root / "commitlog" / f"{base:020d}"
            if not path.exists():
                path.write_bytes(bytes(self._log.segment_size))
            with path.open("r+b") as file:
                file.seek(low - base)
                file.write(data[low - base : high - base])
        self._shown = stop

    @contextmanager
    def growing(self, size: int) -> Iterator[None]:
        """Grows by `size` bytes twenty times a second for as long as the block lasts."""
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(_SECONDS):
                self.grow(size)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
