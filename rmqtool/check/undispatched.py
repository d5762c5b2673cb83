"""What is said of records that have no unit at their slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formats.properties import INNER_BASE
from formats.system_topics import BROKER_TOPICS
from rmqtool.check.findings import Severity, finding
from rmqtool.check.queue_files import place_of
from rmqtool.errors import RmqtoolError
from rmqtool.scan.multi import LMQ_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.check.cross import CrossCheck
    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.check.records_at import RecordsAt
    from rmqtool.check.unplaced import Behind, Unplaced


@dataclass(frozen=True)
class Circumstances:
    """What decides whether a lag is damage. unclean: `abort` lies there, or a broker holds the store."""

    unclean: bool
    topics: frozenset[str] = frozenset()
    """topics that the topic table knows"""
    unfed: bool = False
    """`enableMultiDispatch` is off: no start builds what records list"""


def undispatched(check: CrossCheck, around: Circumstances) -> Iterator[Finding]:
    """Records without a unit at their slot, as runs of neighbouring queue offsets."""
    if not (check.queues or check.batches or around.topics):
        yield from _no_queues(check)
        if not around.unfed:
            return
    with_queue = {topic for topic, _ in check.queues} | around.topics | BROKER_TOPICS  # nobody deletes these
    own = check.unplaced if check.queues or check.batches or around.topics else {}
    of_all = (*own.items(), *check.further.unplaced.items())
    for key, unplaced in sorted(of_all, key=lambda one: one[0]):
        topic, queue_id = key
        facts: dict[str, Any] = {"topic": topic, "queue_id": queue_id}
        queue = check.batches.get(key) or check.queues.get(key)
        if queue is None or not queue.files:
            there = topic in with_queue or topic.startswith(LMQ_PREFIX)
            code = "X-GHOST" if there else "X-NO-QUEUE"
            where = f"consumequeue/{topic}/{queue_id}"
            yield _not_dispatched(code, where, unplaced.behind, facts, check, around)
            continue
        if unplaced.behind.count:
            code = "BCQ-BEHIND" if queue.batch else "CQ-BEHIND"
            path, place = _end_of(queue, unplaced.behind)
            yield _not_dispatched(code, path, unplaced.behind, facts | place, check, around)
        yield from _of_batches(queue, unplaced, facts) if queue.batch else _runs(queue, unplaced, facts)


def _no_queues(check: CrossCheck) -> Iterator[Finding]:
    """Nothing in the store names a queue: whether they were deleted or not sent, it cannot tell."""
    behind = [one.behind for one in check.unplaced.values()]
    if behind:
        first, count = min(one.offset for one in behind), sum(one.count for one in behind)
        yield finding("X-NO-QUEUES", path="consumequeue", physical_offset=first, found=count)


def misplaced(check: CrossCheck, records: RecordsAt) -> Iterator[Finding]:
    """Records that state another queue than that in which their queue offset is missing."""
    for one in check.numbers.misplaced():
        try:
            record = records.get(one.physical_offset)
        except RmqtoolError:  # reported when the log was read
            continue
        if record is None or INNER_BASE in record.properties:  # takes more than one queue offset
            continue
        yield finding(
            "X-QUEUE-ID",
            path=record.path,
            position=record.position,
            length=record.size,
            physical_offset=one.physical_offset,
            part="queue_id",
            expected=one.belongs_to,
            found=one.queue_id,
            topic=one.topic,
            queue_id=one.queue_id,
            queue_offset=one.queue_offset,
        )


def _end_of(queue: QueueUnits, behind: Behind) -> tuple[str, dict[str, Any]]:
    """Where the first unit is due that a queue has not: in its last file, or in one that is not there."""
    path, position = place_of(queue, queue.next_slot)
    if position >= max((file.size for file in queue.files if file.display_path == path), default=0):
        return queue.path, {}
    if queue.batch:
        return path, {"position": position}
    return path, {"position": position, "length": behind.count * queue.dtype.itemsize}


def _of_batches(queue: QueueUnits, unplaced: Unplaced, facts: dict[str, Any]) -> Iterator[Finding]:
    """One finding for all: a record has no place of its own in a queue of batches."""
    if unplaced.runs:
        first = unplaced.runs[0]
        yield finding(
            "X-GHOST",
            path=queue.path,
            physical_offset=first.offset,
            queue_offset=first.slot,
            found=sum(run.count for run in unplaced.runs) + unplaced.more,
            **facts,
        )


def _not_dispatched(
    code: str, path: str, behind: Behind, facts: dict[str, Any], check: CrossCheck, around: Circumstances
) -> Finding:
    """One finding for records behind the end of their queue.

    Dispatching goes in log order: after a crash it may be behind, but not behind in one queue alone.
    """
    merely_behind = around.unclean and behind.lowest_offset > check.dispatched
    return finding(
        code,
        severity=Severity.NOTE if merely_behind else None,
        path=path,
        physical_offset=behind.offset,
        queue_offset=behind.slot,
        found=behind.count,
        **facts,
    )


def _runs(queue: QueueUnits, unplaced: Unplaced, facts: dict[str, Any]) -> Iterator[Finding]:
    for run in unplaced.runs:
        path, position = place_of(queue, run.slot)
        yield finding(
            "X-GHOST",
            path=path,
            position=position,
            length=run.count * queue.dtype.itemsize,
            physical_offset=run.offset,
            queue_offset=run.slot,
            found=run.count,
            **facts,
        )
    if unplaced.more:
        yield finding("X-MORE", path=queue.path, found=unplaced.more, **facts)
