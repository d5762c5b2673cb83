"""Logs of topics with `cleanup.policy=COMPACTION` through a load (`CompactionStore#load`; 5.1.0 and later).

A log and its queue have files of the same names. What is no pair ends the start; a file of another length
only leaves that queue out, and what is sent to it meanwhile (`CompactionStore#loadAndGetClog`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.broker.load import RefusedError, load_files
from rmqtool.broker.mapped_files import MappedFile
from rmqtool.broker.units import Prefix, valid_prefix
from rmqtool.scan.units import BATCH_UNIT
from rmqtool.store.names import file_name, parse_queue_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from rmqtool.broker.files import Disk
    from rmqtool.broker.mapped_files import MappedFiles
    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.traits import Traits
    from rmqtool.store.files import StoreFile
    from rmqtool.store.listing import Listing

LOGS, QUEUES = "compaction/compactionLog", "compaction/compactionCq"
_WITHOUT = "enableCompaction=false"


@dataclass(frozen=True, slots=True)
class CompactionQueue:
    """One queue as it was loaded. left_out: the path over which it was not, and why; None if it was.

    deleted: files that the load removed. cut: those of them that were behind the last unit.
    """

    topic: str
    queue_id: int
    left_out: tuple[str, str] | None = None
    deleted: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()


def in_use(traits: Traits, settings: StartSettings) -> bool:
    """Whether the broker opens compaction logs at all."""
    return settings.compaction and traits.compaction


def load_compaction(
    listing: Listing, traits: Traits, settings: StartSettings, disk: Disk | None = None
) -> Iterator[CompactionQueue]:
    """All queues with a compaction log. Raises `RefusedError` where the load of the store fails over one."""
    for topic in listing.entries(LOGS) if in_use(traits, settings) else ():
        for entry in listing.entries(f"{LOGS}/{topic.name}") if topic.file is None else ():
            if entry.file is not None:
                continue
            number = parse_queue_id(entry.name)
            if number is None:
                raise RefusedError("compaction", "the name is not a queue number", entry.path, _WITHOUT)
            paths = f"{LOGS}/{topic.name}/{entry.name}", f"{QUEUES}/{topic.name}/{number}"
            yield _loaded(listing, traits, settings, disk, topic.name, number, paths)


def _loaded(
    listing: Listing,
    traits: Traits,
    settings: StartSettings,
    disk: Disk | None,
    topic: str,
    number: int,
    paths: tuple[str, str],
) -> CompactionQueue:
    if not listing.is_directory(paths[1]):
        return CompactionQueue(topic, number, (paths[0], f"there is no {paths[1]}"))
    sizes = settings.compaction_log_size, settings.compaction_queue_size
    found: list[MappedFiles] = []
    try:
        for path, size in zip(paths, sizes, strict=True):
            found.append(load_files(listing.entries(path), size, path, traits, disk))
    except RefusedError as error:
        refusal = error.refusal
        if refusal.code != "file-length":
            raise RefusedError("compaction", refusal.message, refusal.path, _WITHOUT) from None
        return CompactionQueue(topic, number, (refusal.path or paths[0], refusal.message))
    log, queue = found
    end, empty = _end_of(queue), len(log.deleted)
    if end > 0:
        log.truncate(end)
    _pair(log, queue)
    return CompactionQueue(
        topic, number, deleted=(*log.deleted, *queue.deleted), cut=tuple(log.deleted[empty:])
    )


def _end_of(queue: MappedFiles) -> int:
    """Where the log ends by the last file of its queue, 0 if that knows nothing (`#getMaxPhyOffsetInLog`)."""
    last = _prefix_of(queue.files[-1].file).last if queue.files else None
    return 0 if last is None else int(last["physical_offset"]) + int(last["size"])


def compaction_units(file: StoreFile) -> npt.NDArray[np.void]:
    """The units of a file up to the first that is none (`SparseConsumeQueue#recover`)."""
    count = _prefix_of(file).count
    with file.open("pread") as source:
        return source.window(0, count * BATCH_UNIT.itemsize).view(BATCH_UNIT)


def _prefix_of(file: StoreFile | None) -> Prefix:
    size = 0 if file is None else file.size
    return valid_prefix(MappedFile(0, size, "", file), BATCH_UNIT, "pread", size // BATCH_UNIT.itemsize)


def _pair(log: MappedFiles, queue: MappedFiles) -> None:
    """`TopicPartitionLog#sanityCheck`. Raises `RefusedError`."""
    names = {one.path.rpartition("/")[2] for one in queue.files}
    for one in log.files:
        if file_name(one.base) not in names:
            raise RefusedError("compaction", "its queue has no file of this name", one.path, _WITHOUT)
    names = {one.path.rpartition("/")[2] for one in log.files}
    for one in queue.files:
        if one.path.rpartition("/")[2] not in names:
            words = "the log has no file of this name"
            if log.deleted:
                words += ": it was deleted, as the last unit leads in front of it"
            raise RefusedError("compaction", words, one.path, _WITHOUT)
