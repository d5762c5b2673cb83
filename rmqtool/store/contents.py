"""What lies in a store: every path with its kind, the log, queues and tables; nothing that is inferred."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.store.kinds import MEMORY_FILE, QUEUE_KINDS, FileKind
from rmqtool.store.resolve import StoreForm
from rmqtool.store.segments import SegmentSet

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

    from rmqtool.store.config import StoreConfig
    from rmqtool.store.config_json import ConfigPair, TopicConfig
    from rmqtool.store.files import StoreDirectory, StoreFile


@dataclass(frozen=True, slots=True)
class Queue:
    """Files of one queue, by base offset; an empty queue directory is a queue too.

    `topic` and `queue_id` are None only for a queue directory that was copied away.
    """

    kind: FileKind
    topic: str | None
    queue_id: int | None
    files: tuple[StoreFile, ...]

    @property
    def is_one(self) -> bool:
        """Whether the files are those of one queue, as far as directories tell."""
        known = self.topic is not None and self.queue_id is not None
        return known or len({file.path.rpartition("/")[0] for file in self.files}) == 1


@dataclass(frozen=True)
class StoreContents:
    """A store, or the part of one that was asked for, as it was listed.

    given: the argument. root: what paths are relative to. form: what the argument is, `how` says what showed
    it. scope: path of the argument relative to root, "" for a whole store. files: every path that is not a
    directory, sorted by root, then path. directories: every directory. config: settings given by the user,
    None when sizes are to be inferred. notes: remarks for people, one line each. at_rest: nobody can be
    writing: a view of what a change would leave, or a store that this process holds. log: the segments, where
    they are others than those that were listed (`with_segments`).
    """

    given: Path
    root: Path
    form: StoreForm
    scope: str
    how: str
    files: tuple[StoreFile, ...]
    directories: tuple[StoreDirectory, ...]
    roots: tuple[Path, ...]
    config: StoreConfig | None = None
    notes: tuple[str, ...] = field(default=())
    at_rest: bool = False
    log: SegmentSet | None = None

    def with_segments(self, segments: SegmentSet) -> Self:
        """The same store, as if these were the segments of its log."""
        return replace(self, log=segments)

    @cached_property
    def _by_kind(self) -> Mapping[FileKind, tuple[StoreFile, ...]]:
        groups: dict[FileKind, list[StoreFile]] = {}
        for file in self.files:
            groups.setdefault(file.kind, []).append(file)
        return {kind: tuple(files) for kind, files in groups.items()}

    def of_kind(self, *kinds: FileKind | str) -> tuple[StoreFile, ...]:
        """Files of these kinds, in the order of `files`."""
        return tuple(file for kind in kinds for file in self._by_kind.get(FileKind(kind), ()))

    def file(self, path: str) -> StoreFile | None:
        """The file with this path relative to the root, None when there is none."""
        return self._by_path.get(path)

    @cached_property
    def absent(self) -> tuple[StoreFile, ...]:
        """Files of which this is a copy without them (`store.partial`)."""
        return tuple(file for file in self.files if file.absent is not None)

    @cached_property
    def _by_path(self) -> Mapping[str, StoreFile]:
        return {file.path: file for file in self.files}

    @cached_property
    def segments(self) -> SegmentSet:
        """The commit log files of all roots as one address space."""
        if self.log is not None:
            return self.log
        return SegmentSet.of_files(self.of_kind(FileKind.COMMITLOG))

    @cached_property
    def dledger_segments(self) -> SegmentSet:
        """The DLedger data files as one address space (it continues that of `segments` in mixed mode)."""
        return SegmentSet.of_files(self.of_kind(FileKind.DLEDGER_DATA))

    def queues(self, kind: FileKind | str = FileKind.CONSUMEQUEUE) -> tuple[Queue, ...]:
        """Queues of one kind (consume queue, batch consume queue or extension), by topic and queue number.

        Queue directories without files are queues too; directories whose name is not a number are not (the
        broker ignores them as well).
        """
        return self._queues.get(FileKind(kind), ())

    @cached_property
    def _queues(self) -> Mapping[FileKind, tuple[Queue, ...]]:
        found: dict[tuple[FileKind, str | None, int | None], list[StoreFile]] = {}
        for directory in self.directories:
            if directory.queue_id is not None and directory.path.split("/", 1)[0] in QUEUE_KINDS:
                found[FileKind(directory.path.split("/", 1)[0]), directory.topic, directory.queue_id] = []
        for file in self.of_kind(*QUEUE_KINDS):
            found.setdefault((file.kind, file.topic, file.queue_id), []).append(file)
        grouped: dict[FileKind, list[Queue]] = {}
        for (kind, topic, queue_id), files in found.items():
            files.sort(key=lambda file: (file.base_offset or 0, file.path))
            grouped.setdefault(kind, []).append(Queue(kind, topic, queue_id, tuple(files)))
        return {
            kind: tuple(
                sorted(
                    queues, key=lambda one: (one.topic or "", -1 if one.queue_id is None else one.queue_id)
                )
            )
            for kind, queues in grouped.items()
        }

    def index_files(self) -> tuple[StoreFile, ...]:
        """Index files in name order, the order in which the broker loads them."""
        return tuple(sorted(self.of_kind(FileKind.INDEX), key=lambda file: file.name))

    def config_pair(self, name: str) -> ConfigPair:
        """`config/<name>` and its `.bak`, and which of them a broker would load."""
        from rmqtool.store.config_json import chosen_of, load_config_pair, read_listed

        if self.form is not StoreForm.STORE:
            return load_config_pair(self.root / "config" / name)
        path = f"config/{name}"
        return chosen_of(*(read_listed(self.file(one))[0] for one in (path, f"{path}.bak")))

    @cached_property
    def topics(self) -> Mapping[str, TopicConfig]:
        """Topic settings as a broker would load them, empty without readable `topics.json` or `.bak`."""
        from rmqtool.store.config_json import topics_of, with_memory

        known = topics_of(self.config_pair("topics.json").data)
        return with_memory(known, self.config_pair(MEMORY_FILE).data)

    @property
    def lock_path(self) -> Path:
        """Where the broker's lock file is, whether it exists or not."""
        return self.root / "lock"
