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
from formats.system_topics import RETRY_PREFIX, SYSTEM_TOPIC_PREFIX
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.scan.fields import Field, Issue

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]

LMQ_PREFIX = "%LMQ%"
_EXEMPT = (RETRY_PREFIX, SYSTEM_TOPIC_PREFIX)
_PLAIN = "^[0-9]{1,18}(,[0-9]{1,18})*$"
"""lists of offsets that nothing is odd about"""


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
    found = _Units(run.rows[:, Field.QUEUE_ID], rule, lmq=lmq)
    if rule is not MultiDispatch.NONE:
        exempt = np.array([is_exempt(name, rule) for name in topic_names], np.bool_)
        found.add(*_both(run, ~exempt[topics], INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, kernels))
    return found.rows()


def listed_units(
    records: Ints,
    queues: pa.StringArray,
    offsets: pa.StringArray,
    queue_ids: Ints,
    rule: MultiDispatch,
    *,
    lmq: bool,
) -> ExtraRows:
    """As `extra_rows`, of records, in ascending order, with these lists. queue_ids: of all records."""
    found = _Units(queue_ids, rule, lmq=lmq)
    found.add(records, queues, offsets)
    return found.rows()


class _Units:
    """Collects what `extra_rows` answers: lists of plain numbers in columns, others one by one."""

    def __init__(self, queue_ids: Ints, rule: MultiDispatch, *, lmq: bool) -> None:
        self._queue_ids, self._rule, self._lmq = queue_ids, rule, lmq
        self._codes: dict[str, int] = {}
        """of names of queues"""
        self._parts: list[tuple[Ints, Ints, Ints, Ints]] = []
        """records, codes of names, queue ids, slots"""
        self._unlisted = self._stuck = 0

    def add(self, records: Ints, queues: pa.StringArray, offsets: pa.StringArray) -> None:
        """Records with their two lists."""
        import pyarrow as pa
        import pyarrow.compute as pc

        raw = offsets.cast(pa.binary())
        plain = pc.match_substring_regex(raw, _PLAIN).to_numpy(zero_copy_only=False)
        places = np.flatnonzero(plain)
        if len(places):
            self._add_plain(records[places], queues.take(places), pc.split_pattern(raw.take(places), ","))
        odd = np.flatnonzero(~plain)
        if len(odd):
            texts = zip(_strings(queues.take(odd)), _strings(offsets.take(odd)), strict=True)
            for record, (names, numbers) in zip(records[odd].tolist(), texts, strict=True):
                self._add_odd(record, names, numbers)

    def _add_plain(self, records: Ints, queues: pa.StringArray, numbers: pa.ListArray) -> None:
        """Records whose offsets are numbers alone; names are looked at once for each list of queues."""
        import pyarrow as pa

        encoded = queues.dictionary_encode()
        of_record = encoded.indices.to_numpy()
        lists = [java_split(one, ",") if one.strip() else None for one in _strings(encoded.dictionary)]
        lengths = np.array([-1 if one is None else len(one) for one in lists], np.int64)
        names = [name for one in lists for name in one or ()]
        codes = np.array([self._codes.setdefault(name, len(self._codes)) for name in names], np.int64)
        numbered = np.array([takes_number(name, lmq=self._lmq) for name in names], np.bool_)
        wanted = np.array([self._wants(name) for name in names], np.bool_)
        given = np.diff(numbers.offsets.to_numpy())
        listed = lengths[of_record] == given
        self._unlisted += int((~listed & (lengths[of_record] >= 0)).sum())
        chosen, counts = of_record[listed], given[listed].astype(np.int64)
        ends = np.cumsum(counts)
        starts = (np.cumsum(np.maximum(lengths, 0)) - np.maximum(lengths, 0))[chosen]
        at = np.repeat(starts - (ends - counts), counts) + np.arange(counts.sum())
        slots = numbers.filter(pa.array(listed)).flatten().cast(pa.string()).cast(pa.int64()).to_numpy()
        owners = np.repeat(records[listed], counts)
        queue_ids = np.where(numbered[at], self._queue_ids[owners], 0)
        kept = wanted[at]
        self._parts.append((owners[kept], codes[at][kept], queue_ids[kept], slots[kept]))

    def _add_odd(self, record: int, queues: str, offsets: str) -> None:
        places = further_places(queues, offsets, int(self._queue_ids[record]), lmq=self._lmq)
        if places is None:
            self._unlisted += 1
            return
        wanted = [one for one in places if self._wants(one[0])]
        units = [
            (record, self._codes.setdefault(name, len(self._codes)), number, slot)
            for name, number, slot in wanted
            if slot is not None
        ]
        self._stuck += len(wanted) - len(units)
        records, codes, queue_ids, slots = np.array(units, np.int64).reshape(-1, 4).T
        self._parts.append((records, codes, queue_ids, slots))

    def _wants(self, name: str) -> bool:
        return self._rule is not MultiDispatch.USER_TOPICS or "/" not in name

    def rows(self) -> ExtraRows:
        """All of them, in the order of the records."""
        nothing = np.empty(0, np.int64)
        records, codes, queue_ids, slots = (
            np.concatenate([nothing, *(part[column] for part in self._parts)]) for column in range(4)
        )
        order = np.argsort(records, kind="stable")
        by_code = list(self._codes)
        named = sorted(np.unique(codes).tolist(), key=by_code.__getitem__)
        ranks = np.zeros(len(by_code), np.int64)
        ranks[named] = np.arange(len(named))
        return ExtraRows(
            records[order],
            [by_code[code] for code in named],
            ranks[codes[order]],
            queue_ids[order],
            slots[order],
            self._unlisted,
            self._stuck,
        )


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
    return [
        int(run.rows[index, Field.POSITION])
        for index, queues, _ in _uneven(run, kernels)
        if name in java_split(queues, ",")
    ]


def uncounted(run: Records, kernels: Kernels, *, lmq: bool) -> Iterator[tuple[int, str, int, int]]:
    """Index, and name, queue id and slot in a further queue, of records whose lists differ in length.

    They feed none, and 5.x has counted them in each (`MultiDispatchUtils`): the offset of a queue that is not
    a light one is empty, and Java drops it where it is the last.
    """
    for index, queues, offsets in _uneven(run, kernels):
        queue_id = int(run.rows[index, Field.QUEUE_ID])
        for name, number in zip(java_split(queues, ","), java_split(offsets, ","), strict=False):
            if (slot := java_parse_int(number, 64)) is not None:
                yield index, name, queue_id if takes_number(name, lmq=lmq) else 0, slot


def _uneven(run: Records, kernels: Kernels) -> Iterator[tuple[int, str, str]]:
    """Records whose lists of queues and of offsets differ in length: index, and both."""
    import pyarrow as pa
    import pyarrow.compute as pc

    every = np.ones(len(run.rows), np.bool_)
    which, queues, offsets = _both(run, every, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, kernels)
    names, numbers = queues.cast(pa.binary()), offsets.cast(pa.binary())
    same = pc.equal(pc.count_substring(names, ","), pc.count_substring(numbers, ","))
    whole = pc.and_(pc.match_substring_regex(numbers, _PLAIN), pc.invert(pc.ends_with(names, ",")))
    odd = np.flatnonzero(~pc.and_(same, whole).to_numpy(zero_copy_only=False))
    texts = _strings(queues.take(odd)), _strings(offsets.take(odd))
    for index, one, other in zip(which[odd].tolist(), *texts, strict=True):
        if further_places(one, other, 0, lmq=True) is None:
            yield index, one, other


def takes_number(name: str, *, lmq: bool) -> bool:
    """Whether a further queue has the queue id of its records and not 0. lmq: `enableLmq`."""
    return not (lmq and name.startswith(LMQ_PREFIX))


def is_exempt(topic: str, rule: MultiDispatch) -> bool:
    """Whether records of a topic feed no further queues, whatever they name."""
    return rule is MultiDispatch.USER_TOPICS and (topic.startswith(_EXEMPT) or topic == SCHEDULE_TOPIC)


def inner_batches(
    run: Records, wanted: npt.NDArray[np.bool_], bases: Ints, counts: Ints, kernels: Kernels
) -> tuple[Ints, Ints]:
    """INNER_BASE and INNER_NUM of the wanted records that have both; `bases` and `counts` for the others."""
    bases = bases.copy()
    for index, base, number in _texts(run, wanted, INNER_BASE, INNER_NUM, kernels):
        # recovery has refused records whose numbers are none
        bases[index], counts[index] = java_parse_int(base, 64) or 0, java_parse_int(number, 16) or 0
    return bases, counts


def hold_batches(run: Records, wanted: npt.NDArray[np.bool_], kernels: Kernels) -> npt.NDArray[np.bool_]:
    """Which of the wanted records have both properties: a wrong bit of `sysFlag` alone makes no batch."""
    found = np.zeros(len(run.rows), np.bool_)
    found[_both(run, wanted, INNER_BASE, INNER_NUM, kernels)[0]] = True
    return found


def _both(
    run: Records, wanted: npt.NDArray[np.bool_], one: str, other: str, kernels: Kernels
) -> tuple[Ints, pa.StringArray, pa.StringArray]:
    """Indexes of the wanted records that have both properties, and the values of these."""
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
    return which[both], first.take(both), second.take(both)


def _texts(
    run: Records, wanted: npt.NDArray[np.bool_], one: str, other: str, kernels: Kernels
) -> Iterator[tuple[int, str, str]]:
    """As `_both`, one record after the other."""
    which, first, second = _both(run, wanted, one, other, kernels)
    return zip(which.tolist(), _strings(first), _strings(second), strict=True)


def _strings(values: pa.StringArray) -> list[str]:
    """As Java decodes them: bytes of a file that changed after the scan may not be UTF-8."""
    import pyarrow as pa

    try:
        return cast("list[str]", values.to_pylist())
    except UnicodeDecodeError:
        return [java_utf8_decode(raw)[0] for raw in values.cast(pa.binary()).to_pylist()]
