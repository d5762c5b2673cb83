"""Consume queues and index of the repaired log, held against those that lie there."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.index import Header
from formats.primitives import sizeof
from rmqtool.broker.deleted_topics import is_somebodys
from rmqtool.broker.file_rules import kept_rules_of
from rmqtool.broker.index_files import IndexFiles, IndexNames
from rmqtool.build.builder import Builder, QueueBuilder
from rmqtool.build.files import DerivedFiles
from rmqtool.build.log import build_log
from rmqtool.build.queues import Queues
from rmqtool.check.findings import Severity
from rmqtool.check.index import IndexCheck
from rmqtool.check.index import LogRange as IndexedLog
from rmqtool.check.index_keys import keys_of
from rmqtool.check.ranges import Ranges
from rmqtool.repair.content import FromFile
from rmqtool.repair.keep.batch_files import BatchRepair
from rmqtool.repair.keep.behind import OnlyEntries, behind_log
from rmqtool.repair.keep.extension import ExtensionRepair
from rmqtool.repair.keep.queues import QueueRepair
from rmqtool.repair.keep.rocksdb import has_rocksdb_queues
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.repair.same_bytes import same_bytes
from rmqtool.scan.events import Gap, Records, Unreadable
from rmqtool.scan.fields import DispatchColumn
from rmqtool.scan.index import read_header
from rmqtool.scan.reader import LogReader
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.broker.queue_records import QueueRecords
    from rmqtool.check.index_keys import Keys
    from rmqtool.repair.keep.counted import Ahead
    from rmqtool.repair.keep.repaired_log import RepairedLog
    from rmqtool.scan.counted import Counted
    from rmqtool.scan.kernel_types import Hashes
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

    Key = tuple[str, int]
    Ints = npt.NDArray[np.int64]


@dataclass
class Derived:
    """Changes to derived files.

    full_index_timestamp: end time (ms) of the last index file that is full. behind: entries that lead behind
    the end of the log.
    """

    edits: list[Edit] = field(default_factory=list)
    full_index_timestamp: int = 0
    notes: list[str] = field(default_factory=list)
    behind: OnlyEntries = field(default_factory=OnlyEntries)


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of records and their keys."""

    records: Records
    keys: Keys

    @classmethod
    def of(cls, hashing: Hashes, segment: Segment, found: Records) -> _Run:
        """Takes the rows, which are overwritten when the scan goes on."""
        records = Records(found.rows.copy(), found.window, found.origin)
        return cls(records, keys_of(hashing, records, segment.base))

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return self.records.rows.nbytes + self.records.window.nbytes + self.keys.nbytes


@dataclass(frozen=True)
class DerivedRepair:
    """Make it for one store, call `repair` once.

    store: with the repaired log. files: whether queue files are built. work: an empty directory for what is
    built. progress: its reading has kernels; an index that is rebuilt is more work than was announced.
    """

    store: Store
    release: str
    log: RepairedLog
    files: bool
    work: str
    progress: Counted

    def repair(self) -> Derived:
        """Builds queues and compares, checks the index and rebuilds it where it is not right."""
        store, kernels = self.store, self.progress.reading.kernels
        rules = replace(kept_rules_of(store, self.release), extension=False)
        made = Derived()
        queues_in = Path(self.work) / "queues"
        queues_in.mkdir()
        files = DerivedFiles(queues_in, flat=True)
        queues = _Placed(Queues(rules, files, kernels), self.log.blanks, self.log.ahead)
        builder = QueueBuilder(rules, files, kernels, _wanted(store), queues)
        sound = self._read(store, builder if self.files else None)
        if not self.files:
            made.notes.append("the consume queues are in RocksDB: they are left to the broker")
        else:
            made.edits += self._queues(store, rules, files, queues.made)
            made.behind = behind_log(store, self.log.end, queues.made.built(), self.log.left, rules)
        if store.config is None or store.config.message_index_enable:
            made.edits += [] if sound else self._index(store, rules)
        made.full_index_timestamp = _full_index(store, made.edits)
        made.edits = _once(made.edits)
        return made

    def _queues(self, store: Store, rules: FileRules, files: DerivedFiles, made: Queues) -> Iterator[Edit]:
        """Where units may point depends on what stays of extension files, and the other way round."""
        first, built, left = store.segments.first_offset, made.built(), self.log.left
        with ExtensionRepair(store, rules.extension_size) as extension:
            plain = QueueRepair(
                store,
                files,
                rules.consume_queue_size,
                first,
                self.log.end,
                built,
                left,
                self.log.written,
                extension.lookup,
            )
            yield from plain.edits()
            yield from extension.edits(plain.highest)
        yield from BatchRepair(store, files, rules.batch_queue_size, first, built, left).edits()

    def _read(self, store: Store, builder: QueueBuilder | None) -> bool:
        """One pass over the log: units are built, items compared. Whether the index is right."""
        reading = self.progress.reading
        # A repaired index lags behind nothing, and belongs to whatever becomes a store.
        index = IndexCheck(store, reading.kernels, reading.access, unclean=False, complete=True)
        hashing = reading.kernels.hashes
        log = LogReader(
            store.segments,
            reading,
            reading.kernels,
            lambda one: partial(_Run.of, hashing, one),
            false_blanks=True,
        )
        wrong = False
        for segment, event in log.events():
            if isinstance(event, _Run):
                if builder is not None:
                    builder.take(event.records, segment.base)
                wrong |= any(_counts(one) for one in index.match(event.keys))
            elif isinstance(event, Gap | Unreadable) and builder is not None:
                builder.damage(event.length)
        if builder is not None:
            builder.flush()
        known = IndexedLog(store.segments.first_offset, self.log.end) if len(store.segments) else None
        wrong |= any(_counts(one) for one in index.finish(known, Ranges()))
        odd = any(one.size == 0 or _goes_on_behind(one, self.log.end) for one in store.index_files())
        return not wrong and not odd

    def _index(self, store: Store, rules: FileRules) -> Iterator[Edit]:
        """The whole index again; the names of the files that are replaced are kept."""
        place = Path(self.work) / "index-files"
        place.mkdir()
        files = DerivedFiles(place, flat=True)
        names = [one.name for one in store.index_files() if one.name.isascii() and len(one.name) == 17]
        reading = self.progress.reading
        self.progress.expect(sum(one.size for one in store.segments))
        index = IndexFiles(rules, files, reading.kernels, IndexNames(names).next_name)
        build_log(store.segments, Builder(None, index), reading.kernels, reading)
        for path in sorted(files.times):
            built = files.place(path)
            size = built.stat().st_size
            if same_bytes(built, store.file(path)):
                continue
            time = files.times[path]
            change = Change(
                action=Action.PUT,
                path=path,
                length=size,
                size=size,
                mtime_ns=None if not time or time < 0 else time * 1_000_000,
                why="index",
                message=f"{path} is rebuilt from the log",
            )
            yield Edit(change, FromFile(os.fspath(built), 0, size, movable=True))
        for file in store.index_files():
            if file.path not in files.times and file.regular:
                message = f"{file.display_path}: what it would hold is in the files rebuilt"
                yield Edit(Change(action=Action.REMOVE, path=file.display_path, why="index", message=message))


@dataclass(frozen=True, slots=True)
class _Placed:
    """Queues in which positions that no record of the log has stay free, so many in each.

    ahead: those in which records lie in front of what they state.
    """

    made: Queues
    blanks: Mapping[Key, int]
    ahead: Ahead

    def append(self, key: Key, run: QueueRecords, lost: int) -> None:
        """See `ConsumeQueue.append`."""
        if key in self.ahead.by_queue and run.counts is None:
            columns = run.columns.copy()
            columns[DispatchColumn.SLOT] -= self.ahead.of(key, columns[DispatchColumn.OFFSET])
            run = replace(run, columns=columns)
        self.made.append(key, run, lost + self.blanks.get(key, 0))


def _wanted(store: Store) -> Callable[[str, int], bool]:
    """Queues of topics that were deleted are not made again; where all are gone, none tells of that."""
    kinds = FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE
    there = {(one.topic, one.queue_id) for kind in kinds for one in store.queues(kind)}
    every = not there and not has_rocksdb_queues(store)
    return lambda topic, queue_id: every or is_somebodys(store.topics, topic) or (topic, queue_id) in there


def _full_index(store: Store, edits: list[Edit]) -> int:
    """`indexMsgTimestamp`: the end time of the newest file but the last (`IndexService`)."""
    changed = {edit.change.path: edit for edit in edits if edit.change.path.startswith("index/")}
    names = {one.path for one in store.index_files()} | set(changed)
    left = sorted(name for name in names if name not in changed or changed[name].change.action is Action.PUT)
    if len(left) < 2:
        return 0
    edit, file = changed.get(left[-2]), store.file(left[-2])
    if edit is not None and isinstance(edit.content, FromFile):
        with open(edit.content.path, "rb") as built:
            return int(Header.parse(built.read(sizeof(Header))).end_timestamp)
    if file is None:
        return 0
    with file.open("pread") as source:
        return int(Header.parse(source.window(0, sizeof(Header)).tobytes()).end_timestamp)


def _goes_on_behind(file: StoreFile, end: int) -> bool:
    """Whether an index file, perhaps one too short to be checked, says that it goes on behind the log."""
    with file.open("pread") as source:
        header = read_header(source)
    return header is not None and header.end_physical_offset >= end


def _counts(one: Any) -> bool:
    return one.severity is not Severity.NOTE


def _once(edits: list[Edit]) -> list[Edit]:
    """A file that is replaced as a whole is not removed before."""
    put = {edit.change.path for edit in edits if edit.change.action is Action.PUT}
    return [one for one in edits if one.change.action is not Action.REMOVE or one.change.path not in put]


def with_directories(store: Store, edits: Sequence[Edit]) -> list[Edit]:
    """The directories that new files need, in front of them."""
    known = {one.path for one in store.directories}
    made: list[Edit] = []
    for edit in edits:
        if edit.change.action is Action.PUT:
            parts = edit.change.path.split("/")[:-1]
            for count in range(1, len(parts) + 1):
                path = "/".join(parts[:count])
                if path not in known:
                    known.add(path)
                    message = f"{path} is missing"
                    made.append(
                        Edit(
                            Change(action=Action.MAKE_DIRECTORY, path=path, why="directory", message=message)
                        )
                    )
        made.append(edit)
    return made
