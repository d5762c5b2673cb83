"""Consume queues brought in step with the log: only units that are wrong are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.consumequeue import EXT_MAX_ADDRESS, PRE_BLANK_SIZE
from rmqtool.errors import RmqtoolError
from rmqtool.repair.content import FromFile, Inline
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.scan.units import UNIT
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from rmqtool.build.files import DerivedFiles
    from rmqtool.build.queues import BatchQueue, PlainQueue
    from rmqtool.scan.extension import ExtensionLookup
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Queue, Store

    Units = npt.NDArray[Any]
    Mask = npt.NDArray[np.bool_]
    Key = tuple[str, int]


@dataclass(frozen=True)
class QueueMender:
    """Compares what was built from the mended log with what lies there.

    size: bytes of a queue file. first_offset: of the log. built: queues that records were found for. left:
    queues that are not touched. lookup: extension files of a queue.
    """

    store: Store
    files: DerivedFiles
    size: int
    first_offset: int
    built: dict[Key, PlainQueue | BatchQueue]
    left: frozenset[Key]
    lookup: Callable[[str, int], ExtensionLookup | None]

    def edits(self) -> Iterator[Edit]:
        """Changes to all plain queues, by topic and number."""
        there = {
            (one.topic, one.queue_id): one
            for one in self.store.queues(FileKind.CONSUMEQUEUE)
            if one.topic is not None and one.queue_id is not None
        }
        plain = {key for key, queue in self.built.items() if queue.directory == "consumequeue"}
        for key in sorted(plain | set(there)):
            queue = there.get(key)
            if key in self.left and queue is not None and queue.files:
                continue
            files = _by_base(queue, self.size) if queue is not None else {}
            yield from self._odd(queue, files)
            if key in plain:
                yield from self._built(key, self.built[key], files)
            else:
                yield from self._without_records(files)

    def _odd(self, queue: Queue | None, files: dict[int, StoreFile]) -> Iterator[Edit]:
        """Files that no queue can have: a wrong place, twice the same, empty, no number."""
        if queue is None:
            return
        chosen = {file.path for file in files.values()}
        for file in queue.files:
            if file.path not in chosen and file.regular:
                yield _removed(file, "a file that the queue has no place for")

    def _built(self, key: Key, queue: PlainQueue | BatchQueue, files: dict[int, StoreFile]) -> Iterator[Edit]:
        first = queue.first or 0
        low = first * UNIT.itemsize // self.size * self.size
        high = (queue.next_slot - 1) * UNIT.itemsize // self.size * self.size
        for base in range(low, high + self.size, self.size):
            path = f"consumequeue/{key[0]}/{key[1]}/{base:020d}"
            yield from self._file(key, path, base, first, files.get(base))
        for base, file in sorted(files.items()):
            if base > high:
                yield _removed(file, "points at nothing that is in the log")
            elif base < low:
                # brokers look for the begin of a queue in its first file only (`#correctMinOffset`)
                yield _removed(file, "all that it points at has expired")

    def _harmless(self, units: Units) -> Mask:
        """Units that stand for no message of the log: expired, or blanks in front of the first one."""
        blank = (
            (units["physical_offset"] == 0) & (units["size"] == PRE_BLANK_SIZE) & (units["tags_code"] == 0)
        )
        offsets = units["physical_offset"]
        expired = (offsets >= 0) & (units["size"] > 0) & (offsets < self.first_offset)
        return np.asarray(blank | expired, np.bool_)

    def _file(self, key: Key, path: str, base: int, first: int, there: StoreFile | None) -> Iterator[Edit]:
        built = self.files.root / path
        wanted = np.fromfile(built, UNIT) if built.exists() else np.zeros(self.size // UNIT.itemsize, UNIT)
        made = wanted.copy()
        if there is not None:
            before = max(first - base // UNIT.itemsize, 0)
            self._keep(key, wanted, _units(there)[: len(wanted)], before)
        if there is None or there.size != self.size:
            yield self._put(path, built, wanted, made, there)
            return
        held = _units(there)
        different = np.flatnonzero(wanted != held)
        for span in (
            np.split(different, np.flatnonzero(np.diff(different) != 1) + 1) if different.size else ()
        ):
            data = wanted[span[0] : span[-1] + 1].tobytes()
            slot = base // UNIT.itemsize + int(span[0])
            change = Change(
                action=Action.WRITE,
                path=there.shown,
                position=int(span[0]) * UNIT.itemsize,
                length=len(data),
                why="consumequeue",
                message=f"{len(span)} unit(s) from queue offset {slot} on differ from the log",
                facts={"topic": key[0], "queue_id": key[1], "queue_offset": slot, "units": len(span)},
            )
            yield Edit(change, Inline(data))

    def _keep(self, key: Key, wanted: Units, held: Units, before: int) -> None:
        """Takes over what is as good as what was built: expired units, addresses of extension units."""
        harmless = np.zeros(len(wanted), np.bool_)
        count = min(before, len(held))
        harmless[:count] = self._harmless(held[:count])
        wanted[harmless] = held[harmless[: len(held)]]
        both = min(len(held), len(wanted))
        same = (wanted["physical_offset"][:both] == held["physical_offset"]) & (
            wanted["size"][:both] == held["size"]
        )
        extended = np.flatnonzero(same & (held["tags_code"] <= EXT_MAX_ADDRESS))
        lookup = self.lookup(*key) if extended.size else None
        for number in extended.tolist():
            address = int(held["tags_code"][number])
            if lookup is not None and lookup.tags_code(address) == wanted["tags_code"][number]:
                wanted["tags_code"][number] = address

    def _put(self, path: str, built: Path, wanted: Units, made: Units, there: StoreFile | None) -> Edit:
        as_built = built.exists() and bool((wanted == made).all())
        time = self.files.times.get(path)
        change = Change(
            action=Action.PUT,
            path=path,
            length=self.size,
            size=self.size,
            mtime_ns=None if time is None or time <= 0 else time * 1_000_000,
            why="consumequeue",
            message=f"{path} {'is missing' if there is None else 'has another length than its kind'}",
        )
        if as_built:
            return Edit(change, FromFile(str(built), 0, self.size, movable=True))
        return Edit(change, Inline(wanted.tobytes()))

    def _without_records(self, files: dict[int, StoreFile]) -> Iterator[Edit]:
        """A queue of which the log holds nothing: expired units stay, what follows them points at nothing."""
        ordered = sorted(files.items())
        for number, (base, file) in enumerate(ordered):
            if file.size != self.size:
                yield from (_removed(one, "its units cannot be told") for _, one in ordered[number:])
                return
            units = _units(file)
            good = self._harmless(units)
            end = len(units) if good.all() else int(np.argmin(good))
            blank = units["size"][:end] == PRE_BLANK_SIZE
            if end == 0 or blank.all():
                yield from (
                    _removed(one, "points at nothing that is in the log") for _, one in ordered[number:]
                )
                return
            if end == len(units):
                continue
            rest = np.ascontiguousarray(units[end:]).view(np.uint8)
            if rest.any():
                last = int(np.flatnonzero(rest)[-1]) // UNIT.itemsize + 1
                slot = base // UNIT.itemsize + end
                change = Change(
                    action=Action.WRITE,
                    path=file.shown,
                    position=end * UNIT.itemsize,
                    length=last * UNIT.itemsize,
                    why="consumequeue",
                    message=f"units from queue offset {slot} on point at nothing that is in the log",
                )
                yield Edit(change, Inline(bytes(last * UNIT.itemsize)))
            yield from (
                _removed(one, "points at nothing that is in the log") for _, one in ordered[number + 1 :]
            )
            return


def _by_base(queue: Queue, size: int) -> dict[int, StoreFile]:
    """One file for each base that a file of this size may have, the longest first."""
    chosen: dict[int, StoreFile] = {}
    for file in queue.files:
        base = file.base_offset
        if base is None or base % size or not file.regular or not file.size or file.name != f"{base:020d}":
            continue
        chosen[base] = file
    return chosen


def _units(file: StoreFile) -> Units:
    """All units of a file; zeros where they cannot be read."""
    try:
        with file.open("pread") as source:
            data = source.window(0, file.size).tobytes()
    except RmqtoolError:
        data = bytes(file.size)
    return np.frombuffer(data[: len(data) // UNIT.itemsize * UNIT.itemsize], UNIT)


def _removed(file: StoreFile, reason: str) -> Edit:
    return Edit(
        Change(
            action=Action.REMOVE,
            path=file.shown,
            why="consumequeue",
            message=f"{file.shown}: {reason}",
        )
    )
