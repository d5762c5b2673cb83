"""The outcome of a start on a store, without one."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.broker.compaction import in_use
from rmqtool.broker.load import (
    Refusal,
    RefusedError,
    is_dead_end,
    leads_nowhere,
    refused_by_timers,
    timers_in_use,
)
from rmqtool.broker.log_walk import BudgetEndedError
from rmqtool.broker.record_check import StopReason
from rmqtool.broker.settings import StartSettings, settings_of
from rmqtool.broker.start import Mode
from rmqtool.broker.timer_log import load_timer_log
from rmqtool.broker.traits import is_known, traits_of
from rmqtool.recovery.config_tables import TIMER_COUNTS, Loads, config_outcomes
from rmqtool.recovery.consequences.all_consequences import certain_before_reading, consequences_of
from rmqtool.recovery.consequences.finding_context import FindingContext
from rmqtool.recovery.existing import existing_damage
from rmqtool.recovery.lookback import LookBack, Looked
from rmqtool.recovery.loss import Loss, LostPart, measure_loss
from rmqtool.recovery.matching import WrongEntries, wrong_entries, wrong_tags
from rmqtool.recovery.observed_start import ObservedStart
from rmqtool.recovery.outcome import Outcome, TimingDependent
from rmqtool.recovery.queue_ends import lags, queue_outcomes
from rmqtool.recovery.skipped_records import HiddenRecords, behind_fillers
from rmqtool.recovery.truncation import lost_parts, truncations
from rmqtool.recovery.unbuilt_queues import UnbuiltQueue, unbuilt_queues
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.store.access import Access
from rmqtool.store.consumer_offsets import offsets_file
from rmqtool.store.coverage import unopened_entries
from rmqtool.store.files import NotCopiedError
from rmqtool.store.kinds import COMPACTION_KINDS
from rmqtool.store.live import lock_of
from rmqtool.store.rocksdb import POP_DATABASE, databases_of_tables, has_pop_database

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.broker.start import StartPlan
    from rmqtool.broker.traits import Traits
    from rmqtool.check.findings import Finding
    from rmqtool.recovery.config_tables import ConfigOutcome
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.layout import Store
    from rmqtool.store.lock import LockState

_ABORT = ("abort", "abort.bak")
"""the second is written with the first (`MixAll#string2File`)"""
_DEAD_END = "a link behind which no file can be made"
_TIMER_TABLE = TIMER_COUNTS.rpartition("/")[2]
_BROKER_TABLES = (
    "topics.json",
    "topicQueueMapping.json",
    "subscriptionGroup.json",
    "consumerFilter.json",
    "consumerOrderInfo.json",
)
_LARGE_RECORD = 64 << 20
"""bytes that not every broker's heap has to spare; records may have 4 MiB"""
DELAY_TABLE = "delayOffset.json"
"""loaded behind the store's recovery"""


def reading_for(store: Store, kernels: Kernels | None = None) -> ReadOptions:
    """The usual way to read a store at rest."""
    return ReadOptions(Access("pread"), input_bytes=data_bytes(store.segments), given=kernels)


def simulate(
    store: Store,
    release: str,
    settings: StartSettings | None = None,
    *,
    reading: ReadOptions | None = None,
    lock: LockState | None = None,
    on_plan: Callable[[StartPlan], object] | None = None,
    look_back: LookBack | None = None,
) -> Outcome:
    """What a broker of `release` does when it starts on `store`, computed from what lies there.

    lock: the state of the lock file instead of probing it. on_plan: called with mode, start segment and
    bytes to scan as soon as they are known, before the log is read. look_back: how much of the files before
    the start segment is read, which decides about queue offsets given twice; all by default. Raises
    `UsageError` for an unknown release and the reading errors of `rmqtool.errors`.
    """
    return StartSimulation(store, release, settings, reading, lock).run(on_plan, look_back)


class StartSimulation:
    """One run. Make it, call `run` once. traits: what stands for those of the release."""

    def __init__(
        self,
        store: Store,
        release: str,
        settings: StartSettings | None = None,
        reading: ReadOptions | None = None,
        lock: LockState | None = None,
        *,
        keep_units: bool = False,
        traits: Traits | None = None,
    ) -> None:
        self.store, self.release = store, release
        self.traits = traits or traits_of(release)
        self.settings = settings or settings_of(store)
        self.reading = reading or reading_for(store)
        self.lock = lock or lock_of(store)
        self.start = ObservedStart(store, self.traits, self.settings, self.reading, keep_units=keep_units)
        self.also_lost: list[LostPart] = []
        """parts of the log that were given up before"""
        self.config = tuple(self._config())
        self._looked = Looked()
        self._compaction: tuple[Finding, ...] = ()
        self._compaction_unread = False
        self._hidden_records: tuple[HiddenRecords, ...] = ()
        self._wrong: tuple[WrongEntries, ...] = ()
        self._wrong_tags: tuple[WrongEntries, ...] = ()
        self._unbuilt: tuple[UnbuiltQueue, ...] = ()
        self._unreadable: list[str] = []
        self._loaded = False
        self._deletes: tuple[str, ...] = ()
        self._loaded_max: dict[tuple[str, int], int] = {}
        self._log_ends = (-1, 0)

    def load(self) -> StartPlan | None:
        """Goes as far as the plan, None where it does not come to one; `run` goes on from there."""
        if not self._loaded and not self.settings.dledger and self.refused_early is None:
            self.start.load()
            self._loaded = True
        return self.start.plan

    def run(
        self, on_plan: Callable[[StartPlan], object] | None = None, look_back: LookBack | None = None
    ) -> Outcome:
        """Goes through the start."""
        refusal = self.refused_early
        if refusal is not None:
            return self._outcome(refusal)
        try:
            refusal = self._refusal(on_plan)
            loss = self._loss()
        except BudgetEndedError:
            return self._unfinished()
        except NotCopiedError:
            return self._unfinished()  # of what the start reads
        if self.start.end is not None:
            # what the start itself does not read
            seen = self.start.matcher.result()
            self._looked = (look_back or LookBack()).take(self.start)
            self._hidden_records = behind_fillers(self.start)
            for found in (seen, self.start.matcher.result()):
                self._looked.match(found)
            whole = not self._looked.unread
            self._wrong = wrong_entries(
                self.start, self._looked.matches, self.start.witness.unnamed, whole=whole
            )
            self._wrong_tags = wrong_tags(self.start, self._looked.matches)
            self._unbuilt = tuple(unbuilt_queues(self.start, self._looked.matches))
            self._look_at_compaction(look_back or LookBack())
        return self._outcome(refusal, loss)

    @property
    def _has_compaction(self) -> bool:
        return in_use(self.traits, self.settings) and bool(self.store.of_kind(*COMPACTION_KINDS))

    def _look_at_compaction(self, look_back: LookBack) -> None:
        """Nothing is known of compaction logs where they are too long for the time, or move meanwhile."""
        if not self._has_compaction:
            return
        found = None if self.lock.held else look_back.compaction(self.start)
        if found is None:
            self._compaction_unread = True
            self._looked.by_choice |= not self.lock.held
        else:
            self._compaction = found

    def _refusal(self, on_plan: Callable[[StartPlan], object] | None) -> Refusal | None:
        """Goes through the start itself; why it ends early."""
        try:
            self._steps(on_plan)
        except RefusedError as error:
            return error.refusal
        return None

    def _steps(self, on_plan: Callable[[StartPlan], object] | None) -> None:
        start = self.start
        if self.settings.dledger:
            return
        self.load()
        if on_plan is not None and start.plan is not None:
            on_plan(start.plan)
        try:
            start.recover()
        finally:
            self._after_load()
        start.timer_log = load_timer_log(start)
        refusal = self._refused_by_table((DELAY_TABLE, _TIMER_TABLE))
        if refusal is not None:
            raise RefusedError(refusal.code, refusal.message, refusal.path, refusal.setting)
        if self.lock.held:
            raise RefusedError("lock-held", "another process holds the lock: MQ already started", "lock")
        start.catch_up()
        for path in _ABORT if self.traits.abort_is_written else ():
            if start.listing.is_directory(path):
                raise RefusedError("abort-directory", "a directory of this name cannot be written to", path)
            if is_dead_end(self.store.file(path)):
                raise RefusedError("abort-directory", _DEAD_END, path)

    def _config(self) -> list[ConfigOutcome]:
        found = config_outcomes(self.store, self.traits)
        if not timers_in_use(self.traits, self.settings):
            found = [one for one in found if one.path != TIMER_COUNTS]
        asked = (*_BROKER_TABLES, offsets_file(self.store), DELAY_TABLE, _TIMER_TABLE)
        return [
            one
            if one.loads is not Loads.REFUSES or one.path.rpartition("/")[2] in asked
            else type(one)(one.path, Loads.EMPTY, True)
            for one in found
        ]

    def _refused_before(self) -> Refusal | None:
        """Why the broker ends before it loads its store (`BrokerController#initialize`)."""
        refusal = self._refused_by_table((*_BROKER_TABLES, offsets_file(self.store)))
        if refusal is None and not self.settings.dledger:
            # opened when the store is made (`DefaultMessageStore`)
            if self.store.listing.is_directory("lock"):
                return Refusal("lock-directory", "a directory of this name", "lock")
            if is_dead_end(self.store.file("lock")):
                return Refusal("lock-directory", _DEAD_END, "lock")
        return refusal

    @cached_property
    def refused_early(self) -> Refusal | None:
        """Why the broker ends before it loads its store, so that nothing is lost."""
        return self._refused_before() or refused_by_timers(self.store, self.traits, self.settings)

    def _refused_by_table(self, names: tuple[str, ...]) -> Refusal | None:
        """Why the broker ends over one of these configuration files, None when it does not."""
        for one in self.config:
            if one.loads is Loads.REFUSES and one.path.rpartition("/")[2] in names:
                return Refusal("config-unparsable", "neither the file nor its .bak can be parsed", one.path)
        return None

    def _after_load(self) -> None:
        start = self.start
        queues = start.queues.values()
        self._log_ends = start.log.min_offset, start.log.max_offset
        self._loaded_max = {key: queue.max_offset for key, queue in start.queues.items()}
        removed = [path for one in start.compaction for path in one.deleted]
        every = (start.log, *(one.files for one in queues), *start.extensions.values())
        gone = [path for files in every for path in files.deleted]
        there = {file.path for one in queues for file in one.files.files}
        self._deletes = tuple(sorted({*gone, *removed, *start.index.deleted} - there))

    def _loss(self) -> Loss:
        parts = self.also_lost + lost_parts(self.start)
        loss, self._unreadable = measure_loss(parts, self._log_ends, self.reading)
        return loss

    def _unfinished(self) -> Outcome:
        """All that is certain when the time was over before the start was gone through."""
        self._compaction_unread = self._has_compaction
        start, plan = self.start, self.start.plan
        first = start.first_file if plan is not None and start.log.files else 0
        outcome = Outcome(
            version=self.release,
            mode=Mode.NORMAL if start.clean else Mode.ABNORMAL,
            starts=None,
            start_segment=plan.start_segment if plan else None,
            bytes_to_scan=plan.bytes_to_scan if plan else 0,
            index_dropped=start.index.deleted,
            config=self.config,
            lock=self.lock,
            assumed_settings=self.settings.assumed,
            not_looked_at=(*self._left_out(), *(one.path for one in start.loaded[first:]), "consumequeue"),
            unread_by_choice=not self.store.absent,
            version_known=is_known(self.release),
        )
        return replace(outcome, consequences=certain_before_reading(FindingContext(start, outcome)))

    def _outcome(self, refusal: Refusal | None, loss: Loss | None = None) -> Outcome:
        start, plan = self.start, self.start.plan
        end = start.end
        outcome = Outcome(
            version=self.release,
            mode=Mode.NORMAL if start.clean else Mode.ABNORMAL,
            starts=refusal is None,
            refusal=refusal,
            start_segment=plan.start_segment if plan else None,
            bytes_to_scan=plan.bytes_to_scan if plan else 0,
            stop_offset=end.offset if end else None,
            stop_reason=end.reason if end else None,
            min_physical_offset=self._log_ends[0],
            max_physical_offset=self._log_ends[1],
            confirm_offset=start.confirm if self.traits.abort_is_written else None,
            reput_from=start.reput.offset if start.reput else None,
            skipped=tuple(start.reput.skipped) if start.reput else (),
            dispatched=start.dispatched,
            deletes=self._deletes,
            truncates=truncations(start, self._loaded_max),
            index_dropped=start.index.deleted,
            queues=queue_outcomes(
                start,
                self._loaded_max,
                self._looked.matches if start.end is not None and not self._looked.unread else None,
                whole=not self._looked.unread,
            ),
            config=self.config,
            lock=self.lock,
            loss=loss or Loss(),
            lags=lags(start),
            assumed_settings=self.settings.assumed,
            timing_dependent=self._timing(),
            not_looked_at=tuple(dict.fromkeys((*self._left_out(), *self._looked.unread, *self._unreadable))),
            unread_by_choice=self._looked.by_choice,
            already_damaged=existing_damage(
                start,
                self._looked,
                self._hidden_records,
                (*self._wrong, *self._wrong_tags),
                self._unbuilt,
                self.config,
                loss or Loss(),
                self._compaction,
            ),
            version_known=is_known(self.release),
        )
        gaps = tuple(self._looked.gaps)
        scene = FindingContext(
            start,
            outcome,
            self._hidden_records,
            gaps,
            self._wrong,
            self._wrong_tags,
            self._unbuilt,
            self._compaction,
        )
        return replace(outcome, consequences=consequences_of(scene))

    def _timing(self) -> tuple[TimingDependent, ...]:
        found = []
        if self.lock.held:
            found.append(
                TimingDependent("live-store", "a process holds the store: what it still writes counts too")
            )
        size = self._allocated()
        if size >= _LARGE_RECORD:
            found.append(
                TimingDependent(
                    "heap",
                    f"where recovery stops a record states {size} bytes, and the broker allocates them: "
                    "with too small a heap it dies instead",
                )
            )
        return tuple(found)

    def _allocated(self) -> int:
        """What the record at the stop states as its size, if this release takes the memory for it."""
        end = self.start.end
        if end is None or end.reason not in {StopReason.BAD_SIZE, StopReason.BAD_FIELDS}:
            return 0
        stop = self.start.loaded[end.file]
        if stop.file is None or self.traits.record_must_fit:
            return 0
        with stop.file.open("pread") as source:
            return int.from_bytes(source.window(end.offset - stop.base, 4).tobytes(), "big", signed=True)

    def _left_out(self) -> tuple[str, ...]:
        names = {
            "dledger": self.settings.dledger,
            "controller": self.settings.controller,
            "consumequeue (RocksDB)": self.settings.rocksdb_queues,
            "compaction": self._compaction_unread,
            f"{POP_DATABASE} (RocksDB)": has_pop_database(self.store) and self.traits.pop_database,
        }
        unlisted = tuple(one.path for one in self.start.listing.unlistable())
        used = (name for name, used in names.items() if used)
        tables = (f"{one} (RocksDB)" for one in databases_of_tables(self.store))
        followed = (*_ABORT, "checkpoint", "lock")  # as a start follows them
        dead = (
            one.display_path
            for one in unopened_entries(self.store)
            if one.path not in followed or not leads_nowhere(one)
        )
        return (*used, *tables, *unlisted, *dead, *(one.display_path for one in self.store.absent))
