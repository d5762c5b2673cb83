"""Exit codes and the exception tree.

Every error that rmqtool raises on purpose is an `RmqtoolError`; the command line turns it into one line on
stderr and its `exit_code`. Anything else is a defect and ends as `ExitCode.INTERNAL`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


ABANDONED = "rmqtool-abandoned"
"""name of a thread in a library's call that answers no interrupt: the program ends without it"""


class ExitCode(IntEnum):
    """What a script may rely on after a command ended."""

    OK = 0
    DAMAGE = 1
    USAGE = 2
    INCOMPLETE = 3
    INTERNAL = 4
    LOCKED = 5
    NEWER_FORMAT = 6
    INTERRUPTED = 130
    CLOSED_PIPE = 141


_PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.INTERNAL,
    ExitCode.LOCKED,
    ExitCode.NEWER_FORMAT,
    ExitCode.INCOMPLETE,
    ExitCode.DAMAGE,
    ExitCode.OK,
)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The one code that stands for several, by the precedence of the contract."""
    given = set(codes)
    return next((code for code in _PRECEDENCE if code in given), ExitCode.OK)


class RmqtoolError(Exception):
    """Base of all deliberate errors. `str(error)` is one line without a trailing full stop."""

    exit_code: ExitCode = ExitCode.INTERNAL


class UsageError(RmqtoolError):
    """An argument that cannot be meant: unknown path, unparsable offset, contradicting options."""

    exit_code = ExitCode.USAGE


class VanishedError(UsageError):
    """There is no such file: never, or not any more."""


class NotAStoreError(UsageError):
    """The path exists, but nothing in it is a RocketMQ store file."""


class MissingExtraError(UsageError):
    """A command needs an optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra '{extra}': pip install 'rmqtool[{extra}]'")
        self.extra = extra


class StoreIOError(RmqtoolError):
    """The operating system refused: permission, vanished file, full disk."""


class UnreadableError(RmqtoolError):
    """A byte range that exists but cannot be read (EIO, file cut while it was read)."""

    exit_code = ExitCode.INCOMPLETE

    def __init__(self, path: str, offset: int, length: int, reason: str) -> None:
        super().__init__(f"{path}: bytes {offset} to {offset + length} cannot be read: {reason}")
        self.path = path
        self.offset = offset
        self.length = length
        self.reason = reason


class NewerFormatError(RmqtoolError):
    """Data of a release that this rmqtool does not know."""

    exit_code = ExitCode.NEWER_FORMAT


class PlanRefusedError(RmqtoolError):
    """A saved plan or journal no longer fits what lies on disk; nothing was changed."""

    exit_code = ExitCode.DAMAGE


NO_LOG = "has no commit log file: is its disk mounted?"


class UnfitStoreError(RmqtoolError):
    """A store that somebody has to see to first: no commit log, or no directory where one belongs."""

    exit_code = ExitCode.DAMAGE


class RecoveryLossError(RmqtoolError):
    """Opening the store as a broker does would give up intact records; nothing was changed.

    messages: how many. ranges: their physical offsets, [start, end).
    """

    exit_code = ExitCode.DAMAGE

    def __init__(self, message: str, messages: int, ranges: list[tuple[int, int]]) -> None:
        super().__init__(message)
        self.messages = messages
        self.ranges = ranges


class DivergedError(RmqtoolError):
    """What a master sends is not what follows in the log of its slave; nothing of it was taken.

    own, master: physical offsets where the log ends, and of what the master sends.
    """

    exit_code = ExitCode.DAMAGE

    def __init__(self, message: str, own: int, master: int) -> None:
        super().__init__(message)
        self.own, self.master = own, master


class StoreClosedError(UsageError):
    """The message store was closed, or belongs to the process that forked this one."""


class NoTransactionError(RmqtoolError):
    """No half message with this id waits: it was never stored, or is committed or rolled back already."""

    exit_code = ExitCode.DAMAGE

    def __init__(self, transaction_id: str) -> None:
        super().__init__(f"no transaction {transaction_id!r} is open")
        self.transaction_id = transaction_id


class LockedError(RmqtoolError):
    """A running broker holds the store."""

    exit_code = ExitCode.LOCKED


class Stopped(Exception):  # noqa: N818 - no error: it ends a worker whose results nobody reads any more
    """Work was given up because its reader has left. It never leaves the thread that it ends."""
