"""Members of a consumer group in this process: who is there, and who owns which queue.

All are given queues by one strategy over the same members in the same order
(`RebalanceImpl#rebalanceByTopic`). A queue changes hands when its owner asks again and lets go of it, or is
given up for lost: it has one owner at most. What is done for a queue is fenced by its ownership's number.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rmqtool.errors import UsageError
from rmqtool.query.assignment.strategies import assign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rmqtool.query.assignment.queues import MessageQueue
    from rmqtool.query.assignment.strategies import Strategy

    Key = tuple[str, int]

HEARTBEAT = 30.0
"""seconds without a sign of life behind which a member is lost (`ClientManageProcessor`: 30 seconds)"""


class Ownership(NamedTuple):
    """Of a queue. number: another one each time that the queue is taken."""

    member: str
    number: int


@dataclass
class _Member:
    topics: frozenset[str]
    seen: float
    owned: dict[Key, Ownership] = field(default_factory=dict)


class Membership:
    """One group. queues: those of a topic that may be read. clock: seconds. Any thread may call."""

    def __init__(
        self,
        group: str,
        strategy: Strategy,
        queues: Callable[[str], list[MessageQueue]],
        heartbeat: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group, self.strategy, self._queues = group, strategy, queues
        self._heartbeat, self._clock = heartbeat, clock
        self._lock = threading.Lock()
        self._members: dict[str, _Member] = {}
        self._owners: dict[Key, Ownership] = {}
        self._taken = 0

    def join(self, name: str, topics: Iterable[str]) -> None:
        """A member comes. Raises `UsageError` for a name that another one has."""
        with self._lock:
            self._drop_lost(None)
            if name in self._members:
                raise UsageError(f"consumer group {self._group} has a member {name} already")
            self._members[name] = _Member(frozenset(topics), self._clock())

    def leave(self, name: str) -> None:
        """A member goes, and lets go of its queues; one that is not there goes without a word."""
        with self._lock:
            self._drop(name)

    def beat(self, name: str) -> bool:
        """A sign of life; False for a member that is lost."""
        with self._lock:
            member = self._members.get(name)
            if member is not None:
                member.seen = self._clock()
            return member is not None

    def take(self, name: str, topics: Iterable[str]) -> dict[Key, Ownership]:
        """A sign of life; lets go of what is another's now, and takes what is free: what the member owns.

        A member that was lost in between joins again, and owns what it takes as if for the first time.
        """
        with self._lock:
            member = self._members.setdefault(name, _Member(frozenset(topics), 0.0))
            member.seen = self._clock()
            self._drop_lost(name)
            wanted = self._assigned(name, member)
            for key in member.owned.keys() - wanted:
                del self._owners[key], member.owned[key]
            for key in sorted(wanted - self._owners.keys()):
                self._taken += 1
                member.owned[key] = self._owners[key] = Ownership(name, self._taken)
            return dict(member.owned)

    def owns(self, key: Key, ownership: Ownership) -> bool:
        """Whether that is still so."""
        return self._owners.get(key) == ownership

    def guarded(self, key: Key, ownership: Ownership, work: Callable[[], object]) -> bool:
        """Does something for a queue if that is still so; whether it was done."""
        with self._lock:
            if self._owners.get(key) != ownership:
                return False
            work()
            return True

    def owners(self) -> dict[Key, str]:
        """Who owns which queue."""
        with self._lock:
            return {key: one.member for key, one in self._owners.items()}

    def __len__(self) -> int:
        return len(self._members)

    def _assigned(self, name: str, member: _Member) -> set[Key]:
        """Topic by topic, among the members that want it."""
        found: set[Key] = set()
        for topic in member.topics:
            clients = [one for one, other in self._members.items() if topic in other.topics]
            given = assign(self.strategy, self._queues(topic), clients)
            found |= {(one.topic, one.queue_id) for one in given[name]}
        return found

    def _drop_lost(self, but: str | None) -> None:
        late = self._clock() - self._heartbeat
        for name in [one for one, member in self._members.items() if member.seen < late and one != but]:
            self._drop(name)

    def _drop(self, name: str) -> None:
        member = self._members.pop(name, None)
        for key in member.owned if member is not None else ():
            del self._owners[key]
