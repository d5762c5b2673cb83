"""Queues that records list (`INNER_MULTI_DISPATCH`), where a start without `enableMultiDispatch` builds none.

A later start with the setting does not build them either where other queues lead behind these records
(4.9.8, 5.3.3): dispatching goes on behind them, and new messages get queue offsets from 0 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.broker.deleted_topics import is_somebodys
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rmqtool.recovery.matching import Matches
    from rmqtool.recovery.observed_start import ObservedStart
    from rmqtool.recovery.spans import Key


@dataclass(frozen=True, slots=True)
class UnbuiltQueue:
    """count: messages without an entry. dispatched: some of them are handed to other queues by the start."""

    topic: str
    queue_id: int
    count: int
    first: int
    dispatched: bool

    @property
    def path(self) -> str:
        """Where its files would be."""
        return f"consumequeue/{escape_name(self.topic)}/{self.queue_id}"


def unbuilt_queues(start: ObservedStart, matches: Mapping[Key, Matches]) -> Iterator[UnbuiltQueue]:
    """By name. matches: of all records that were read."""
    covered = start.dispatcher.covered
    for (topic, queue_id), one in sorted(matches.items()):
        if one.first_further is not None and is_somebodys(start.store.topics, topic):
            dispatched = covered is not None and one.last_further >= covered[0]
            yield UnbuiltQueue(topic, queue_id, one.further, one.first_further, dispatched)
