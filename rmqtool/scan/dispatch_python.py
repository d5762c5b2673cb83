"""The plain-Python twin of `kernels.dispatch`: same functions, same arguments, no compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.commitlog import transaction_of
from formats.java import java_utf8_decode
from formats.tags_code import tags_hash
from rmqtool.scan.fields import Column, Field, Issue, Lane
from rmqtool.scan.units import OK, UNIT, unit_states

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]
    Bools = npt.NDArray[np.bool_]


def rehash(lanes: Ints, count: int, table: Int32s) -> None:
    """See `kernels.dispatch.rehash`."""
    mask = len(table) - 1
    for lane, home in enumerate(lanes[:count, Lane.HASH].tolist()):
        place = home & mask
        while table[place]:
            place = (place + 1) & mask
        table[place] = lane + 1


def _lane_of(topic: bytes, queue_id: int, known: tuple[Ints, Bytes, Int32s]) -> tuple[int | None, int]:
    """The lane of a topic and queue number, and the place in the table where it is or would be."""
    lanes, names, table = known
    home, mask = _home(topic, queue_id), len(table) - 1
    place = home & mask
    while table[place]:
        lane = int(table[place]) - 1
        number, name, length, hashed = lanes[lane].tolist()
        same = (hashed, number, length) == (home, queue_id, len(topic))
        if same and names[name : name + length].tobytes() == topic:
            return lane, place
        place = (place + 1) & mask
    return None, place


def _home(topic: bytes, queue_id: int) -> int:
    return hash((topic, queue_id)) & 0x7FFFFFFFFFFFFFFF


def place(
    buf: Bytes,
    origin: int,
    rows: Ints,
    start: int,
    segment_base: int,
    known: tuple[Ints, Bytes, Int32s],
    counts: Ints,
    columns: Ints,
) -> int:
    """See `kernels.dispatch.place`."""
    import numpy as np

    data = memoryview(buf)  # type: ignore[arg-type]
    lanes, names, table = known
    numbers: dict[tuple[bytes, int], int] = {}
    for r in range(start, len(rows)):
        row = rows[r].tolist()
        unwanted = transaction_of(row[Field.SYS_FLAG]) in ("prepared", "rollback")
        if unwanted or row[Field.ISSUES] & Issue.TOPIC_UTF8:
            continue
        at = row[Field.TOPIC_POSITION] - origin
        topic = bytes(data[at : at + row[Field.TOPIC_LENGTH]])
        key, free = (topic, row[Field.QUEUE_ID]), 0
        lane = numbers.get(key)
        if lane is None:
            lane, free = _lane_of(*key, known)
        full = counts[0] == len(lanes) or counts[0] * 2 >= len(table) or counts[1] + len(topic) > len(names)
        if counts[2] == columns.shape[1] or (lane is None and full):
            return r
        if lane is None:
            lane = int(counts[0])
            table[free] = lane + 1
            lanes[lane, [Lane.QUEUE_ID, Lane.NAME, Lane.NAME_LENGTH, Lane.HASH]] = (
                row[Field.QUEUE_ID],
                counts[1],
                len(topic),
                _home(*key),
            )
            names[counts[1] : counts[1] + len(topic)] = np.frombuffer(topic, np.uint8)
            counts[:2] += 1, len(topic)
        numbers[key] = lane
        at, length = row[Field.TAGS_POSITION] - origin, row[Field.TAGS_LENGTH]
        tags = java_utf8_decode(bytes(data[at : at + length]))[0] if length > 0 else None
        columns[:, counts[2]] = (
            lane,
            row[Field.QUEUE_OFFSET],
            segment_base + row[Field.POSITION],
            row[Field.STORE_SIZE],
            tags_hash(tags),
            r,
            row[Field.STORE_TIMESTAMP],
        )
        counts[2] += 1
    return len(rows)


def by_lane(columns: Ints, count: int, starts: Ints, order: Ints) -> None:
    """See `kernels.dispatch.by_lane`."""
    import numpy as np

    lanes = columns[Column.LANE, :count]
    order[:count] = np.argsort(lanes, kind="stable")
    starts[0] = 0
    starts[1:] = np.cumsum(np.bincount(lanes, minlength=len(starts) - 1))


def agree_units(units: Bytes, first_slot: int, columns: Ints, chosen: Ints, right: Bools) -> tuple[int, int]:
    """See `kernels.dispatch.agree_units`."""
    held = units[: units.size // UNIT.itemsize * UNIT.itemsize].view(UNIT)
    count, highest = 0, -1
    for i, k in enumerate(chosen.tolist()):
        slot, offset, size, code = columns[Column.SLOT : Column.OWNER, k].tolist()
        if not first_slot <= slot < first_slot + len(held):
            continue
        unit = held[slot - first_slot]
        if (unit["physical_offset"], unit["size"], unit["tags_code"]) == (offset, size, code):
            right[i] = True
            count += 1
            highest = max(highest, offset)
    return count, highest


def ascending_units(units: Bytes, highest: int) -> int:
    """See `kernels.dispatch.ascending_units`."""
    import numpy as np

    held = units[: units.size // UNIT.itemsize * UNIT.itemsize].view(UNIT)
    offsets = np.concatenate(([highest], held["physical_offset"].astype(np.int64)))
    sound = bool((unit_states(held, None) == OK).all()) and bool((offsets[1:] > offsets[:-1]).all())
    return int(offsets[-1]) if sound else -1
