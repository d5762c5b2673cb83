"""A store is opened: found or made, locked, recovered by the broker's rules, its queues at the log's end.

What a recovery would take away is computed first, on what lies there: a store is not opened at the price of
records that are intact.
"""

from __future__ import annotations

import errno
import logging
import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.file_rules import rules_of
from rmqtool.broker.files import StoreFiles
from rmqtool.broker.load import RefusedError
from rmqtool.broker.record_check import StopReason
from rmqtool.broker.settings import settings_of
from rmqtool.broker.start import Start
from rmqtool.broker.traits import is_known, traits_of
from rmqtool.errors import (
    NewerFormatError,
    NotAStoreError,
    RecoveryLossError,
    RmqtoolError,
    StoreIOError,
    UnfitStoreError,
    UsageError,
)
from rmqtool.messagestore.dispatching import Index
from rmqtool.messagestore.held_files import data_behind, held_store, refuse_odd_places
from rmqtool.messagestore.log_files import LogFiles
from rmqtool.messagestore.log_places import OWN, LogPlaces, log_directories, make_missing, open_places
from rmqtool.messagestore.store_pool import StorePool
from rmqtool.messagestore.warm_up import WarmUp
from rmqtool.recovery.loss import LostPart, measure_loss
from rmqtool.recovery.truncation import lost_parts
from rmqtool.scan.options import ReadOptions
from rmqtool.store.access import Access
from rmqtool.store.config_json import TopicConfig
from rmqtool.store.holding import Held, acquire_store_lock
from rmqtool.store.holes import is_zero
from rmqtool.store.kinds import QUEUE_KINDS, FileKind
from rmqtool.store.layout import Store
from rmqtool.store.names import escape_name
from rmqtool.store.partial import refuse_partial
from rmqtool.store.releases import RELEASES, version_key
from rmqtool.store.remote.address import refuse_address
from rmqtool.store.rocksdb import rocksdb_queue_files
from rmqtool.store.writing import make_directories, way_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack

    from rmqtool.messagestore.settings import StoreSettings
    from rmqtool.recovery.loss import Loss
    from rmqtool.store.config import StoreConfig

_LOG = logging.getLogger(__name__)
Recovery = Literal["refuse", "broker"]
_TORN_SEGMENTS = 2
"""a torn tail lies in the last so many"""
_SHOWN = 3
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOTHING = frozenset({FileKind.LOCK, FileKind.UNKNOWN})
"""files of a directory that is not a store yet"""


@dataclass(frozen=True, slots=True)
class Opened:
    """A store that was started: its state in memory, and what holds its files."""

    store: Store
    release: str
    start: Start
    files: StoreFiles
    index: Index | None
    held: Held
    places: LogPlaces
    new: bool
    """it had no files"""
    ends_empty: bool
    """zeros are all that lies behind the end of the log, as far as that was looked at"""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A start up to the end of recovery. ends_empty: see `Opened`."""

    start: Start
    ends_empty: bool


@contextmanager
def full_disk_explained() -> Iterator[None]:
    """While a store is opened: what to do where there is no room."""
    try:
        yield
    except StoreIOError as error:
        cause = error.__cause__
        if not isinstance(cause, OSError) or cause.errno not in _NO_ROOM:
            raise
        why = "a store writes files when it is made or opened; free some room on that disk first"
        raise StoreIOError(f"{error}: {why}") from cause


def find(path: str | os.PathLike[str], config: StoreConfig, *, create: bool) -> Path:
    """The root of a store, made if it may be, and the directories of its log.

    Raises `NotAStoreError`, also for queues that have no log, `NewerFormatError`, `UsageError`,
    `StoreIOError`.
    """
    if not os.fspath(path):  # to the system it is where the process happens to be
        raise UsageError("the path of the store is empty")
    if "\0" in os.fspath(path):
        raise UsageError(f"{escape_name(os.fspath(path))} has a NUL, which no path has")
    refuse_address(os.fspath(path))
    shown = escape_name(os.fspath(path))
    if os.path.exists(path) and not os.path.isdir(path):
        raise UsageError(f"{shown} is not a directory")
    try:
        folder, missing = way_to(path, "the store")
    except OSError as error:
        raise StoreIOError(f"{shown}: {error.strerror}") from error
    with folder:
        root = Path(folder.path, *missing)
    places = log_directories(root, config)  # or nothing is made
    if root.is_dir() and not any(os.path.isdir(place) for some in places for place in some):
        _refuse_without_log(root, config, create=create)
    if create:
        try:
            make_directories(str(root), "the store")
        except OSError as error:
            raise StoreIOError(f"{shown}: {error.strerror}") from error
    elif not root.is_dir():
        raise NotAStoreError(f"{shown} has no commit log")
    make_missing(root, config, create=create)
    return root


def start_store(
    root: Path, settings: StoreSettings, release: str | None, recovery: Recovery, stack: ExitStack
) -> Opened:
    """Takes the lock and starts. stack: gets what is to be let go of.

    Raises `UsageError` for a link among what is written, `NewerFormatError`, `LockedError`,
    `RecoveryLossError`, `UnfitStoreError` where a broker refuses, `StoreIOError`.
    """
    if recovery not in get_args(Recovery):
        raise UsageError(f"recovery is {recovery!r}, not {' or '.join(get_args(Recovery))}")
    if release is not None:
        _refuse_release(release)
    places = stack.enter_context(open_places(root, settings.config))
    try:
        refuse_odd_places(str(root), places.held)
    except UsageError:
        _refuse_foreign(Store.open(root, config=settings.config))
        raise
    held = stack.enter_context(acquire_store_lock(root))
    store = Store.open(root, commitlog_roots=places.elsewhere(root), config=settings.config)
    refuse_partial(store)
    _refuse_foreign(store)
    places.check(store)
    new = not store.segments and all(file.kind in _NOTHING for file in store.files)
    store = held_store(store, places.at)
    version = _release_of(store) if release is None else release
    if not is_known(version):
        _LOG.warning("release %s is not known, the newest known is %s", version, RELEASES[-1])
    foreseen = refuse_loss(store, version, recovery)
    files = stack.enter_context(StoreFiles(str(root), at=places.at))
    recovered = foreseen is not None and foreseen.start.leaves_files  # most starts: nothing is read twice
    if foreseen is not None and recovered:
        start = foreseen.start
        start.carry_out(files)
    else:
        start = _start_of(store, version, files)
        start.foreseen = None if foreseen is None else foreseen.start.end
    try:
        if not recovered:
            start.load()
        index = Index(store, start, rules_of(store, version), files) if start.settings.index_enabled else None
        if index is not None:
            start.dispatcher.watch = index.take
        if not recovered:
            start.recover()
        start.catch_up()
        if not start.clean:
            _clear_entries(start, files, places)
    except RefusedError as error:
        where = f" ({escape_name(error.refusal.path)})" if error.refusal.path else ""
        raise UnfitStoreError(f"a broker {version} does not start: {error}{where}") from error
    ends_empty = foreseen is not None and recovered and foreseen.ends_empty
    return Opened(store, version, start, files, index, held, places, new, ends_empty)


def _refuse_foreign(store: Store) -> None:
    """Raises `NewerFormatError` where log or queues lie in files that nothing here writes."""
    shown = escape_name(str(store.root))
    if store.of_kind(FileKind.DLEDGER_DATA):
        raise NewerFormatError(f"{shown}: the log lies in DLedger's files, which are not written here")
    if rocksdb_queue_files(store):
        raise NewerFormatError(f"{shown}: the queues lie in RocksDB, which is not written here")


def _refuse_without_log(root: Path, config: StoreConfig, *, create: bool) -> None:
    """Raises `NewerFormatError`, and `NotAStoreError` where a log would be made that empties queues."""
    try:
        store = Store.open(root, config=config)
    except NotAStoreError:
        return  # there is nothing yet
    _refuse_foreign(store)
    if create and not (root / OWN).is_dir() and any(file.size for file in store.of_kind(*QUEUE_KINDS)):
        raise NotAStoreError(f"{escape_name(str(store.root))} has queues, but no commit log")


def _clear_entries(start: Start, files: StoreFiles, places: LogPlaces) -> None:
    """Entries behind the ends of queues become zeros. Raises `StoreIOError`.

    They lead to records that a power cut took. Brokers leave them, and take them in again at a start behind
    which the log has grown past these places.
    """
    for queue in start.queues.values():
        for last in queue.files.files[-1:]:
            for at, length in data_behind(places.at(last.path), last.wrote, name=last.path):
                files.write(last.path, queue.files.size, at, bytes(length))


def topics_of(opened: Opened) -> dict[str, TopicConfig]:
    """The topic table, with topics that only batch queues tell: else no start would load these."""
    found = dict(opened.store.topics)
    for (name, number), queue in sorted(opened.start.queues.items()):
        if isinstance(queue, BatchConsumeQueue):
            one = found.get(name) or TopicConfig(name, 6, 0, 0, {"queue.type": "BatchCQ"})
            if name not in opened.store.topics:
                one = replace(one, read_queue_nums=number + 1, write_queue_nums=number + 1)
            found[name] = one
    return found


def log_of(opened: Opened, settings: StoreSettings) -> LogFiles:
    """The log of a store to append to, with the pool and the warm-up that the settings ask for."""
    pool = warm = None
    if settings.pools(opened.release):
        config = settings.config
        count, size = config.transient_store_pool_size, config.mapped_file_size_commit_log
        pool = StorePool(count, size, fails_fast=settings.fails_fast)
    if settings.warms_up:
        warm = WarmUp(settings.warmed_pages if settings.sync_flush else 0)
    return LogFiles(opened.places, opened.start.log, pool=pool, warm=warm)


def _refuse_release(release: str) -> None:
    try:
        version_key(release)
    except ValueError as error:
        raise UsageError(f"release is {release!r}, not numbers between dots") from error


def _release_of(store: Store) -> str:
    """The last release that may have written the store."""
    return store.release.last if store.segments and store.release.known else RELEASES[-1]


def _start_of(store: Store, release: str, files: StoreFiles | None = None) -> Start:
    reading = ReadOptions(Access("pread"), jobs=len(os.sched_getaffinity(0)))
    return Start(store, traits_of(release), settings_of(store), reading, files=files)


def refuse_loss(store: Store, release: str, recovery: Recovery) -> Foreseen | None:
    """The start up to the end of recovery, as far as that was looked at; reads only.

    Raises `RecoveryLossError` when it would give up intact records.
    """
    if recovery == "broker" or not len(store.segments):
        return None
    start = _start_of(store, release)
    try:
        start.load()
        start.recover()
    except RefusedError:
        return None  # and the start itself says why
    parts = [one for one in lost_parts(start) if not _is_empty(one)]
    loss = _loss(start, parts)
    if not loss.messages:
        at_filler = start.end is not None and start.end.reason is StopReason.BLANK
        return Foreseen(start, not parts and not at_filler)
    ranges = [(one.start, one.end) for one in loss.ranges]
    places = ", ".join(f"{begin} to {end}" for begin, end in ranges[:_SHOWN])
    more = f" and {len(ranges) - _SHOWN} more" if len(ranges) > _SHOWN else ""
    raise RecoveryLossError(
        f"a broker's recovery would give up {loss.messages} intact messages at offsets {places}{more}: "
        f"rmqtool recover {escape_name(str(store.root))} keeps them; recovery 'broker' opens it anyway",
        loss.messages,
        ranges,
    )


def _loss(start: Start, parts: list[LostPart]) -> Loss:
    """Intact records that the start gives up, but for a torn tail."""
    kept = start.log.min_offset, start.log.max_offset
    loss, _ = measure_loss(parts, kept, start.reading)
    if loss.messages and _is_torn_tail(start, parts, loss):
        return type(loss)()
    return loss


def _is_empty(part: LostPart) -> bool:
    if part.file.file is None:
        return True
    try:
        with part.file.file.open("pread") as source:
            return is_zero(source, part.position)
    except RmqtoolError:
        return False  # what can be read of it is looked at


def _is_torn_tail(start: Start, parts: list[LostPart], loss: Loss) -> bool:
    """Records behind the first hole, all stored after what the checkpoint says to be flushed.

    In the last segments with data only: elsewhere the hole is damage.
    """
    flushed = int(start.checkpoint.physic_msg_timestamp)
    if start.clean or loss.first_timestamp is None or loss.first_timestamp <= flushed:
        return False
    filled = [one for one in start.loaded if one.file is not None and one.file.disk_bytes]
    last = [one.path for one in filled[-_TORN_SEGMENTS:]]
    return all(part.file.path in last or not _holds(part, loss) for part in parts)


def _holds(part: LostPart, loss: Loss) -> bool:
    size = part.file.wrote
    return any(one.start < part.file.base + size and one.end > part.file.base for one in loss.ranges)
