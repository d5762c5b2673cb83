"""Recovery of the commit log: where it starts, what it takes, where it ends.

`CommitLog#recoverNormally`, `#recoverAbnormally`, `#isMappedFileMatchedRecover`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.checkpoint import min_timestamp, min_timestamp_index
from formats.commitlog import MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2, SysFlag
from rmqtool.broker.log_walk import FileWalk, Halt
from rmqtool.broker.record_check import Rules, StopReason
from rmqtool.broker.traits import NormalStart
from rmqtool.scan import fields as f
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field
from rmqtool.scan.parallel import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from formats.primitives import Container
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.traits import Traits
    from rmqtool.scan.options import ReadOptions
    from rmqtool.scan.parallel import WorkerContext

_SCANNED_FILES = 3


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where recovery ends. offset: `processOffset`. file: index of the file it lies in.

    last_valid: start of the last record taken, None when there was none. fillers: (index of a file, position)
    of each filler record that recovery passed.
    """

    offset: int
    reason: StopReason
    file: int
    last_valid: int | None
    fillers: tuple[tuple[int, int], ...] = ()


def normal_start(files: list[MappedFile], known: int, traits: Traits) -> int:
    """Index of the file where a clean start begins; `known`: greatest end offset that any queue knows."""
    if traits.normal_start is NormalStart.LAST_THREE:
        return max(len(files) - _SCANNED_FILES, 0)
    return next((i for i in range(len(files) - 1, 0, -1) if files[i].base <= known), 0)


def abnormal_start(
    files: list[MappedFile], checkpoint: Container, traits: Traits, settings: StartSettings
) -> int:
    """Index of the last file whose first record is not younger than the checkpoint, else 0."""
    safe = settings.index_enabled and settings.index_safe
    until = min_timestamp_index(checkpoint) if safe else min_timestamp(checkpoint)
    for index in range(len(files) - 1, -1, -1):
        stored = _first_timestamp(files[index], traits)
        if stored is not None and stored <= until:
            return index
    return 0


def _first_timestamp(one: MappedFile, traits: Traits) -> int | None:
    """Store time (ms) of what begins the file, None when that is not a record or has none."""
    if one.file is None:
        return None
    with one.file.open("pread") as source:
        head = source.window(0, f.HEADER_SIZE + f.HOST_V6_EXTRA).tobytes()
    magic = _integer(head, f.OFF_MAGIC, 4)
    if magic != MESSAGE_MAGIC_CODE and not (magic == MESSAGE_MAGIC_CODE_V2 and traits.long_topics):
        return None
    extra = f.HOST_V6_EXTRA if _integer(head, f.OFF_SYS_FLAG, 4) & SysFlag.BORNHOST_V6 else 0
    return _integer(head, f.OFF_STORE_TIMESTAMP + extra, 8) or None


def _integer(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "big", signed=True)


def recover_log(
    files: list[MappedFile],
    start: int,
    size: int,
    rules: Rules,
    reading: ReadOptions,
    take: Callable[[Records, int], object],
) -> LogEnd:
    """Reads the files from `start` on as recovery does. size: bytes of a file. take: called with every run.

    Neither the base of the next file nor the offsets that records state are compared with the position.
    """
    last_valid: int | None = None
    fillers: list[tuple[int, int]] = []
    at = start

    def work(index: int, worker: WorkerContext) -> Iterator[tuple[int, Records | Halt]]:
        for item in walk_file(files[index], size, rules, reading, worker):
            yield index, item

    with closing(
        in_order(range(start, len(files)), work, reading.jobs, size=lambda index: files[index].wrote)
    ) as items:
        for at, item in items:
            base = files[at].base
            if isinstance(item, Records):
                take(item, base)
                last_valid = base + int(item.rows[-1, Field.POSITION])
            elif item.verdict.reason is not StopReason.BLANK or at == len(files) - 1:
                reason = item.verdict.reason or StopReason.END
                return LogEnd(base + item.position, reason, at, last_valid, tuple(fillers))
            else:
                fillers.append((at, item.position))
    raise AssertionError("a walk ends with a halt")


def walk_file(
    one: MappedFile, limit: int, rules: Rules, reading: ReadOptions, worker: WorkerContext
) -> Iterator[Records | Halt]:
    """Everything from the first byte of a file on."""
    if one.file is None:
        raise AssertionError("recovery reads what lies on disk")
    done = 0
    with reading.open(one.file, worker) as source:
        for item in FileWalk(source, one.base, limit, rules, reading.kernels, worker).walk(0):
            yield item
            end = int(item.rows[-1, Field.POSITION]) if isinstance(item, Records) else limit
            reading.done(end - done)
            done = end
