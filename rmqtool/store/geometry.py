"""Sizes that no file states: inferred from what lies there, and said to be inferred.

Mapped files have their full length from the moment they are made (`DefaultMappedFile#init`), and their
names are multiples of it, so lengths and distances between names vote. Geometry of index files is in
`index_geometry`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from formats.commitlog import BLANK_MAGIC_CODE, MESSAGE_MAGIC_CODE, Blank, overhead
from formats.consumequeue import EXT_MIN_SIZE, BatchUnit, Unit
from formats.dledger import ENTRY_HEAD_SIZE, IndexUnit
from formats.primitives import sizeof
from formats.timer import TIMER_UNIT_SIZE
from rmqtool.errors import RmqtoolError
from rmqtool.store.index_geometry import IndexGeometry, Source, index_geometry, try_geometry
from rmqtool.store.index_solver import solve_index
from rmqtool.store.kinds import COMPACTION_KINDS, FileKind
from rmqtool.store.names import INT_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rmqtool.store.config import StoreConfig
    from rmqtool.store.contents import StoreContents
    from rmqtool.store.files import StoreFile

__all__ = [
    "UNIT_SIZES",
    "FileSize",
    "IndexGeometry",
    "Source",
    "file_sizes",
    "index_geometries",
    "index_geometry",
    "infer_file_size",
    "solve_index",
]

UNIT_SIZES = {
    FileKind.CONSUMEQUEUE: sizeof(Unit),
    FileKind.BATCHCONSUMEQUEUE: sizeof(BatchUnit),
    FileKind.COMPACTION_CQ: sizeof(BatchUnit),
    FileKind.DLEDGER_INDEX: sizeof(IndexUnit),
}
"""Bytes of a unit in the kinds of file that consist of equal units."""

_SMALLEST_RECORD = overhead(MESSAGE_MAGIC_CODE, 0)
_SMALLEST = {
    FileKind.COMMITLOG: _SMALLEST_RECORD,
    FileKind.CONSUMEQUEUE_EXT: EXT_MIN_SIZE,
    FileKind.TIMERLOG: TIMER_UNIT_SIZE,
    FileKind.COMPACTION_LOG: _SMALLEST_RECORD,
    FileKind.DLEDGER_DATA: ENTRY_HEAD_SIZE,
}
"""Bytes of the smallest entry in the other kinds; a shorter file is what is left of one."""

_LARGEST_BLANK = 1 << 23
"""bytes that a blank may take: what the largest record of a broker did not fit into (`maxMessageSize`)"""

_DEFAULTS = {
    FileKind.COMMITLOG: 1_073_741_824,
    FileKind.CONSUMEQUEUE: 6_000_000,
    FileKind.CONSUMEQUEUE_EXT: 50_331_648,
    FileKind.BATCHCONSUMEQUEUE: 13_800_000,
    FileKind.TIMERLOG: 104_857_600,
    FileKind.COMPACTION_LOG: 104_857_460,
    FileKind.COMPACTION_CQ: 10_485_746,
    FileKind.DLEDGER_DATA: 1_073_741_824,
    FileKind.DLEDGER_INDEX: 167_772_160,
}

_SETTINGS = {
    FileKind.COMMITLOG: "mapped_file_size_commit_log",
    FileKind.CONSUMEQUEUE: "consume_queue_file_size",
    FileKind.CONSUMEQUEUE_EXT: "mapped_file_size_consume_queue_ext",
    FileKind.BATCHCONSUMEQUEUE: "mapper_file_size_batch_consume_queue",
    FileKind.TIMERLOG: "mapped_file_size_timer_log",
    FileKind.COMPACTION_LOG: "compaction_log_file_size",
    FileKind.COMPACTION_CQ: "compaction_cq_file_size",
    FileKind.DLEDGER_DATA: "mapped_file_size_commit_log",
}


@dataclass(frozen=True, slots=True)
class FileSize:
    """Length in bytes that files of one kind should have.

    source: `given` (settings), `inferred` (from the files), `default` (no file says), `ambiguous` (files
    disagree and no length is more frequent, or the only segment was cut short: `value` is the best guess,
    `candidates` are all). others: lengths of files that differ from `value`. detail: one line for people.
    """

    kind: FileKind
    value: int
    source: Source
    candidates: tuple[int, ...]
    others: tuple[int, ...]
    detail: str

    @property
    def units(self) -> int | None:
        """Units in one file, None for kinds without equal units."""
        unit = UNIT_SIZES.get(self.kind)
        return None if unit is None else self.value // unit


def _by_directory(files: Iterable[StoreFile]) -> list[list[StoreFile]]:
    groups: dict[tuple[str, int], list[StoreFile]] = {}
    for file in files:
        groups.setdefault((file.path.rpartition("/")[0], file.root), []).append(file)
    return list(groups.values())


def _votes(kind: FileKind, groups: Sequence[Sequence[StoreFile]], *, distances: bool) -> Counter[int]:
    """One vote for every length and, where names are bases, for every distance that divides them.

    Only what a file of the kind can have: whole units, room for an entry, what Java's int holds. Not the
    length of a segment that was cut short.
    """
    votes: Counter[int] = Counter()
    for group in groups:
        cut = _cut_short(group) if kind is FileKind.COMMITLOG else ()
        votes.update(file.size for file in group if file.base_offset not in cut)
        if not distances:
            continue
        bases = sorted({file.base_offset for file in group if file.base_offset is not None})
        votes.update(step for low, high in pairwise(bases) if low % (step := high - low) == 0)
    unit = UNIT_SIZES.get(kind, 1)
    least = _SMALLEST.get(kind, unit)
    return Counter({size: n for size, n in votes.items() if least <= size <= INT_MAX and size % unit == 0})


def _cut_short(segments: Sequence[StoreFile]) -> set[int]:
    """Names of segments that end in front of the next one and not in a blank, which closes a whole one.

    What lies between two whole ones is missing itself.
    """
    named = sorted(
        ((one.base_offset, one) for one in segments if one.base_offset is not None), key=itemgetter(0)
    )
    return {
        base
        for (base, one), (following, _) in pairwise(named)
        if base + one.size < following and not _ends_in_blank(one)
    }


def _is_cut_alone(segments: Sequence[StoreFile]) -> bool:
    """Whether there is one segment, without the zeros behind the end of a log, and without a blank."""
    if len(segments) != 1 or segments[0].size < sizeof(Blank):
        return False
    try:
        with segments[0].open("pread") as source:
            end = source.window(source.size - sizeof(Blank), sizeof(Blank))
    except RmqtoolError:
        return False
    return bool(end.any()) and not _ends_in_blank(segments[0])


def _ends_in_blank(segment: StoreFile) -> bool:
    """Whether a blank reaches to its end, as far as can be read (`AppendMessageStatus#END_OF_FILE`)."""
    import numpy as np

    try:
        with segment.open("pread") as source:
            start = max(source.size - _LARGEST_BLANK, 0)
            tail = source.window(start, source.size - start)
    except RmqtoolError:
        return True
    count = max(len(tail) - sizeof(Blank) + 1, 0)
    found = np.ones(count, np.bool_)
    for at, byte in enumerate(BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True), 4):
        found &= tail[at : at + count] == byte
    begins = np.flatnonzero(found)
    stated = np.zeros(len(begins), np.int64)
    for at in range(4):
        stated = stated << 8 | tail[begins + at]
    return bool((stated == len(tail) - begins).any())


def infer_file_size(
    kind: FileKind, files: Sequence[StoreFile], config: StoreConfig | None = None
) -> FileSize:
    """File size of one mapped-file queue kind.

    A setting that was given wins; otherwise lengths and name distances of `files` vote, a tie is ambiguous;
    without files it is the release default. Name distances do not count for compaction files, whose names
    may skip (`CompactionLog`), and for extension files of several queues each directory votes for itself.
    """
    lengths = Counter(file.size for file in files)
    if config is not None and _is_set(config, kind):
        value = int(getattr(config, _SETTINGS[kind]))
        others = tuple(sorted(size for size in lengths if size != value))
        detail = f"{kind} files have {value} bytes by the settings given"
        return FileSize(kind, value, Source.GIVEN, (value,), others, detail)
    compaction = kind in COMPACTION_KINDS
    # the roots of the log share one row of names
    groups = [files] if kind is FileKind.COMMITLOG else _by_directory(files)
    votes = _votes(kind, groups, distances=not compaction)
    if not votes:
        value = _DEFAULTS[kind]
        return FileSize(
            kind, value, Source.DEFAULT, (value,), (), f"no {kind} file shows it: default {value} bytes"
        )
    best = max(votes.values())
    candidates = tuple(sorted((size for size, count in votes.items() if count == best), reverse=True))
    value = candidates[0]
    others = tuple(sorted(size for size in lengths if size != value))
    told = len(candidates) == 1 and not (kind is FileKind.COMMITLOG and _is_cut_alone(files))
    source = Source.INFERRED if told else Source.AMBIGUOUS
    detail = f"{lengths[value]} of {len(files)} {kind} files have {value} bytes"
    if others:
        detail += f", others {', '.join(map(str, others[:5]))}"
    return FileSize(kind, value, source, candidates, others, detail)


def _is_set(config: StoreConfig, kind: FileKind) -> bool:
    name = _SETTINGS.get(kind)
    return name is not None and config.is_set(name)


def file_sizes(store: StoreContents) -> Mapping[FileKind, FileSize]:
    """File size of every mapped-file queue kind in the store, and of commit log and consume queue."""
    always = (FileKind.COMMITLOG, FileKind.CONSUMEQUEUE)
    return {
        kind: infer_file_size(kind, store.of_kind(kind), store.config)
        for kind in _DEFAULTS
        if kind in always or store.of_kind(kind)
    }


def index_geometries(store: StoreContents) -> Mapping[str, IndexGeometry]:
    """Geometry of every index file, by path. One without entries takes that of a sibling as long."""
    found = {file.path: try_geometry(file, store.config) for file in store.index_files()}
    solved = {
        geometry.length: (path, geometry) for path, geometry in found.items() if geometry.slots is not None
    }
    for path, geometry in found.items():
        if geometry.slots is None and geometry.length in solved:
            sibling, other = solved[geometry.length]
            found[path] = IndexGeometry(
                other.slots,
                other.items,
                Source.INFERRED,
                geometry.length,
                other.candidates,
                f"{other.slots} slots and {other.items} entries as {sibling}, which has the same length",
            )
    return found
