"""A slave: follows a master and appends what it sends (`DefaultHAClient`)."""

from __future__ import annotations

import logging
import socket
import struct
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
_AT_ONCE = 2 << 20
"""bytes that are worth a write while more is there"""
_PIECE = 256 << 10
"""bytes that are received together with the headers between them"""
_LONG = 64 << 10
"""bytes of a frame that are received where they belong"""
_AGAIN = 5.0
"""seconds between two attempts to connect (`DefaultHAClient#run`)"""


class FollowingLog(Protocol):
    """What a slave asks of its log; `store_log.StoreLog` says what each answers."""

    @property
    def end(self) -> int:
        """Physical offset behind what the files have; 0 for a log without any."""
        ...

    @property
    def segment_size(self) -> int:
        """Bytes of a segment."""
        ...

    def begin_at(self, physical_offset: int) -> None:
        """The first bytes of an empty log come from there."""
        ...

    def take(self, data: memoryview) -> int:
        """Appends bytes that follow, all of one segment, as far as records are whole; how many."""
        ...


class _Stage:
    """What was received and is not in the log yet: behind each other, without headers."""

    def __init__(self, log: FollowingLog) -> None:
        self._log = log
        self._buffer = memoryview(bytearray(_AT_ONCE + MAX_FRAME))
        self._filled = self._seen = 0

    @property
    def waits(self) -> bool:
        """Whether it has bytes that the log was not offered."""
        return self._filled > self._seen

    @property
    def expected(self) -> int:
        """Physical offset of the byte that comes next."""
        return self._log.end + self._filled

    def room(self, size: int) -> memoryview:
        """Where the next bytes go; `add` counts them."""
        if self._filled + size > len(self._buffer):
            self.hand_over()
        if self._filled + size > len(self._buffer):  # a large record, of which the log takes no part
            larger = memoryview(bytearray(2 * (self._filled + size)))
            larger[: self._filled] = self._buffer[: self._filled]
            self._buffer = larger
        return self._buffer[self._filled : self._filled + size]

    def add(self, size: int) -> None:
        """So many bytes are there; the log gets them in parts that are worth a write, and each segment's."""
        self._filled += size
        if self._filled >= _AT_ONCE or not self.expected % self._log.segment_size:
            self.hand_over()

    def hand_over(self) -> None:
        """Gives the log what is there. Raises what that raises."""
        if self.waits:
            used = self._log.take(self._buffer[: self._filled])
            if used:
                rest = self._filled - used
                self._buffer[:rest] = bytes(self._buffer[used : self._filled])
                self._filled = rest
            self._seen = self._filled


class _Incoming:
    """The stream of a master. left: bytes of the frame that is being received."""

    def __init__(self, peer: socket.socket, stage: _Stage) -> None:
        self._peer, self._stage = peer, stage
        self._piece = memoryview(bytearray(_PIECE))
        self._begin = self._end = 0
        """in `_piece`, of what was received and is not looked at"""
        self.left = 0

    def header(self) -> tuple[int, int] | None:
        """Offset and size of the next frame, None where not all of its header is there."""
        if self._end - self._begin < _HEADER.size:
            return None
        offset, size = _HEADER.unpack_from(self._piece, self._begin)
        self._begin += _HEADER.size
        self.left = size
        return offset, size

    def take(self) -> None:
        """What is there of the frame goes to the stage."""
        while self.left and self._begin < self._end:
            count = min(self.left, self._end - self._begin)
            self._stage.room(count)[:] = self._piece[self._begin : self._begin + count]
            self._begin += count
            self.left -= count
            self._stage.add(count)

    def receive(self) -> bool:
        """Gets more; False at the end of the connection. What the stage has is handed over before it waits.

        Raises `OSError`, also where nothing comes for too long, and what the log raises.
        """
        got = self._once(socket.MSG_DONTWAIT) if self._stage.waits else None
        if got is None:
            self._stage.hand_over()
            got = self._once(0)
        if got is None:
            raise TimeoutError("nothing came for haHousekeepingInterval")
        return got > 0

    def _once(self, flags: int) -> int | None:
        """How many bytes came, None where none are there."""
        direct = self.left >= _LONG
        if direct:
            into = self._stage.room(min(self.left, _AT_ONCE))
        else:
            rest = self._end - self._begin
            self._piece[:rest] = bytes(self._piece[self._begin : self._end])
            self._begin, self._end = 0, rest
            into = self._piece[rest:]
        try:
            got = self._peer.recv_into(into, 0, flags)
        except BlockingIOError:
            return None
        if direct:
            self.left -= got
            self._stage.add(got)
        else:
            self._end += got
        return got


class Slave:
    """Follows a master until `close`; connects again where the connection ends.

    error: why it has given up: the master's log is another one, or its own cannot be written.
    """

    def __init__(self, log: FollowingLog, address: tuple[str, int], timing: Timing) -> None:
        self._log, self._address, self._timing = log, address, timing
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
                self.unreachable = f"{self._name} ended the connection"  # so does one that refuses this log
            except RmqtoolError as error:
                self.error = error
                _LOG.warning("%s", error)
                break
            except OSError as error:
                self.unreachable = f"{self._name}: {error.strerror or error}"
                _LOG.info("%s", self.unreachable)
            finally:
                self.connected = False
            self._stop.wait(min(_AGAIN, self._timing.heartbeat))
        self.caught_up.set()  # who waits for it sees why

    def _follow(self) -> None:
        """One connection, to its end."""
        housekeeping = self._timing.housekeeping
        peer = socket.create_connection(self._address, timeout=housekeeping)
        with peer:
            with self._guard:
                self._socket = peer
            peer.settimeout(None)  # a socket with a timeout does not wait for all of a frame
            seconds, part = divmod(housekeeping, 1)
            interval = struct.pack("@ll", int(seconds), int(part * 1e6))
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, interval)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, interval)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connected, self.unreachable = True, None
            begin = self._log.end
            peer.sendall(_REPORT.pack_ordered(begin))
            self._receive(peer, begin)
        with self._guard:
            self._socket = None

    def _receive(self, peer: socket.socket, reported: int) -> None:
        """Raises `DivergedError`, `StoreIOError`, `OSError`, and what the log raises."""
        log, stage = self._log, _Stage(self._log)
        incoming = _Incoming(peer, stage)
        spoken = time.monotonic()
        while not self._stop.is_set() and incoming.receive():
            incoming.take()
            while not incoming.left and (header := incoming.header()) is not None:
                offset, size = header
                self._refuse(offset, size, stage.expected)
                if size:
                    self.caught_up.clear()
                    incoming.take()
                else:
                    stage.hand_over()
                    self.caught_up.set()
            end, now = log.end, time.monotonic()
            if end > reported or now - spoken >= self._timing.heartbeat:
                peer.sendall(_REPORT.pack_ordered(end))
                reported, spoken = end, now

    def _refuse(self, offset: int, size: int, expected: int) -> None:
        """Raises for a frame that no master sends, or not one with the same log."""
        if not 0 <= size <= MAX_FRAME - _HEADER.size:
            raise StoreIOError(f"{self._name}: a frame of {size} bytes; no master sends such")
        if offset == expected:
            return
        if expected or offset < 0:
            raise DivergedError(
                f"{self._name} sends from {offset} on, and the log here ends at {expected}: nothing "
                "was taken; it is another log, or the master has less of it",
                expected,
                offset,
            )
        self._log.begin_at(offset)

    def close(self) -> None:
        """Ends the connection; what was received as a whole frame is in the log."""
        self._stop.set()
        with self._guard:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
