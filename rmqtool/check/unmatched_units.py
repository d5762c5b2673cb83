"""Units that no record claimed: each is followed into the log, and what lies there is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.java import java_parse_int
from formats.properties import INNER_BASE, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, INNER_NUM
from formats.tags_code import tags_hash
from rmqtool.check.findings import finding
from rmqtool.check.records_at import Found
from rmqtool.errors import RmqtoolError
from rmqtool.scan.multi import slots_in
from rmqtool.scan.units import OK, unit_states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.check.findings import Finding
    from rmqtool.check.not_copied import NotCopied
    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.check.ranges import Ranges
    from rmqtool.check.records_at import RecordsAt
    from rmqtool.scan.kernel_types import Kernels

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
        kernels: Kernels,
    ) -> None:
        self._records = records
        self._not_copied = not_copied
        self._damage = damage
        self._log, self._kernels = log_range, kernels

    def check(self, queue: QueueUnits) -> Iterator[Finding]:
        """Findings about one queue."""
        run: _Run | None = None
        for number, file in enumerate(queue.files):
            for index, offset, facts in self._judged(queue, number):
                beside, slot = facts.pop("beside", None), queue.first_slot(number) + index
                place = file.display_path, index * queue.dtype.itemsize, offset
                if "code" in facts:
                    if run is not None and run.goes_on(facts, slot):
                        run.last = slot
                    else:
                        yield from _finding_of(run, queue)
                        run = _Run(facts, slot, slot, *place)
                else:
                    yield from _finding_of(run, queue)
                    run = None
                if beside is not None:
                    yield from _finding_of(_Run(beside, slot, slot, *place), queue)
        yield from _finding_of(run, queue)

    def _judged(self, queue: QueueUnits, number: int) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Units of a file with something wrong: number in the file, physical offset, facts of a finding.

        `beside`: those of a second one, which may be the only one.
        """
        if self._log is None or queue.is_claimed(number):
            return
        prefix = "BCQ" if queue.batch else "CQ"
        for first, units in queue.parts(number):
            begin = queue.first_slot(number) + first
            offsets = units["physical_offset"].astype(np.int64)
            wanted, nowhere = queue.unclaimed(begin, units), self._not_copied.holds(offsets)
            self._not_copied.units += int((wanted & nowhere).sum())
            places = np.flatnonzero(wanted & ~nowhere)
            chosen, offsets = units[places], offsets[places]
            damage = self._damage.find(offsets)
            followed = (offsets >= self._log[0]) & (damage < 0)
            sizes = chosen["size"][followed].astype(np.int64)
            records = self._records.each(offsets[followed], sizes, self._kernels)
            rows = zip(places.tolist(), chosen, offsets.tolist(), damage.tolist(), strict=True)
            for place, unit, offset, range_ in rows:
                if offset < self._log[0]:
                    facts = {"code": f"{prefix}-EXPIRED"}
                elif range_ >= 0:
                    facts = {"code": f"{prefix}-DANGLING", "caused_by": self._damage[range_].code}
                else:
                    facts = self._judge(queue, unit, next(records), begin + place)
                if facts:
                    yield first + place, offset, facts

    def _judge(
        self, queue: QueueUnits, unit: Any, record: Found | RmqtoolError | None, slot: int
    ) -> dict[str, Any]:
        """What is wrong with a unit, see `_judged`. record: to which it leads, or why that cannot be read."""
        prefix = "BCQ" if queue.batch else "CQ"
        if not isinstance(record, Found):
            return {"code": f"{prefix}-DANGLING", "caused_by": None if record is None else "DIR-UNREADABLE"}
        if record.transaction in (1, 3):
            return {"code": f"{prefix}-TRANSACTION", "part": "sys_flag"}
        if queue.batch:
            return self._judge_batch(queue, unit, record)
        return self._judge_plain(queue, unit, record, slot)

    def _judge_plain(self, queue: QueueUnits, unit: Any, record: Found, slot: int) -> dict[str, Any]:
        expected = expected_slot(queue, record)
        if expected is None:
            return {"code": "CQ-FOREIGN", "found": f"{record.topic}/{record.queue_id}"}
        facts: dict[str, Any] = {}
        if expected != slot:
            facts |= {"code": "CQ-SHIFT", "part": "queue_offset", "shift": expected - slot}
        if (size := int(unit["size"])) != record.size:
            facts["beside"] = {"code": "CQ-SIZE", "part": "size", "expected": record.size, "found": size}
        return facts

    def _judge_batch(self, queue: QueueUnits, unit: Any, record: Found) -> dict[str, Any]:
        if (record.topic, record.queue_id) != (queue.topic, queue.queue_id):
            return {"code": "BCQ-FOREIGN", "found": f"{record.topic}/{record.queue_id}"}
        properties = record.properties
        base = java_parse_int(properties.get(INNER_BASE, ""), 64)
        count = java_parse_int(properties.get(INNER_NUM, ""), 16)
        if base is None or count is None:
            base, count = record.queue_offset, 1
        wanted = {
            "size": record.size,
            "tags_code": tags_hash(properties.get("TAGS")),
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
        return {}


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
