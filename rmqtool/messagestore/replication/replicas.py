"""What the slaves of a master have, and puts that wait for it.

`GroupTransferService#doWaitTransfer`, `DefaultHAService#isSlaveOK`, `CommitLog#handleHA` and, before 5.0,
`CommitLog#submitReplicaRequest`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from rmqtool.messagestore.messages import PutStatus


@dataclass(frozen=True, slots=True)
class ReplicaRule:
    """When a put of a SYNC_MASTER may be answered.

    by_number: `needed` replicas, the master among them, have the message (5.x, `inSyncReplicas`); else the
    slave that has most, and one that is at most `most_behind` bytes behind must be connected. timeout:
    seconds (`slaveTimeout`).
    """

    by_number: bool
    needed: int
    most_behind: int
    timeout: float

    @property
    def waits(self) -> bool:
        """Whether a put waits for anybody."""
        return not self.by_number or not 0 <= self.needed <= 1


class Replica:
    """One connected slave. offset: physical offset behind what it has, -1 before its first report."""

    def __init__(self, name: str) -> None:
        self.name, self.offset = name, -1


class Replicas:
    """The slaves that are connected now. rule: of puts, None where none waits."""

    def __init__(self, rule: ReplicaRule | None = None) -> None:
        self._rule = rule if rule is not None and rule.waits else None
        self._connected: list[Replica] = []
        self._guard = threading.Lock()
        self._changed = threading.Condition(self._guard)
        self._most = 0
        """greatest offset that any slave has reported, connected or not (`getPush2SlaveMaxOffset`)"""

    @property
    def waits(self) -> bool:
        """Whether puts wait for slaves."""
        return self._rule is not None

    def joined(self, replica: Replica) -> None:
        """A slave is connected."""
        with self._guard:
            self._connected.append(replica)

    def left(self, replica: Replica) -> None:
        """It is no more."""
        with self._guard:
            self._connected = [one for one in self._connected if one is not replica]
            self._changed.notify_all()

    def acknowledge(self, replica: Replica, offset: int) -> None:
        """A slave reports what it has."""
        with self._guard:
            replica.offset = offset
            self._most = max(self._most, offset)
            self._changed.notify_all()

    @property
    def connected(self) -> list[tuple[str, int]]:
        """Address and offset of each slave."""
        with self._guard:
            return [(one.name, one.offset) for one in self._connected]

    def wait(self, end: int) -> PutStatus:
        """Waits until what ends at physical offset `end` is where the rule wants it."""
        rule = self._rule
        if rule is None:
            return PutStatus.PUT_OK
        until = time.monotonic() + rule.timeout
        with self._guard:
            if not rule.by_number and not (self._connected and end - self._most < rule.most_behind):
                return PutStatus.SLAVE_NOT_AVAILABLE
            while not self._reached(rule, end):
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return PutStatus.PUT_OK if self._reached(rule, end) else PutStatus.FLUSH_SLAVE_TIMEOUT
        return PutStatus.PUT_OK

    def have(self, end: int) -> bool:
        """Whether what ends there is where the rule wants it, now."""
        with self._guard:
            return self._rule is None or self._reached(self._rule, end)

    def _reached(self, rule: ReplicaRule, end: int) -> bool:
        if not rule.by_number:
            return self._most >= end
        return 1 + sum(one.offset >= end for one in self._connected) >= rule.needed
