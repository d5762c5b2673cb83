"""What properties say about queues: other queues that a record feeds, and how many messages are in it.

`ConsumeQueue#multiDispatchLmqQueue`, `CommitLog#setBatchSizeIfNeeded`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, cast

import numpy as np

from formats.java import java_parse_int, java_split, java_utf8_decode
from formats.properties import INNER_BASE, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, INNER_NUM
from rmqtool.scan.fields import Field, Issue

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]

LMQ_PREFIX = "%LMQ%"
_EXEMPT = ("%RETRY%", "rmq_sys_")
_SCHEDULE = "SCHEDULE_TOPIC_XXXX"


class MultiDispatch(StrEnum):
    """Which records feed more queues than their own with `enableMultiDispatch`."""

    NONE = "none"
    ALL_TOPICS = "all_topics"
    """`ConsumeQueue#checkMultiDispatchQueue`"""
    USER_TOPICS = "user_topics"
    """no retry, system or schedule topics, no names with a path separator (`MultiDispatchUtils`)"""


@dataclass(frozen=True, slots=True)
class ExtraRows:
    """Further units: index of the record in its run, its queue's name (as index into `names`), id, slot.

    unlisted: records whose two lists differ in length, which get none. stuck: entries without a number in
    the list of offsets, which get none; a broker's dispatching throws there, at every try.
    """

    records: Ints
    names: list[str]
    name_of: Ints
    queue_ids: Ints
    slots: Ints
    unlisted: int = 0
    stuck: int = 0


def extra_rows(
    run: Records,
    topics: Ints,
    topic_names: list[str],
    kernels: Kernels,
    rule: MultiDispatch,
    *,
    lmq: bool,
) -> ExtraRows:
    """Units of the named queues, in the order of the records.

    topics: of each record, as index into `topic_names`. lmq: `enableLmq`, by which a queue with LMQ's prefix
    has the number 0 and not that of its record.
    """
    if rule is MultiDispatch.NONE:
        return _rows([], [], [], [])
    exempt = np.array([is_exempt(name, rule) for name in topic_names], np.bool_)
    records: list[int] = []
    names: list[str] = []
    ids: list[int] = []
    slots: list[int] = []
    unlisted = stuck = 0
    lists = _both(run, ~exempt[topics], INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, kernels)
    for index, queues, offsets in lists:
        places = further_places(queues, offsets, int(run.rows[index, Field.QUEUE_ID]), lmq=lmq)
        if places is None:
            unlisted += 1
            continue
        for name, number, slot in places:
            if rule is MultiDispatch.USER_TOPICS and "/" in name:
                continue
            if slot is None:
                stuck += 1
                continue
            records.append(index)
            names.append(name)
            ids.append(number)
            slots.append(slot)
    return _rows(records, names, ids, slots, unlisted, stuck)


def further_places(
    queues: str, offsets: str, queue_id: int, *, lmq: bool
) -> list[tuple[str, int, int | None]] | None:
    """Name, queue id and slot, in each further queue, of a record with these two lists and this queue id.

    The slot is None where the list has no number. None for lists that differ in length: they feed no queue.
    """
    if not queues.strip() or not offsets.strip():
        return []
    names, numbers = java_split(queues, ","), java_split(offsets, ",")
    if len(names) != len(numbers):
        return None
    return [
        (name, queue_id if takes_number(name, lmq=lmq) else 0, java_parse_int(number, 64))
        for name, number in zip(names, numbers, strict=True)
    ]


def slots_in(key: tuple[str, int], queues: str | None, offsets: str | None, queue_id: int) -> list[int]:
    """Slots in the queue of this name and number of a record with these lists, with `enableLmq` or without.

    For those who read a queue and do not know by which setting it was written.
    """
    if queues is None or offsets is None:
        return []
    places = {
        place: None
        for lmq in (True, False)
        for place in further_places(queues, offsets, queue_id, lmq=lmq) or ()
    }
    return [slot for one, of, slot in places if (one, of) == key and slot is not None]


def unlisted(run: Records, name: str, kernels: Kernels) -> list[int]:
    """Positions of records that name a queue in lists that differ in length, so that they feed none."""
    lists = _both(
        run, np.ones(len(run.rows), np.bool_), INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, kernels
    )
    return [
        int(run.rows[index, Field.POSITION])
        for index, queues, offsets in lists
        if further_places(queues, offsets, 0, lmq=True) is None and name in java_split(queues, ",")
    ]


def uncounted(run: Records, kernels: Kernels, *, lmq: bool) -> Iterator[tuple[int, str, int, int]]:
    """Index, and name, queue id and slot in a further queue, of records whose lists differ in length.

    They feed none, and 5.x has counted them in each (`MultiDispatchUtils`): the offset of a queue that is not
    a light one is empty, and Java drops it where it is the last.
    """
    every = np.ones(len(run.rows), np.bool_)
    for index, queues, offsets in _both(run, every, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, kernels):
        queue_id = int(run.rows[index, Field.QUEUE_ID])
        if further_places(queues, offsets, queue_id, lmq=lmq) is not None:
            continue
        for name, number in zip(java_split(queues, ","), java_split(offsets, ","), strict=False):
            if (slot := java_parse_int(number, 64)) is not None:
                yield index, name, queue_id if takes_number(name, lmq=lmq) else 0, slot


def takes_number(name: str, *, lmq: bool) -> bool:
    """Whether a further queue has the queue id of its records and not 0. lmq: `enableLmq`."""
    return not (lmq and name.startswith(LMQ_PREFIX))


def is_exempt(topic: str, rule: MultiDispatch) -> bool:
    """Whether records of a topic feed no further queues, whatever they name."""
    return rule is MultiDispatch.USER_TOPICS and (topic.startswith(_EXEMPT) or topic == _SCHEDULE)


def inner_batches(
    run: Records, wanted: npt.NDArray[np.bool_], bases: Ints, counts: Ints, kernels: Kernels
) -> tuple[Ints, Ints]:
    """INNER_BASE and INNER_NUM of the wanted records that have both; `bases` and `counts` for the others."""
    bases = bases.copy()
    for index, base, number in _both(run, wanted, INNER_BASE, INNER_NUM, kernels):
        # recovery has refused records whose numbers are none
        bases[index], counts[index] = java_parse_int(base, 64) or 0, java_parse_int(number, 16) or 0
    return bases, counts


def _both(
    run: Records, wanted: npt.NDArray[np.bool_], one: str, other: str, kernels: Kernels
) -> list[tuple[int, str, str]]:
    """(index, value, value) of the wanted records that have both properties."""
    import pyarrow.compute as pc

    from rmqtool.scan.maps import property_maps

    which = np.flatnonzero(wanted)
    rows = run.rows[which]
    maps = property_maps(
        kernels,
        run.window,
        np.ascontiguousarray(rows[:, Field.PROPERTIES_POSITION]) - run.origin,
        np.ascontiguousarray(rows[:, Field.PROPERTIES_LENGTH]),
        (rows[:, Field.ISSUES] & int(Issue.PROPERTIES_UTF8)) != 0,
    ).column
    first, second = (pc.map_lookup(maps, name, "last") for name in (one, other))
    both = np.flatnonzero(pc.and_(first.is_valid(), second.is_valid()).to_numpy(zero_copy_only=False))
    places = which[both].tolist()
    return list(zip(places, _strings(first.take(both)), _strings(second.take(both)), strict=True))


def _strings(values: pa.StringArray) -> list[str]:
    """As Java decodes them: bytes of a file that changed after the scan may not be UTF-8."""
    import pyarrow as pa

    try:
        return cast("list[str]", values.to_pylist())
    except UnicodeDecodeError:
        return [java_utf8_decode(raw)[0] for raw in values.cast(pa.binary()).to_pylist()]


def _rows(
    records: list[int],
    names: list[str],
    ids: list[int],
    slots: list[int],
    unlisted: int = 0,
    stuck: int = 0,
) -> ExtraRows:
    distinct = sorted(set(names))
    places = {name: place for place, name in enumerate(distinct)}
    return ExtraRows(
        np.array(records, np.int64),
        distinct,
        np.array([places[name] for name in names], np.int64),
        np.array(ids, np.int64),
        np.array(slots, np.int64),
        unlisted,
        stuck,
    )
