"""Slots and items of an index file, which no field of the file states.

The header's hashSlotCount and indexCount are usage counters (`IndexFile#putKey`; up to 4.7.0 the first
counts every put), so they are not looked at. What holds for every index file, however full:

* length = 40 + 4·slots + 20·items;
* the slot of key hash h is h % slots, its value the number of the newest item in the chain;
* items are numbered from 1 without gaps, so the greatest slot value N is the number of the last item, and
  the last byte of the file that is not zero lies in item N.

The last rule leaves at most five neighbouring values for slots and the first one of those five, so an
undamaged file has one solution. It is then tested on the chains. For damaged files every pair of numbers is
tried and the chains vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.index import Header, Item, Slot
from formats.primitives import sizeof
from rmqtool.store.holes import data_windows, last_nonzero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.bytes import ByteSource, Window

HEADER = sizeof(Header)
SLOT = sizeof(Slot)
ITEM = sizeof(Item)

_CHUNK = 1 << 23
_SAMPLES = 4096
_VOTERS = 24
_VOTERS_USED = 8
_FEW = 4
_MANY = 64
_AGREE = 0.9
_PLACES = 16
_PLACE_SLOTS = (1 << 9, 1 << 14)
"""slots that are read in one place: few, and more where none of them is used"""


def _words(source: ByteSource, start: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Big-endian i32 values from byte `start` on, as int64."""
    return _as_words(source.window(start, count * SLOT))


def _as_words(raw: Window) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return raw[: len(raw) // SLOT * SLOT].view(">i4").astype(np.int64)


def solve_index(source: ByteSource) -> tuple[int, int] | None:
    """(slots, items) of an index file by its content, None when nothing fits or nothing is in it.

    Reads the slots once and the end of the file backwards up to the last item: under a second for 420 MB.
    """
    length = source.size
    if length < HEADER + SLOT + ITEM or (length - HEADER) % SLOT:
        return None
    last = last_nonzero(source)
    if last < HEADER:
        return None
    slots = _slots_by_last_item(source, last)
    if slots is not None and fits(source, slots) >= _AGREE:
        return slots, (length - HEADER - SLOT * slots) // ITEM
    slots = _slots_by_vote(source)
    if slots is not None:
        return slots, (length - HEADER - SLOT * slots) // ITEM
    return None


def _slots_by_last_item(source: ByteSource, last: int) -> int | None:
    """The number of slots for which item N (N = greatest slot value) holds the last used byte."""
    words = (source.size - HEADER) // SLOT
    greatest = done = 0
    for at, raw in data_windows(source, HEADER, source.size, _CHUNK):
        first = (at - HEADER) // SLOT
        found = _slots_between(done, first, greatest, words, last)
        if found is not None:
            return found
        values = np.maximum.accumulate(np.maximum(_as_words(raw), 0))
        newest = np.maximum(values, greatest)
        slots = np.arange(first + 1, first + 1 + len(newest), dtype=np.int64)
        start = HEADER + SLOT * slots + ITEM * newest
        possible = (start <= last) & (last < start + ITEM) & (slots % 5 == words % 5) & (newest > 0)
        if possible.any():
            return int(slots[possible][0])
        if len(start) == 0 or start[-1] > last:
            return None
        greatest, done = int(newest[-1]), first + len(newest)
    return _slots_between(done, words, greatest, words, last)


def _slots_between(first: int, end: int, greatest: int, words: int, last: int) -> int | None:
    """As `_slots_by_last_item`, the first number in (first, end] when all those slots are zero."""
    if not greatest:
        return None
    # HEADER + SLOT * slots + ITEM * greatest <= last < the same + ITEM
    room = last - HEADER - ITEM * greatest
    low, high = max((room - ITEM) // SLOT + 1, first + 1), min(room // SLOT, end)
    return next((slots for slots in range(low, high + 1) if slots % 5 == words % 5), None)


def _used_words(source: ByteSource, limit: int) -> Iterator[tuple[int, int]]:
    """The first `limit` (slot, value) pairs that are not zero, read as if the whole file were slots."""
    for start, raw in data_windows(source, HEADER, source.size, _CHUNK):
        values = _as_words(raw)
        for at in np.flatnonzero(values)[:limit]:
            yield (start - HEADER) // SLOT + int(at), int(values[at])
            limit -= 1
        if limit <= 0:
            return


def _slots_by_vote(source: ByteSource) -> int | None:
    """The number of slots under which the chains are soundest: for files with damage.

    All candidates are congruent modulo 5, so items lie on one grid of 20 bytes whatever the number of slots
    is, and "item v has a hash that belongs into slot s" can be asked for all candidates at once. Each of
    the first used slots leaves a handful of candidates; those are tested on the whole file.
    """
    words = (source.size - HEADER) // SLOT
    most = (words - 1) // 5
    voters = [(slot, value) for slot, value in _used_words(source, _VOTERS) if 0 < value <= most]
    for slot, value in voters[:_VOTERS_USED]:
        candidates = _candidates(source, words - 5 * most, most, slot, value)
        if len(candidates) > _MANY:
            continue
        tested = ((*_chains(source, slots, cut=False), slots) for slots in candidates)
        ranked = sorted(
            ((sound / used, slots) for sound, used, slots in tested if sound >= _FEW), reverse=True
        )
        if ranked and ranked[0][0] >= _AGREE / 2:
            # One chain alone can be sound under several numbers: then nothing is known.
            return ranked[0][1] if len(ranked) == 1 or ranked[0][0] > ranked[1][0] else None
    return None


def _candidates(source: ByteSource, first_slots: int, most: int, slot: int, value: int) -> list[int]:
    """Numbers of slots under which item `value` is used and has a hash that belongs into `slot`."""
    found: list[int] = []
    start = HEADER + SLOT * first_slots + ITEM * value
    for at, raw in data_windows(source, start, min(start + ITEM * most, source.size), _CHUNK // ITEM * ITEM):
        items = raw[: len(raw) // ITEM * ITEM].reshape(-1, ITEM)
        hashes = np.ascontiguousarray(items[:, :4]).view(">i4")[:, 0].astype(np.int64)
        used = (hashes >= 0) & items.any(axis=1)
        low = (at - start) // ITEM
        slots = first_slots + 5 * np.arange(low, low + len(hashes), dtype=np.int64)
        found += slots[used & (slots > slot) & (hashes % slots == slot)].tolist()
        if len(found) > _MANY:
            break
    return found


def fits(source: ByteSource, slots: int, *, cut: bool = False) -> float:
    """Share of used slots (a sample) whose newest item has a hash of the slot and a sound predecessor.

    0.0 when no slot is used or the slots do not fit into the file. `cut`: the file may have lost its end,
    so slots whose item would lie behind it are passed over.
    """
    sound, tested = _chains(source, slots, cut=cut)
    return sound / tested if tested else 0.0


def sample_fits(source: ByteSource, slots: int) -> bool:
    """Whether the chains of a few slots are sound, from a few reads: for a number that is likely anyway.

    Of a file that is mostly a hole, as a broker begins it, the slots are read that are not in the hole.
    """
    most = (source.size - HEADER - SLOT * slots) // ITEM
    tested = sound = 0
    for place in range(_PLACES):
        first = slots // _PLACES * place
        data = source.next_data(HEADER + SLOT * first)
        first = max(first, slots if data is None else (data - HEADER) // SLOT)
        if first >= slots:
            break
        for count in _PLACE_SLOTS:
            values = _words(source, HEADER + SLOT * first, min(count, slots - first))
            used = np.flatnonzero(values)[:_FEW].tolist()
            if used:
                break
        for at in used:
            tested += 1
            sound += _is_sound(source, first + at, int(values[at]), slots, most)
    return tested > 0 and sound >= tested * _AGREE


def _chains(source: ByteSource, slots: int, *, cut: bool) -> tuple[int, int]:
    """How many of the used slots (a sample) are sound, and how many there are."""
    most = (source.size - HEADER - SLOT * slots) // ITEM
    if slots < 1 or most < 1:
        return 0, 0
    tested = sound = 0
    for at, raw in data_windows(source, HEADER, min(HEADER + SLOT * slots, source.size), _CHUNK):
        first, values = (at - HEADER) // SLOT, _as_words(raw)
        used = np.flatnonzero(values)
        if cut:
            used = used[values[used] < most]
        for place in used[:: max(len(used) // _SAMPLES, 1)]:
            tested += 1
            sound += _is_sound(source, first + int(place), int(values[place]), slots, most)
    return sound, tested


def _is_sound(source: ByteSource, slot: int, value: int, slots: int, most: int) -> bool:
    """Whether item `value` exists and belongs into `slot`, and so does its predecessor, which is older."""
    for _ in range(2):
        if not 0 < value < most:
            return False
        item = source.window(HEADER + SLOT * slots + ITEM * value, ITEM).tobytes()
        key_hash = int.from_bytes(item[:4], "big", signed=True)
        previous = int.from_bytes(item[16:], "big", signed=True)
        if key_hash < 0 or key_hash % slots != slot or previous >= value or not any(item):
            return False
        if previous <= 0:
            return True
        value = previous
    return True
