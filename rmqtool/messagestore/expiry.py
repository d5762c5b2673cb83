"""Old segments go, and what led to them: the cleaning of a broker, in the background or by hand.

`CleanCommitLogService`, `CleanConsumeQueueService`. A segment that readers still have mapped goes at once
all the same, and their views of it stay good; so nothing hangs that would be forced after
`destroyMapedFileIntervalForcibly`. What the system does not delete is tried again.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.consume_queue import ConsumeQueue, NegativePositionError
from rmqtool.broker.disk import room_of
from rmqtool.broker.expiry import FIRST_RUN, MANUAL_RUNS, expired_below, expired_segments, look, ratios
from rmqtool.broker.extension import delete_below
from rmqtool.broker.mapped_files import MappedFile, MappedFiles
from rmqtool.errors import RmqtoolError, StoreIOError
from rmqtool.messagestore.held_files import HeldFile
from rmqtool.scan.index import read_header
from rmqtool.scan.units import BATCH_UNIT, UNIT
from rmqtool.store.kinds import FileKind
from rmqtool.store.writing import Folder, parent_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.broker.start import AnyQueue, Start
    from rmqtool.messagestore.dispatching import Dispatching
    from rmqtool.messagestore.flushing import Flusher
    from rmqtool.messagestore.log_places import LogPlaces
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.messagestore.queue_reader import UnitFiles
    from rmqtool.store.config import StoreConfig
    from rmqtool.store.files import StoreFile

_INDEX = "index"


class Expired(NamedTuple):
    """What went: files, bytes of the log, and messages that queues do not serve any more."""

    segments: int = 0
    bytes: int = 0
    messages: int = 0
    queue_files: int = 0
    index_files: int = 0


@dataclass
class Expiry:
    """The cleaning of one store that is open.

    folder: its root, held; places: directories of its log. appending: over the list of segments. clock: ms.
    forget: called with the path of a file that goes. full: the disk is; new messages are refused. error: why
    the last run did not end.
    """

    folder: Folder
    places: LogPlaces
    config: StoreConfig
    start: Start
    appending: threading.Lock
    flusher: Flusher
    dispatching: Dispatching
    log: LogReader
    units: UnitFiles
    forget: Callable[[str], None]
    clock: Callable[[], int]
    full: bool = False
    error: RmqtoolError | None = None

    def __post_init__(self) -> None:
        self._turn = threading.Lock()
        self._stop = threading.Event()
        self._floor = 0  # as with brokers, the first run cleans up behind one that was cut off
        self._hanging: list[str] = []
        self._tried = 0.0
        self._thread = threading.Thread(target=self._run, name="rmqtool-clean", daemon=True)

    def begin(self) -> None:
        """Starts the thread that looks again and again."""
        self._thread.start()

    def close(self) -> None:
        """Ends it, and a run by hand in another thread: behind it nothing is looked at any more."""
        self._stop.set()
        with self._turn:
            pass
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        wait = FIRST_RUN
        while not self._stop.wait(wait):
            wait = self.config.clean_resource_interval / 1000
            try:
                self.clean()
                self.error = None
            except RmqtoolError as error:
                self.error = error

    def by_hand(self) -> Expired:
        """All that is due whatever the hour, run after run. Raises `StoreIOError`."""
        total = Expired()
        for _ in range(MANUAL_RUNS):
            found = self.clean(manual=True)
            total = Expired(*map(sum, zip(total, found, strict=True)))
            if not found.segments:
                break
        return total

    def clean(self, *, manual: bool = False) -> Expired:
        """One run, none once it was closed. Raises `StoreIOError`."""
        with self._turn:
            if self._stop.is_set():
                return Expired()
            cleaning = look(self.config, self._used(), self._hour(), manual=manual)
            self.full = cleaning.full
            self._again()
            segments = self._segments(at_once=cleaning.at_once) if cleaning.due else 0
            return Expired(segments, segments * self.start.log.size, *self.follow())

    def _hour(self) -> int:
        return time.localtime(self.clock() / 1000).tm_hour

    def _used(self) -> int:
        """Percent of the disk: of several that have the log, the one with most room (`#isSpaceToDelete`)."""
        places = self.places
        used = {name: room_of(places.held[name].here).used_percent for name in places.writable}
        most = dict(ratios(self.config))["diskSpaceCleanForciblyRatio"]
        places.full = frozenset(name for name, percent in used.items() if percent > most)
        return max(min(used.values()), room_of(self.folder.here).used_percent)

    def follow(self) -> tuple[int, int, int]:
        """Queues and index follow the log's first segment: messages, queue files and index files that go.

        Raises `StoreIOError`.
        """
        floor = self.start.log.min_offset
        if floor <= self._floor:
            return 0, 0, 0
        self._floor = floor
        return *self._queues(floor), self._index(floor)

    def _segments(self, *, at_once: bool) -> int:
        log = self.start.log
        reached = min(self.flusher.flushed, self.dispatching.offset)
        flushed = [one for one in log.files[:-1] if one.base + log.size <= reached]
        modified = [self._modified(one) for one in flushed]
        due = expired_segments(self.config, [*modified, self.clock()], self.clock(), at_once=at_once)
        if due:  # a queue that loses units of records that are gone has wrong offsets from there on
            with self.dispatching.lock:
                self.dispatching.files.sync()
        for number, one in enumerate(flushed[:due]):
            if number and self._stop.wait(self.config.delete_commit_log_files_interval / 1000):
                return number
            with self.appending:
                log.files = log.files[1:]
            self.log.release(one.path)
            self.forget(one.path)
            self._delete(log, one.path)
        return due

    def _delete(self, files: MappedFiles, path: str) -> None:
        try:
            files.delete(path)
        except StoreIOError:
            self._hanging.append(path)
            self._tried = time.monotonic()

    def _again(self) -> None:
        """What the system did not delete (`#reDeleteHangedFile`)."""
        if time.monotonic() - self._tried >= self.config.redelete_hanged_file_interval / 1000:
            hanging, self._hanging = self._hanging, []
            for path in hanging:
                self._delete(self.start.log, path)

    def _modified(self, one: MappedFile) -> int:
        try:
            with parent_of(self.places.at(one.path)) as (above, name):
                return os.stat(name, dir_fd=above, follow_symlinks=False).st_mtime_ns // 1_000_000
        except OSError as error:
            raise StoreIOError(f"{one.path}: {error.strerror}") from error

    def _queues(self, floor: int) -> tuple[int, int]:
        """`ConsumeQueue#deleteExpiredFile`. Messages that are not served any more, and files."""
        messages = gone = 0
        for queue in list(self.start.queues.values()):
            with self.dispatching.lock:
                before = max(queue.min_offset, 0)
                deleted = self._queue(queue, floor)
                messages += max(queue.min_offset - before, 0)
            gone += deleted
            if deleted and self._stop.wait(self.config.delete_consume_queue_files_interval / 1000):
                break
        return messages, gone

    def _queue(self, queue: AnyQueue, floor: int) -> int:
        files = queue.files
        unit = UNIT if isinstance(queue, ConsumeQueue) else BATCH_UNIT
        ends = []
        for one in files.files[:-1]:
            last = (files.size // unit.itemsize - 1) * unit.itemsize
            raw = self.units.read(one.path, last, unit.itemsize)
            ends.append(int(np.frombuffer(raw, unit)["physical_offset"][0]))
            if ends[-1] >= floor:
                break
        due = expired_below([*ends, floor], floor)
        paths = [one.path for one in files.files[:due]]
        files.files = files.files[due:]
        self._correct(queue, floor)
        for path in paths:
            files.delete(path)
            self.units.forget(path)
            self.forget(path)
        return due

    def _correct(self, queue: AnyQueue, floor: int) -> None:
        """Its minimum, by the units as they lie in its files."""
        files = MappedFiles(queue.files.size, queue.files.directory)
        files.files = [
            MappedFile(one.base, one.wrote, one.path, self._listed(one.path, files.size))
            for one in queue.files.files
        ]
        if isinstance(queue, ConsumeQueue):
            plain = ConsumeQueue(queue.topic, queue.queue_id, files, "pread", 0)
            plain.min_logical = queue.min_logical
            by_search = self.start.traits.min_offset_by_search
            try:
                moved = plain.search_min(floor) if by_search else plain.correct_min(floor)
            except NegativePositionError:  # a new file that nothing is in yet
                return
            queue.min_logical = plain.min_logical
            further = self.start.extensions.get((queue.topic, queue.queue_id))
            address = plain.first_code() if moved and further is not None else None
            if further is not None and address is not None:
                delete_below(further, address)
        else:
            batch = BatchConsumeQueue(queue.topic, queue.queue_id, files, "pread")
            batch.correct_min(floor)
            queue.min_offset = batch.min_offset

    def _listed(self, path: str, size: int) -> StoreFile:
        kind = FileKind(path.partition("/")[0])
        return HeldFile(path, f"{self.folder.here}/{path}", kind, size, 0, 0)

    def _index(self, floor: int) -> int:
        """`IndexService#deleteExpiredFile`."""
        try:
            with Folder.open(f"{self.folder.here}/{_INDEX}") as index:
                names = sorted(name for name in index.names() if name.isdecimal())
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise StoreIOError(f"{_INDEX}: {error.strerror}") from error
        ends = []
        for name in names[:-1]:
            path = f"{_INDEX}/{name}"
            with self._listed(path, 0).open("pread") as source:
                header = read_header(source)
            ends.append(floor if header is None else header.end_physical_offset)
            if ends[-1] >= floor:
                break
        due = expired_below([*ends, floor], floor)
        with self.dispatching.lock:
            for name in names[:due]:
                self.dispatching.files.remove(f"{_INDEX}/{name}")
                self.forget(f"{_INDEX}/{name}")
        return due
