"""The plain-Python twin of `kernels.building`: same functions, same arguments, no compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.commitlog import SysFlag
from formats.consumequeue import Unit
from formats.index import Item
from formats.properties import INNER_MULTI_QUEUE_OFFSET, INNER_PREFIX
from rmqtool.scan.fields import AppendState, CrcState, DispatchColumn, Field, IndexHeaderState
from rmqtool.scan.index import ITEM
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]

_MOST_SECONDS = (1 << 31) - 1


def append_units(
    columns: Ints, chosen: Ints, start: int, lost: int, state: Ints, out: Bytes, taken: Ints
) -> tuple[int, int]:
    """See `kernels.building.append_units`."""
    import numpy as np

    count = 0
    state[AppendState.REPEATED] = 0
    for at in range(start, len(chosen)):
        k = int(chosen[at])
        slot, offset, size, code = columns[DispatchColumn.SLOT : DispatchColumn.OWNER, k].tolist()
        following = int(state[AppendState.NEXT])
        end = _wrapped(offset + size)
        if end <= state[AppendState.KNOWN]:
            state[AppendState.SKIPPED] += 1
            continue
        if slot and _wrapped(slot * UNIT.itemsize) < _wrapped(following * UNIT.itemsize):
            state[AppendState.DOUBLED] += 1
            state[AppendState.REPEATED] = 1
            continue
        if 0 < _wrapped(slot - following) <= lost:
            return at, count
        state[AppendState.MISPLACED] += slot != following
        unit = Unit.build({"physical_offset": offset, "size": size, "tags_code": code})
        out[count * UNIT.itemsize : (count + 1) * UNIT.itemsize] = np.frombuffer(unit, np.uint8)
        taken[count] = k
        count += 1
        state[AppendState.NEXT] += 1
        state[AppendState.KNOWN] = end
        state[AppendState.REPEATED] = 0
    return len(chosen), count


def _wrapped(value: int) -> int:
    """A `long` as Java computes it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def put_keys(
    keys: tuple[Int32s, Int32s],
    records: tuple[Ints, Ints],
    start: int,
    room: int,
    state: Ints,
    slots: Int32s,
    out: Bytes,
) -> int:
    """See `kernels.building.put_keys`."""
    import numpy as np

    (hashes, owners), (offsets, times) = keys, records
    for k in range(start, len(hashes)):
        number, begin = int(state[IndexHeaderState.INDEX_COUNT]), int(state[IndexHeaderState.BEGIN_TIMESTAMP])
        if number >= room:
            return k
        value, owner = int(hashes[k]), int(owners[k])
        offset, time = int(offsets[owner]), int(times[owner])
        seconds = max(min((time - begin) // 1000, _MOST_SECONDS), 0) if begin > 0 else 0
        slot = value % len(slots)
        newest = int(slots[slot])
        newest = newest if 0 < newest <= number else 0
        fields = {"key_hash": value, "physical_offset": offset, "time_diff": seconds, "prev": newest}
        place = (k - start) * ITEM.itemsize
        out[place : place + ITEM.itemsize] = np.frombuffer(Item.build(fields), np.uint8)
        slots[slot] = number
        if number <= 1:
            state[[IndexHeaderState.BEGIN_PHYSICAL_OFFSET, IndexHeaderState.BEGIN_TIMESTAMP]] = offset, time
        state[IndexHeaderState.HASH_SLOT_COUNT] += newest == 0 or bool(state[IndexHeaderState.EVERY_PUT])
        state[IndexHeaderState.INDEX_COUNT] = number + 1
        state[[IndexHeaderState.END_PHYSICAL_OFFSET, IndexHeaderState.END_TIMESTAMP]] = offset, time
    return len(hashes)


def places_and_times(rows: Ints, base: int, offsets: Ints, times: Ints) -> tuple[int, int]:
    """See `kernels.building.places_and_times`."""
    offsets[:] = base + rows[:, Field.POSITION]
    times[:] = rows[:, Field.STORE_TIMESTAMP]
    elsewhere = int((rows[:, Field.STORED_PHYSICAL_OFFSET] != offsets).sum())
    return elsewhere, int((rows[:, Field.CRC_STATE] == CrcState.BAD).sum())


def feeds_further_queues(buf: Bytes, origin: int, rows: Ints) -> bool:
    """See `kernels.building.feeds_further_queues`."""
    return _has_property(buf, origin, rows, INNER_MULTI_QUEUE_OFFSET)


def are_single(buf: Bytes, origin: int, rows: Ints) -> bool:
    """See `kernels.building.are_single`."""
    if (rows[:, Field.SYS_FLAG] & int(SysFlag.INNER_BATCH)).any():
        return False
    return not _has_property(buf, origin, rows, INNER_PREFIX)


def _has_property(buf: Bytes, origin: int, rows: Ints, name: str) -> bool:
    """Whether some record has a property whose name begins so."""
    begin = b"\x02" + name.encode()
    for start, length in rows[:, [Field.PROPERTIES_POSITION, Field.PROPERTIES_LENGTH]].tolist():
        if length > 0 and begin in b"\x02" + buf[start - origin : start - origin + length].tobytes():
            return True
    return False
