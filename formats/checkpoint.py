"""The store's own state: `checkpoint`, `abort`, `lock`, the epoch file and `brokerIdentity`.

docs/format/checkpoint.md; `StoreCheckpoint`, `DefaultMessageStore`, `CheckpointFile`, `EpochEntry`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import construct as cs

from formats.errors import FormatError
from formats.primitives import Schema, crc32_masked, sizeof

if TYPE_CHECKING:
    from collections.abc import Iterable

    from formats.primitives import Container

CHECKPOINT_SIZE = 4096

_CHECKPOINT_HEAD = cs.Struct(
    "physic_msg_timestamp" / cs.Int64sb,
    "logics_msg_timestamp" / cs.Int64sb,
    "index_msg_timestamp" / cs.Int64sb,
    "master_flushed_offset" / cs.Int64sb,
    "confirm_physical_offset" / cs.Int64sb,
)
CHECKPOINT_HEAD_SIZE = sizeof(_CHECKPOINT_HEAD)
CHECKPOINT_FIELDS: tuple[str, ...] = tuple(str(one.name) for one in _CHECKPOINT_HEAD.subcons)
"""what a checkpoint says"""
_RESERVED = CHECKPOINT_SIZE - CHECKPOINT_HEAD_SIZE

Checkpoint = Schema(
    cs.Struct(*_CHECKPOINT_HEAD.subcons, "reserved" / cs.Default(cs.Bytes(_RESERVED), bytes(_RESERVED)))
)
"""Times in ms, offsets in bytes. The last two fields are 0 in 4.x; `reserved` is zero in every release."""

TIMES = ("physic_msg_timestamp", "logics_msg_timestamp", "index_msg_timestamp")
"""store times of messages, ms"""

CLOCK_MARGIN_MS = 3000
"""by which recovery begins earlier than the checkpoint says"""
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_PID = re.compile(rb"0|[1-9][0-9]{0,18}")

Lock = Schema(cs.Const(b"lock"))
"""What `start()` writes into the lock file. The lock itself is one of the operating system, on byte 0."""


def parse_checkpoint(data: bytes) -> Container:
    """The checkpoint as a broker reads it: zeros where the file is too short, nothing behind 4096 bytes."""
    return Checkpoint.parse(bytes(data[:CHECKPOINT_SIZE]).ljust(CHECKPOINT_SIZE, b"\0"))  # type: ignore[no-any-return]


def min_timestamp(checkpoint: Container) -> int:
    """The store timestamp that a recovery may start from (`StoreCheckpoint#getMinTimestamp`)."""
    earlier = min(int(checkpoint.physic_msg_timestamp), int(checkpoint.logics_msg_timestamp))
    return max(earlier - CLOCK_MARGIN_MS, 0)


def min_timestamp_index(checkpoint: Container) -> int:
    """As `min_timestamp`, when the index counts too (`messageIndexSafe`)."""
    return min(min_timestamp(checkpoint), int(checkpoint.index_msg_timestamp))


def _decode_pid(raw: bytes) -> int | None:
    if not raw:
        return None
    if not _PID.fullmatch(raw):
        raise FormatError("is neither empty nor a process id", "abort")
    return int(raw)


def _encode_pid(pid: int | None) -> bytes:
    return b"" if pid is None else str(int(pid)).encode()


Abort = Schema(
    cs.ExprAdapter(
        cs.GreedyBytes,
        lambda raw, _: _decode_pid(raw),
        lambda pid, _: _encode_pid(pid),
    )
)
"""The process id in an abort file; None when empty, as in 4.x. That it exists means "not shut down"."""


class EpochEntry(NamedTuple):
    """From `start_offset` on the log was written in this epoch."""

    epoch: int
    start_offset: int


@dataclass(frozen=True)
class EpochFile:
    """The text of an epoch file: the entries, and the number and CRC that stand in front of them.

    `count` and `crc` are what the file says; `is_valid` tells whether they are right. `separator` ends each
    line (that of the broker's platform), `terminated` says whether the last line has one.
    """

    entries: tuple[EpochEntry, ...]
    count: int
    crc: int
    separator: bytes = b"\n"
    terminated: bool = True

    @classmethod
    def of(cls, entries: Iterable[EpochEntry], separator: bytes = b"\n") -> EpochFile:
        """The file that a broker writes for these entries."""
        rows = tuple(entries)
        return cls(rows, len(rows), crc32_masked(_epoch_lines(rows, separator)), separator)

    @classmethod
    def parse(cls, data: bytes) -> EpochFile:
        """From the bytes of a file; FormatError unless it has such lines. `is_valid` checks what they say."""
        raw = bytes(data)
        separator = b"\r\n" if b"\r\n" in raw else b"\n"
        lines = raw.split(separator)
        terminated = not lines[-1]
        if terminated:
            lines.pop()
        if len(lines) < 2:
            raise FormatError("has no lines for number and CRC", "epoch")
        count, crc = (_number(line, f"epoch.line {n}", 31) for n, line in enumerate(lines[:2], start=1))
        entries = tuple(_epoch_entry(line, f"epoch.line {n}") for n, line in enumerate(lines[2:], start=3))
        return cls(entries, count, crc, separator, terminated)

    @property
    def computed_crc(self) -> int:
        """The masked CRC-32 of the entry lines, each with its separator."""
        return crc32_masked(_epoch_lines(self.entries, self.separator))

    @property
    def is_valid(self) -> bool:
        """Whether a broker accepts the file (`CheckpointFile#read`)."""
        return self.count == len(self.entries) and self.crc == self.computed_crc

    def build(self) -> bytes:
        """The bytes of the file."""
        head = b"".join(str(number).encode() + self.separator for number in (self.count, self.crc))
        raw = head + _epoch_lines(self.entries, self.separator)
        return raw if self.terminated else raw[: -len(self.separator)]


class BrokerIdentity(NamedTuple):
    """The one line of `brokerIdentity`, without line end."""

    cluster: str
    broker: str
    broker_id: int

    @classmethod
    def parse(cls, data: bytes) -> BrokerIdentity:
        """From `cluster#broker#id`; FormatError for anything else."""
        parts = bytes(data).split(b"#")
        if len(parts) != 3:
            raise FormatError("is not cluster#broker#id", "brokerIdentity")
        try:
            cluster, broker = (part.decode() for part in parts[:2])
        except UnicodeDecodeError as error:
            raise FormatError(str(error), "brokerIdentity") from error
        return cls(cluster, broker, _number(parts[2], "brokerIdentity.broker_id", 63))

    def build(self) -> bytes:
        """The bytes of the file; FormatError when a name contains the separator."""
        if "#" in self.cluster + self.broker:
            raise FormatError("a name contains #", "brokerIdentity")
        return f"{self.cluster}#{self.broker}#{self.broker_id}".encode()


def _number(text: bytes, path: str, bits: int) -> int:
    if not _INTEGER.fullmatch(text) or not -(1 << bits) <= int(text) < 1 << bits:
        raise FormatError(f"{text[:40]!r} is not a {bits + 1}-bit number", path)
    return int(text)


def _epoch_entry(line: bytes, path: str) -> EpochEntry:
    epoch, separator, start = line.partition(b"-")
    if not separator:
        raise FormatError(f"{line[:40]!r} is not epoch-offset", path)
    return EpochEntry(_number(epoch, path, 31), _number(start, path, 63))


def _epoch_lines(entries: Iterable[EpochEntry], separator: bytes) -> bytes:
    return b"".join(f"{entry.epoch}-{entry.start_offset}".encode() + separator for entry in entries)
