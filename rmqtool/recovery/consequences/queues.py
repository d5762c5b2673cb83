"""What the start makes of single queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.consumequeue import PRE_BLANK_SIZE
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.broker.load import queue_directories
from rmqtool.check.compaction import damage_in, messages_of
from rmqtool.recovery.consequences.consequence import Consequence, consequence
from rmqtool.recovery.timers import timer_harm
from rmqtool.store.consumer_offsets import stored_delay_offsets
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.start import AnyQueue
    from rmqtool.recovery.consequences.finding_context import FindingContext
    from rmqtool.recovery.outcome import QueueOutcome


def harm(scene: FindingContext) -> Iterator[Consequence]:
    """Queue by queue what is lost, moved, hidden, or given twice."""
    start = scene.start
    for one in scene.outcome.queues:
        queue = start.queues.get((one.topic, one.queue_id))
        path = queue.files.directory if queue is not None else f"consumequeue/{one.topic}/{one.queue_id}"
        facts = {"topic": one.topic, "queue_id": one.queue_id}
        yield from _bounds(one, path, facts)
        if queue is not None:
            yield from _states(scene, queue, path, facts)
    for code, entries in (("DR-WRONG-ENTRIES", scene.wrong), ("DR-WRONG-TAGS", scene.wrong_tags)):
        for found in entries:
            facts = {"topic": found.topic, "queue_id": found.queue_id}
            yield consequence(code, found.path, **facts, count=found.count, start=found.first)
    for unbuilt in scene.unbuilt:
        code = "DR-LMQ-UNBUILT" if unbuilt.dispatched else "DR-LMQ-MISSING"
        facts = {"topic": unbuilt.topic, "queue_id": unbuilt.queue_id}
        yield consequence(code, unbuilt.path, **facts, count=unbuilt.count, start=unbuilt.first)
    for (topic, queue_id), count in start.extension_cuts.items():
        path = start.extensions[topic, queue_id].directory
        yield consequence("DR-EXTENSION-CUT", path, topic=topic, queue_id=queue_id, count=count)


def batches(scene: FindingContext) -> Iterator[Consequence]:
    """Batch queues under a release that has plain ones alone (4.9.8, seen): why its queues come out wrong."""
    start = scene.start
    if start.traits.typed_queues or start.plan is None:
        return
    found = queue_directories(start.listing, FileKind.BATCHCONSUMEQUEUE.value)
    topics = sorted({topic for topic, _, _ in found})
    if topics:
        paths = [f"{FileKind.BATCHCONSUMEQUEUE.value}/{escape_name(topic)}" for topic in topics]
        yield consequence("DR-BATCH-AS-PLAIN", *paths, count=len(topics))


def delayed(scene: FindingContext) -> Iterator[Consequence]:
    """Delayed messages that recovery dispatches before it knows the delay levels.

    Their entries have the hash of their tags in the place of the time of delivery, which has passed then
    (`ScheduleMessageService$DeliverDelayedMessageTimerTask#correctDeliverTimestamp`). Seen with 4.9.8.
    """
    start = scene.start
    if not start.traits.late_delay_levels:
        return
    delivered = {level - 1: offset for level, offset, _ in stored_delay_offsets(start.store)}
    for one in scene.outcome.queues:
        queue = start.queues.get((one.topic, one.queue_id))
        if one.topic != SCHEDULE_TOPIC or queue is None:
            continue
        first = max(queue.recovered_max, delivered.get(one.queue_id, 0))
        count = min(one.loaded_max - first, queue.appended)
        if count > 0:
            facts = {"topic": one.topic, "queue_id": one.queue_id, "count": count, "start": first}
            yield consequence("DR-DELAYED-AT-ONCE", queue.files.directory, **facts)


def timers(scene: FindingContext) -> Iterator[Consequence]:
    """What becomes of timers where the files that know them are gone."""
    log = scene.start.timer_log
    for one in timer_harm(scene.start, log) if log is not None else ():
        yield consequence(one.code, *one.paths, count=one.count)
    if log is not None and log.files:
        yield consequence("DR-UNCHECKED-TIMERS", *(one.path for one in log.files))


def compaction(scene: FindingContext) -> Iterator[Consequence]:
    """What becomes of the logs of compaction topics."""
    cut = [path for one in scene.start.compaction for path in one.cut]
    if cut:
        yield consequence("DR-COMPACTION-CUT", *cut, count=len(cut))
    for one in scene.start.compaction:
        if one.left_out is not None:
            path, reason = one.left_out
            facts = {"topic": one.topic, "queue_id": one.queue_id, "reason": f"{path}: {reason}"}
            yield consequence("DR-COMPACTION-LEFT-OUT", path, **facts)
    paths = dict.fromkeys(one.path for one in damage_in(scene.compaction) if one.path)
    if paths:
        yield consequence("DR-COMPACTION-DAMAGED", *paths, count=messages_of(scene.compaction))


def _bounds(one: QueueOutcome, path: str, facts: dict[str, object]) -> Iterator[Consequence]:
    if lost := one.lost - one.later:
        cut = {"count": lost, "before": one.loaded_max + lost, "end": one.loaded_max}
        yield consequence("DR-QUEUE-CUT", path, **facts, **cut, when="")
    if one.later:
        cut = {"count": one.later, "before": one.max_offset, "end": one.max_offset - one.later}
        yield consequence("DR-QUEUE-CUT", path, **facts, **cut, when=" with the start after this one")
    if one.repeated:
        bounds = {"start": one.max_offset, "end": one.repeated_to - 1}
        yield consequence("DR-OFFSETS-TWICE", path, **facts, count=one.repeated, **bounds)
    if one.misplaced:
        yield consequence("DR-MISPLACED", path, **facts, count=one.misplaced)
    if one.hidden:
        yield consequence("DR-NOT-REBUILT", path, **facts, count=one.hidden, start=one.hidden_from)
    if one.doubled:
        yield consequence("DR-SLOT-TAKEN", path, **facts, count=one.doubled)


def _states(
    scene: FindingContext, queue: AnyQueue, path: str, facts: dict[str, object]
) -> Iterator[Consequence]:
    start = scene.start
    end = start.log.max_offset
    if queue.wrong_offsets:
        yield consequence("DR-ASTRAY", path, **facts, count=queue.wrong_offsets)
    if queue.phantom is not None:
        yield consequence("DR-PHANTOM-UNIT", path, **facts, start=queue.phantom)
    if not isinstance(queue, ConsumeQueue) or not queue.files.files or start.plan is None:
        return
    if queue.max_physical == PRE_BLANK_SIZE > end:
        yield consequence("DR-PRE-BLANK-TAIL", path, **facts, offset=queue.max_physical, end=end)
    elif queue.max_physical > end:
        yield consequence("DR-STALE-MAX", path, **facts, offset=queue.max_physical, end=end)
    floor = start.log.min_offset
    expired = queue.max_offset and 0 < queue.max_physical <= floor and not queue.appended
    if expired and not start.traits.min_offset_by_search:
        yield consequence("DR-EXPIRED-QUEUE", path, **facts, end=queue.max_offset)
    last = start.spans.last_of(queue.topic, queue.queue_id)
    slot = queue.max_offset - 1
    if last is not None and last.end == queue.max_physical and last.slot != slot and not queue.misplaced:
        yield consequence("DR-SHIFTED", path, **facts, slot=slot, expected=last.slot)
