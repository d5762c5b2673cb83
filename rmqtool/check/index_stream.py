"""The items of all index files as one stream in the order of the log."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.index import FIRST_ITEM
from rmqtool.check.findings import Finding, finding
from rmqtool.check.index_reading import chunks, open_patched
from rmqtool.errors import RmqtoolError
from rmqtool.store.access import Access

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.check.index_keys import Keys
    from rmqtool.check.index_reading import IndexFile
    from rmqtool.store.access import OpenMode

    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]
    Bools = npt.NDArray[np.bool_]
    _Chunk = tuple[IndexFile, int, npt.NDArray[Any]]

_BEYOND = (1 << 63) - 1
_AHEAD = 4096
"""items that are at hand at least, if the file has them, when the order of offsets is judged"""


@dataclass(frozen=True, slots=True)
class Items:
    """Neighbouring items of one file as columns. out_of_order: the offset breaks the ascending order."""

    index: IndexFile
    first: int
    hashes: Int32s
    offsets: Ints
    time_diffs: Int32s
    out_of_order: Bools
    order: Ints
    """ascending: the offset, or that of the item before one that is out of order"""
    raw: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.hashes)

    def part(self, start: int, end: int) -> Items:
        """Items `[start, end)` of these."""
        chosen = slice(start, end)
        return Items(
            self.index,
            self.first + start,
            self.hashes[chosen],
            self.offsets[chosen],
            self.time_diffs[chosen],
            self.out_of_order[chosen],
            self.order[chosen],
            self.raw[chosen],
        )


class ItemStream:
    """Takes items away from the front, as far as they belong to a part of the log."""

    def __init__(self, files: Sequence[IndexFile], mode: OpenMode) -> None:
        own = mode if isinstance(mode, Access) else Access(mode)
        self._mode = replace(own, mode="pread")  # items are kept, and must stay as they were
        self._chunks = self._all(files)
        self._waiting: list[_Chunk] = []
        self._floor: tuple[IndexFile | None, int] = (None, -1)
        self.unreadable: list[Finding] = []

    def _fetch(self) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self._waiting.append(chunk)
        return True

    def take(self, limit: int = _BEYOND) -> list[Items]:
        """Items for offsets up to `limit`, file after file."""
        taken: list[Items] = []
        while self._waiting or self._fetch():
            index, first, items = self._joined()
            floor = self._floor[1] if self._floor[0] is index else -1
            columns = _columns(index, first, items, floor)
            end = int(np.searchsorted(columns.order, limit, side="right"))
            if end:
                self._floor = (index, int(columns.order[end - 1]))
                taken.append(columns.part(0, end))
            if end < len(items):
                self._waiting[0] = (index, first + end, items[end:])
                return taken
            del self._waiting[0]
        return taken

    def leading(self, chosen: Callable[[Ints], Bools]) -> Iterator[Items]:
        """Takes chunks off the front whose offsets are all chosen and in order, one at a time."""
        while self._waiting or self._fetch():
            index, first, items = self._waiting[0]
            if not chosen(items["physical_offset"][[0, -1]].astype(np.int64)).all():
                return
            columns = _columns(index, first, items, self._floor[1] if self._floor[0] is index else -1)
            if columns.out_of_order.any() or not chosen(columns.offsets).all():
                return
            self._floor = (index, int(columns.order[-1]))
            del self._waiting[0]
            yield columns

    def give_back(self, items: Items) -> None:
        """Puts items from the end of what was taken last in front again."""
        index, first, raw = items.index, items.first, items.raw
        if self._waiting and self._waiting[0][0] is index:
            self._waiting[0] = (index, first, np.concatenate([raw, self._waiting[0][2]]))
        else:
            self._waiting.insert(0, (index, first, raw))

    def _joined(self) -> _Chunk:
        """The first chunk, with what follows in its file where little of it is left.

        Whether an offset breaks the order shows only with those behind it.
        """
        index, first, items = self._waiting[0]
        while len(items) < _AHEAD and (len(self._waiting) > 1 or self._fetch()):
            if self._waiting[1][0] is not index:
                break
            items = np.concatenate([items, self._waiting[1][2]])
            self._waiting[:2] = [(index, first, items)]
        return index, first, items

    def take_equal(self, keys: Keys, agree: Callable[..., int]) -> list[tuple[IndexFile, int, int, int]]:
        """Takes the items that are exactly these keys, in order; nothing when they are not.

        Answers spans: file, number of the first item, number of its key, count.
        """
        waiting = self._waiting
        spans: list[tuple[IndexFile, int, int, int]] = []
        done, place, at = 0, 0, 0
        while done < len(keys.hashes):
            if place == len(waiting) and not self._fetch():
                return []
            index, first, items = waiting[place]
            count = min(len(items) - at, len(keys.hashes) - done)
            chosen = slice(done, done + count)
            begin = index.header.begin_timestamp if index.header is not None else 0
            relative = first + at > FIRST_ITEM
            raw = items[at : at + count].view(np.uint8)
            if count != agree(
                raw, keys.hashes[chosen], keys.owners[chosen], keys.offsets, keys.times, begin, relative
            ):
                return []
            spans.append((index, first + at, done, count))
            done += count
            at += count
            if at == len(items):
                place, at = place + 1, 0
        if place == len(waiting):
            self._fetch()
        if place < len(waiting) and int(waiting[place][2]["physical_offset"][at]) <= int(keys.offsets[-1]):
            return []
        del waiting[:place]
        if at:
            index, first, items = waiting[0]
            waiting[0] = (index, first + at, items[at:])
        self._floor = (spans[-1][0], int(keys.offsets[keys.owners[-1]]))
        return spans

    def _all(self, files: Sequence[IndexFile]) -> Iterator[_Chunk]:
        for index in files:
            try:
                with open_patched(index, self._mode) as source:
                    for first, items in chunks(source, index):
                        yield index, first, items
            except RmqtoolError as error:
                whole: dict[str, Any] = {"position": 0, "length": index.file.size}
                self.unreadable.append(finding("IDX-UNREADABLE", path=index.path, **whole, found=str(error)))


def _columns(index: IndexFile, first: int, items: npt.NDArray[Any], floor: int) -> Items:
    offsets = items["physical_offset"].astype(np.int64)
    out_of_order, order = ascending(offsets, floor)
    return Items(
        index,
        first,
        items["key_hash"].astype(np.int32),
        offsets,
        items["time_diff"].astype(np.int32),
        out_of_order,
        order,
        items,
    )


def ascending(offsets: Ints, floor: int = -1) -> tuple[Bools, Ints]:
    """Which offsets break the order (as few as possible), and the order without them.

    floor: the last offset before these.
    """
    if int(offsets[0]) >= max(floor, 0) and bool(np.all(offsets[1:] >= offsets[:-1])):
        return np.zeros(len(offsets), bool), offsets
    tails: list[int] = []
    places: list[int] = []
    before = np.full(len(offsets), -1, np.int64)
    for i, value in enumerate(offsets.tolist()):
        if value < max(floor, 0):
            continue
        at = bisect_right(tails, value)
        before[i] = places[at - 1] if at else -1
        tails[at : at + 1] = [value]
        places[at : at + 1] = [i]
    out_of_order = np.ones(len(offsets), bool)
    i = places[-1] if places else -1
    while i >= 0:
        out_of_order[i] = False
        i = int(before[i])
    kept = np.where(out_of_order, floor, offsets)
    return out_of_order, np.maximum.accumulate(kept)
