"""Items of the index against the keys of records, run after run in the order of the log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from rmqtool.check.index_times import header_times, item_times
from rmqtool.check.unmatched_items import UnmatchedItems

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.index_keys import Keys, Unindexed
    from rmqtool.check.index_reading import IndexFile
    from rmqtool.check.index_stream import Items, ItemStream

    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]
    Bools = npt.NDArray[np.bool_]
    Column = TypeVar("Column", Ints, Int32s, Bools)

_KEPT = 10_000
MOST_RANGES = 100_000
"""ranges of loose items, and of records without items, that are reported one by one"""


@dataclass(slots=True)
class OrphanItems:
    """Neighbouring items of one file that belong to no record."""

    index: IndexFile
    first: int
    count: int
    out_of_order: bool


@dataclass(slots=True)
class Missing:
    """Neighbouring records with keys that are not in the index."""

    start: int
    end: int
    records: int


class Matcher:
    """Feed `run` with all runs; then `orphans`, `missing` and `still_missing` tell what was left over."""

    def __init__(self, stream: ItemStream, agree: Callable[..., int]) -> None:
        self._stream = stream
        self._agree = agree
        self.orphans: list[OrphanItems] = []
        self.missing: list[Missing] = []
        self.more_missing = 0
        self.more_loose: Counter[str] = Counter()
        self.still_missing: Missing | None = None
        self.matched = 0

    def run(self, keys: Keys) -> Iterator[Finding]:
        """Compares the keys of one run with the items that point up to its last record."""
        if not len(keys.offsets):
            return
        if len(keys.hashes):
            spans = self._stream.take_equal(keys, self._agree)
            if spans:
                self._close()
                self.matched += len(keys.hashes)
                for index, first, start, count in spans:
                    owners = keys.owners[start : start + count]
                    yield from header_times(index, first, keys, owners, None)
                return
        pieces = self._stream.take(int(keys.offsets[-1]))
        if not pieces:
            self._none(keys)
            return
        hashes = _joined([one.hashes for one in pieces])
        offsets = _joined([one.offsets for one in pieces])
        yield from self._slowly(keys, pieces, hashes, offsets)

    def lacking(self, keys: Unindexed) -> None:
        """As `run`, where there is no item at all."""
        if keys.records:
            self._extend(keys.start, keys.end, keys.records)

    def skip(self, chosen: Callable[[Ints], Bools]) -> None:
        """Items at the front whose offsets are all chosen belong to no record that will come."""
        for piece in self._stream.leading(chosen):
            self._keep_orphans([piece], np.ones(len(piece), bool))

    def rest(self) -> None:
        """Items behind the last record."""
        for piece in self._stream.take():
            self._keep_orphans([piece], np.ones(len(piece), bool))

    def _none(self, keys: Keys) -> None:
        if len(keys.owners):
            distinct = np.unique(keys.owners)
            self._miss(keys, distinct)

    def _miss(self, keys: Keys, records: Ints | Int32s) -> None:
        self._extend(int(keys.offsets[records[0]]), int(keys.ends[records[-1]]), len(records))

    def _extend(self, start: int, end: int, records: int) -> None:
        if self.still_missing is None:
            self.still_missing = Missing(start, end, records)
        else:
            self.still_missing.end = end
            self.still_missing.records += records

    def _close(self) -> None:
        if self.still_missing is not None:
            if len(self.missing) < MOST_RANGES:
                self.missing.append(self.still_missing)
            else:
                self.more_missing += 1
            self.still_missing = None

    def _slowly(
        self, keys: Keys, pieces: Sequence[Items], hashes: Int32s, offsets: Ints
    ) -> Iterator[Finding]:
        out_of_order = _joined([one.out_of_order for one in pieces])
        at = np.searchsorted(keys.offsets, offsets)
        at[at == len(keys.offsets)] = 0
        on = (keys.offsets[at] == offsets) & ~out_of_order
        wanted = np.bincount(keys.owners, minlength=len(keys.offsets))
        given = np.bincount(at[on], minlength=len(keys.offsets))
        alike = wanted == given
        item_places, key_places = np.flatnonzero(on & alike[at]), np.flatnonzero(alike[keys.owners])
        same = hashes[item_places] == keys.hashes[key_places]
        self.matched += int(np.count_nonzero(same))
        orphans = UnmatchedItems(pieces, hashes, ~on)
        begun_late: set[int] = set()
        lacking = set(np.flatnonzero((given == 0) & (wanted > 0)).tolist())
        odd = set(np.flatnonzero(~alike & (given > 0)).tolist()) | set(at[item_places[~same]].tolist())
        places = np.flatnonzero(on)
        sorted_at = at[places]
        for record in sorted(odd):
            low, high = np.searchsorted(sorted_at, (record, record + 1)).tolist()
            own_keys = keys.of(record)
            lost = yield from self._record(keys, record, orphans, places[low:high], own_keys)
            if lost:
                lacking.add(record)
            if hashes[places[low:high]].tolist() == own_keys[low - high :]:
                begun_late.add(record)
        if orphans:
            for record in sorted(lacking) if len(lacking) < _KEPT else ():
                offset = int(keys.offsets[record])
                if given[record] == 0 and (yield from orphans.claim(keys.of(record), offset)):
                    lacking.discard(record)
        yield from item_times(pieces, at, keys, on)
        self._ranges(keys, given, np.array(sorted(lacking), np.int64), begun_late)
        self._give_back(pieces, orphans.places)
        self._keep_orphans(pieces, orphans.places)

    def _give_back(self, pieces: Sequence[Items], places: Bools) -> None:
        """Items out of order at the end that no record claimed may be those of the first of the next run."""
        last = pieces[-1]
        own = places[len(places) - len(last) :]
        kept = np.flatnonzero(~(own & last.out_of_order))
        start = int(kept[-1]) + 1 if len(kept) else 0
        if start < len(last):
            own[start:] = False
            self._stream.give_back(last.part(start, len(last)))

    def _record(
        self, keys: Keys, record: int, orphans: UnmatchedItems, own_items: Ints, own_keys: list[int]
    ) -> Generator[Finding, None, bool]:
        """Items of one record that are not just its keys in order; answers whether keys are missing."""
        offset = int(keys.offsets[record])
        left = list(own_keys)
        strangers: list[int] = []
        doubled: list[int] = []
        for place in own_items.tolist():
            value = int(orphans.hashes[place])
            if value in left:
                left.remove(value)
            elif value in own_keys:
                doubled.append(place)
            else:
                strangers.append(place)
        for place in strangers:
            piece, number = orphans.item(place)
            expected = left.pop(0) if left else None
            yield piece.index.item(
                "IDX-HASH",
                number,
                physical_offset=offset,
                part="key_hash",
                expected=expected,
                found=int(orphans.hashes[place]),
            )
        if doubled:
            piece, number = orphans.item(doubled[0])
            yield piece.index.item("IDX-DOUBLE", number, physical_offset=offset, found=len(doubled))
        if left and orphans and (yield from orphans.claim(left, offset)):
            return False
        return bool(left)

    def _ranges(self, keys: Keys, given: npt.NDArray[np.intp], lacking: Ints, begun_late: set[int]) -> None:
        """Sorts records that lack items into ranges, which records with items divide.

        begun_late: records that have their last keys only, so that they end a range.
        """
        present = np.flatnonzero(given)
        group = np.searchsorted(present, lacking, side="right")
        group -= np.isin(lacking, sorted(begun_late))
        if not len(lacking):
            if len(present):
                self._close()
            return
        if len(present) and group[0] > 0:
            self._close()
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        for number, start in enumerate(starts.tolist()):
            end = int(starts[number + 1]) if number + 1 < len(starts) else len(lacking)
            self._miss(keys, lacking[start:end])
            if group[start] < len(present):
                self._close()

    def _keep_orphans(self, pieces: Sequence[Items], places: Bools) -> None:
        begin = 0
        for piece in pieces:
            chosen = np.flatnonzero(places[begin : begin + len(piece)])
            begin += len(piece)
            if not len(chosen):
                continue
            breaks = (np.diff(chosen) != 1) | (np.diff(piece.out_of_order[chosen].astype(np.int8)) != 0)
            for span in np.split(chosen, np.flatnonzero(breaks) + 1):
                self._keep(piece, int(span[0]), len(span))

    def _keep(self, piece: Items, k: int, count: int) -> None:
        first, out_of_order = piece.first + k, bool(piece.out_of_order[k])
        last = self.orphans[-1] if self.orphans else None
        joins = last is not None and last.index is piece.index and last.out_of_order == out_of_order
        if last is not None and joins and last.first + last.count == first:
            last.count += count
            return
        if len(self.orphans) < MOST_RANGES:
            self.orphans.append(OrphanItems(piece.index, first, count, out_of_order))
        else:
            self.more_loose[piece.index.path] += 1


def _joined(parts: list[Column]) -> Column:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
