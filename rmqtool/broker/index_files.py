"""Index files from key hashes in the order of the log: `IndexService#buildIndex`, `IndexFile#putKey`.

An `IndexFile` takes the items of one file, new or with room left; it needs nothing of the files before it but
the end of the last one, so that files can be built side by side once it is known which item each begins with
(`items - 1` keys go into a file, so running sums of key counts tell).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from formats.index import FIRST_ITEM, Header, file_size, item_position, slot_position
from rmqtool.scan.fields import IndexHeaderState
from rmqtool.scan.index import ITEM, SLOT, header_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import tzinfo

    import numpy.typing as npt

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.broker.files import FileWriter
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.files import StoreFile

    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]
    Bools = npt.NDArray[np.bool_]

_BLOCK = 1 << 14
"""slots that are written together, or left a hole when none of them is used"""

_TOGETHER = 1 << 16
"""items that are written together"""

_MILLISECOND = timedelta(milliseconds=1)
_LATEST = 253_370_764_800_000
"""ms; the year 9999, the last that dates have"""

_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class FileEnd:
    """Store timestamp (ms) and offset of the last record in an index file; the next one begins with them."""

    timestamp: int = 0
    physical_offset: int = 0


class IndexNames:
    """Names for index files, which brokers call by the time at which they make one.

    known: names to use first, in order. Behind them a name is the store time of the first record that the
    file indexes, in `zone`, a millisecond later than the name before where it would not be greater. behind:
    the name of a file that stays, if one does.
    """

    def __init__(self, known: Sequence[str] = (), zone: tzinfo | None = None, behind: str = "") -> None:
        self._known = list(known)
        self._zone = zone
        self._last = behind

    def next_name(self, timestamp: int) -> str:
        """The next name; timestamp: store time of the file's first record, in ms."""
        if self._known:
            self._last = self._known.pop(0)
            return self._last
        stored = min(max(timestamp, 0), _LATEST)  # a record's time may be anything
        name = _name_of((_EPOCH + stored * _MILLISECOND).astimezone(self._zone))
        self._last = name if name > self._last else _name_behind(self._last)
        return self._last


def _name_of(moment: datetime) -> str:
    """`UtilAll#timeMillisToHumanString`."""
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def _name_behind(name: str) -> str:
    """The next name in the order in which brokers sort them, a millisecond later where it is a time."""
    try:
        return _name_of(datetime.strptime(name, "%Y%m%d%H%M%S%f") + _MILLISECOND)  # noqa: DTZ007
    except (ValueError, OverflowError):
        return f"{name}0"


class IndexFile:
    """One file. after: the end of the file before it, which is full. kept: the file to go on in.

    written: number of the first item that is in memory only; waiting: how many are.
    """

    def __init__(
        self,
        path: str,
        rules: FileRules,
        files: FileWriter,
        kernels: Kernels,
        after: FileEnd = FileEnd(),
        kept: StoreFile | None = None,
    ) -> None:
        self.path = path
        self._rules = rules
        self._files = files
        self._kernels = kernels.building
        self._size = file_size(rules.hash_slots, rules.index_items)
        self._kept, self._restored = kept, False
        self._blocks = np.zeros(-(-rules.hash_slots // _BLOCK), np.bool_)
        self._state = np.zeros(len(IndexHeaderState), np.int64)
        if after.physical_offset > 0:
            self._state[[IndexHeaderState.BEGIN_PHYSICAL_OFFSET, IndexHeaderState.END_PHYSICAL_OFFSET]] = (
                after.physical_offset
            )
        if after.timestamp > 0:
            self._state[[IndexHeaderState.BEGIN_TIMESTAMP, IndexHeaderState.END_TIMESTAMP]] = after.timestamp
        self._state[IndexHeaderState.INDEX_COUNT] = FIRST_ITEM
        self._state[IndexHeaderState.EVERY_PUT] = rules.every_put
        if kept is not None:
            self._load(kept)
        self._items_kept = self.items
        self.written = int(self._state[IndexHeaderState.INDEX_COUNT])
        self._made, self._after = kept is not None, after
        self._room, self.waiting = _TOGETHER, 0
        self._out = np.empty(_TOGETHER * ITEM.itemsize, np.uint8)

    def _load(self, kept: StoreFile) -> None:
        """The header (`IndexFile#load`)."""
        with kept.open("pread") as source:
            header = header_of(source)
        for place in IndexHeaderState:
            if place < IndexHeaderState.EVERY_PUT:
                self._state[place] = getattr(header, place.name.lower())
        self._state[IndexHeaderState.INDEX_COUNT] = max(header.index_count, FIRST_ITEM)

    @cached_property
    def slots(self) -> Int32s:
        """The newest item of each slot; those of a kept file are read when they are first asked for.

        A file that is too short has zeros behind its end.
        """
        slots = np.zeros(self._rules.hash_slots, np.int32)
        if self._kept is not None:
            with self._kept.open("pread") as source:
                raw = source.window(slot_position(0), slots.nbytes)
                there = raw[: len(raw) // SLOT.itemsize * SLOT.itemsize].view(SLOT)
                slots[: len(there)] = there
        return slots

    def restore_slots(self, kept: StoreFile) -> None:
        """Slots that a power cut left newer than the header lead to the items again that the header counts.

        No broker does so: it takes such a slot for empty until the file has as many items again, and then
        for a slot that has the item of another one.
        """
        count = int(self._state[IndexHeaderState.INDEX_COUNT])
        if not (self.slots >= count).any():
            return
        self._restored = True  # they are written, also if no item follows
        self._blocks[:] = True
        self.slots[:] = 0
        with kept.open("pread") as source:
            for first in range(FIRST_ITEM, count, _TOGETHER):
                some = min(_TOGETHER, count - first)
                raw = source.window(item_position(first, len(self.slots)), some * ITEM.itemsize)
                hashes = raw[: len(raw) // ITEM.itemsize * ITEM.itemsize].view(ITEM)["key_hash"]
                if not len(hashes):
                    break
                numbers = np.arange(first, first + len(hashes), dtype=np.int32)
                self.slots[hashes.astype(np.int64) % len(self.slots)] = numbers

    @property
    def full(self) -> bool:
        """Whether it has no room for another item."""
        return bool(self._state[IndexHeaderState.INDEX_COUNT] >= self._rules.index_items)

    @property
    def items(self) -> int:
        """Keys in it."""
        return int(self._state[IndexHeaderState.INDEX_COUNT]) - FIRST_ITEM

    @property
    def end(self) -> FileEnd:
        """Where it ends."""
        return FileEnd(
            int(self._state[IndexHeaderState.END_TIMESTAMP]),
            int(self._state[IndexHeaderState.END_PHYSICAL_OFFSET]),
        )

    def put(self, hashes: Int32s, owners: Int32s, offsets: Ints, times: Ints, start: int = 0) -> int:
        """Adds the keys from `start` on; the number of the first for which there is no room.

        hashes, owners: as of `scan.keys.key_hashes`. offsets, times: physical offset and store timestamp (ms)
        of the records that `owners` name.
        """
        wanted = len(hashes) - start
        if self.waiting + wanted > self._room:
            self.flush()
        if wanted > self._room:
            self._room = wanted
            self._out = np.empty(wanted * ITEM.itemsize, np.uint8)
        out = self._out[self.waiting * ITEM.itemsize :]
        following = int(
            self._kernels.put_keys(
                (hashes, owners),
                (offsets, times),
                start,
                self._rules.index_items,
                self._state,
                self.slots,
                out,
            )
        )
        self.waiting += following - start
        self._note_blocks(hashes[start:following])
        return following

    def _note_blocks(self, hashes: Int32s) -> None:
        """Notes the blocks of slots that these keys are in; of many keys all."""
        if len(hashes) < len(self._blocks):
            self._blocks[np.abs(hashes.astype(np.int64)) % len(self.slots) // _BLOCK] = True
        else:
            self._blocks[:] = True

    def flush(self) -> None:
        """Writes the items that are in memory only."""
        if self.waiting:
            if not self._made:
                self._make()
            first = int(self._state[IndexHeaderState.INDEX_COUNT]) - self.waiting
            position = item_position(first, self._rules.hash_slots)
            data = self._out[: self.waiting * ITEM.itemsize]
            self._files.write(self.path, self._size, position, data, self.end.timestamp)
            self.waiting, self.written = 0, first + self.waiting

    def _make(self) -> None:
        """A new file has the end of the one before it from the beginning (`IndexFile#IndexFile`).

        A start behind a kill goes on in it behind that; by a header of zeros it would index everything again.
        """
        offset, timestamp = max(self._after.physical_offset, 0), max(self._after.timestamp, 0)
        values = {
            "begin_timestamp": timestamp,
            "end_timestamp": timestamp,
            "begin_physical_offset": offset,
            "end_physical_offset": offset,
            "hash_slot_count": 0,
            "index_count": 0,
        }
        self._files.write(self.path, self._size, 0, Header.build(values))
        self._made = True

    def newest(self, slot: int) -> int:
        """Number of the newest item of a slot, 0 for none; the file has it."""
        self.flush()
        return int(self.slots[slot])

    def close(self) -> None:
        """Writes what is left, slots and header; nothing of a kept file that got no item."""
        if self._kept is not None and self.items == self._items_kept and not self._restored:
            return
        self.flush()
        values = {
            place.name.lower(): int(self._state[place])
            for place in IndexHeaderState
            if place < IndexHeaderState.EVERY_PUT
        }
        if not self.items and not self._rules.header_at_stop:
            values["index_count"] = 0
        # in front of the slots: by its times a start after a kill in between gives the file up
        self._files.write(self.path, self._size, 0, Header.build(values))
        for first, end in self._changed():
            data = self.slots[first:end].astype(SLOT).tobytes()
            self._files.write(self.path, self._size, slot_position(first), data)

    def _changed(self) -> Iterator[tuple[int, int]]:
        """Ranges of slots to write: the blocks in use, of a new file those with items."""
        for first in (np.flatnonzero(self._blocks) * _BLOCK).tolist():
            if self._kept is not None or self.slots[first : first + _BLOCK].any():
                yield first, min(first + _BLOCK, len(self.slots))


class IndexFiles:
    """The index of a log, file after file. last: the newest of files that stay, to go on in.

    full_timestamp: end (store timestamp, ms) of the newest file that became full (`IndexService#flush`).
    """

    def __init__(
        self,
        rules: FileRules,
        files: FileWriter,
        kernels: Kernels,
        next_name: Callable[[int], str],
        last: IndexFile | None = None,
    ) -> None:
        self._rules = rules
        self._files = files
        self._kernels = kernels
        self._next_name = next_name
        self.last = last
        self._behind, self._time = False, 0
        self.full_timestamp = 0
        self.items = 0
        self.paths: list[str] = []

    def put(self, hashes: Int32s, owners: Int32s, offsets: Ints, times: Ints) -> None:
        """Keys of a run of records; offsets, times: of all of its records, those without keys too.

        Records in front of the end of what is indexed are passed over (`IndexService#buildIndex`).
        """
        if not len(offsets):
            return
        known = self._known(owners, offsets)
        if known.any():
            hashes, owners = hashes[~known], owners[~known]
        self._behind = not len(owners) or int(owners[-1]) + 1 < len(offsets)
        self._time = int(times[-1])
        at = 0
        while at < len(hashes):
            file = self._writable(int(times[owners[at]]))
            at = file.put(hashes, owners, offsets, times, at)
        self.items += len(hashes)
        if self.last is None:
            self._writable(int(times[0]))

    def _known(self, owners: Int32s, offsets: Ints) -> Bools:
        """Which keys are of records in front of the end that the records before them make."""
        ends = np.zeros(len(offsets) + 1, np.int64)
        if self.last is not None:
            ends[0] = max(self.last.end.physical_offset, 0)
        ends[owners + 1] = offsets[owners]
        known: Bools = offsets < np.maximum.accumulate(ends)[:-1]
        return known[owners]

    def close(self) -> None:
        """Ends the last file. One that became full before the last record is followed by an empty one."""
        if self.last is None:
            return
        if self.last.full and self._behind:
            self._writable(self._time)
        self.last.close()

    def _writable(self, timestamp: int) -> IndexFile:
        """The last file, or a new one when there is none with room (`#getAndCreateLastIndexFile`)."""
        if self.last is None or self.last.full:
            after = FileEnd()
            if self.last is not None:
                after = self.last.end
                self.last.close()
                self.full_timestamp = after.timestamp
            path = f"index/{self._next_name(timestamp)}"
            self.last = IndexFile(path, self._rules, self._files, self._kernels, after)
            self.paths.append(path)
        return self.last
