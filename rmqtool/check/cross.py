"""Records against units, both ways: every record at its slot, every unit with its record.

Records are compared in columns while the log is read: the unit at a record's queue offset must hold its
offset, size and tags code. Only queue files with units that no record claimed are looked at unit by unit
afterwards, so memory depends on the number of files and on what is wrong, not on the number of messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.consumequeue import EXT_MAX_ADDRESS
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.check.findings import Severity, finding
from rmqtool.scan import text
from rmqtool.scan.fields import Field, Issue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.scan.events import Records
    from rmqtool.scan.files import FileReader

    Ints = npt.NDArray[np.int64]

CHUNK_ROWS = 1 << 18
"""records that are compared together: enough that the cost of a queue is small, 12 MiB of columns"""

_PREPARED, _ROLLBACK = 1, 3


@dataclass
class Unplaced:
    """Records of one topic and queue that were not found at their slot, in log order."""

    offsets: list[Ints] = field(default_factory=list)
    slots: list[Ints] = field(default_factory=list)
    codes: list[Ints] = field(default_factory=list)

    def add(self, offsets: Ints, slots: Ints) -> None:
        """Takes more of them."""
        self.offsets.append(offsets)
        self.slots.append(slots)

    @property
    def all(self) -> tuple[Ints, Ints]:
        """Physical offsets and queue offsets."""
        return np.concatenate(self.offsets), np.concatenate(self.slots)


class CrossCheck:
    """Fed with the record runs of a log in physical order; `finish` names the records without a unit."""

    def __init__(
        self, queues: Mapping[tuple[str, int], QueueUnits], reader: FileReader, kernels: ModuleType
    ) -> None:
        self.queues = queues
        self._reader = reader
        self._kernels = kernels
        self._topics: dict[str, int] = {}
        self._parts: list[tuple[Ints, Ints, Ints, Ints, Ints, Ints]] = []
        self._waiting = 0
        self.unplaced: dict[tuple[str, int], Unplaced] = {}
        self.records: dict[tuple[str, int], int] = {}
        """messages of each topic and queue that want a unit"""
        self.dispatched = -1
        """highest offset of a record that has its unit: dispatching went at least so far"""

    def take(self, run: Records, segment_base: int) -> Iterator[Finding]:
        """A run of records, made with `Check.TEXT`."""
        rows = run.rows
        kind = (rows[:, Field.SYS_FLAG] >> 2) & 3
        wants = (kind != _PREPARED) & (kind != _ROLLBACK)
        wants &= (rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8)) == 0
        chosen = rows if wants.all() else rows[wants]
        if not len(chosen):
            return
        topics = self._topic_codes(run, chosen)
        codes = self._tags_codes(run, chosen, topics)
        self._parts.append(
            (
                topics,
                chosen[:, Field.QUEUE_ID].copy(),
                chosen[:, Field.QUEUE_OFFSET].copy(),
                chosen[:, Field.POSITION] + segment_base,
                chosen[:, Field.STORE_SIZE].copy(),
                codes,
            )
        )
        self._waiting += len(chosen)
        if self._waiting >= CHUNK_ROWS:
            yield from self._compare()

    def _topic_codes(self, run: Records, rows: Ints) -> Ints:
        """A small number for each topic, the same all through the log."""
        places = np.ascontiguousarray(rows[:, Field.TOPIC_POSITION]) - run.origin
        lengths = np.ascontiguousarray(rows[:, Field.TOPIC_LENGTH])
        present = np.ones(len(rows), bool)
        array = text.strings(self._kernels, run.window, places, lengths, present, ~present)
        encoded = array.dictionary_encode()
        known = [self._topics.setdefault(name, len(self._topics)) for name in encoded.dictionary.to_pylist()]
        codes: Ints = np.array(known, np.int64)[encoded.indices.to_numpy()]
        return codes

    def _tags_codes(self, run: Records, rows: Ints, topics: Ints) -> Ints:
        """What dispatch would write (`CommitLog#checkMessageAndReturnSize`)."""
        lengths = np.ascontiguousarray(rows[:, Field.TAGS_LENGTH])
        places = np.ascontiguousarray(rows[:, Field.TAGS_POSITION]) - run.origin
        present = lengths >= 0
        tags = text.strings(
            self._kernels,
            run.window,
            np.where(present, places, 0),
            lengths,
            present,
            (rows[:, Field.ISSUES] & int(Issue.PROPERTIES_UTF8)) != 0,
        )
        encoded = tags.dictionary_encode()
        from formats.tags_code import tags_hash

        hashes = np.array([tags_hash(tag) for tag in encoded.dictionary.to_pylist()] + [0], np.int64)
        indices = encoded.indices.fill_null(len(hashes) - 1).to_numpy()
        codes: Ints = hashes[indices]
        schedule = self._topics.get(SCHEDULE_TOPIC)
        if schedule is not None:
            for index in np.flatnonzero(topics == schedule):
                codes[index] = _scheduled(run, rows[index])
        return codes

    def _compare(self) -> Iterator[Finding]:
        columns = [np.concatenate(column) for column in zip(*self._parts, strict=True)]
        self._parts, self._waiting = [], 0
        topics, queue_ids, slots, offsets, sizes, codes = columns
        order = np.lexsort((queue_ids, topics))
        topics, queue_ids = topics[order], queue_ids[order]
        borders = np.flatnonzero((np.diff(topics) != 0) | (np.diff(queue_ids) != 0)) + 1
        starts = np.concatenate(([0], borders, [len(order)]))
        names = list(self._topics)
        for start, end in pairwise(starts.tolist()):
            part = order[start:end]
            key = names[topics[start]], int(queue_ids[start])
            yield from self._compare_queue(key, slots[part], offsets[part], sizes[part], codes[part])

    def _compare_queue(
        self, key: tuple[str, int], slots: Ints, offsets: Ints, sizes: Ints, codes: Ints
    ) -> Iterator[Finding]:
        self.records[key] = self.records.get(key, 0) + len(slots)
        queue = self.queues.get(key)
        if queue is None or not queue.files:
            self.unplaced.setdefault(key, Unplaced()).add(offsets, slots)
            return
        unit_offsets, unit_sizes, unit_codes = queue.gather(slots)
        right = unit_offsets == offsets
        queue.count_matched(slots[right])
        self.dispatched = max(self.dispatched, int(offsets[right].max(initial=-1)))
        if not right.all():
            self.unplaced.setdefault(key, Unplaced()).add(offsets[~right], slots[~right])
        for index in np.flatnonzero(right & (unit_sizes != sizes)):
            yield _unit_finding(
                "CQ-SIZE",
                queue,
                int(slots[index]),
                int(offsets[index]),
                int(sizes[index]),
                int(unit_sizes[index]),
            )
        differs = right & (unit_codes != codes)
        extended = differs & (unit_codes <= EXT_MAX_ADDRESS)
        if extended.any():
            lookup = self._reader.extension(*key)
            for index in np.flatnonzero(extended):
                found = lookup.tags_code(int(unit_codes[index])) if lookup else None
                if found is None:
                    yield _unit_finding(
                        "CQ-EXT", queue, int(slots[index]), int(offsets[index]), None, int(unit_codes[index])
                    )
                differs[index] = found is not None and found != codes[index]
                if found is not None:
                    unit_codes[index] = found
        for index in np.flatnonzero(differs):
            yield _unit_finding(
                "CQ-TAGS",
                queue,
                int(slots[index]),
                int(offsets[index]),
                int(codes[index]),
                int(unit_codes[index]),
            )

    def close(self) -> Iterator[Finding]:
        """Compares what is left."""
        if self._parts:
            yield from self._compare()


def _scheduled(run: Records, row: Ints) -> int:
    from formats.errors import FormatError
    from formats.properties import decode
    from formats.tags_code import tags_code_of

    start = int(row[Field.PROPERTIES_POSITION]) - run.origin
    raw = run.window[start : start + max(int(row[Field.PROPERTIES_LENGTH]), 0)].tobytes()
    try:
        return tags_code_of(SCHEDULE_TOPIC, decode(raw), int(row[Field.STORE_TIMESTAMP]))
    except FormatError:
        return 0


def _unit_finding(
    code: str, queue: QueueUnits, slot: int, offset: int, expected: int | None, found: int
) -> Finding:
    part = {"CQ-SIZE": "size", "CQ-TAGS": "tags_code", "CQ-EXT": "tags_code"}[code]
    path, position = place_of(queue, slot)
    return finding(
        code,
        path=path,
        position=position,
        length=queue.dtype.itemsize,
        physical_offset=offset,
        part=part,
        expected=expected,
        found=found,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=slot,
    )


def place_of(queue: QueueUnits, slot: int) -> tuple[str, int]:
    """File and position of a slot."""
    for number in reversed(range(len(queue.files))):
        if queue.first_slot(number) <= slot:
            return queue.files[number].shown, (slot - queue.first_slot(number)) * queue.dtype.itemsize
    return queue.path, 0


@dataclass(frozen=True)
class Circumstances:
    """What decides whether a lag is damage. unclean: `abort` lies there, or a broker holds the store."""

    unclean: bool
    topics: frozenset[str] = frozenset()
    """topics that the topic table knows"""
    batches: Mapping[tuple[str, int], QueueUnits] = field(default_factory=dict)
    """queues of batch units: their records are looked for by offset, not by slot"""


def ghosts(
    check: CrossCheck, queues: Mapping[tuple[str, int], QueueUnits], around: Circumstances
) -> Iterator[Finding]:
    """Records without a unit at their slot, as runs of neighbouring queue offsets."""
    with_queue = {topic for topic, _ in queues} | around.topics
    for key, unplaced in sorted(check.unplaced.items()):
        offsets, slots = unplaced.all
        topic, queue_id = key
        facts: dict[str, Any] = {"topic": topic, "queue_id": queue_id}
        batch = around.batches.get(key)
        if batch is not None:
            offsets, slots = _without_unit(batch, offsets, slots)
            lagging = slots >= batch.ends()[1]
            yield from _not_dispatched(
                "BCQ-BEHIND", batch.path, offsets[lagging], slots[lagging], facts, check, around
            )
            if not lagging.all():
                yield _batch_ghost(batch, offsets[~lagging], slots[~lagging])
            continue
        queue = queues.get(key)
        if queue is None or not queue.files:
            code = "X-GHOST" if topic in with_queue else "X-NO-QUEUE"
            where = f"consumequeue/{topic}/{queue_id}"
            yield from _not_dispatched(code, where, offsets, slots, facts, check, around)
            continue
        offsets, slots = _without_unit(queue, offsets, slots)
        lagging = slots >= queue.next_slot
        yield from _not_dispatched(
            "CQ-BEHIND", queue.path, offsets[lagging], slots[lagging], facts, check, around
        )
        yield from _ghost_runs(queue, offsets[~lagging], slots[~lagging], facts)


def _not_dispatched(
    code: str,
    path: str,
    offsets: Ints,
    slots: Ints,
    facts: dict[str, Any],
    check: CrossCheck,
    around: Circumstances,
) -> Iterator[Finding]:
    """One finding for records behind the end of their queue.

    Dispatching goes in log order: after a crash it may be behind, but not behind in one queue alone.
    """
    if not len(offsets):
        return
    merely_behind = around.unclean and int(offsets.min()) > check.dispatched
    yield finding(
        code,
        severity=Severity.NOTE if merely_behind else None,
        path=path,
        physical_offset=int(offsets[0]),
        queue_offset=int(slots[0]),
        found=len(offsets),
        **facts,
    )


def _without_unit(queue: QueueUnits, offsets: Ints, slots: Ints) -> tuple[Ints, Ints]:
    """Those records that no unit of the queue points to, at any slot."""
    missing = np.ones(len(offsets), bool)
    for number in range(len(queue.files)):
        missing &= ~np.isin(offsets, queue.units(number)["physical_offset"].astype(np.int64))
    return offsets[missing], slots[missing]


def _batch_ghost(queue: QueueUnits, offsets: Ints, slots: Ints) -> Finding:
    """One finding for all: a record has no place of its own in a queue of batches."""
    return finding(
        "X-GHOST",
        path=queue.path,
        physical_offset=int(offsets[0]),
        queue_offset=int(slots[0]),
        found=len(offsets),
        topic=queue.topic,
        queue_id=queue.queue_id,
    )


def _ghost_runs(queue: QueueUnits, offsets: Ints, slots: Ints, facts: dict[str, Any]) -> Iterator[Finding]:
    if not len(slots):
        return
    breaks = np.flatnonzero(np.diff(slots) != 1) + 1
    for part in np.split(np.arange(len(slots)), breaks):
        path, position = place_of(queue, int(slots[part[0]]))
        yield finding(
            "X-GHOST",
            path=path,
            position=position,
            length=len(part) * queue.dtype.itemsize,
            physical_offset=int(offsets[part[0]]),
            queue_offset=int(slots[part[0]]),
            found=len(part),
            **facts,
        )
