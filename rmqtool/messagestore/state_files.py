"""The small files of a store that is written: `checkpoint`, `abort`, `lock`, tables in `config`."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from formats.checkpoint import CHECKPOINT_SIZE, Abort, Checkpoint, Lock
from rmqtool.errors import StoreIOError
from rmqtool.store.config_text import config_text
from rmqtool.store.consumer_offsets import OFFSETS
from rmqtool.store.writing import (
    Folder,
    Owner,
    create,
    is_name_of_another,
    make_directory,
    open_for_writing,
    parent_of,
)

if TYPE_CHECKING:
    from rmqtool.store.holding import Held


class StateFiles:
    """Below the root that a `Held` holds, and its owner's. of_5: as of 5.x. Methods raise `StoreIOError`."""

    def __init__(self, held: Held, *, of_5: bool) -> None:
        self._held, self._of_5 = held, of_5
        self._owner = Owner.of(held.folder.descriptor)

    def mark_lock(self) -> None:
        """The content that brokers give their lock file; nothing behind a link that took its place."""
        folder = self._held.folder.descriptor
        try:
            named = os.stat("lock", dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            raise StoreIOError(f"lock: {error.strerror}") from error
        found = os.fstat(self._held.descriptor)
        if not os.path.samestat(named, found) or is_name_of_another(found, os.fstat(folder)):
            raise StoreIOError("lock: is not the file that was locked, or one of another user")
        try:
            os.pwrite(self._held.descriptor, Lock.build(None), 0)
        except OSError as error:
            raise StoreIOError(f"lock: {error.strerror}") from error

    def begin(self, *, new: bool) -> None:
        """`abort` says from now on that the store is in use.

        5.x leaves an `abort.bak`, by which the release of an empty store is known (`MixAll#string2File`).
        new: it has nothing yet and gets what a broker writes, groups or not; later, that it is missing tells
        that it was lost.
        """
        if new:
            stamp = {"counter": 0, "stateVersion": 0, "timestamp": time.time_ns() // 1_000_000}
            self.table(OFFSETS, ({"dataVersion": stamp} if self._of_5 else {}) | {"offsetTable": {}})
        if self._of_5 and not self._held.folder.has("abort.bak"):
            self._put("abort.bak", b"")
        if not self._held.folder.has("abort"):
            self._put("abort", Abort.build(os.getpid() if self._of_5 else None))

    def end(self) -> None:
        """The store was closed in order."""
        try:
            self._held.folder.remove("abort")
            self._held.folder.sync()
        except OSError as error:
            raise StoreIOError(f"abort: {error.strerror}") from error

    def checkpoint(self, physical: int, logical: int, index: int, confirm: int) -> None:
        """Writes the checkpoint in its place and syncs it. Times are ms."""
        values = {
            "physic_msg_timestamp": physical,
            "logics_msg_timestamp": logical,
            "index_msg_timestamp": index,
            "master_flushed_offset": 0,
            "confirm_physical_offset": confirm if self._of_5 else 0,
        }
        try:
            path = f"{self._held.folder.here}/checkpoint"
            try:
                descriptor = open_for_writing(path)
            except FileNotFoundError:
                descriptor = create(path, 0o644)
                self._owner.give(descriptor)
            try:
                if os.fstat(descriptor).st_size < CHECKPOINT_SIZE:
                    os.ftruncate(descriptor, CHECKPOINT_SIZE)
                os.pwrite(descriptor, Checkpoint.build(values), 0)
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreIOError(f"checkpoint: {error.strerror}") from error

    def table(self, name: str, data: dict[str, Any]) -> None:
        """A table of `config`; the one before becomes its `.bak` (`ConfigManager#persist`)."""
        try:
            with suppress(FileExistsError):
                make_directory(f"{self._held.folder.here}/config", self._owner)
        except OSError as error:
            raise StoreIOError(f"config: {error.strerror}") from error
        self._put(f"config/{name}", config_text(data).encode(), keep=True)

    def _put(self, path: str, data: bytes, *, keep: bool = False) -> None:
        """A file with this content gets the name at once; keep: the one before stays as `.bak`."""
        place = f"{self._held.folder.here}/{path}"
        try:
            with parent_of(place) as (at, name):
                trial = f".{name}.tmp"
                with suppress(FileNotFoundError):  # of a put that was cut off
                    os.unlink(trial, dir_fd=at)
                descriptor = os.open(
                    trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=at
                )
                with open(descriptor, "wb") as file:
                    self._owner.give(descriptor)
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                if keep:
                    with suppress(FileNotFoundError):
                        os.rename(name, f"{name}.bak", src_dir_fd=at, dst_dir_fd=at)
                os.rename(trial, name, src_dir_fd=at, dst_dir_fd=at)
            with Folder.open(os.path.dirname(place)) as folder:
                folder.sync()
        except OSError as error:
            raise StoreIOError(f"{path}: {error.strerror}") from error
