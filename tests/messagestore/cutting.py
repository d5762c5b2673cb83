"""A way between a slave and its master that is cut now and then."""

from __future__ import annotations

import random
import socket
import threading
from contextlib import suppress
from typing import Self


class Cutting:
    """Listens in front of a master and hands on what both say; each connection ends behind some bytes.

    least, most: how many. cuts: how many connections are cut; those behind them are not.
    """

    def __init__(self, target: int, chance: random.Random, cuts: int, least: int, most: int) -> None:
        self._target, self._chance, self.left = target, chance, cuts
        self._range = least, most
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.socket()
                try:
                    far.connect(("127.0.0.1", self._target))
                except OSError:  # the master is not there at the moment
                    near.close()
                    continue
                self._open += [near, far]
                room = 1 << 62
                if self.left > 0:
                    room, self.left = self._chance.randrange(*self._range), self.left - 1
                threading.Thread(target=self._hand_on, args=(far, near, room), daemon=True).start()
                threading.Thread(target=self._hand_on, args=(near, far, 1 << 62), daemon=True).start()

    def _hand_on(self, source: socket.socket, target: socket.socket, room: int) -> None:
        with suppress(OSError):
            while room > 0 and (got := source.recv(min(room, 1 << 16))):
                target.sendall(got)
                room -= len(got)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
