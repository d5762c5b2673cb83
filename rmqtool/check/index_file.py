"""One index file by itself: size, header against content, slots, chains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formats.index import FIRST_ITEM, Item, Slot, slot_position
from formats.primitives import dtype_of
from rmqtool.check.finding_limits import MOST
from rmqtool.check.findings import Finding, Severity, finding
from rmqtool.check.index_reading import (
    IndexFile,
    chunks,
    count_before,
    items_from,
    lost_item,
    lost_slot,
    open_patched,
    used,
)
from rmqtool.scan.index import read_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Hashes
    from rmqtool.store.access import OpenMode
    from rmqtool.store.patched import ZeroFilledSource

    Ints = npt.NDArray[np.int64]

ITEM = dtype_of(Item)
SLOT = dtype_of(Slot)

_LOW = (1 << 32) - 1
_LONGEST = 1000
_WHOLE = 3
"""so many wrong fields are one wrong header"""


class FileCheck:
    """Reads one file once: header, slots, chains.

    mild: judgement of what a copy of a running store may show too; None keeps that of the catalogue.
    log_end: where the commit log files end. until: of a live store, the offset from which on items are left
    alone.
    """

    def __init__(
        self,
        index: IndexFile,
        hashes: Hashes,
        mode: OpenMode,
        mild: Severity | None = None,
        log_end: int = 0,
        until: int | None = None,
    ) -> None:
        self._index = index
        self._hashes = hashes
        self._mode: OpenMode = mode
        self._mild = mild
        self._log_end = log_end
        self._until = until

    def head(self) -> Iterator[Finding]:
        """Header against content, from a few small reads; also fills `header` and `count`."""
        index = self._index
        with open_patched(index, self._mode) as source:
            index.header = read_header(source)
            if index.header is None:
                return
            index.count = used(source, index)
            if self._until is not None:
                count = count_before(source, index, self._until)
                index.moving |= count != index.count
                index.count = count
            if index.count <= FIRST_ITEM:
                yield from self._empty()
            else:
                wrong = list(
                    self._header(
                        items_from(source, index, FIRST_ITEM, 1),
                        items_from(source, index, index.count - 1, 1),
                    )
                )
                index.lost_header = len(wrong) >= _WHOLE
                if index.lost_header:
                    wrong = [index.head("IDX-HEADER-LOST", None, found=len(wrong))]
                yield from wrong

    def _empty(self) -> Iterator[Finding]:
        header = self._index.header
        if self._index.moving or self._index.cut:
            return
        if header is not None and not 0 <= header.index_count <= FIRST_ITEM:
            yield self._index.head("IDX-COUNT", "index_count", expected=FIRST_ITEM, found=header.index_count)
        else:
            yield finding("IDX-EMPTY", path=self._index.path)

    def _header(self, first: npt.NDArray[Any], last: npt.NDArray[Any]) -> Iterator[Finding]:
        index, header = self._index, self._index.header
        if header is None or index.cut or not len(first) or not len(last) or index.lost:
            return
        if not index.moving and header.index_count != index.count:
            yield index.head(
                "IDX-COUNT",
                "index_count",
                expected=index.count,
                found=header.index_count,
                severity=self._mild if 0 < header.index_count <= index.items else None,
            )
        begin, end = int(first["physical_offset"][0]), int(last["physical_offset"][0])
        span = header.end_timestamp - header.begin_timestamp
        seconds = int(last["time_diff"][0])
        wrong = {
            "begin_physical_offset": (begin, header.begin_physical_offset),
            "end_physical_offset": (end, header.end_physical_offset),
        }
        for part, (expected, found) in wrong.items():
            if expected != found and not (index.moving and part.startswith("end")):
                mild = self._mild if 0 <= found <= self._log_end else None
                yield index.head("IDX-HEADER", part, expected=expected, found=found, severity=mild)
        # the first item's time counts from the end of the file before, so one item tells nothing
        if header.begin_timestamp <= 0:
            yield index.head("IDX-HEADER", "begin_timestamp", found=header.begin_timestamp)
        elif not index.moving and index.count > FIRST_ITEM + 1 and max(int(span / 1000), 0) != seconds:
            expected = header.begin_timestamp + seconds * 1000
            yield index.head(
                "IDX-HEADER",
                "end_timestamp",
                expected=expected,
                found=header.end_timestamp,
                severity=self._mild,
            )

    def chains(self) -> Iterator[Finding]:
        """Every slot and every item; findings about items go to `damaged_items` of the file."""
        if self._index.count <= FIRST_ITEM:
            return
        with open_patched(self._index, self._mode) as source:
            found = self._chains(source)
            if source.had_fault():  # from now on the source copies
                found = self._chains(source)
        yield from found

    def _chains(self, source: ZeroFilledSource) -> list[Finding]:
        index = self._index
        state = np.zeros(index.slots, np.int64)
        bad = np.empty((MOST, 3), np.int64)
        total = 0
        for first, items in chunks(source, index):
            total = self._hashes.chain(items.view(np.uint8), first, index.slots, state, bad, total)
        bad = bad[: min(total, MOST)]
        wrong = bad.tolist()
        lengths = np.zeros(_LONGEST, np.int64)
        found = list(self._slots(source, state, wrong, lengths))
        self._facts(source, state, lengths)
        index.damaged_items.clear()
        for number, expected, prev in wrong:
            if lost_item(index, prev):
                continue
            code = "IDX-CYCLE" if prev >= number else "IDX-CHAIN"
            index.damaged_items[number] = index.item(code, number, part="prev", expected=expected, found=prev)
        if total > len(bad):
            found.append(finding("IDX-MORE", path=index.path, part="IDX-CHAIN", found=total - len(bad)))
        return found

    def _slots(
        self, source: ZeroFilledSource, state: Ints, bad: list[list[int]], lengths: Ints
    ) -> Iterator[Finding]:
        """What is wrong with slots; counts chains by their lengths."""
        index, header = self._index, self._index.header
        raw = source.window(slot_position(0), 0 if index.cut else index.slots * SLOT.itemsize)
        index.lost = source.unreadable or index.lost
        found = raw[: len(raw) // SLOT.itemsize * SLOT.itemsize].view(SLOT)
        odd = np.empty(2 * MOST, np.int64)
        count, in_use = self._hashes.compare_slots(raw, state, odd, lengths)
        if index.cut:
            return
        doubtful = {number: other for number, other, prev in bad if prev < number}
        places = odd[: min(count, len(odd))]
        if index.moving:  # newer items than those that are looked at
            places = np.flatnonzero((found != state[: len(found)] & _LOW) & (found < index.count))[: 2 * MOST]
            count = len(places)
        if index.lost:
            places = places[[not lost_slot(index, slot, int(found[slot])) for slot in places.tolist()]]
        expected = {slot: int(state[slot]) & _LOW for slot in places.tolist()}
        wrong = [
            slot
            for slot in expected
            if int(found[slot]) not in doubtful and doubtful.get(expected[slot]) != int(found[slot])
        ]
        for slot in wrong:
            yield finding(
                "IDX-SLOT",
                path=index.path,
                position=slot_position(slot),
                length=SLOT.itemsize,
                part=f"slot {slot}",
                expected=expected[slot],
                found=int(found[slot]),
                severity=self._mild if 0 <= found[slot] < index.items else None,
            )
        if count > len(odd):
            yield finding("IDX-MORE", path=index.path, part="IDX-SLOT", found=count - len(odd))
        index.facts["slots_used"] = in_use
        if index.moving or index.lost:
            return
        # up to 4.7.0 every put counts, later only the first of a slot; a store may have seen both
        if (
            header is not None
            and not index.lost_header
            and not in_use <= header.hash_slot_count < index.count
        ):
            yield index.head(
                "IDX-HEADER",
                "hash_slot_count",
                expected=in_use,
                found=header.hash_slot_count,
                severity=Severity.NOTE if wrong or bad else self._mild,
            )

    def _facts(self, source: ZeroFilledSource, state: Ints, counts: Ints) -> None:
        """Longest chain, and the longest run of one hash among the longest chains, about a thousand.

        counts: of chains, by length.
        """
        index = self._index
        lengths = np.flatnonzero(counts)
        several = np.cumsum(counts[lengths][::-1]) <= _LONGEST
        least = int(lengths[::-1][several][-1]) if several.any() else int(lengths[-1])
        heads = np.empty(_LONGEST, np.int64)
        chosen = heads[: self._hashes.longest_chains(state, max(least, 1), heads)]
        index.facts["longest_chain"] = int((chosen >> 32).max(initial=0))
        end = index.position(index.count)
        if index.lost or (not source.zero_copy and end > source.window_bytes):
            return
        hashes = np.empty(int((chosen >> 32).sum()), np.int32)
        heads = chosen & 0xFFFFFFFF
        count = self._hashes.follow(source.window(0, end), index.position(0), heads, hashes)
        same = np.unique(hashes[:count], return_counts=True)[1]
        index.facts["longest_same_hash"] = int(same.max(initial=0))
