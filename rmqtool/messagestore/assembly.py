"""Of what an open message store is made, and how its parts know each other; nothing runs yet.

Four groups, each on those in front of it: the log with what follows it, puts, pulls, and what works on both.
Parts know parts, never the store: what they ask of it they get as `StoreCalls`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rmqtool.messagestore.acknowledging import Acknowledging
from rmqtool.messagestore.appending import Appender
from rmqtool.messagestore.by_key import KeyReader
from rmqtool.messagestore.dispatching import Dispatching
from rmqtool.messagestore.expiry import Expiry
from rmqtool.messagestore.flushing import Flusher
from rmqtool.messagestore.log_reader import LogReader
from rmqtool.messagestore.mapped_pulls import MappedPulls
from rmqtool.messagestore.memory.keys import MemoryKeys
from rmqtool.messagestore.memory.log import MemoryLog
from rmqtool.messagestore.memory.reading import MemoryReader
from rmqtool.messagestore.memory.routing import RoutedAppender, RoutedReader
from rmqtool.messagestore.memory.table import MemoryTable
from rmqtool.messagestore.opening import log_of, topics_of
from rmqtool.messagestore.queue_reader import UnitFiles
from rmqtool.messagestore.reading import StoredReader
from rmqtool.messagestore.records import RecordMaker
from rmqtool.messagestore.replication.calls import Replication
from rmqtool.messagestore.replication.replicas import Replicas
from rmqtool.messagestore.replication.store_log import StoreLog
from rmqtool.messagestore.services.engine import Engine
from rmqtool.messagestore.services.running import Services
from rmqtool.messagestore.state_files import StateFiles
from rmqtool.messagestore.statistics import Statistics
from rmqtool.messagestore.topics import Topics
from rmqtool.messagestore.undrained import undrained
from rmqtool.messagestore.writing import Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from rmqtool.messagestore.log_files import LogFiles
    from rmqtool.messagestore.messages import GetResult, IllegalMessageError
    from rmqtool.messagestore.opening import Opened
    from rmqtool.messagestore.settings import StoreSettings


@dataclass(frozen=True, slots=True)
class StoreCalls:
    """What parts ask of the store; to be called when all is assembled.

    demand_open: raises `StoreClosedError` behind `close`. refusal: why nothing can be stored now. The others
    as in `MessageStore`.
    """

    demand_open: Callable[[], None]
    refusal: Callable[[], IllegalMessageError | None]
    queues: Callable[[], list[tuple[str, int]]]
    offsets: Callable[[str, int], tuple[int, int]]
    get: Callable[..., GetResult]


@dataclass(frozen=True, slots=True)
class Logged:
    """The log, what reads and flushes it, and what brings queues and index up to it; state and counters."""

    state: StateFiles
    log: LogFiles
    reader: LogReader
    flusher: Flusher
    dispatching: Dispatching
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class Putting:
    """From a message to a record in the log, or in memory, and who waits for it where."""

    maker: RecordMaker
    appender: Appender
    memory: MemoryLog
    kept: MemoryTable
    topics: Topics
    replication: Replication
    writer: Writer


@dataclass(frozen=True, slots=True)
class Pulling:
    """From a place in a queue, or a key, to messages. mapped_pulls: what needs no look at each unit."""

    units: UnitFiles
    mapped_pulls: MappedPulls
    keys: KeyReader
    memory_keys: MemoryKeys
    reader: RoutedReader

    def forget(self, path: str) -> None:
        """A segment, a queue file or an index file is gone."""
        self.mapped_pulls.forget(path)
        self.keys.forget(path)


@dataclass(frozen=True, slots=True)
class Parts:
    """All of them."""

    logged: Logged
    putting: Putting
    pulling: Pulling
    expiry: Expiry
    services: Services


def assemble(
    opened: Opened, settings: StoreSettings, stack: ExitStack, clock: Callable[[], int], calls: StoreCalls
) -> Parts:
    """The parts of a store. stack: closes their files, also where something fails further on. clock: ms."""
    logged = _logged(opened, settings, stack)
    putting = _putting(opened, settings, logged, clock, calls)
    pulling = _pulling(opened, settings, logged, putting)
    expiry = Expiry(
        opened.held.folder,
        opened.places,
        settings.config,
        opened.start,
        putting.appender.lock,
        logged.flusher,
        logged.dispatching,
        logged.reader,
        pulling.units,
        pulling.forget,
        clock,
    )
    services = Services(_engine(opened, settings, logged, putting, pulling, clock, calls))
    for one in (pulling.units, pulling.mapped_pulls, pulling.keys, logged.reader):
        stack.callback(one.close)
    return Parts(logged, putting, pulling, expiry, services)


def _logged(opened: Opened, settings: StoreSettings, stack: ExitStack) -> Logged:
    """Where puts wait for the medium, releases that confirm it show readers no more than what is there."""
    start = opened.start
    state = StateFiles(opened.held, of_5=start.traits.abort_is_written)
    log = log_of(opened, settings)
    stack.callback(log.close)
    if not opened.ends_empty:
        log.clear_tail()
    flusher = Flusher(log)
    reader = LogReader(opened.places.at, start.log)
    shows_flushed = settings.sync_flush and start.traits.confirms_flushed
    dispatching = Dispatching(
        start,
        reader,
        opened.files,
        opened.index,
        (lambda: flusher.flushed) if shows_flushed else (lambda: log.committed),
    )
    flusher.on_flush = log.on_commit = dispatching.wake
    statistics = Statistics(opened.held.folder.here, lambda: (dispatching.behind, flusher.behind))
    return Logged(state, log, reader, flusher, dispatching, statistics)


def _putting(
    opened: Opened,
    settings: StoreSettings,
    logged: Logged,
    clock: Callable[[], int],
    calls: StoreCalls,
) -> Putting:
    start, config, kernels = opened.start, settings.config, opened.start.reading.kernels
    kept = MemoryTable(opened.store, logged.state, start.queues)
    offsets = {key: queue.max_offset for key, queue in start.queues.items()}
    maker = RecordMaker(opened.release, config, settings.host)
    appender = Appender(logged.log, offsets, kernels, maker, clock=clock)
    memory = MemoryLog(
        settings.memory_bytes,
        kernels,
        start.traits,
        kept.begin,
        clock=clock,
        trailer=maker.trailer,
        arrived=logged.dispatching.announce,
    )
    topics = Topics(
        topics_of(opened),
        logged.state,
        create=settings.create_topics,
        queues=settings.default_queues,
        typed=start.traits.typed_queues,
        undrained=partial(undrained, str(opened.store.root), config, calls.queues, calls.offsets),
        demand_open=calls.demand_open,
        check_name=maker.topic,
        on_delete=memory.forget,
        kept=kept,
    )
    start.topic_of = topics.get
    replicas = Replicas(settings.replica_rule(opened.release))
    synced = settings.sync_flush
    replicated = StoreLog(
        logged.log,
        opened.places,
        logged.dispatching,
        appender.lock,
        logged.flusher,
        kernels,
        synced=synced,
    )
    writer = Writer(
        settings,
        maker,
        topics,
        RoutedAppender(appender, memory, topics),
        Acknowledging(logged.flusher, replicas, synced=synced, timeout=settings.sync_flush_timeout),
        logged.dispatching,
        calls.refusal,
        logged.statistics,
    )
    replication = Replication(settings, replicated, replicas)
    return Putting(maker, appender, memory, kept, topics, replication, writer)


def _pulling(opened: Opened, settings: StoreSettings, logged: Logged, putting: Putting) -> Pulling:
    start, folder, kernels = opened.start, opened.held.folder, opened.start.reading.kernels
    units = UnitFiles(folder)
    stored = StoredReader(
        logged.reader,
        units,
        start.queues,
        start.traits,
        settings.limits,
        kernels,
        reads_slave=settings.reads_slave,
    )
    mapped_pulls = MappedPulls(
        folder.at,
        logged.reader,
        start,
        settings.limits,
        logged.dispatching,
        putting.topics,
        logged.statistics,
        kernels,
    )
    keys = KeyReader(
        folder, logged.reader, start.log, mapped_pulls, logged.dispatching, opened.index, kernels
    )
    memory = MemoryReader(putting.memory, settings.limits)
    reader = RoutedReader(stored, memory, putting.topics)
    return Pulling(units, mapped_pulls, keys, MemoryKeys(keys, putting.memory), reader)


def _engine(
    opened: Opened,
    settings: StoreSettings,
    logged: Logged,
    putting: Putting,
    pulling: Pulling,
    clock: Callable[[], int],
    calls: StoreCalls,
) -> Engine:
    """The store as its services see it."""
    return Engine(
        opened.store,
        opened.release,
        settings,
        logged.state,
        putting.topics,
        putting.maker,
        putting.writer,
        pulling.reader,
        logged.reader,
        logged.dispatching.catch_up,
        logged.flusher.flush_all,
        clock,
        opened.start.clean,
        opened.start.reading.kernels,
        calls.get,
        logged.dispatching.wait,
    )
