"""What a person sees: commands on a real pseudo-terminal of a given width."""

from __future__ import annotations

import fcntl
import io
import math
import os
import pty
import struct
import sys
import termios
from threading import Thread
from unittest import mock

from rmqtool.cli.main import run
from rmqtool.output import progress, tablerows


def screen(width: int, *words: object, lines: int = 50) -> tuple[int, str]:
    """Exit code, and all that was shown on a terminal of `width` columns, both streams, as it scrolled by.

    Without progress, which a busy machine shows and an idle one does not; columns of tables are as wide as
    their first rows, however long these take.
    """
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, width, 0, 0))
    seen: list[bytes] = []
    reader = Thread(target=_drain, args=(main, seen))
    reader.start()
    unset = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    # buffered, as a raw file may take a part of what is written to it
    terminal = io.TextIOWrapper(os.fdopen(side, "wb"), "utf-8", write_through=True)
    try:
        with (
            mock.patch.dict(os.environ, unset, clear=True),
            mock.patch.object(sys, "stdout", terminal),
            mock.patch.object(sys, "stderr", terminal),
            mock.patch.object(progress, "PATIENCE", math.inf),
            mock.patch.object(tablerows, "PATIENCE", math.inf),
        ):
            code = run([str(word) for word in words])
    finally:
        terminal.close()
        reader.join()
        os.close(main)
    return code, b"".join(seen).decode().replace("\r\n", "\n")


def _drain(terminal: int, seen: list[bytes]) -> None:
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # nobody writes any more
            return
        if not data:
            return
        seen.append(data)
