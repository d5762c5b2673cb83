"""Loading mapped files, queues and index files, and what makes it fail.

`MappedFileQueue#doLoad`, `ConsumeQueueStore#loadConsumeQueues`, `IndexService#load`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.timer import WHEEL_SIZE
from rmqtool.broker.java import parse_long
from rmqtool.broker.mapped_files import MappedFile, MappedFiles
from rmqtool.store.names import parse_queue_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.files import Disk
    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.traits import Traits
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store
    from rmqtool.store.listing import Entry, Listing


TIMER_FILES = ("config/timercheck", "timerwheel")
"""opened when the timer store is made, before anything is loaded"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a broker does not start. code: stable. path: what it fails on, None when it is not a single file.

    setting: `name=value` with which it starts, where that is a way out.
    """

    code: str
    message: str
    path: str | None = None
    setting: str | None = None

    def __str__(self) -> str:
        return f"{self.message} ({self.path})" if self.path else self.message


class RefusedError(Exception):
    """The load ends here; what was deleted before stays deleted."""

    def __init__(self, code: str, message: str, path: str | None = None, setting: str | None = None) -> None:
        super().__init__(message)
        self.refusal = Refusal(code, message, path, setting)


def load_files(
    entries: list[Entry],
    size: int,
    directory: str,
    traits: Traits,
    disk: Disk | None = None,
) -> MappedFiles:
    """The files of one directory, all of them full. Raises `RefusedError`; its files carry what was deleted.

    entries: in name order. size: the configured length. disk: see `MappedFiles`.
    """
    files = MappedFiles(size, directory, disk=disk)
    for number, entry in enumerate(entries):
        # what is written has its true name, what is only shown a printable one
        path = entry.path if disk is None or entry.file is None else entry.file.path
        if entry.file is None:
            if traits.skips_directories:
                continue
            raise RefusedError("file-length", "a directory lies where only files may be", entry.path)
        if entry.size == 0 and number == len(entries) - 1 and traits.deletes_empty_last_file:
            files.delete(path)
            continue
        if entry.size != size:
            raise RefusedError(
                "file-length", f"{entry.size} bytes long, the settings demand {size}", entry.path
            )
        base = parse_long(entry.name)
        if base is None:
            raise RefusedError("file-name", "the name is not a number", entry.path)
        files.files.append(MappedFile(base, size, path, entry.file))
    return files


def timers_in_use(traits: Traits, settings: StartSettings) -> bool:
    """Whether the broker opens a timer store at all."""
    return settings.timer_wheel and traits.timer_wheel


def refused_by_timers(store: Store, traits: Traits, settings: StartSettings) -> Refusal | None:
    """What ends the broker before it loads its store (`TimerCheckpoint`, `TimerWheel`).

    A file of the timers that cannot be opened, a wheel of another length than its own.
    """
    if not timers_in_use(traits, settings):
        return None
    listing = store.listing
    if listing.is_blocked("config"):
        return Refusal("timer-file", "not a directory, so that config/timercheck cannot be made", "config")
    for path in TIMER_FILES:
        if listing.is_directory(path):
            return Refusal("timer-file", "a directory of this name", path)
    file = store.file("timerwheel")
    if file is None or file.size in (0, WHEEL_SIZE):
        return None
    return Refusal("timer-wheel-length", f"{file.size} bytes long instead of {WHEEL_SIZE}", file.display_path)


def queue_directories(listing: Listing, kind: str) -> Iterator[tuple[str, int, str]]:
    """(topic, queue id, path) of every entry that the broker takes for a queue, even if it is a file."""
    for topic in listing.entries(kind):
        path = f"{kind}/{topic.name}"
        for entry in listing.entries(path) if topic.file is None else ():
            number = parse_queue_id(entry.name)
            if number is not None:
                yield topic.name, number, f"{path}/{entry.name}"


@dataclass(frozen=True, slots=True)
class IndexLoad:
    """deleted: files that an unclean stop costs, oldest first. kept: those that stay.

    failed: a path that cannot be opened, behind which no more files are looked at. untimed: those of `kept`
    whose header has no end timestamp.
    """

    deleted: tuple[str, ...]
    kept: tuple[str, ...]
    failed: str | None = None
    untimed: tuple[str, ...] = ()


def load_index(listing: Listing, *, clean: bool, index_timestamp: int) -> IndexLoad:
    """Index files in name order; after an unclean stop every one that ends behind the checkpoint goes.

    index_timestamp: `indexMsgTimestamp` of the checkpoint, ms.
    """
    deleted: list[str] = []
    kept: list[str] = []
    untimed: list[str] = []
    failed: str | None = None
    for entry in listing.entries("index"):
        if parse_long(entry.name) is None:
            continue
        if entry.file is None or cannot_be_mapped(entry.file):
            failed = entry.path
            break
        end = _end_timestamp(entry)
        late = not clean and end > index_timestamp
        (deleted if late else kept).append(entry.path)
        if not end:
            untimed.append(entry.path)
    return IndexLoad(tuple(deleted), tuple(kept), failed, tuple(untimed))


def cannot_be_mapped(file: StoreFile) -> bool:
    """Whether a broker cannot map what has this name; behind some links that lead nowhere it makes a file."""
    return not file.regular and (not leads_nowhere(file) or is_dead_end(file))


def leads_nowhere(file: StoreFile | None) -> bool:
    """Whether it is a link behind which nothing exists, for `File#exists` too."""
    if file is None or file.regular:
        return False
    return os.path.islink(file.location) and not os.path.exists(file.location)


def is_dead_end(file: StoreFile | None) -> bool:
    """A link behind which no file can be made: into a directory that is not there, or in a circle.

    Opening it ends a start (`RandomAccessFile`, `FileWriter`).
    """
    if file is None or not leads_nowhere(file):
        return False
    place = os.path.realpath(file.location)
    return os.path.lexists(place) or not os.path.isdir(os.path.dirname(place))


def _end_timestamp(entry: Entry) -> int:
    """Zero where the file is too short: mapping it makes it longer."""
    if entry.file is None or not entry.file.regular:
        return 0
    with entry.file.open("pread") as source:
        return int.from_bytes(source.window(8, 8).tobytes().ljust(8, b"\0"), "big", signed=True)
