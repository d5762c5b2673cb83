"""Extension files of queues: their sound front stays, what lies behind damage goes.

A start walks through all units of a queue's extension files by their sizes and fails where one leads out of
its file (`ConsumeQueueExt#recover`). Units of the queue that pointed behind the damage get their tags code
itself, as brokers do where an extension unit cannot be written; what is lost are bit maps, which only save
work.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from formats.consumequeue import real_offset
from rmqtool.errors import RmqtoolError
from rmqtool.repair.content import Zeros
from rmqtool.repair.keep.queue_files import by_base, odd_files, removed
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.scan.events import Gap
from rmqtool.scan.extension import EndMarker, ExtensionLookup, ExtensionUnit, read_extension
from rmqtool.store.cut import TruncatedSource
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Queue, Store

    Key = tuple[str, int]


@dataclass
class ExtensionRepair:
    """A context manager: `lookup` for the queues first, then `edits`. size: bytes of a file."""

    store: Store
    size: int
    _sound: dict[Key, list[tuple[StoreFile, int, bool]]] = field(default_factory=dict)
    """files that stay, with the bytes of each that are right, and whether others must go"""
    _behind: dict[Key, list[StoreFile]] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)
    _known: dict[Key, ExtensionLookup | None] = field(default_factory=dict)

    def __enter__(self) -> Self:
        for key, queue in self._queues():
            follows: int | None = None
            sound, behind = self._sound.setdefault(key, []), self._behind.setdefault(key, [])
            for base, file in by_base(queue, self.size).items():
                if behind or (sound and follows != base):
                    behind.append(file)
                    continue
                end, bad = _sound_end(file, self.size)
                sound.append((file, end, bad))
                follows = None if bad else base + self.size
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def _queues(self) -> Iterator[tuple[Key, Queue]]:
        for queue in self.store.queues(FileKind.CONSUMEQUEUE_EXT):
            if queue.topic is not None and queue.queue_id is not None:
                yield (queue.topic, queue.queue_id), queue

    def edits(self, highest: Mapping[Key, int]) -> Iterator[Edit]:
        """Changes to all extension files. highest: the last address of each queue whose units changed.

        A start cuts what lies behind that (`#truncateByMaxAddress`); here it is kept beside the plan.
        """
        for key, queue in self._queues():
            yield from odd_files(queue, by_base(queue, self.size))
            for file, end, bad in self._sound[key]:
                base, last = file.base_offset or 0, real_offset(highest[key]) if key in highest else None
                if last is not None and base > last:
                    yield removed(file, "no unit points at it any more")
                elif last is not None and last < base + end:
                    stop = _end_of_unit(file, last - base)
                    yield from self._one(file, stop, bad=bad or stop < end)
                else:
                    yield from self._one(file, end, bad=bad)
            for file in self._behind[key]:
                yield removed(file, "lies behind damaged or missing extension units")

    def _one(self, file: StoreFile, end: int, *, bad: bool) -> Iterator[Edit]:
        if file.size != self.size:
            message = f"{file.display_path} has {file.size} bytes instead of {self.size}"
            yield _change(Action.RESIZE, file, message, size=self.size)
        length = min(file.size, self.size) - end
        if bad and length > 0:
            message = f"no extension unit from byte {end} on"
            yield Edit(
                Change(
                    action=Action.WRITE,
                    path=file.display_path,
                    position=end,
                    length=length,
                    why="consumequeue_ext",
                    message=message,
                ),
                Zeros(length),
            )

    def lookup(self, topic: str, queue_id: int) -> ExtensionLookup | None:
        """Of the units that stay; None where there are none."""
        key = topic, queue_id
        if key not in self._known:
            files = [
                (file.base_offset or 0, TruncatedSource(self._open.enter_context(file.open("pread")), end))
                for file, end, _ in self._sound.get(key, ())
                if end
            ]
            self._known[key] = ExtensionLookup(files) if files else None
        return self._known[key]


def _sound_end(file: StoreFile, size: int) -> tuple[int, bool]:
    """Where a file stops being a chain of units, and whether by damage."""
    at, closed = 0, False
    try:
        with file.open("pread") as source:
            for item in read_extension(TruncatedSource(source, size), file.base_offset or 0):
                if isinstance(item, Gap):
                    return at, not closed
                if isinstance(item, EndMarker):
                    closed = True
                elif isinstance(item, ExtensionUnit):
                    at = item.position + item.size
    except RmqtoolError:
        return at, True
    # a file that was cut short may have lost units that the next ones follow
    return at, file.size < size and not closed


def _change(action: Action, file: StoreFile, message: str, *, size: int) -> Edit:
    return Edit(
        Change(action=action, path=file.display_path, size=size, why="consumequeue_ext", message=message)
    )


def _end_of_unit(file: StoreFile, position: int) -> int:
    """Behind the unit at a position of a file."""
    with file.open("pread") as source:
        return position + int.from_bytes(source.window(position, 2).tobytes(), "big")
