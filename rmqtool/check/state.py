"""What lies beside the data: checkpoint, abort, lock, configuration, consumer offsets, topic table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from formats.checkpoint import (
    CHECKPOINT_SIZE,
    CLOCK_MARGIN_MS,
    TIMES,
    Abort,
    Checkpoint,
    parse_checkpoint,
)
from formats.errors import FormatError
from formats.primitives import offset_of
from rmqtool.broker.timer_check import TIMERS
from rmqtool.check.catalogue import Severity
from rmqtool.check.config_files import check_config
from rmqtool.check.findings import finding
from rmqtool.check.timers import check_timers
from rmqtool.check.topics import QueueEnds, Times, check_offsets, check_topics
from rmqtool.errors import RmqtoolError
from rmqtool.scan.options import ReadOptions
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import StoreForm
from rmqtool.store.live import is_live, lock_of
from rmqtool.store.rocksdb import rocksdb_queue_files
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rmqtool.check.findings import Finding
    from rmqtool.store.layout import Store

__all__ = ["LogEnd", "QueueEnds", "check_state", "is_unclean"]

_LONG = 8


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where valid records end, and the greatest store timestamp among them (ms, None without records)."""

    offset: int
    timestamp: int | None


def is_unclean(store: Store) -> bool:
    """Whether `abort` says that the last run did not end, or a broker holds the store now."""
    aborted = bool(store.of_kind(FileKind.ABORT)) or any(one.path == "abort" for one in store.directories)
    return aborted or lock_of(store).held is True


def check_state(
    store: Store,
    *,
    queues: Mapping[tuple[str, int], QueueEnds] | None = None,
    log_end: LogEnd | None = None,
    times: Times | None = None,
    reading: ReadOptions | None = None,
) -> Iterator[Finding]:
    """Findings about everything that is neither log nor derived from it.

    queues: ends of every plain and batch queue; without them (None) offsets are not compared. log_end:
    without it (None) checkpoint times are not compared. times: of the messages of a queue, called with
    messages that nobody can reach. reading: how the timer log is read.
    """
    unclean = is_unclean(store)
    yield from _markers(store)
    yield from _checkpoint(store, log_end, unclean=unclean)
    yield from check_config(store)
    if queues is not None:
        yield from check_timers(store, queues.get(TIMERS), reading or ReadOptions())
    if store.form is not StoreForm.STORE:
        return
    if not rocksdb_queue_files(store):
        yield from check_topics(store, queues or {}, times)
        if queues is not None:
            yield from check_offsets(store, queues, unclean=unclean)


def _markers(store: Store) -> Iterator[Finding]:
    for file in store.of_kind(FileKind.ABORT):
        try:
            pid = Abort.parse(read_whole(file))
            yield finding("CP-ABORT", path=file.display_path, found="" if pid is None else f", process {pid}")
        except (RmqtoolError, FormatError) as error:
            yield finding("CP-ABORT", path=file.display_path, found=f", {error}")
    if any(one.path == "abort" for one in store.directories):
        yield finding("CP-ABORT-DIRECTORY", path="abort")
    held = lock_of(store)
    if held.held:
        yield finding("CP-LOCK", path="lock", found="" if held.pid is None else f", process {held.pid}")
    if any(one.path == "lock" for one in store.directories):
        yield finding("CP-LOCK-DIRECTORY", path="lock")


def _checkpoint(store: Store, log_end: LogEnd | None, *, unclean: bool) -> Iterator[Finding]:
    if any(one.path == "checkpoint" for one in store.directories):
        yield finding("CP-DIRECTORY", path="checkpoint")
        return
    file = next(iter(store.of_kind(FileKind.CHECKPOINT)), None)
    if file is None:
        if store.form is StoreForm.STORE and len(store.segments):
            yield finding("CP-MISSING", path="checkpoint")
        return
    try:
        raw = read_whole(file)
    except RmqtoolError as error:
        yield finding("CP-UNREADABLE", path=file.display_path, found=str(error))
        return
    if file.size != CHECKPOINT_SIZE:
        start, end = sorted((file.size, CHECKPOINT_SIZE))
        yield finding(
            "CP-SIZE",
            path=file.display_path,
            position=start,
            length=end - start,
            expected=CHECKPOINT_SIZE,
            found=file.size,
        )
    if any(raw[offset_of(Checkpoint, "reserved") :]):
        first = next(i for i in range(offset_of(Checkpoint, "reserved"), len(raw)) if raw[i])
        yield finding("CP-REST", path=file.display_path, position=first, length=len(raw) - first)
    for one in _times(file.display_path, raw, log_end, unclean=unclean):
        # of a store in use the log was read before its checkpoint
        yield replace(one, severity=Severity.NOTE) if is_live(store) else one


def _times(path: str, raw: bytes, log_end: LogEnd | None, *, unclean: bool) -> Iterator[Finding]:
    fields = parse_checkpoint(raw)
    last = log_end.timestamp if log_end is not None else None
    for name in TIMES:
        value = int(fields[name])
        code = None
        if value < 0:
            code = "CP-NEGATIVE"
        elif last is not None and value > last:
            code = "CP-FUTURE"
        elif last is not None and name != "index_msg_timestamp":
            # a clean stop writes the second one exactly; the first is often 0 after a short run
            if value == 0 and (unclean or name == "logics_msg_timestamp"):
                code = "CP-ZERO"
            elif unclean and 0 < value < last - CLOCK_MARGIN_MS:
                code = "CP-BEHIND"
        if code is not None:
            place = offset_of(Checkpoint, name)
            yield finding(
                code, path=path, position=place, length=_LONG, part=name, expected=last, found=value
            )
    confirm = int(fields["confirm_physical_offset"])
    if confirm < 0 or (log_end is not None and confirm > log_end.offset):
        yield finding(
            "CP-CONFIRM",
            path=path,
            position=offset_of(Checkpoint, "confirm_physical_offset"),
            length=_LONG,
            part="confirm_physical_offset",
            expected=None if log_end is None else log_end.offset,
            found=confirm,
        )
