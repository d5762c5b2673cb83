"""A slave: follows a master and appends what it sends (`DefaultHAClient`)."""

from __future__ import annotations

import logging
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from formats.ha import MAX_FRAME, SlaveReport, TransferHeader
from formats.primitives import Flat
from rmqtool.errors import DivergedError, RmqtoolError, StoreIOError

if TYPE_CHECKING:
    from rmqtool.messagestore.replication.master import Timing

_LOG = logging.getLogger(__name__)
_REPORT, _HEADER = Flat(SlaveReport), Flat(TransferHeader)
_AGAIN = 5.0
"""seconds between two attempts to connect (`DefaultHAClient#run`)"""


class FollowingLog(Protocol):
    """What a slave asks of its log; `store_log.StoreLog` says what each answers."""

    @property
    def end(self) -> int:
        """Physical offset behind what the files have; 0 for a log without any."""
        ...

    @property
    def expected(self) -> int:
        """Physical offset of the byte that `take` takes next."""
        ...

    @property
    def segment_size(self) -> int:
        """Bytes of a segment."""
        ...

    def begin(self) -> int:
        """Forgets what is not in a file yet; physical offset from which on a master is to send."""
        ...

    def begin_at(self, physical_offset: int) -> None:
        """The first bytes of an empty log come from there."""
        ...

    def take(self, data: bytes) -> None:
        """Appends bytes that a master has next; they go into one segment."""
        ...


class Slave:
    """Follows a master until `close`; connects again where the connection ends.

    again: seconds between two attempts. error: why it has given up, which only a log that is not the
    master's makes it do, or one that cannot be written.
    """

    def __init__(
        self, log: FollowingLog, address: tuple[str, int], timing: Timing, again: float = _AGAIN
    ) -> None:
        self._log, self._address, self._timing, self._again = log, address, timing, again
        self._name = f"{address[0]}:{address[1]}"
        self._stop = threading.Event()
        self._socket: socket.socket | None = None
        self._guard = threading.Lock()
        self.error: RmqtoolError | None = None
        self.connected = False
        self.unreachable: str | None = None
        """why the last connection ended or was not made; it tries again"""
        self.caught_up = threading.Event()
        """set by a heartbeat: the master had no more then"""
        self._thread = threading.Thread(target=self._run, name="rmqtool-ha-follow", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except RmqtoolError as error:
                self.error = error
                _LOG.warning("%s", error)
                break
            except OSError as error:
                self.unreachable = f"{self._name}: {error.strerror or error}"
                _LOG.info("%s", self.unreachable)
            finally:
                self.connected = False
            self._stop.wait(self._again)
        self.caught_up.set()  # who waits for it sees why

    def _follow(self) -> None:
        """One connection, to its end."""
        peer = socket.create_connection(self._address, timeout=self._timing.housekeeping)
        with peer:
            with self._guard:
                self._socket = peer
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connected, self.unreachable = True, None
            begin = self._log.begin()
            peer.sendall(_REPORT.pack_ordered(begin))
            self._receive(peer, begin)
        with self._guard:
            self._socket = None

    def _receive(self, peer: socket.socket, reported: int) -> None:
        buffer = memoryview(bytearray(MAX_FRAME))
        filled, spoken = 0, time.monotonic()
        while not self._stop.is_set():
            got = peer.recv_into(buffer[filled:])
            if not got:
                return
            filled += got
            used = self._frames(buffer[:filled])
            rest = filled - used
            if used and rest:
                buffer[:rest] = bytes(buffer[used:filled])
            filled = rest
            end, now = self._log.end, time.monotonic()
            if end > reported or now - spoken >= self._timing.heartbeat:
                peer.sendall(_REPORT.pack_ordered(end))
                reported, spoken = end, now

    def _frames(self, data: memoryview) -> int:
        """Takes the frames that are there as a whole; bytes of them.

        Raises `DivergedError`, `StoreIOError`, and what the log raises.
        """
        log, at, parts = self._log, 0, list[memoryview]()
        expected, segment = log.expected, log.segment_size
        while len(data) - at >= _HEADER.size:
            offset, length = _HEADER.unpack_from(data, at)
            if not 0 <= length <= MAX_FRAME - _HEADER.size:
                raise StoreIOError(f"{self._name}: a frame of {length} bytes; no master sends such")
            if offset != expected:
                if expected or offset < 0:
                    raise DivergedError(
                        f"{self._name} sends from {offset} on, and the log here ends at {expected}: nothing "
                        "was taken; it is another log, or the master has less of it",
                        expected,
                        offset,
                    )
                log.begin_at(offset)
                expected = offset
            if len(data) - at < _HEADER.size + length:
                break
            at += _HEADER.size + length
            if not length:
                self.caught_up.set()
                continue
            self.caught_up.clear()
            parts.append(data[at - length : at])
            expected += length
            if not expected % segment:
                log.take(b"".join(parts))
                parts = []
        if parts:
            log.take(b"".join(parts))
        return at

    def close(self) -> None:
        """Ends the connection; what was received as a whole frame is in the log."""
        self._stop.set()
        with self._guard:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
