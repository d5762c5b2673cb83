"""What applications call of replication: a part of `MessageStore`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.messagestore.replication.master import Master
from rmqtool.messagestore.replication.slave import Slave

if TYPE_CHECKING:
    from rmqtool.messagestore.replication.replicas import Replicas
    from rmqtool.messagestore.replication.store_log import StoreLog
    from rmqtool.messagestore.settings import StoreSettings

_MOST_PORT = 65_535


class Replication:
    """An open store as a master or as a slave, once it is one of them."""

    def __init__(self, settings: StoreSettings, log: StoreLog, replicas: Replicas) -> None:
        self._settings, self._log, self.replicas = settings, log, replicas
        self._master: Master | None = None
        self._slave: Slave | None = None

    def listen(self, host: str, port: int | None) -> Master:
        """See `ReplicationCalls.listen`."""
        if self._settings.slave or self._master is not None:
            raise UsageError("brokerRole=SLAVE follows" if self._settings.slave else "it listens already")
        address = host, self._settings.config.ha_listen_port if port is None else _port(port)
        self._master = Master(self._log, self.replicas, address, self._settings.timing)
        self._log.on_growth(self._master.wake)
        return self._master

    def follow(self, host: str, port: int) -> Slave:
        """See `ReplicationCalls.follow`."""
        if not self._settings.slave or self._slave is not None:
            raise UsageError("it follows already" if self._slave else "who follows has brokerRole=SLAVE")
        self._slave = Slave(self._log, (host, _port(port)), self._settings.timing)
        return self._slave

    def end_following(self) -> None:
        """What was received is in the log."""
        if self._slave is not None:
            self._slave.close()

    def end_sending(self) -> None:
        """No slave is served any more."""
        if self._master is not None:
            self._master.close()


def _port(number: int) -> int:
    if not 0 <= number <= _MOST_PORT:
        raise UsageError(f"port {number} is not 0 to {_MOST_PORT}")
    return number


class ReplicationCalls(ABC):
    """Replication of an open store, to and from other stores and RocketMQ's brokers."""

    _replication: Replication

    @abstractmethod
    def _demand_open(self) -> None: ...

    def listen(self, host: str = "127.0.0.1", port: int | None = None) -> tuple[str, int]:
        """Sends the log to slaves that connect, also RocketMQ's, until the store is closed; the address.

        port: `haListenPort` by default; 0 for any that is free. Who reaches it can read the whole log.
        brokerRole=SYNC_MASTER lets puts wait for slaves. Raises `UsageError` for a slave or a second call,
        `StoreIOError` where nobody can listen.
        """
        self._demand_open()
        return self._replication.listen(host, port).address

    def follow(self, host: str, port: int) -> Slave:
        """Follows a master, also RocketMQ's, until the store is closed; what is known of that.

        The store is opened with brokerRole=SLAVE, and has the beginning of the master's log, or nothing: then
        it gets the master's last segment. Raises `UsageError` for another role or a second call.
        """
        self._demand_open()
        return self._replication.follow(host, port)

    @property
    def slaves(self) -> list[tuple[str, int]]:
        """Address of each connected slave, and the physical offset behind what it has; -1: not known yet."""
        return self._replication.replicas.connected
