"""The plain-Python twin of `kernels.dispatch`: same functions, same arguments, no compiler."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from formats.commitlog import transaction_of
from formats.java import java_utf8_decode
from formats.tags_code import tags_hash
from rmqtool.scan.fields import ODD, CrcState, DispatchColumn, Field, Issue, QueueKeyColumn, Stretch
from rmqtool.scan.units import OK, UNIT, unit_states

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]
    Bools = npt.NDArray[np.bool_]


def rehash(partitions: Ints, count: int, table: Int32s) -> None:
    """See `kernels.dispatch.rehash`."""
    mask = len(table) - 1
    for partition, home in enumerate(partitions[:count, QueueKeyColumn.HASH].tolist()):
        place = home & mask
        while table[place]:
            place = (place + 1) & mask
        table[place] = partition + 1


def _partition_of(topic: bytes, queue_id: int, known: tuple[Ints, Bytes, Int32s]) -> tuple[int | None, int]:
    """The partition of a topic and queue number, and the place in the table where it is or would be."""
    partitions, names, table = known
    home, mask = _home(topic, queue_id), len(table) - 1
    place = home & mask
    while table[place]:
        partition = int(table[place]) - 1
        number, name, length, hashed = partitions[partition].tolist()
        same = (hashed, number, length) == (home, queue_id, len(topic))
        if same and names[name : name + length].tobytes() == topic:
            return partition, place
        place = (place + 1) & mask
    return None, place


def _home(topic: bytes, queue_id: int) -> int:
    return hash((topic, queue_id)) & 0x7FFFFFFFFFFFFFFF


def _has_no_unit(row: list[int]) -> bool:
    unwanted = transaction_of(row[Field.SYS_FLAG]) in ("prepared", "rollback")
    return unwanted or bool(row[Field.ISSUES] & Issue.TOPIC_UTF8)


def _numbered(
    data: memoryview,
    origin: int,
    row: list[int],
    known: tuple[Ints, Bytes, Int32s],
    counts: Ints,
    numbers: dict[tuple[bytes, int], int],
) -> int | None:
    """The partition of a record, a new one if there is room for it. numbers: those that this run has met."""
    import numpy as np

    partitions, names, table = known
    at = row[Field.TOPIC_POSITION] - origin
    topic = bytes(data[at : at + row[Field.TOPIC_LENGTH]])
    key = topic, row[Field.QUEUE_ID]
    if key in numbers:
        return numbers[key]
    partition, free = _partition_of(*key, known)
    if partition is None:
        if counts[0] == len(partitions) or counts[0] * 2 >= len(table) or counts[1] + len(topic) > len(names):
            return None
        partition = int(counts[0])
        table[free] = partition + 1
        partitions[
            partition,
            [QueueKeyColumn.QUEUE_ID, QueueKeyColumn.NAME, QueueKeyColumn.NAME_LENGTH, QueueKeyColumn.HASH],
        ] = (
            row[Field.QUEUE_ID],
            counts[1],
            len(topic),
            _home(*key),
        )
        names[counts[1] : counts[1] + len(topic)] = np.frombuffer(topic, np.uint8)
        counts[:2] += 1, len(topic)
    numbers[key] = partition
    return partition


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
    data = memoryview(buf)  # type: ignore[arg-type]
    numbers: dict[tuple[bytes, int], int] = {}
    for r in range(start, len(rows)):
        row = rows[r].tolist()
        if _has_no_unit(row):
            continue
        partition = None
        if counts[2] < columns.shape[1]:
            partition = _numbered(data, origin, row, known, counts, numbers)
        if partition is None:
            return r
        at, length = row[Field.TAGS_POSITION] - origin, row[Field.TAGS_LENGTH]
        tags = java_utf8_decode(bytes(data[at : at + length]))[0] if length > 0 else None
        columns[:, counts[2]] = (
            partition,
            row[Field.QUEUE_OFFSET],
            segment_base + row[Field.POSITION],
            row[Field.STORE_SIZE],
            tags_hash(tags),
            r,
            row[Field.STORE_TIMESTAMP],
        )
        counts[2] += 1
    return len(rows)


def stretch(
    buf: Bytes,
    origin: int,
    rows: Ints,
    start: int,
    segment_base: int,
    known: tuple[Ints, Bytes, Int32s, Ints],
    counts: Ints,
    columns: Ints,
) -> int:
    """See `kernels.dispatch.stretch`."""
    data = memoryview(buf)  # type: ignore[arg-type]
    numbers: dict[tuple[bytes, int], int] = {}
    newest = known[3]
    for r in range(start, len(rows)):
        row = rows[r].tolist()
        if _has_no_unit(row):
            continue
        partition = None
        if counts[2] < columns.shape[1]:
            partition = _numbered(data, origin, row, known[:3], counts, numbers)
        if partition is None:
            return r
        slot, offset, at = row[Field.QUEUE_OFFSET], segment_base + row[Field.POSITION], int(newest[partition])
        begun = at < counts[2] and columns[Stretch.PARTITION, at] == partition
        if not begun or slot != int(columns[Stretch.LAST_SLOT, at]) + 1:
            at = newest[partition] = int(counts[2])
            counts[2] += 1
            columns[: Stretch.LAST_SLOT, at] = partition, slot, offset
        columns[Stretch.LAST_SLOT :, at] = slot, offset
    return len(rows)


def outline(rows: Ints, most: int) -> tuple[int, int]:
    """See `kernels.dispatch.outline`."""
    odd = 0
    times = rows[:, Field.STORE_TIMESTAMP].tolist()
    even = all(time > 0 for time in times) and all(abs(a - b) <= most for a, b in pairwise(times))
    for issues, state in rows[:, [Field.ISSUES, Field.CRC_STATE]].tolist():
        odd += bool(issues & ODD) or state == CrcState.BAD
    return odd, int(even)


def by_partition(columns: Ints, count: int, starts: Ints, order: Ints) -> None:
    """See `kernels.dispatch.by_partition`."""
    import numpy as np

    partitions = columns[DispatchColumn.PARTITION, :count]
    order[:count] = np.argsort(partitions, kind="stable")
    starts[0] = 0
    starts[1:] = np.cumsum(np.bincount(partitions, minlength=len(starts) - 1))


def agree_units(units: Bytes, first_slot: int, columns: Ints, chosen: Ints, right: Bools) -> tuple[int, int]:
    """See `kernels.dispatch.agree_units`."""
    held = units[: units.size // UNIT.itemsize * UNIT.itemsize].view(UNIT)
    count, highest = 0, -1
    for i, k in enumerate(chosen.tolist()):
        slot, offset, size, code = columns[DispatchColumn.SLOT : DispatchColumn.OWNER, k].tolist()
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
