"""Consumers of an open store, by their groups."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.messagestore.services.consumer import Consumer, Options
from rmqtool.messagestore.services.membership import HEARTBEAT, Membership
from rmqtool.query.assignment.queues import MessageQueue
from rmqtool.query.assignment.strategies import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rmqtool.messagestore.services.consumer import Handler, Tables
    from rmqtool.query.assignment.strategies import Strategy

_BROKER = "broker-a"
"""name of the broker whose queues these are, where `brokerName` is not given"""


class Consuming:
    """Makes consumers. Those of one group have one strategy.

    tables: what they work with. at_end: what the store calls when it closes.
    """

    def __init__(self, tables: Tables, at_end: Callable[[Callable[[], object]], object]) -> None:
        self._tables, self._at_end = tables, at_end
        self._groups: dict[str, Membership] = {}
        self._lock = threading.Lock()
        self._numbers = count(1)

    def consumer(
        self,
        group: str,
        topics: str | Sequence[str],
        name: str | None,
        on_message: Handler | None,
        options: Options,
        heartbeat: float = HEARTBEAT,
    ) -> Consumer:
        """See `MessageStore.consumer`."""
        self._tables.groups.of_consumer(group, broadcast=options.broadcast)
        wanted = [topics] if isinstance(topics, str) else list(topics)
        if not wanted:
            raise UsageError("a consumer wants at least one topic")
        if options.max_reconsume is not None and options.max_reconsume < 0:
            raise UsageError(f"max_reconsume is {options.max_reconsume}, and cannot be below 0")
        if options.start not in {"first", "last"}:
            raise UsageError(f"start is {options.start!r}, not 'first' or 'last'")
        chosen = STRATEGIES.get(options.strategy) if isinstance(options.strategy, str) else options.strategy
        if not callable(chosen):
            raise UsageError(f"strategy {options.strategy!r:.60} is not one of {', '.join(STRATEGIES)}")
        with self._lock:
            member = name or f"consumer-{next(self._numbers)}"
            if options.broadcast:
                membership = Membership(
                    group, lambda _client, queues, _clients: list(queues), self._queues, heartbeat
                )
            else:
                membership = self._membership(group, chosen, heartbeat)
            made = Consumer(self._tables, membership, group, member, wanted, options, on_message)
        self._at_end(made.close)
        return made

    def _membership(self, group: str, strategy: Strategy, heartbeat: float) -> Membership:
        found = self._groups.get(group)
        if found is None:
            found = self._groups[group] = Membership(group, strategy, self._queues, heartbeat)
        elif not len(found):  # who was lost may come back to it
            found.strategy = strategy
        elif found.strategy is not strategy:
            raise UsageError(f"the members of consumer group {group} have another strategy")
        return found

    def _queues(self, topic: str) -> list[MessageQueue]:
        """Queues of a topic that may be read."""
        engine = self._tables.engine
        found = engine.topics.get(topic)
        if found is None or not found.readable:
            return []
        extra = engine.settings.config.model_extra or {}
        broker = str(extra.get("brokerName", _BROKER))
        return [MessageQueue(topic, broker, number) for number in range(found.read_queue_nums)]
