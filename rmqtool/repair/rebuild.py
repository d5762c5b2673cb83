"""Planning `rebuild`: derived files again from the log, against those that lie there.

What is built lies in a work directory until the plan is applied, so memory does not depend on the store.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from rmqtool.broker.file_rules import rules_of
from rmqtool.broker.index_files import IndexNames
from rmqtool.build.files import DerivedFiles
from rmqtool.errors import NO_LOG, PlanRefusedError, UnfitStoreError, UsageError
from rmqtool.repair.assumed import assumed_sizes
from rmqtool.repair.content import FromFile, Inline
from rmqtool.repair.expired import Keeper
from rmqtool.repair.plan import Action, Change, Edit, Planned, PlanSummary, make_planned
from rmqtool.repair.plan_words import counted
from rmqtool.repair.rebuild_files import build_here
from rmqtool.repair.rebuild_options import WantedQueues
from rmqtool.repair.same_bytes import same_bytes
from rmqtool.repair.topic_guess import guess_notes, guessed_topics, table_with
from rmqtool.scan.options import ReadOptions
from rmqtool.store.config_json import ParseState
from rmqtool.store.kinds import QUEUE_KINDS, FileKind
from rmqtool.store.names import escape_name
from rmqtool.store.rocksdb import reads_rocksdb_queues
from rmqtool.store.unseen import refuse_lost_segments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import tzinfo

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.build.builder import SkippedRecords
    from rmqtool.build.log import LogAnomalies
    from rmqtool.build.queues import BuiltQueue
    from rmqtool.repair.rebuild_files import Build
    from rmqtool.repair.rebuild_options import RebuildOptions
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Key = tuple[str, int]

COMMAND = "rebuild"
_LATEST = 9_000_000_000_000
"""ms; a later store time is not a time that a file can have everywhere"""


@dataclass
class Rebuilt:
    """What came out. left: queues that lie there and have no record in the log; they stay as they are.

    deleted: topics that the log has and `topics.json` has not, whose queues were not built.
    """

    planned: Planned
    anomalies: LogAnomalies
    records: int
    queues: Mapping[Key, BuiltQueue]
    left_out: SkippedRecords
    index_items: int
    elsewhere: int
    """records that state another physical offset than that where they lie"""
    unchanged: int
    left: list[Key] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    kept: int = 0
    """units of expired records that were kept"""


def rebuild(
    store: Store,
    options: RebuildOptions,
    work: str | os.PathLike[str],
    how: ReadOptions | None = None,
    zone: tzinfo | None = None,
    build: Build | None = None,
) -> Rebuilt:
    """Builds in `work`, an empty directory outside the store, and plans what makes the store so.

    zone: the one that `options.tz` names. build: what builds the files, this process by itself unless given;
    how: the way in which it reads. Raises `UsageError` where there is nothing to build from, or where
    queues lie in RocksDB.
    """
    here = partial(build_here, how=how or ReadOptions())
    return _Rebuild(store, options, Path(work), zone).run(build or here)


def refuse_unfit(store: Store, options: RebuildOptions) -> None:
    """Raises `UsageError` or `UnfitStoreError` for a store from which these files cannot be built."""
    shown = escape_name(os.fspath(store.given))
    if len(store.dledger_segments):
        raise UsageError(f"{shown} has a DLedger log: derived files are built from plain commit logs only")
    if not len(store.segments):
        raise UnfitStoreError(f"{shown} {NO_LOG}")
    refuse_lost_segments(store)
    if "cq" in options.what and reads_rocksdb_queues(store):
        raise UsageError(f"the consume queues of {shown} are in RocksDB: only --what index can be built")


class _Rebuild:
    def __init__(self, store: Store, options: RebuildOptions, work: Path, zone: tzinfo | None) -> None:
        refuse_unfit(store, options)
        self._store = store
        self._options = options
        self._rules = rules_of(store, options.release)
        self._zone = zone
        self._files = DerivedFiles(work, flat=True)
        self._guessed: dict[str, dict[str, Any]] = {}

    def run(self, build: Build) -> Rebuilt:
        options, store = self._options, self._store
        wanted = WantedQueues(options, frozenset(store.topics))
        known = [one.name for one in store.index_files() if _is_name(one.name)]
        made = build(store, self._rules, self._files, wanted, IndexNames(known, self._zone).next_name)
        keeper = Keeper(store, self._rules, self._files)
        if options.keep_expired and "cq" in options.what:
            keeper.keep(made.queues, wanted)
        edits, unchanged = self._edits()
        if options.restore_topics or (options.deleted_topics and store.topics):
            built = {topic for topic, _ in made.queues}
            found = guessed_topics(store, made.queues)
            self._guessed = {topic: entry for topic, entry in found.items() if topic in built}
        if options.restore_topics and self._guessed:
            edits.append(self._topics())
        edits = [*self._directories(edits), *edits]
        left = self._left(made.queues)
        if not options.complete:
            edits += self._removals(made.queues)
        return Rebuilt(
            self._planned(edits),
            made.anomalies,
            made.records,
            made.queues,
            made.left,
            made.index_items,
            made.elsewhere,
            unchanged,
            left,
            sorted(made.deleted | wanted.deleted),
            keeper.units,
        )

    def _edits(self) -> tuple[list[Edit], int]:
        """PUT for every built file that differs from the store's; how many do not."""
        edits, unchanged = [], 0
        for path in sorted(self._files.times):
            built = self._files.place(path)
            old = self._store.file(path)
            if not self._options.complete and same_bytes(built, old):
                unchanged += 1
                built.unlink()
                continue
            edits.append(self._put(path, built, old))
        return edits, unchanged

    def _topics(self) -> Edit:
        """The topic table with the topics of the queues that were built and that it does not have."""
        pair = self._store.config_pair("topics.json")
        damaged = [one for one in (pair.primary, pair.bak) if one.state is ParseState.UNPARSABLE]
        if damaged and pair.chosen != "primary":
            detail = damaged[0].detail
            raise PlanRefusedError(f"config/topics.json {detail}: rmqtool config salvage comes first")
        text = table_with(pair.data, self._guessed)
        names = list(self._guessed)
        count = counted(len(names), "topic")
        change = Change(
            action=Action.PUT,
            path="config/topics.json",
            length=len(text),
            size=len(text),
            why="topics-guessed",
            message=f"{count} brought back with as many queues as have messages and perm 6, a guess: "
            f"{', '.join(names[:10])}",
            facts={"guessed": names},
        )
        return Edit(change, Inline(text))

    def _directories(self, edits: list[Edit]) -> Iterator[Edit]:
        """Directories that new files need, the outer ones first."""
        there = set() if self._options.complete else {one.path for one in self._store.directories}
        wanted = {
            parent.as_posix() for edit in edits for parent in PurePosixPath(edit.change.path).parents
        } - {"."}
        for path in sorted(wanted - there):
            why = path.split("/", 1)[0]
            change = Change(action=Action.MAKE_DIRECTORY, path=path, why=why, message=f"{path} is missing")
            yield Edit(change)

    def _put(self, path: str, built: Path, old: StoreFile | None) -> Edit:
        size = built.stat().st_size
        content = FromFile(os.fspath(built), 0, size, movable=True)
        time = self._files.times[path]
        word = "as it must be" if old is None or self._options.complete else "differs from the log"
        if old is None and not self._options.complete:
            word = "is missing"
        change = Change(
            action=Action.PUT,
            path=path,
            length=size,
            size=size,
            mtime_ns=time * 1_000_000 if time is not None and 0 < time < _LATEST else None,
            why=path.split("/", 1)[0],
            message=f"{path} {word}",
        )
        return Edit(change, content)

    def _removals(self, built: Mapping[Key, BuiltQueue]) -> Iterator[Edit]:
        """Files that the rebuilt ones leave no room for: of queues that were built, and of the index."""
        for file in self._store.of_kind(*QUEUE_KINDS, FileKind.INDEX):
            if file.path in self._files.times or not file.regular:
                continue
            if file.kind is FileKind.INDEX:
                wanted = "index" in self._options.what
            else:
                wanted = (file.topic, file.queue_id) in built
            if wanted:
                yield Edit(
                    Change(
                        action=Action.REMOVE,
                        path=file.display_path,
                        why=file.kind.value,
                        message=f"{file.display_path} holds nothing that the log has",
                    )
                )

    def _left(self, built: Mapping[Key, BuiltQueue]) -> list[Key]:
        if "cq" not in self._options.what:
            return []
        return sorted(
            {
                (one.topic, one.queue_id)
                for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
                for one in self._store.queues(kind)
                if one.topic is not None
                and one.queue_id is not None
                and one.files
                and (one.topic, one.queue_id) not in built
                and self._options.selects(one.topic, one.queue_id)
            }
        )

    def _planned(self, edits: list[Edit]) -> Planned:
        store = self._store
        derived = store.of_kind(*QUEUE_KINDS, FileKind.INDEX)
        topics = store.file("config/topics.json")
        read = [*(one.file for one in store.segments), *derived, *([topics] if topics is not None else [])]
        return make_planned(
            COMMAND,
            store,
            self._options.release,
            self._options.parameters(),
            edits,
            inputs=[one for one in read if one.regular],
            summary=PlanSummary(
                notes=(*_notes(self._rules), *assumed_sizes(store, edits), *guess_notes(self._guessed))
            ),
        )


def _notes(rules: FileRules) -> Iterator[str]:
    yield f"consume queue files have {rules.consume_queue_size} bytes"
    yield f"index files have {rules.hash_slots} slots and room for {rules.index_items} entries"


def _is_name(name: str) -> bool:
    return name.isascii() and name.isdecimal()
