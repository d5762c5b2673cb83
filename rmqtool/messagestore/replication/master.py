"""A master: sends its log to every slave that connects (`DefaultHAService`, `DefaultHAConnection`)."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from formats.ha import SlaveReport, TransferHeader
from formats.primitives import Flat
from rmqtool.errors import RmqtoolError, StoreIOError
from rmqtool.messagestore.replication.replicas import Replica

if TYPE_CHECKING:
    from rmqtool.messagestore.replication.replicas import Replicas

_LOG = logging.getLogger(__name__)
_REPORT, _HEADER = Flat(SlaveReport), Flat(TransferHeader)
_MOST_SLAVES = 64
_LOOK = 0.1
"""seconds after which an idle connection looks whether there is more, should nobody have told it"""


class SentLog(Protocol):
    """What a master asks of its log."""

    @property
    def low(self) -> int:
        """Lowest physical offset, -1 without files."""
        ...

    @property
    def end(self) -> int:
        """Physical offset up to which bytes may be sent."""
        ...

    @property
    def segment_size(self) -> int:
        """Bytes of a segment."""
        ...

    def descriptor(self, physical_offset: int) -> int:
        """A new descriptor of the segment around a place. Raises `StoreIOError`."""
        ...


class Timing(NamedTuple):
    """heartbeat, housekeeping: seconds (`haSendHeartbeatInterval`, `haHousekeepingInterval`).

    batch: bytes of the log in one frame (`haTransferBatchSize`); brokers send 32 KiB where nothing is set,
    and take what goes into their buffer of 4 MiB.
    """

    heartbeat: float = 5.0
    housekeeping: float = 20.0
    batch: int = 1 << 20


class Master:
    """Listens for slaves. replicas: gets what they report.

    Raises `StoreIOError` where it cannot listen.
    """

    def __init__(self, log: SentLog, replicas: Replicas, address: tuple[str, int], timing: Timing) -> None:
        self._log, self._replicas, self._timing = log, replicas, timing
        self._guard = threading.Lock()
        self._grown = threading.Condition(self._guard)
        self._stopped = False
        self._connections: set[_Connection] = set()
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        try:
            self._socket = socket.create_server(address, family=family)
        except OSError as error:
            raise StoreIOError(f"{address[0]}:{address[1]}: {error.strerror}") from error
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._thread = threading.Thread(target=self._accept, name="rmqtool-ha-accept", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """The log has grown."""
        if self._connections:
            with self._guard:
                self._grown.notify_all()

    def wait(self, at: int, timeout: float) -> None:
        """Until the log reaches behind `at`, or for so many seconds."""
        with self._guard:
            if self._log.end <= at and not self._stopped:
                self._grown.wait(timeout)

    def _accept(self) -> None:
        while True:
            try:
                peer, address = self._socket.accept()
            except OSError:
                return  # closed
            name = f"{address[0]}:{address[1]}"
            if len(self._connections) >= _MOST_SLAVES:
                _LOG.warning("%s: more than %d slaves", name, _MOST_SLAVES)
                peer.close()
                continue
            connection = _Connection(self, peer, name, self._log, self._replicas, self._timing)
            self._connections.add(connection)
            connection.start()

    def ended(self, connection: _Connection) -> None:
        """A slave is gone."""
        self._connections.discard(connection)

    def close(self) -> None:
        """Ends all connections; again, nothing happens."""
        self._stopped = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for one in list(self._connections):
            one.stop()
        with self._guard:
            self._grown.notify_all()
        for one in list(self._connections):
            one.join()


class _Connection:
    """One slave: a thread reads its reports, another one sends."""

    def __init__(
        self, master: Master, peer: socket.socket, name: str, log: SentLog, replicas: Replicas, timing: Timing
    ) -> None:
        self._master, self._peer, self._log, self._replicas = master, peer, log, replicas
        self._replica, self._timing = Replica(name), timing
        self._stopped = False
        self._first = threading.Event()
        """the slave has reported where it is"""
        self._sender = threading.Thread(target=self._run, name="rmqtool-ha-send", daemon=True)
        self._reader = threading.Thread(target=self._read, name="rmqtool-ha-read", daemon=True)

    def start(self) -> None:
        """Begins to serve it."""
        self._peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peer.settimeout(self._timing.housekeeping)
        self._replicas.joined(self._replica)
        self._reader.start()
        self._sender.start()

    def stop(self) -> None:
        """Lets both threads end."""
        self._stopped = True
        with suppress(OSError):
            self._peer.shutdown(socket.SHUT_RDWR)
        self._first.set()

    def join(self) -> None:
        """Waits until they have."""
        self._sender.join()

    def _read(self) -> None:
        """The slave's reports; whole ones of 8 bytes, the last of which counts."""
        rest = b""
        with suppress(OSError):
            while not self._stopped:
                got = self._peer.recv(1 << 12)
                if not got:
                    break
                rest += got
                whole = len(rest) // _REPORT.size * _REPORT.size
                if whole:
                    (offset,) = _REPORT.unpack_from(rest, whole - _REPORT.size)
                    rest = rest[whole:]
                    self._replicas.acknowledge(self._replica, offset)
                    self._first.set()
        self.stop()

    def _run(self) -> None:
        try:
            self._first.wait(self._timing.housekeeping)
            if not self._stopped and self._replica.offset >= 0:
                self._send(self._begin())
        except (OSError, RmqtoolError) as error:
            if not self._stopped:
                _LOG.warning("slave %s: %s", self._replica.name, error)
        finally:
            self.stop()
            self._reader.join()
            self._peer.close()
            self._replicas.left(self._replica)
            self._master.ended(self)

    def _begin(self) -> int:
        """Where the slave goes on; one that has nothing begins with the last segment.

        Raises `StoreIOError` for one that has bytes which are not here.
        """
        at, log = self._replica.offset, self._log
        low, end = max(log.low, 0), log.end
        if not at:
            return end - end % log.segment_size
        if not low <= at <= end:
            raise StoreIOError(f"refused: its log ends at {at}, and the one here goes from {low} to {end}")
        return at

    def _send(self, at: int) -> None:
        size, batch, heartbeat = self._log.segment_size, self._timing.batch, self._timing.heartbeat
        spoken, base, descriptor = time.monotonic(), -1, -1
        try:
            while not self._stopped:
                end = self._log.end
                if at >= end:
                    if time.monotonic() - spoken >= heartbeat:
                        self._peer.sendall(_HEADER.pack_ordered(at, 0))
                        spoken = time.monotonic()
                    self._master.wait(at, min(_LOOK, heartbeat))
                    continue
                if descriptor < 0 or not 0 <= at - base < size:
                    if descriptor >= 0:
                        os.close(descriptor)
                    base, descriptor = at - at % size, self._log.descriptor(at)
                count = min(end - at, batch, base + size - at)
                self._peer.sendall(_HEADER.pack_ordered(at, count), socket.MSG_MORE)
                self._send_bytes(descriptor, at - base, count)
                at += count
                spoken = time.monotonic()
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _send_bytes(self, descriptor: int, position: int, count: int) -> None:
        """From the page cache into the socket. `socket.sendfile` would wait in front of each."""
        done = 0
        while done < count:
            try:
                sent = os.sendfile(self._peer.fileno(), descriptor, position + done, count - done)
            except BlockingIOError:
                self._writable()
                continue
            if not sent:
                raise StoreIOError("another process cut the log")
            done += sent

    def _writable(self) -> None:
        """A socket with a timeout does not wait by itself in `sendfile`."""
        import select

        poll = select.poll()
        poll.register(self._peer, select.POLLOUT)
        if not poll.poll(self._timing.housekeeping * 1000):
            raise StoreIOError(f"took nothing for {self._timing.housekeeping:g} s")
