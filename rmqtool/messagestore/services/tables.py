"""A table of `config` that a service keeps: loaded once, changed in memory, written when it has changed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.messagestore.services.engine import Engine


class Table:
    """One file. name: in `config`. document: what it holds now, without its version.

    versioned: the release writes a `dataVersion` into it. Keys that are not known stay as they were.
    """

    def __init__(
        self, engine: Engine, name: str, document: Callable[[], dict[str, Any]], *, versioned: bool = True
    ) -> None:
        self._engine, self._name, self._document = engine, name, document
        loaded = engine.stored.config_pair(name).data
        self.loaded: dict[str, Any] = loaded if isinstance(loaded, dict) else {}
        version = self.loaded.get("dataVersion")
        counter = version.get("counter") if isinstance(version, dict) else 0
        self._counter = counter if isinstance(counter, int) else 0
        self._versioned = versioned
        self._changes = self._written = 0
        self._saving = threading.Lock()

    def touch(self) -> None:
        """It has changed."""
        self._changes += 1

    @property
    def changed(self) -> bool:
        """It has changed since it was written."""
        return self._changes != self._written

    def save(self) -> None:
        """Writes it, if it has changed. Raises `StoreIOError`; then it is written by the next call."""
        with self._saving:
            changes = self._changes
            if changes == self._written:
                return
            data = {key: one for key, one in self.loaded.items() if key != "dataVersion"} | self._document()
            self._counter += 1
            if self._versioned:
                state = {"stateVersion": 0} if self._engine.of_5 else {}
                version = {"counter": self._counter, **state, "timestamp": self._engine.clock()}
                data = {"dataVersion": version, **data}
            self._engine.files.table(self._name, data)
            self._written = changes
