"""`rebuild` of many stores: consume queues and index files side by side, byte for byte those of `rebuild`.

Two steps. Parts of a log are read and what their records give to queues and index is spooled below the
output directory; then some queues each, and each index file, are built from the spool files by a task. The
driver handles names, counts and running sums. What comes out is planned and put in its place by the code of
the local command.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqtool.broker.file_rules import rules_of
from rmqtool.build.index_cut import cut_index
from rmqtool.errors import (
    ExitCode,
    LockedError,
    PlanRefusedError,
    RmqtoolError,
    UnreadableError,
    UsageError,
    VanishedError,
    worst,
)
from rmqtool.output.export.target import sync, writing
from rmqtool.pipeline.export import folders, refuse_inside
from rmqtool.pipeline.parts import log_parts
from rmqtool.pipeline.rebuild_tasks import Bucket, BuildTask, Spooled, SpoolTask, together
from rmqtool.pipeline.runner import Lost, lost_part, lost_store, over_log, run_each
from rmqtool.pipeline.session import parallelism
from rmqtool.pipeline.shared import part_mode, refuse_not_shared
from rmqtool.repair.apply_to_empty_dir import apply_to_empty_dir
from rmqtool.repair.rebuild import rebuild, refuse_unfit
from rmqtool.repair.rebuild_report import exit_code_of, summary_of
from rmqtool.scan.options import data_bytes
from rmqtool.store.coverage import coverage
from rmqtool.store.holding import refuse_if_held
from rmqtool.store.writing import Folder, way_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import tzinfo

    from pyspark.sql import SparkSession

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.build.files import DerivedFiles
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.pipeline.parts import LogPart
    from rmqtool.repair.rebuild import Rebuilt
    from rmqtool.repair.rebuild_files import Made
    from rmqtool.repair.rebuild_options import RebuildOptions, WantedQueues
    from rmqtool.store.layout import Store

    Row = dict[str, Any]
    Results = Sequence[tuple[LogPart, Any]]

WORK, MADE = "_work", "made"
"""below the directory that is being made: what tasks write, and what gets the directory's name"""

_BUCKETS_A_CORE = 2
_MOST_BUCKETS = 1024


@dataclass
class StoreRebuilt:
    """What was built of one store; rebuilt: None where tasks failed, and then nothing was."""

    store: str
    rebuilt: Rebuilt | None = None
    lost: list[Row] = field(default_factory=list)

    def summary(self) -> Row:
        """As of the local command."""
        return coverage(self.lost) if self.rebuilt is None else summary_of(self.rebuilt)

    def exit_code(self) -> ExitCode:
        """As of the local command; 3 where tasks failed."""
        return ExitCode.INCOMPLETE if self.rebuilt is None else exit_code_of(self.rebuilt)


class RebuildJob:
    """Rebuilds stores into the directory `to`, each into one of its own where there are several."""

    def __init__(
        self,
        session: SparkSession,
        source: SourceOptions,
        options: Mapping[str, RebuildOptions],
        to: Path,
        zone: tzinfo | None = None,
    ) -> None:
        self._session = session
        self._source = source
        self._options = options
        self._to = Path(os.path.abspath(to))
        if not self._to.name:
            raise UsageError(f"--output {self._to}: exists and is not empty")
        self._part = self._to.with_name(self._to.name + ".part")
        self._zone = zone
        self.done: list[StoreRebuilt] = []

    def begin(self, stores: Mapping[str, Store]) -> None:
        """Makes the directory that is written to.

        Raises `UsageError` for an unfit output or store, `LockedError` for one with a running broker.
        """
        refuse_inside(stores, self._to, "--output")
        for path, store in stores.items():
            refuse_unfit(store, self._options[path])
            refuse_if_held(store.root)
        if os.path.lexists(self._to) and (not self._to.is_dir() or any(self._to.iterdir())):
            raise UsageError(f"--output {self._to}: exists and is not empty")
        if not self._to.parent.is_dir():
            raise UsageError(f"--output: there is no directory {self._to.parent}")
        with writing(self._part):
            self._folder, _ = way_to(self._to.parent, "--output")
            if self._folder.has(self._part.name):
                if not os.path.isdir(f"{self._folder.here}/{self._part.name}/{WORK}"):
                    raise UsageError(f"{self._part} exists and is not from a rebuild")
                self._folder.remove_made(self._part.name, WORK)
            self._staging = self._folder.make(self._part.name, part_mode())
            os.mkdir(f"{self._staging.here}/{WORK}", part_mode())
            os.mkdir(f"{self._staging.here}/{MADE}")

    def run(self, stores: Mapping[str, Store]) -> Iterator[StoreRebuilt]:
        """Rebuilds the stores; parts of later ones are read while earlier ones are built."""
        parts: dict[str, list[LogPart]] = {}
        tasks: dict[str, SpoolTask] = {}
        buckets = min(_BUCKETS_A_CORE * parallelism(self._session), _MOST_BUCKETS)
        for number, (path, store) in enumerate(stores.items()):
            chosen = {one for one in store.segments if store.segments.by_base(one.base) is one}
            parts[path] = log_parts(store, self._source.part_bytes, chosen.__contains__)
            place = f"{WORK}/{number}"
            os.mkdir(f"{self._staging.here}/{place}", part_mode())
            options = self._options[path]
            rules = rules_of(store, options.release)
            tasks[path] = SpoolTask(rules, options, frozenset(store.topics), str(self._part / place), buckets)
        where = folders(list(stores))
        for path, results in over_log(self._session, parts, tasks):
            target = Path(self._staging.here, MADE, where[path])
            one = self._built(path, stores[path], tasks[path], results, target)
            self.done.append(one)
            yield one

    def _built(
        self, path: str, store: Store, task: SpoolTask, results: Results, target: Path
    ) -> StoreRebuilt:
        failed = [(part, one) for part, one in results if isinstance(one, Lost)]
        for _, one in failed:
            refuse_not_shared(one)
        lost = [lost_part(part, one) for part, one in failed]
        if lost:
            return StoreRebuilt(path, None, lost)
        spooled = [one for _, one in results if one is not None]
        built = partial(self._build, task=task, spooled=spooled)
        place = f"{WORK}/{os.path.basename(task.place)}"
        work = Path(self._staging.here, place, "built")
        work.mkdir()
        try:
            found = rebuild(store, self._options[path], work, None, self._zone, built)
            apply_to_empty_dir(store, found.planned, str(target))
        except LostError as error:
            return StoreRebuilt(path, None, [lost_store(error.lost)])
        except (
            LockedError,
            PlanRefusedError,
            UnreadableError,
            VanishedError,
        ) as error:  # meanwhile
            return StoreRebuilt(path, None, [lost_store(Lost(str(error)))])
        with Folder.open(f"{self._staging.here}/{place}") as done:
            done.clear()
        return StoreRebuilt(path, found)

    def _build(
        self,
        store: Store,
        rules: FileRules,
        files: DerivedFiles,
        wanted: WantedQueues,  # noqa: ARG002 - the first step has asked it
        next_name: Callable[[int], str],
        task: SpoolTask,
        spooled: list[Spooled],
    ) -> Made:
        """The second step, see `rebuild_files.Build`."""
        made = together(spooled)
        rules = replace(rules, batch_topics=rules.batch_topics.union(*(one.batch_topics for one in spooled)))
        lost = [0, *accumulate(one.lost for one in spooled)]
        shares: list[Any] = []
        for number in range(task.buckets):
            frames = tuple(
                (one.frames, tuple(one.places[number]), before)
                for one, before in zip(spooled, lost, strict=False)
                if one.places[number]
            )
            shares += [Bucket(frames)] if frames else []
        shares += cut_index([one.keys for one in spooled], rules, next_name)
        work = BuildTask(rules, task.place, data_bytes(store.segments))
        ((_, results),) = run_each(self._session, {store.root: shares}, work)
        for one in results:
            if isinstance(one, Lost):
                refuse_not_shared(one)
                raise LostError(one)
            made.queues |= one.queues
            for path, time in one.times.items():
                files.adopt(files.root.parent / os.path.basename(one.root) / path, path, time)
        return made

    def publish(self) -> Row:
        """Gives the directory its name, if a store was built; the summary."""
        if any(one.rebuilt is not None for one in self.done):
            with writing(self._to):
                sync(Path(self._staging.here, MADE))
                self._staging.rename(MADE, self._to.name, into=self._folder)
                self._folder.sync()
        self.discard()
        return self.summary()

    def discard(self) -> None:
        """Removes what was written."""
        with writing(self._part):
            self._folder.remove_held(self._part.name, self._staging)

    def summary(self) -> Row:
        """Of one store its own, of several all of them."""
        if len(self.done) == 1:
            return self.done[0].summary()
        parts = [one.summary() | {"store": one.store} for one in self.done]
        rows = [row | {"store": part["store"]} for part in parts for row in part.get("not_covered", ())]
        return {"stores": parts} | coverage(rows)

    def exit_code(self) -> ExitCode:
        """The worst of the stores."""
        return worst([one.exit_code() for one in self.done])


class LostError(RmqtoolError):
    """A task of the second step had no result."""

    def __init__(self, lost: Lost) -> None:
        super().__init__(lost.error)
        self.lost = lost
