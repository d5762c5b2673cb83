"""Units that no record claimed: each is followed into the log, and what lies there is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.java import java_parse_int
from formats.properties import (
    INNER_BASE,
    INNER_MULTI_DISPATCH,
    INNER_MULTI_QUEUE_OFFSET,
    INNER_NUM,
    decode,
)
from formats.tags_code import tags_hash
from rmqtool.check.findings import finding
from rmqtool.errors import RmqtoolError
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.multi import slots_in
from rmqtool.scan.one import RecordReader
from rmqtool.scan.units import OK, unit_states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.check.findings import Finding
    from rmqtool.check.not_copied import NotCopied
    from rmqtool.check.queue_files import OpenFiles, QueueUnits
    from rmqtool.check.ranges import Ranges
    from rmqtool.store.segments import SegmentSet


@dataclass(frozen=True, slots=True)
class Found:
    """The record that begins at an offset."""

    path: str
    position: int
    topic: str
    queue_id: int
    queue_offset: int
    size: int
    transaction: int
    properties: dict[str, str]
    store_timestamp: int


class RecordsAt:
    """Single records by physical offset."""

    def __init__(self, segments: SegmentSet, files: OpenFiles) -> None:
        self._segments = segments
        self._files = files
        self._reader = RecordReader(Check.FRAME)

    def get(self, offset: int) -> Found | None:
        """The record that begins there; None when none does."""
        there = self._reader.at(self._segments, offset, lambda segment: self._files.get(segment.file))
        if there is None or there.row is None:
            return None
        row = there.row
        return Found(
            there.segment.file.display_path,
            there.position,
            there.text(Field.TOPIC_POSITION).decode("utf-8", "replace"),
            row[Field.QUEUE_ID],
            row[Field.QUEUE_OFFSET],
            row[Field.STORE_SIZE],
            row[Field.SYS_FLAG] >> 2 & 3,
            decode(there.text(Field.PROPERTIES_POSITION)),
            row[Field.STORE_TIMESTAMP],
        )


_IN_RUNS = ("-SHIFT", "-DANGLING", "-EXPIRED")


def queue_times(queue: QueueUnits, records: RecordsAt, not_copied: NotCopied) -> tuple[int, int] | None:
    """Store times (ms) of the first and the last message that a queue has a unit for and the log a record."""
    found: list[int] = []
    for numbers in (range(len(queue.files)), reversed(range(len(queue.files)))):
        time = next(
            (time for number in numbers if (time := _time(queue, number, records, not_copied, not found))),
            None,
        )
        if time is None:
            return None
        found.append(time)
    return found[0], found[1]


def _time(
    queue: QueueUnits, number: int, records: RecordsAt, not_copied: NotCopied, first: bool
) -> int | None:
    """Time of the first, or of the last, message of a queue file."""
    for _, units in queue.parts(number, backwards=not first):
        held = units["physical_offset"][unit_states(units, None) == OK].astype(np.int64)
        offsets = held[~not_copied.holds(held)].tolist()
        for offset in offsets if first else reversed(offsets):
            try:
                record = records.get(offset)
            except RmqtoolError:  # reported when the log was read
                continue
            if record is not None:
                return record.store_timestamp
    return None


@dataclass
class _Run:
    """Neighbouring units with the same finding. slots and place are those of the first."""

    facts: dict[str, Any]
    first: int
    last: int
    path: str
    position: int
    offset: int

    def goes_on(self, facts: dict[str, Any], slot: int) -> bool:
        """Whether a unit belongs to the run."""
        return slot == self.last + 1 and facts == self.facts and facts["code"].endswith(_IN_RUNS)


class UnitCheck:
    """Looks at the files of a queue that hold units which no record claimed."""

    def __init__(
        self,
        records: RecordsAt,
        damage: Ranges,
        log_range: tuple[int, int] | None,
        not_copied: NotCopied,
    ) -> None:
        self._records = records
        self._not_copied = not_copied
        self._damage = damage
        self._log = log_range

    def check(self, queue: QueueUnits) -> Iterator[Finding]:
        """Findings about one queue."""
        run: _Run | None = None
        for number, file in enumerate(queue.files):
            unclaimed = queue.unclaimed(number)
            if unclaimed and self._not_copied:
                unclaimed -= self._nowhere(queue, number)
            if not unclaimed:
                continue
            for index, unit in self._real(queue, number):
                slot = queue.first_slot(number) + index
                place = file.display_path, index * queue.dtype.itemsize, int(unit["physical_offset"])
                facts, beside = self._judge(queue, unit, slot), None
                if facts is not None:
                    beside = facts.pop("beside", None)
                    if run is not None and run.goes_on(facts, slot):
                        run.last = slot
                    else:
                        yield from _finding_of(run, queue)
                        run = _Run(facts, slot, slot, *place)
                if beside is not None:
                    yield from _finding_of(_Run(beside, slot, slot, *place), queue)
        yield from _finding_of(run, queue)

    def _nowhere(self, queue: QueueUnits, number: int) -> int:
        """Units of a file that lead to what was not copied; no record can have been matched with them."""
        found = 0
        for _, units in queue.parts(number):
            real = units["physical_offset"][unit_states(units, None) == OK].astype(np.int64)
            found += int(self._not_copied.holds(real).sum())
        self._not_copied.units += found
        return found

    def _real(self, queue: QueueUnits, number: int) -> Iterator[tuple[int, Any]]:
        """Units of a file for messages that may be there: number in the file, unit."""
        for first, units in queue.parts(number):
            real = unit_states(units, None) == OK
            real &= ~self._not_copied.holds(units["physical_offset"].astype(np.int64))
            for index in np.flatnonzero(real).tolist():
                yield first + index, units[index]

    def _judge(self, queue: QueueUnits, unit: Any, slot: int) -> dict[str, Any] | None:
        """What is wrong with a unit: facts of a finding, or nothing; `beside`: those of a second one."""
        offset = int(unit["physical_offset"])
        if self._log is None:
            return None
        prefix = "BCQ" if queue.batch else "CQ"
        if offset < self._log[0]:
            return {"code": f"{prefix}-EXPIRED"}
        cause = place.code if (place := self._damage.at(offset)) is not None else None
        try:
            record = self._records.get(offset)
        except RmqtoolError:
            return {"code": f"{prefix}-DANGLING", "caused_by": "DIR-UNREADABLE"}
        if record is None or cause is not None:
            return {"code": f"{prefix}-DANGLING", "caused_by": cause}
        if record.transaction in (1, 3):
            return {"code": f"{prefix}-TRANSACTION", "part": "sys_flag"}
        if queue.batch:
            return self._judge_batch(queue, unit, record)
        return self._judge_plain(queue, unit, record, slot)

    def _judge_plain(self, queue: QueueUnits, unit: Any, record: Found, slot: int) -> dict[str, Any] | None:
        expected = expected_slot(queue, record)
        if expected is None:
            return {"code": "CQ-FOREIGN", "found": f"{record.topic}/{record.queue_id}"}
        size = None
        if int(unit["size"]) != record.size:
            size = {"code": "CQ-SIZE", "part": "size", "expected": record.size, "found": int(unit["size"])}
        if expected != slot:
            return {"code": "CQ-SHIFT", "part": "queue_offset", "shift": expected - slot, "beside": size}
        return size

    def _judge_batch(self, queue: QueueUnits, unit: Any, record: Found) -> dict[str, Any] | None:
        if (record.topic, record.queue_id) != (queue.topic, queue.queue_id):
            return {"code": "BCQ-FOREIGN", "found": f"{record.topic}/{record.queue_id}"}
        base = java_parse_int(record.properties.get(INNER_BASE, ""), 64)
        count = java_parse_int(record.properties.get(INNER_NUM, ""), 16)
        if base is None or count is None:
            base, count = record.queue_offset, 1
        wanted = {
            "size": record.size,
            "tags_code": tags_hash(record.properties.get("TAGS")),
            "store_timestamp": record.store_timestamp,
            "base_offset": base,
            "batch_size": count,
        }
        for name, value in wanted.items():
            if int(unit[name]) != value:
                return {"code": "BCQ-FIELD", "part": name, "expected": value, "found": int(unit[name])}
        if base != record.queue_offset:  # from which clients count (`MessageDecoder#decodeMessage`)
            stated = {"expected": base, "found": record.queue_offset}
            return {"code": "BCQ-OFFSET", "part": "queue_offset", **stated}
        return None


def expected_slot(queue: QueueUnits, record: Found) -> int | None:
    """Where in the queue the record belongs; None when it does not belong there (`LmqDispatch`)."""
    if (record.topic, record.queue_id) == (queue.topic, queue.queue_id):
        return record.queue_offset
    names, offsets = map(record.properties.get, (INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET))
    return next(iter(slots_in((queue.topic, queue.queue_id), names, offsets, record.queue_id)), None)


def _finding_of(run: _Run | None, queue: QueueUnits) -> Iterator[Finding]:
    """The one finding about a run; `found` is how many units of lost records, the first slot of a shift."""
    if run is None:
        return
    facts = dict(run.facts)
    code, shift = facts.pop("code"), facts.pop("shift", None)
    count = run.last - run.first + 1
    if code.endswith(("-DANGLING", "-EXPIRED")):
        facts["found"] = count
    if shift is not None:
        facts |= {"expected": run.first + shift, "found": run.first}
    yield finding(
        code,
        path=run.path,
        position=run.position,
        length=count * queue.dtype.itemsize,
        physical_offset=run.offset,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=run.first,
        **facts,
    )
