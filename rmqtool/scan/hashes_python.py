"""The plain-Python twin of `kernels.hashes`: same functions, same arguments, no compiler."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from formats.commitlog import transaction_of
from formats.index import Item, key_hash
from formats.java import java_hash, java_utf8_decode
from formats.primitives import dtype_of
from rmqtool.scan.fields import SIEVE_FACTOR, Field

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]

_ITEM = dtype_of(Item)
_LAST_SECOND = (1 << 31) - 1
_INT, _WORD = (1 << 32) - 1, (1 << 64) - 1


@lru_cache(maxsize=1024)
def _topic(raw: bytes) -> str:
    return java_utf8_decode(raw)[0]


def _keys(row: list[int], data: memoryview, origin: int) -> list[str]:
    """What a broker would put into the index for one record, in its order."""
    return [] if transaction_of(row[Field.SYS_FLAG]) == "rollback" else _all_keys(row, data, origin)


def _all_keys(row: list[int], data: memoryview, origin: int) -> list[str]:
    texts = []
    for place in (Field.UNIQ_KEY_POSITION, Field.KEYS_POSITION):
        at, length = row[place] - origin, row[place + 1]
        texts.append(java_utf8_decode(bytes(data[at : at + length]))[0] if length > 0 else "")
    uniq, keys = texts
    return [one for one in (uniq, *keys.split(" ")) if one]


def keyed(buf: Bytes, origin: int, rows: Ints, found: Ints) -> None:
    """See `kernels.hashes.keyed`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    having = [number for number, row in enumerate(rows.tolist()) if _keys(row, data, origin)]
    found[:] = (having[0], having[-1], len(having)) if having else 0


def first_in_sieve(buf: Bytes, origin: int, rows: Ints, bits: Bytes) -> int:
    """See `kernels.hashes.first_in_sieve`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    exponent = len(bits).bit_length() + 2
    for number, row in enumerate(rows.tolist()):
        for key in _all_keys(row, data, origin):
            place = ((java_hash(key) & _INT) * SIEVE_FACTOR & _WORD) >> (64 - exponent)
            if bits[place >> 3] >> (place & 7) & 1:
                return number
    return len(rows)


def key_hashes(
    buf: Bytes, origin: int, rows: Ints, start: int, hashes: Int32s, owners: Int32s
) -> tuple[int, int]:
    """See `kernels.hashes.key_hashes`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    count = 0
    for r in range(start, len(rows)):
        row = rows[r].tolist()
        keys = _keys(row, data, origin)
        if keys and count + 2 + max(row[Field.KEYS_LENGTH], 0) // 2 > hashes.size:
            return count, r
        at = row[Field.TOPIC_POSITION] - origin
        topic = _topic(bytes(data[at : at + max(row[Field.TOPIC_LENGTH], 0)]))
        for key in keys:
            hashes[count] = key_hash(topic, key)
            owners[count] = r
            count += 1
    return count, len(rows)


def agree(
    buf: Bytes, hashes: Int32s, owners: Int32s, offsets: Ints, times: Ints, begin: int, relative: bool
) -> int:
    """See `kernels.hashes.agree`."""
    import numpy as np

    items = _items(buf)[: len(hashes)]
    good = (items["key_hash"] == hashes) & (items["physical_offset"] == offsets[owners])
    seconds = np.clip((times[owners] - begin) // 1000, 0, _LAST_SECOND)
    on_time = items["time_diff"] == seconds
    if len(on_time) and not relative:
        on_time[0] = True
    wrong = np.flatnonzero(~(good & on_time))
    return int(wrong[0]) if len(wrong) else len(hashes)


def chain(buf: Bytes, first: int, slots: int, state: Ints, bad: Ints, count: int) -> int:
    """See `kernels.hashes.chain`."""
    items = _items(buf)
    doubtful = {number: wanted for number, wanted, prev in bad[:count].tolist() if prev < number}
    pairs = zip(items["key_hash"].tolist(), items["prev"].tolist(), strict=True)
    for number, (value, prev) in enumerate(pairs, first):
        slot = value % slots
        expected = int(state[slot]) & 0xFFFFFFFF if value >= 0 else -1
        known = prev < number and (prev in doubtful or doubtful.get(expected) == prev)
        if value < 0 or (prev != expected and not known):
            if count < len(bad):
                bad[count] = (number, expected, prev)
                if prev < number:
                    doubtful[number] = expected
            count += 1
        if value >= 0:
            state[slot] = ((int(state[slot]) >> 32) + 1) << 32 | number
    return count


def compare_slots(buf: Bytes, state: Ints, wrong: Ints, lengths: Ints) -> tuple[int, int]:
    """See `kernels.hashes.compare_slots`."""
    import numpy as np

    said = buf[: buf.size // 4 * 4].view(">i4").astype(np.int64)[: len(state)]
    newest = state[: len(said)] & 0xFFFFFFFF
    places = np.flatnonzero(said != newest)
    wrong[: len(places)] = places[: len(wrong)]
    lengths += np.bincount(np.minimum(state >> 32, len(lengths) - 1), minlength=len(lengths))
    return len(places), int(np.count_nonzero(newest))


def longest_chains(state: Ints, least: int, heads: Ints) -> int:
    """See `kernels.hashes.longest_chains`."""
    found = state[state >= least << 32][: len(heads)]
    heads[: len(found)] = found
    return len(found)


def follow(buf: Bytes, start: int, heads: Ints, hashes: Int32s) -> int:
    """See `kernels.hashes.follow`."""
    items = _items(buf[start:])
    count = 0
    for head in heads.tolist():
        number = head
        while 0 < number < len(items) and count < len(hashes):
            hashes[count] = items["key_hash"][number]
            count += 1
            prev = int(items["prev"][number])
            number = prev if prev < number else 0
    return count


def _items(buf: Bytes) -> npt.NDArray[Any]:
    return buf[: buf.size // _ITEM.itemsize * _ITEM.itemsize].view(_ITEM)
