"""One file or directory of a store, as the inventory lists it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtool.errors import ExitCode, StoreIOError
from rmqtool.store.access import OpenMode, open_source
from rmqtool.store.names import INT_MAX, escape_name

if TYPE_CHECKING:
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.kinds import FileKind
    from rmqtool.store.remote.source import Version


class NotCopiedError(StoreIOError):
    """The store has this file, and this copy of it has not (`store.partial`)."""

    exit_code = ExitCode.INCOMPLETE


@dataclass(frozen=True, slots=True)
class StoreFile:
    """One path that is not a directory.

    path: relative to the store root, with `/` (undecodable bytes as lone surrogates: print `display_path`).
    size, disk_bytes: length and really allocated bytes. mtime_ns: modification time, ns since the epoch.
    base_offset: the number in the name where the name is an offset in bytes, else None.
    root: 0 for the store itself, 1 … for the roots given with `commitlog_roots`.
    note: why the kind is unknown, or the state of a compaction file.
    absent: why it cannot be opened though the store has it: this is a copy without it (`store.partial`).
    regular: False for FIFOs, sockets, devices and links that are not followed; those are never opened.
    version: of a remote file, which content of it was listed; None for a local one.
    denied: the user to whom the store's directory belongs may not read and write it.
    """

    path: str
    location: str
    kind: FileKind
    size: int
    disk_bytes: int
    mtime_ns: int
    base_offset: int | None = None
    topic: str | None = None
    queue_id: int | None = None
    root: int = 0
    note: str | None = None
    regular: bool = True
    absent: str | None = None
    version: Version | None = None
    denied: bool = False

    @property
    def absolute(self) -> Path:
        """Where the file lies."""
        return Path(self.location)

    @property
    def name(self) -> str:
        """Last component of the path."""
        return self.path.rpartition("/")[2]

    @property
    def mapped_size(self) -> int:
        """Bytes that a broker can map of it: the size of a mapped file is an int (`DefaultMappedFile`)."""
        return min(self.size, INT_MAX)

    @property
    def display_path(self) -> str:
        """`path`, printable and fit for JSON (`names.escape_name`)."""
        return escape_name(self.path)

    def open(self, mode: OpenMode = "auto") -> ByteSource:
        """Opens the file (`bytes.open_source`); messages call it by its path in the store.

        Raises what `open_source` raises, `NotCopiedError` for an absent one.
        """
        if self.absent is not None:
            raise NotCopiedError(f"{self.display_path}: {self.absent}")
        return open_source(
            self.location,
            mode,
            name=self.display_path,
            sparse=self.disk_bytes < self.size,
            version=self.version,
        )


@dataclass(frozen=True, slots=True)
class StoreDirectory:
    """One directory. `error` says why it could not be listed; `entries` counts what lies in it.

    foreign: out of the store, where no broker looks, and not listed.
    """

    path: str
    location: str
    entries: int
    error: str | None = None
    topic: str | None = None
    queue_id: int | None = None
    foreign: bool = False
