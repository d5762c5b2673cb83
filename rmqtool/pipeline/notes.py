"""How tasks that yield rows tell the driver what they could not read.

A reader of a data source has no way back but its rows, so the driver listens on a port of its own while
such a query runs. Executors reach the driver's host anyway. What is reported twice, by tasks that ran twice,
is kept once.
"""

from __future__ import annotations

import json
import secrets
import socket
import socketserver
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

Row = dict[str, Any]

_LONGEST = 64 << 20
"""bytes of one message"""
_AT_ONCE = 10_000
"""rows of one message, of some hundred bytes each"""
_PATIENCE = 60.0
"""seconds"""


class Listener:
    """A context manager. `address` goes to the tasks as option `report`; `rows` are what they reported."""

    def __init__(self, host: str) -> None:
        self._token = secrets.token_hex(16)
        self._rows: dict[str, Row] = {}
        self._lock = threading.Lock()
        listener = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while (line := self.rfile.readline(_LONGEST)) and listener.take(line):
                    self.wfile.write(b"\n")

        self._server = socketserver.ThreadingTCPServer((host, 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        """HOST:PORT:TOKEN."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}:{self._token}"

    @property
    def rows(self) -> list[Row]:
        """Rows of `not_covered`, each with its store, in a settled order."""
        with self._lock:
            return [self._rows[key] for key in sorted(self._rows)]

    def take(self, line: bytes) -> bool:
        """One message of a task; False for what does not come from one, or is longer than any."""
        try:
            reported = json.loads(line)
            known = secrets.compare_digest(reported["token"], self._token)
        except (ValueError, TypeError, KeyError, RecursionError):
            return False
        if not known:
            return False
        with self._lock:
            for row in reported["rows"]:
                self._rows[json.dumps(row, sort_keys=True)] = row
        return True


def send(address: str, rows: Sequence[Row]) -> None:
    """Tells the driver; a task that cannot do so fails rather than keep it to itself."""
    if not rows:
        return
    host, port, token = address.rsplit(":", 2)
    with socket.create_connection((host, int(port)), timeout=_PATIENCE) as connection:
        answers = connection.makefile("rb")
        for start in range(0, len(rows), _AT_ONCE):
            message = {"token": token, "rows": list(rows[start : start + _AT_ONCE])}
            connection.sendall(json.dumps(message).encode() + b"\n")
            if answers.readline() != b"\n":
                raise OSError(f"the driver at {host}:{port} did not answer")
