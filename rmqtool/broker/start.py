"""One start, step by step in the broker's order: `DefaultMessageStore#load`, `#recover`, `#start`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from formats.checkpoint import parse_checkpoint
from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.compaction import CompactionQueue, load_compaction
from rmqtool.broker.consume_queue import ConsumeQueue, NegativePositionError
from rmqtool.broker.dispatch import Codes, Dispatcher, MultiDispatchError, wants_unit
from rmqtool.broker.dispatch_filter import has_border, misses_border, taker
from rmqtool.broker.extension import count_cut, delete_below, last_address, recover_extension
from rmqtool.broker.extension_files import ExtensionFiles, extension_units
from rmqtool.broker.file_rules import types_known
from rmqtool.broker.load import (
    IndexLoad,
    RefusedError,
    cannot_be_mapped,
    leads_nowhere,
    load_files,
    load_index,
    queue_directories,
)
from rmqtool.broker.log_recovery import LogEnd, abnormal_start, normal_start, recover_log
from rmqtool.broker.mapped_files import MappedFile, MappedFiles
from rmqtool.broker.record_check import Rules, StopReason
from rmqtool.broker.reput import Reput
from rmqtool.broker.settings import delay_levels
from rmqtool.broker.traits import ReputStart
from rmqtool.errors import UnfitStoreError
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field, Issue
from rmqtool.scan.multi import MultiDispatch
from rmqtool.scan.parallel import in_order
from rmqtool.store.names import escape_name, names_directory
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rmqtool.broker.files import StoreFiles
    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.traits import Traits
    from rmqtool.broker.units import Prefix
    from rmqtool.scan.options import ReadOptions
    from rmqtool.scan.parallel import WorkerContext
    from rmqtool.store.config_json import TopicConfig
    from rmqtool.store.layout import Store

AnyQueue: TypeAlias = ConsumeQueue | BatchConsumeQueue
Key: TypeAlias = tuple[str, int]
"""topic and queue id"""
_WITHOUT_LISTS = "enableMultiDispatch=false"
_KINDS = ("consumequeue", "batchconsumequeue")


class Mode(StrEnum):
    """How the store is recovered: `abnormal` when `abort` exists."""

    NORMAL = "normal"
    ABNORMAL = "abnormal"


@dataclass(frozen=True, slots=True)
class StartPlan:
    """What is known before the log is read.

    start_segment: base of the file where recovery begins, None without files. bytes_to_scan: from there to
    the end of the last file, the most that recovery reads. known: greatest end offset in any queue.
    """

    mode: Mode
    start_segment: int | None
    bytes_to_scan: int
    known: int


class IndexBlockedError(Exception):
    """A record was to be dispatched, and `index` is not a directory."""

    def __init__(self) -> None:
        super().__init__("it is not a directory, and dispatching throws where no index file can be made")


class Start:
    """Call `load`, then `recover`, then `catch_up`; each may raise `RefusedError`.

    What was found up to then stays readable: `log`, `queues`, `index`, `plan`, `end`. keep_units: keep what
    is appended to queues, for `store_after_start`. files: carry out what the start does; without them nothing
    is written, and what it would do is only known here.
    """

    def __init__(
        self,
        store: Store,
        traits: Traits,
        settings: StartSettings,
        reading: ReadOptions,
        *,
        keep_units: bool = False,
        files: StoreFiles | None = None,
    ) -> None:
        self.store, self.traits, self.settings, self.reading = store, traits, settings, reading
        self._keep_units = keep_units
        self._files = files
        self.listing = store.listing
        self.log = MappedFiles(settings.commit_log_size, "commitlog")
        self.loaded: list[MappedFile] = []
        """files of the log as they were loaded"""
        self.queues: dict[Key, AnyQueue] = {}
        self.extensions: dict[Key, MappedFiles] = {}
        self.timer_log: MappedFiles | None = None
        self.compaction: list[CompactionQueue] = []
        self.extension_cuts: dict[Key, int] = {}
        """entries whose extension unit the start takes away"""
        self.index = IndexLoad((), ())
        self.end: LogEnd | None = None
        self.foreseen: LogEnd | None = None
        """where recovery of the log ends, if that was computed before and nobody wrote since"""
        self.plan: StartPlan | None = None
        self.confirm = -1
        self.reput: Reput | None = None
        self._batch_topics: set[str] = set()
        self.topic_of: Callable[[str], TopicConfig | None] = self._stored_topic
        """settings of a topic, from elsewhere where they change behind the start"""
        self.truncated = False
        """entries that lead behind the end of the log were looked for"""
        self.border = False
        """a record begins exactly where the queues end, and is therefore not dispatched"""
        self.unwritable: int | None = None
        """where the first record lies that ends the writing of queues, see `_writable`"""

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """Takes what is dispatched; made for the first record, as its columns are large."""
        return self._dispatcher()

    def _dispatcher(self) -> Dispatcher:
        traits, settings = self.traits, self.settings
        return Dispatcher(
            lambda key, run: self._queue(*key).append(run),
            self.reading.kernels,
            multi_dispatch=traits.multi_dispatch if settings.multi_dispatch else MultiDispatch.NONE,
            lmq=settings.lmq,
            levels=delay_levels(self.store.config),
            is_batch=self._is_batch if traits.typed_queues else None,
            codes=Codes.NONE if self._files is None else Codes.ALL,
        )

    @property
    def leaves_files(self) -> bool:
        """Whether every file is as it was: up to now nothing was dispatched, and nothing deleted."""
        groups = [self.log, *(queue.files for queue in self.queues.values()), *self.extensions.values()]
        deleted = any(one.deleted for one in groups)
        written = self.dispatched or self.unwritable is not None
        return not (deleted or written or self.index.deleted or self.extension_cuts)

    def carry_out(self, files: StoreFiles) -> None:
        """From now on what the start does is done to the files, which it has left up to now."""
        self._files = files
        self.dispatcher = self._dispatcher()
        for group in (self.log, *self.extensions.values()):
            group.write_to(files)
        for queue in self.queues.values():
            queue.files.write_to(files)
            self._extend(queue)

    def _stored_topic(self, name: str) -> TopicConfig | None:
        return self.store.topics.get(name)

    def _dispatch(self, run: Records, base: int) -> None:
        """Hands over a run. Raises `MultiDispatchError`, `IndexBlockedError`."""
        if len(run.rows) and self.index_blocked:
            raise IndexBlockedError
        written = self._writable(run, base)
        if len(written.rows):
            self.dispatcher.take(written, base)

    def _writable(self, run: Records, base: int) -> Records:
        """The records of a run that get entries in their queues.

        No directory can have a topic with a zero byte for its name. A broker tries 30 times to make a file in
        it, and then no queue takes an entry any more, nor the store a message
        (`ConsumeQueue#putMessagePositionInfoWrapper`, `RunningFlags#makeLogicsQueueError`). So do 4.9.8 and
        5.3.3. Whoever carries the start out goes no further either, see `_queue`.
        """
        if self._files is not None:
            return run
        rows, first = run.rows, 0
        if self.unwritable is None:
            nul = (rows[:, Field.ISSUES] & int(Issue.TOPIC_NUL)) != 0
            if not nul.any() or not (nul := nul & wants_unit(rows)).any():
                return run
            first = int(nul.argmax())
            self.unwritable = base + int(rows[first, Field.POSITION])
        return Records(rows[:first], run.window, run.origin)

    @cached_property
    def index_blocked(self) -> bool:
        """No index file can be made, and dispatching throws at every record.

        `IndexService#getAndCreateLastIndexFile` gives back a lock that it does not hold then.
        """
        return self.settings.index_enabled and self.listing.is_blocked("index")

    def before_log(self) -> None:
        """Called when all is loaded and nothing was appended or truncated, for who watches a start."""

    def see(self, run: Records, base: int) -> None:
        """Called with every run of records that recovery reads, whether it is dispatched or not."""

    @property
    def dispatched(self) -> int:
        """Records handed to the queues."""
        return self.dispatcher.dispatched

    @cached_property
    def clean(self) -> bool:
        """`abort` does not exist, not even as a directory; what a link that leads nowhere names does not."""
        return not self.listing.exists("abort") or leads_nowhere(self.store.file("abort"))

    @cached_property
    def checkpoint(self) -> Any:
        """The checkpoint as it is read: zeros where there is none."""
        file = self.store.file("checkpoint")
        if file is None or not file.regular:
            return parse_checkpoint(b"")
        return parse_checkpoint(read_whole(file))

    def _refuse_other_checkpoint(self) -> None:
        """What cannot be mapped ends the start (`StoreCheckpoint#StoreCheckpoint`)."""
        if self.listing.is_directory("checkpoint"):
            raise RefusedError("checkpoint-directory", "a directory of this name", "checkpoint")
        file = self.store.file("checkpoint")
        if file is not None and cannot_be_mapped(file):
            raise RefusedError("checkpoint-directory", file.note or "not a regular file", "checkpoint")

    def load(self) -> None:
        """Files of log and queues, the checkpoint, the index; after it `plan` is known."""
        self.log = load_files(
            self.listing.commit_log(),
            self.settings.commit_log_size,
            "commitlog",
            self.traits,
            self._files,
        )
        self.loaded = list(self.log.files)
        self._load_queues()
        for one in load_compaction(self.listing, self.traits, self.settings, self._files):
            self.compaction.append(one)
        self._refuse_other_checkpoint()
        if self.traits.confirm_from_checkpoint:
            self.confirm = int(self.checkpoint.confirm_physical_offset)
        self.index = load_index(
            self.listing,
            clean=self.clean,
            index_timestamp=int(self.checkpoint.index_msg_timestamp),
        )
        if self._files is not None:
            for path in self.index.deleted:
                self._files.remove(path)
        self._recover_queues()
        self._plan()

    def _load_queues(self) -> None:
        for kind in _KINDS if self.traits.typed_queues else _KINDS[:1]:
            for topic, number, path in queue_directories(self.listing, kind):
                self._check_type(topic, path, kind)
                files = load_files(
                    self.listing.entries(path), self._file_size(kind), path, self.traits, self._files
                )
                self.queues[topic, number] = self._model(topic, number, files, kind)
                if self.settings.extension and kind == _KINDS[0]:
                    beside = f"consumequeue_ext/{topic}/{number}"
                    self.extensions[topic, number] = load_files(
                        self.listing.entries(beside),
                        self.settings.extension_size,
                        beside,
                        self.traits,
                        self._files,
                    )

    def _recover_queues(self) -> None:
        def read(queue: AnyQueue, _: WorkerContext) -> Iterator[list[tuple[MappedFile, Prefix]]]:
            yield queue.read()

        queues = list(self.queues.values())
        ahead = in_order(queues, read, self.reading.jobs, size=lambda queue: queue.bytes_to_read)
        with closing(ahead) as prefixes:
            for queue, found in zip(queues, prefixes, strict=True):
                self.reading.done(0)
                queue.recover(found)
                if isinstance(queue, ConsumeQueue) and self.settings.extension and queue.recovered:
                    address = last_address(queue.recovered, "pread")
                    recover_extension(self.extensions[queue.topic, queue.queue_id], address, "pread")
                self._extend(queue)

    def _check_type(self, topic: str, path: str, kind: str) -> None:
        """A queue of the kind that its topic does not have fails the load (`#queueTypeShouldBe`)."""
        if self.traits.typed_queues and self._types_known and self._is_batch(topic) != (kind == _KINDS[1]):
            raise RefusedError("queue-type", "the topic's queue.type demands another kind of queue", path)

    @cached_property
    def _types_known(self) -> bool:
        return types_known(self.store)

    def _is_batch(self, topic: str, inner: bool = False) -> bool:
        """By the topic's `queue.type`; without a topic table by its directory, or by inner batches in it."""
        if not self.traits.typed_queues:
            return False
        config = self.topic_of(topic)
        if config is None and not self._types_known:
            if inner or self.listing.is_directory(f"{_KINDS[1]}/{topic}"):
                self._batch_topics.add(topic)
            return topic in self._batch_topics
        return config is not None and config.attributes.get("queue.type") == "BatchCQ"

    def _file_size(self, kind: str) -> int:
        settings = self.settings
        return settings.consume_queue_size if kind == _KINDS[0] else settings.batch_queue_size

    def _model(self, topic: str, number: int, files: MappedFiles, kind: str) -> AnyQueue:
        if kind == _KINDS[1]:
            return BatchConsumeQueue(topic, number, files, "pread")
        floor = max(self.log.min_offset, 0)
        kernels = self.reading.kernels
        return ConsumeQueue(topic, number, files, "pread", floor, kernels, keep_units=self._keep_units)

    def _queue(self, topic: str, number: int) -> AnyQueue:
        found = self.queues.get((topic, number))
        if found is None:
            if self._files is not None and not names_directory(topic):
                raise UnfitStoreError(
                    f"the log has a message of topic '{escape_name(topic)}', and no directory of the store "
                    "can have this name"
                )
            kind = _KINDS[self._is_batch(topic)]
            place = f"{kind}/{topic}/{number}"
            files = MappedFiles(self._file_size(kind), place, disk=self._files)
            found = self.queues[topic, number] = self._model(topic, number, files, kind)
            self._extend(found)
        return found

    def _extend(self, queue: AnyQueue) -> None:
        """What is appended to the queue from now on gets extension units, behind those that it has."""
        size = self.settings.extension_size
        if self._files is None or not self.settings.extension or not extension_units(size):
            return
        if isinstance(queue, ConsumeQueue):
            files = self.extensions.get((queue.topic, queue.queue_id))
            end = 0 if files is None else files.max_offset
            queue.extension = ExtensionFiles(queue.topic, queue.queue_id, size, self._files, end)

    @cached_property
    def known(self) -> int:
        """`maxPhyOffsetOfConsumeQueue` after the queues' recovery."""
        return max((queue.max_physical for queue in self.queues.values()), default=-1)

    @cached_property
    def first_file(self) -> int:
        """Index of the file where recovery begins."""
        files = self.log.files
        if self.clean:
            return normal_start(files, self.known, self.traits)
        return abnormal_start(files, self.checkpoint, self.traits, self.settings)

    def _plan(self) -> None:
        files = self.log.files
        self.plan = StartPlan(
            Mode.NORMAL if self.clean else Mode.ABNORMAL,
            files[self.first_file].base if files else None,
            (len(files) - self.first_file) * self.log.size if files else 0,
            self.known,
        )

    def recover(self) -> None:
        """The log, what recovery dispatches, truncation, the minimum of every queue."""
        if not self.log.files:
            for queue in self.queues.values():
                queue.destroy()
        else:
            self._recover_log()
        self._correct_min()
        self._cut_extensions()
        if self.index.failed is not None and self.traits.index_failure_refuses:
            raise RefusedError("index-unopenable", "cannot be opened as an index file", self.index.failed)

    def _recover_log(self) -> None:
        rules = Rules(self.traits, self.settings, check_crc=self.settings.check_crc, read_body=True)
        files = self.log.files
        self.before_log()
        before = self.log.max_offset
        known, confirmed = self.known, self.confirm
        misses = self.clean and has_border(self.queues.values(), known, self.traits)
        dispatch = taker(
            self._dispatch,
            self.traits,
            self.settings,
            clean=self.clean,
            known=known,
            confirmed=confirmed,
        )

        def take(run: Records, base: int) -> None:
            self.see(run, base)
            if misses:
                self.border |= misses_border(run, known, self.queues.values())
            dispatch(run, base)

        end = self.foreseen
        try:
            if end is None or not self.clean or known < end.offset:  # something is dispatched
                end = recover_log(files, self.first_file, self.log.size, rules, self.reading, take)
        except MultiDispatchError as error:
            message = f"no queue offset for {error}: dispatching throws"
            raise RefusedError("multi-dispatch", message, setting=_WITHOUT_LISTS) from None
        except IndexBlockedError as error:
            raise RefusedError("index-unopenable", str(error), "index") from None
        self.end = end
        if end.reason is StopReason.TOO_LARGE:
            raise RefusedError(
                "record-too-large", "a record states a size that no Java array has", files[end.file].path
            )
        self.dispatcher.flush()
        self.confirm = self._unscanned(before) if end.last_valid is None else end.last_valid
        self.truncated = self.known >= end.offset
        if self.truncated:
            for queue in self.queues.values():
                queue.truncate(end.offset)
        self.log.truncate(end.offset)

    def _unscanned(self, full: int) -> int:
        """The confirm offset when no record was taken; `full`: end of the log with every file full."""
        if not self.clean and self.traits.confirmed_by_end:
            return self.log.files[self.first_file].base
        if self.settings.duplication:
            return self.confirm
        return 0 if self.settings.sync_flush and self.traits.confirms_flushed else full

    def _correct_min(self) -> None:
        floor = self.log.min_offset
        for queue in self.queues.values():
            try:
                if self.traits.min_offset_by_search:
                    moved = queue.search_min(floor)
                else:
                    moved = queue.correct_min(floor)
            except NegativePositionError:
                path = queue.files.files[-1].path
                message = "the queue's last file is empty behind a full one: newPosition < 0"
                raise RefusedError("negative-position", message, path) from None
            files = self.extensions.get((queue.topic, queue.queue_id))
            if moved and files is not None and isinstance(queue, ConsumeQueue):
                address = queue.first_code()
                if address is not None:
                    delete_below(files, address)

    def _cut_extensions(self) -> None:
        """Counts what recovery does not leave of the extension units."""
        for key, files in self.extensions.items():
            queue = self.queues[key]
            if not isinstance(queue, ConsumeQueue):
                continue
            count = count_cut(
                queue.files.files, queue.min_logical, max(self.log.min_offset, 0), files, "pread"
            )
            if count:
                self.extension_cuts[key] = count

    def catch_up(self) -> None:
        """Dispatching until the start may go on."""
        begin, end = self._reput_range()
        rules = Rules(self.traits, self.settings, check_crc=False, read_body=False)
        waits = self.traits.reput_start is ReputStart.QUEUES
        reput = Reput(self.log, begin, end, rules, self.reading, self._dispatch, bounded=not waits)
        self.reput = reput
        setting = None
        try:
            reput.run()
        except MultiDispatchError:
            reput.stuck, setting = True, _WITHOUT_LISTS
        except IndexBlockedError as error:
            raise RefusedError("dispatch-stuck", f"{error}: the start waits", "index") from None
        self.dispatcher.flush()
        if reput.stuck or (waits and reput.offset < self.log.max_offset):
            raise RefusedError(
                "dispatch-stuck",
                "dispatching cannot reach the end of the log: the start waits",
                setting=setting,
            )
        if waits or self._rechecks:
            self._correct_min()

    @property
    def _rechecks(self) -> bool:
        return self.settings.recheck_reput and self.traits.recheck_reput

    def _reput_range(self) -> tuple[int, int]:
        """Where dispatching begins, and the confirm offset or log end that it goes to."""
        end = self.log.max_offset
        if self.traits.reput_start is ReputStart.QUEUES:
            begin = self._from_queues()
            return begin, min(end, self.confirm) if self.settings.duplication and begin < end else end
        if self.settings.duplication:
            end = self.confirm
        return (self._from_queues() if self._rechecks else end), end

    def _from_queues(self) -> int:
        known = max((queue.max_physical for queue in self.queues.values()), default=-1)
        return max(known, self.log.min_offset, 0)
