"""Why a consumer gets the message at a queue offset, or does not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rmqtool.broker.get_message import GetMessageStatus
from rmqtool.query.dispatch_position import not_dispatched
from rmqtool.query.groups import may_consume

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.get_message import Pull
    from rmqtool.broker.queue_view import QueueView
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store


class Cause(StrEnum):
    """What stands between a consumer and a message."""

    BELOW_MIN = "below_min"
    ABOVE_MAX = "above_max"
    AT_END = "at_end"
    NOT_DISPATCHED = "not_dispatched"
    REMOVED = "removed"
    NO_UNIT = "no_unit"
    FILTERED = "filtered"
    NO_READ_PERMISSION = "no_read_permission"
    BEYOND_READ_QUEUES = "beyond_read_queues"
    NO_TOPIC = "no_topic"
    GROUP_DISABLED = "group_disabled"
    PULL_THROWS = "pull_throws"
    UNDECODABLE = "undecodable"
    ALTERED = "altered"
    DELIVERED = "delivered"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One cause, in words for people."""

    cause: Cause
    message: str


@dataclass(frozen=True, slots=True)
class Question:
    """A queue and a queue offset, and perhaps the consumer group that asks."""

    topic: str
    queue_id: int
    offset: int
    group: str | None = None


def judge(
    store: Store, view: QueueView, asked: Question, answer: Pull, reading: ReadOptions
) -> Iterator[Verdict]:
    """Every cause that applies; `DELIVERED` alone when none does. Filters are judged by the caller."""
    found = [*_by_settings(store, asked), *_by_range(store, view, asked, answer, reading)]
    if not found:
        yield Verdict(Cause.DELIVERED, f"a pull from offset {asked.offset} delivers messages")
    yield from found


def _by_settings(store: Store, asked: Question) -> Iterator[Verdict]:
    topics = store.topics
    topic = topics.get(asked.topic)
    if topic is None and topics:
        yield Verdict(Cause.NO_TOPIC, f"topics.json has no topic {asked.topic}: a pull of it is refused")
    if topic is not None and not topic.readable:
        yield Verdict(Cause.NO_READ_PERMISSION, f"topic {asked.topic} has perm {topic.perm}: no reading")
    if topic is not None and asked.queue_id >= topic.read_queue_nums:
        numbers = topic.read_queue_nums
        yield Verdict(
            Cause.BEYOND_READ_QUEUES,
            f"queue {asked.queue_id} is not read: topic {asked.topic} has readQueueNums {numbers}",
        )
    if asked.group is not None and may_consume(store, asked.group) is False:
        yield Verdict(Cause.GROUP_DISABLED, f"group {asked.group} has consumeEnable false")


def _by_range(
    store: Store, view: QueueView, asked: Question, answer: Pull, reading: ReadOptions
) -> Iterator[Verdict]:
    offset, low, high = asked.offset, answer.min_offset, answer.max_offset
    if offset < low:
        yield Verdict(Cause.BELOW_MIN, f"offset {offset} is below the minimum {low}: the client is reset")
    elif answer.status is GetMessageStatus.MESSAGE_WAS_REMOVING:
        yield Verdict(Cause.REMOVED, f"the record of offset {offset} is no longer in the log")
    elif answer.status is GetMessageStatus.OFFSET_FOUND_NULL:
        goes_on = f"a pull delivers nothing and continues at offset {answer.next_begin_offset}"
        yield Verdict(Cause.NO_UNIT, f"no consume queue entry of offset {offset} can be read: {goes_on}")
    elif offset > high:
        yield Verdict(Cause.ABOVE_MAX, f"offset {offset} is above the maximum {high}: the client is reset")
    elif offset == high:
        end = f"offset {offset} is the end of the queue" if view.files else "the queue has no files"
        yield Verdict(Cause.AT_END, f"{end}: there is no such message yet")
    if offset >= high and (waiting := not_dispatched(store, view, reading)) is not None:
        yield Verdict(Cause.NOT_DISPATCHED, waiting)
