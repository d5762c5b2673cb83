"""Consume queues brought in step with the log: only units that are wrong are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.consumequeue import EXT_MAX_ADDRESS
from rmqtool.build.queues import file_path
from rmqtool.repair.content import Inline
from rmqtool.repair.keep.queue_files import (
    ascending,
    built_units,
    by_base,
    filled_up,
    odd_files,
    put,
    removed,
    spans,
    units_of,
)
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.repair.plan_words import differ
from rmqtool.scan.units import UNIT, pre_blanks
from rmqtool.store.holes import last_in
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from rmqtool.build.files import DerivedFiles
    from rmqtool.build.queues import BuiltQueue
    from rmqtool.check.ranges import Ranges
    from rmqtool.scan.extension import ExtensionLookup
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Units = npt.NDArray[Any]
    Mask = npt.NDArray[np.bool_]
    Key = tuple[str, int]


@dataclass(frozen=True)
class QueueRepair:
    """Compares what was built from the repaired log with what lies there.

    size: bytes of a queue file. first_offset, end: of the log. built: queues that records were found for.
    left: queues whose entries stay where they are. written: where the plan writes records into the log.
    lookup: extension units of a queue.
    """

    store: Store
    files: DerivedFiles
    size: int
    first_offset: int
    end: int
    built: dict[Key, BuiltQueue]
    left: frozenset[Key]
    written: Ranges
    lookup: Callable[[str, int], ExtensionLookup | None]
    highest: dict[Key, int] = field(default_factory=dict)
    """the last address of an extension unit in each queue that has changes"""

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
                if key in plain:
                    yield from self._left(key, self.built[key], by_base(queue, self.size))
                continue
            files = by_base(queue, self.size) if queue is not None else {}
            yield from odd_files(queue, files)
            if key in plain:
                changes = list(self._built(key, self.built[key], files))
                if not changes:
                    self.highest.pop(key, None)
                yield from changes
            else:
                yield from self._without_records(files)

    def _built(self, key: Key, queue: BuiltQueue, files: dict[int, StoreFile]) -> Iterator[Edit]:
        first = queue.first or 0
        low = first * UNIT.itemsize // self.size * self.size
        high = (queue.next_slot - 1) * UNIT.itemsize // self.size * self.size
        for base in range(low, high + self.size, self.size):
            path = file_path("consumequeue", *key, base)
            yield from self._file(key, path, base, first, files.get(base))
        for base, file in sorted(files.items()):
            if base > high:
                yield removed(file, "points at nothing that is in the log")
            elif base < low:
                # brokers look for the begin of a queue in its first file only (`#correctMinOffset`)
                yield removed(file, "all that it points at has expired")

    def _left(self, key: Key, queue: BuiltQueue, files: dict[int, StoreFile]) -> Iterator[Edit]:
        """Entries that lead to what the plan writes get the size and the tags code of what lies there.

        Trailing entries that lead behind the end of the log go, as in a start
        (`ConsumeQueue#truncateDirtyLogicFiles`).
        """
        low = (queue.first or 0) * UNIT.itemsize // self.size * self.size
        bases = range(low, queue.next_slot * UNIT.itemsize, self.size)
        paths = (file_path(queue.directory, *key, base) for base in bases)
        parts = (built_units(self.files.place(path), UNIT) for path in paths)
        built = np.concatenate([np.zeros(0, UNIT), *(part[self._leads_to_written(part)] for part in parts)])
        built = built[np.argsort(built["physical_offset"])]
        is_last = True
        for base, file in reversed(files.items()):
            held = units_of(file, UNIT, self.size)
            count = self._count_up_to_log(held) if is_last else len(held)
            if is_last and len(held) and not count:
                yield removed(file, "points at nothing that is in the log")
                continue
            is_last = is_last and not count
            wanted, leads = filled_up(held[:count], len(held)), self._leads_to_written(held)
            leads[leads] = np.isin(held["physical_offset"][leads], built["physical_offset"])
            at = np.searchsorted(built["physical_offset"], held["physical_offset"][leads])
            wanted[leads] = built[at]
            self._keep_addresses(key, wanted, held)
            yield from self._writes(key, file, base, wanted, held)

    def _count_up_to_log(self, units: Units) -> int:
        """How many units there are up to the last one that does not lead behind the end of the log."""
        inside = np.flatnonzero((units["size"] != 0) & (units["physical_offset"] < self.end))
        return int(inside[-1]) + 1 if len(inside) else 0

    def _leads_to_written(self, units: Units) -> Mask:
        there = self.written.find(units["physical_offset"].astype(np.int64)) >= 0
        return np.asarray(there & (units["size"] > 0) & ~pre_blanks(units), np.bool_)

    def _harmless(self, units: Units) -> Mask:
        """Units that stand for no message of the log: expired and in order, or blanks in front."""
        blank = pre_blanks(units) & (units["tags_code"] == 0)
        offsets, sizes = units["physical_offset"], units["size"]
        # a broker takes the end of the last one for the end of what it has dispatched
        expired = (
            (offsets >= 0) & (sizes > 0) & (offsets <= self.first_offset - sizes.astype(np.int64)) & ~blank
        )
        expired[expired] = ascending(offsets[expired].astype(np.int64))
        return np.asarray(blank | expired, np.bool_)

    def _file(self, key: Key, path: str, base: int, first: int, there: StoreFile | None) -> Iterator[Edit]:
        built = self.files.place(path)
        made = built_units(built, UNIT)
        held = units_of(there, UNIT, self.size) if there is not None else made[:0]
        wanted = filled_up(made, max(len(made), len(held)))
        held = filled_up(held, len(wanted))
        if there is not None:
            self._keep(key, wanted, held, max(first - base // UNIT.itemsize, 0))
        if there is None or there.size != self.size:
            same = built.exists() and bool((wanted == filled_up(made, len(wanted))).all())
            as_built = built if same else None
            yield put(path, self.size, wanted, as_built, self.files.times.get(path), there)
            return
        yield from self._writes(key, there, base, wanted, held)

    def _writes(self, key: Key, file: StoreFile, base: int, wanted: Units, held: Units) -> Iterator[Edit]:
        for span in spans(wanted != held):
            data = wanted[span[0] : span[-1] + 1].tobytes()
            slot = base // UNIT.itemsize + int(span[0])
            change = Change(
                action=Action.WRITE,
                path=file.display_path,
                position=int(span[0]) * UNIT.itemsize,
                length=len(data),
                why="consumequeue",
                message=differ(len(span), slot),
                facts={"topic": key[0], "queue_id": key[1], "queue_offset": slot, "units": len(span)},
            )
            yield Edit(change, Inline(data))

    def _keep(self, key: Key, wanted: Units, held: Units, before: int) -> None:
        """Takes over what is as good as what was built: expired units, addresses of extension units."""
        harmless = np.zeros(len(wanted), np.bool_)
        count = min(before, len(held))
        harmless[:count] = self._harmless(held[:count])
        wanted[harmless] = held[harmless]
        for address in self._keep_addresses(key, wanted, held):
            self.highest[key] = max(self.highest.get(key, address), address)

    def _keep_addresses(self, key: Key, wanted: Units, held: Units) -> list[int]:
        """Takes over addresses of extension units that have the tags code wanted, and says which."""
        kept = []
        same = (wanted["physical_offset"] == held["physical_offset"]) & (wanted["size"] == held["size"])
        extended = np.flatnonzero(same & (held["tags_code"] <= EXT_MAX_ADDRESS))
        lookup = self.lookup(*key) if extended.size else None
        for number in extended.tolist():
            address = int(held["tags_code"][number])
            if lookup is not None and lookup.tags_code(address) == wanted["tags_code"][number]:
                wanted["tags_code"][number] = address
                kept.append(address)
        return kept

    def _without_records(self, files: dict[int, StoreFile]) -> Iterator[Edit]:
        """A queue without anything in the log: expired units stay, what follows them points at nothing."""
        ordered, latest = sorted(files.items()), -1
        for number, (base, file) in enumerate(ordered):
            if file.size != self.size:
                yield from (removed(one, "its entries cannot be read") for _, one in ordered[number:])
                return
            units = units_of(file, UNIT, self.size)
            offsets = units["physical_offset"]
            good = self._harmless(units) & ((offsets > latest) | pre_blanks(units))
            end = len(units) if good.all() else int(np.argmin(good))
            blank = pre_blanks(units[:end])
            if end == 0 or blank.all():
                yield from (
                    removed(one, "points at nothing that is in the log") for _, one in ordered[number:]
                )
                return
            latest = max(latest, int(offsets[:end].max()))
            if end == self.size // UNIT.itemsize:
                continue
            last = last_in(np.ascontiguousarray(units[end:]).view(np.uint8)) // UNIT.itemsize + 1
            if last:
                slot = base // UNIT.itemsize + end
                change = Change(
                    action=Action.WRITE,
                    path=file.display_path,
                    position=end * UNIT.itemsize,
                    length=last * UNIT.itemsize,
                    why="consumequeue",
                    message=f"entries from queue offset {slot} on point at nothing that is in the log",
                )
                yield Edit(change, Inline(bytes(last * UNIT.itemsize)))
            yield from (
                removed(one, "points at nothing that is in the log") for _, one in ordered[number + 1 :]
            )
            return
