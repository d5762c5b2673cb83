"""Files that are read whole, and how long one of each kind may be.

A file of a store that a stranger mailed may be sparse and larger than any memory. Each limit is far above
what any broker writes; nothing else in the program reads a file of a store from end to end at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.checkpoint import CHECKPOINT_SIZE
from rmqtool.errors import ExitCode, StoreIOError
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from rmqtool.store.access import OpenMode
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile

WORDS = 1 << 12
"""a process id (`abort`), the word `lock`, cluster#broker#id: some hundred bytes at most"""
LINES = 1 << 22
"""some 30 bytes for each election of a controller (`EpochFileCache`)"""
TABLE = 256 << 20
"""topics, groups and offsets as JSON: a broker of 10^6 topics writes less"""

FRONTS = {FileKind.CHECKPOINT: CHECKPOINT_SIZE}
"""kinds that brokers map so many bytes of, whatever follows (`StoreCheckpoint`)"""
LIMITS = {
    FileKind.ABORT: WORDS,
    FileKind.ABORT_BAK: WORDS,
    FileKind.LOCK: WORDS,
    FileKind.BROKER_IDENTITY: WORDS,
    FileKind.EPOCH: LINES,
    FileKind.CONFIG: TABLE,
    FileKind.CONFIG_BAK: TABLE,
    FileKind.CONFIG_TMP: TABLE,
    FileKind.TIMERMETRICS: TABLE,
    FileKind.COMPACTION_POSITION: TABLE,
}
"""kinds that are text; a longer file is none of its kind"""


class TooLongError(StoreIOError):
    """A file that cannot be what its name says, by its length alone; it is not read."""

    exit_code = ExitCode.INCOMPLETE


def read_whole(file: StoreFile, mode: OpenMode = "pread") -> bytes:
    """All that a broker would read of a small file.

    Raises `TooLongError`, and what opening and reading raise.
    """
    with file.open(mode) as source:
        return whole(source, file.kind)


def whole(source: ByteSource, kind: FileKind) -> bytes:
    """As `read_whole`, of an open file; as long as its kind may be (`FRONTS`, `LIMITS`)."""
    front = FRONTS.get(kind)
    if front is not None:
        return source.window(0, front).tobytes()
    return within(source, LIMITS.get(kind, TABLE), f"a file of the kind {kind}")


def within(source: ByteSource, limit: int, what: str) -> bytes:
    """All bytes of a file of at most `limit`; raises `TooLongError` for a longer one, which is not `what`."""
    if source.size > limit:
        raise TooLongError(f"{source.name} has {source.size} bytes, too many for {what}: it is not read")
    return source.window(0, source.size).tobytes()
