"""What is said of records that have no unit at their slot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rmqtool.check.findings import Severity, finding
from rmqtool.check.queue_files import place_of
from rmqtool.check.unplaced import Behind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.check.cross import CrossCheck
    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.check.unplaced import Run, Unplaced


@dataclass(frozen=True)
class Circumstances:
    """What decides whether a lag is damage. unclean: `abort` lies there, or a broker holds the store."""

    unclean: bool
    topics: frozenset[str] = frozenset()
    """topics that the topic table knows"""


def ghosts(check: CrossCheck, around: Circumstances) -> Iterator[Finding]:
    """Records without a unit at their slot, as runs of neighbouring queue offsets."""
    with_queue = {topic for topic, _ in check.queues} | around.topics
    for key, unplaced in sorted(check.unplaced.items()):
        topic, queue_id = key
        facts: dict[str, Any] = {"topic": topic, "queue_id": queue_id}
        queue = check.batches.get(key) or check.queues.get(key)
        if queue is None or not queue.files:
            code = "X-GHOST" if topic in with_queue else "X-NO-QUEUE"
            where = f"consumequeue/{topic}/{queue_id}"
            yield _not_dispatched(code, where, unplaced.behind, facts, check, around)
            continue
        if queue.batch:
            yield from _of_batches(queue, unplaced, facts, check, around)
            continue
        behind = _without(unplaced.behind, queue.elsewhere)
        if behind.count:
            yield _not_dispatched("CQ-BEHIND", queue.path, behind, facts, check, around)
        yield from _runs(queue, unplaced, facts)


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


def _without(behind: Behind, elsewhere: Sequence[tuple[int, int]]) -> Behind:
    """Without the records whose unit lies at a lower slot of the shifted queue."""
    end = behind.slot + behind.count
    moved = sum(max(min(high, end) - max(low, behind.slot), 0) for low, high in elsewhere)
    return replace(behind, count=max(behind.count - moved, 0))


def _inside(run: Run, elsewhere: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Slots [low, high) of a run that have no unit anywhere in the queue."""
    low, end = run.slot, run.slot + run.count
    for start, stop in sorted(elsewhere):
        if low < start < end:
            yield low, start
        if start < end and stop > low:
            low = stop
    if low < end:
        yield low, end


def _runs(queue: QueueUnits, unplaced: Unplaced, facts: dict[str, Any]) -> Iterator[Finding]:
    for run in unplaced.runs:
        for low, high in _inside(run, queue.elsewhere):
            path, position = place_of(queue, low)
            yield finding(
                "X-GHOST",
                path=path,
                position=position,
                length=(high - low) * queue.dtype.itemsize,
                physical_offset=run.offset if low == run.slot else None,
                queue_offset=low,
                found=high - low,
                **facts,
            )
    if unplaced.more:
        yield finding("X-MORE", path=queue.path, found=unplaced.more, **facts)


def _of_batches(
    queue: QueueUnits, unplaced: Unplaced, facts: dict[str, Any], check: CrossCheck, around: Circumstances
) -> Iterator[Finding]:
    """One finding for all in the queue and one for all behind it: a record has no place of its own there."""
    end = queue.ends()[1]
    for code, runs in (
        ("X-GHOST", [run for run in unplaced.runs if run.slot < end]),
        ("BCQ-BEHIND", [run for run in unplaced.runs if run.slot >= end]),
    ):
        if runs:
            count = sum(run.count for run in runs)
            lowest = min(run.offset for run in runs)
            lacking = Behind(count, runs[0].offset, runs[0].slot, lowest)
            yield _not_dispatched(code, queue.path, lacking, facts, check, around)
    if unplaced.more:
        yield finding("X-MORE", path=queue.path, found=unplaced.more, **facts)
