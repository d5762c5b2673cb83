"""What is known of remote files for a while, so that opening one again asks nobody."""

from __future__ import annotations

import threading
import time
from typing import Any

SECONDS = 60.0
"""how long size and version of a file are taken for what they were"""
_MOST = 100_000
"""files that are remembered"""


class KnownFiles:
    """Address → what the file system said of the file, and when."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def get(self, address: str) -> dict[str, Any] | None:
        """What was said lately, None where nothing was."""
        with self._lock:
            found = self._known.get(address)
        return found[1] if found is not None and time.monotonic() - found[0] < SECONDS else None

    def put(self, address: str, facts: dict[str, Any]) -> None:
        """Remembers it; when it becomes too much, all is forgotten."""
        with self._lock:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[address] = time.monotonic(), facts


known_files = KnownFiles()
"""of this process"""
