"""One new store out of resolved runs: log, queues, index, topics, checkpoint, all of it synced."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from formats.checkpoint import Checkpoint
from formats.crc_trailer import TRAILER_SIZE, has_trailer
from rmqtool.broker.file_rules import rules_of
from rmqtool.broker.index_files import IndexFiles, IndexNames
from rmqtool.broker.traits import behaviours
from rmqtool.build.builder import Builder, QueueBuilder
from rmqtool.build.files import DerivedFiles
from rmqtool.build.log import build_log
from rmqtool.errors import StoreIOError
from rmqtool.repair.salvage.arrange import Arrangement
from rmqtool.repair.salvage.copies import copies
from rmqtool.repair.salvage.moved import Moved
from rmqtool.repair.salvage.overlaps import resolve_overlaps
from rmqtool.repair.salvage.placeholders import Placeholders
from rmqtool.repair.salvage.tables import Piece, Run
from rmqtool.repair.salvage.topics import topics_json
from rmqtool.repair.salvage.write import Written, write_log
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.repair.salvage.files import Files
    from rmqtool.repair.salvage.tables import Found
    from rmqtool.store.config import StoreConfig

    Ints = npt.NDArray[np.int64]

_SAMPLE = 64
"""runs that are asked whether brokers closed records with `__CRC32#`"""


@dataclass
class Laid:
    """A store before it is written: what stays where, what moves, how many copies each source had."""

    arranged: Arrangement
    moved: Ints
    duplicates: Ints
    fill: Placeholders


def lay_out(found: Found, files: Files, size: int) -> Laid:
    """Decides everything about a store with segments of `size` bytes. Reads, and writes nothing."""
    resolved = resolve_overlaps(found, files)
    fill = Placeholders(files.names, _mark(files), _host(found, files), trailer=_trailer(found, files))
    arranged = Arrangement(resolved.found, resolved.moved, files, size, fill)
    moved = np.concatenate(arranged.moved)
    twice = copies(moved, arranged.found, files)
    duplicates = resolved.duplicates.copy()
    np.add.at(duplicates, moved[twice, Moved.SOURCE], 1)
    return Laid(arranged, moved[~twice], duplicates, fill)


def bytes_needed(laid: Laid) -> int:
    """What the log takes on the disk; queues and index come on top."""
    kept = int(laid.arranged.found.runs[:, Run.LENGTH].sum()) + int(laid.moved[:, Moved.SIZE].sum())
    return kept + sum(
        sum(one.count * one.size for one in gap.allocated) if gap.rolls else gap.end - gap.start
        for gap in laid.arranged.gaps
    )


def write_store(
    laid: Laid, files: Files, root: str, *, release: str | None, config: StoreConfig | None, jobs: int
) -> Written:
    """Writes the store into `root`, a directory of ours. Raises `StoreIOError`.

    release: None for the last one that the records do not exclude.
    """
    try:
        free = shutil.disk_usage(root).free
        if bytes_needed(laid) > free:
            raise StoreIOError(f"{root}: {bytes_needed(laid)} bytes are needed, {free} are free")
        for name in ("commitlog", "consumequeue", "index", "config"):
            os.mkdir(os.path.join(root, name))
        written = write_log(
            laid.arranged, laid.moved, files, laid.fill, os.path.join(root, "commitlog"), root
        )
        if release is None:
            written.release_source = "inferred"
            release = list(behaviours(Store.open(root).release.releases))[-1]
        written.release = release
        partitions = np.unique(np.concatenate([_partitions(laid), np.empty(0, np.int64)])).tolist()
        now = time.time_ns() // 1_000_000
        topics = topics_json(
            [files.names.partitions[partition] for partition in partitions], files.names.batch_topics, now
        )
        _put(root, "config/topics.json", topics)
        _derive(root, release, config, jobs)
        last = written.last_time
        _put(
            root,
            "checkpoint",
            Checkpoint.build(
                {
                    "physic_msg_timestamp": last,
                    "logics_msg_timestamp": last,
                    "index_msg_timestamp": last,
                    "master_flushed_offset": 0,
                    "confirm_physical_offset": 0,
                }
            ),
        )
        sync_tree(root)
    except OSError as error:
        raise StoreIOError(f"{root}: {error.strerror}") from error
    return written


def _partitions(laid: Laid) -> Ints:
    standing = laid.arranged.found.pieces[:, Piece.PARTITION]
    moved = laid.moved[:, Moved.PARTITION]
    return np.concatenate([standing, moved[moved >= 0]])


def _derive(root: str, release: str, config: StoreConfig | None, jobs: int) -> None:
    """Consume queues and index of the new log."""
    store = Store.open(root, config=config)
    rules = rules_of(store, release)
    kernels = choose_kernels(data_bytes(store.segments))
    derived = DerivedFiles(Path(root))
    queues = QueueBuilder(rules, derived, kernels)
    index = IndexFiles(rules, derived, kernels, IndexNames([], None).next_name)
    build_log(store.segments, Builder(queues, index), kernels, ReadOptions(jobs=jobs))
    for path, last in derived.times.items():
        if last is not None:
            os.utime(os.path.join(root, path), ns=(last * 1_000_000, last * 1_000_000))


def _put(root: str, name: str, data: bytes) -> None:
    with open(os.path.join(root, name), "wb") as stream:
        stream.write(data)


def sync_tree(root: str) -> None:
    """Every file and directory below a directory, and itself, to the disk."""
    for directory, _, names in os.walk(root):
        for path in (*(os.path.join(directory, name) for name in names), directory):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _mark(files: Files) -> str:
    """16 hex digits that stay the same as long as the sources do."""
    digest = hashlib.sha256(b"salvage")
    for one in files.sources:
        digest.update(f"\0{one.path}\0{one.size}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def _host(found: Found, files: Files) -> bytes:
    """The store host of most records."""
    if len(found.runs) == 0:
        return bytes(8)
    counts = np.zeros(len(files.names.hosts), np.int64)
    np.add.at(counts, found.runs[:, Run.HOST], found.runs[:, Run.COUNT])
    return files.names.hosts[int(counts.argmax())]


def _trailer(found: Found, files: Files) -> bool:
    """Whether most runs end in a record with `__CRC32#`."""
    sample = found.runs[:: max(len(found.runs) // _SAMPLE, 1)]
    ends = sample[:, Run.POSITION] + sample[:, Run.LENGTH]
    closed = [
        has_trailer(files.bytes_at(source, max(end - TRAILER_SIZE, 0), min(end, TRAILER_SIZE)).tobytes())
        for source, end in zip(sample[:, Run.SOURCE].tolist(), ends.tolist(), strict=True)
    ]
    return 2 * sum(closed) > len(closed)
