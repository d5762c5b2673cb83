"""What the data of a store proves about its checkpoint: how far log, queues and index really reach."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from formats.checkpoint import CHECKPOINT_FIELDS, CHECKPOINT_SIZE, Checkpoint
from rmqtool.broker.load import RefusedError
from rmqtool.broker.record_check import StopReason
from rmqtool.broker.traits import traits_of
from rmqtool.errors import PlanRefusedError, UsageError
from rmqtool.recovery.observed_start import ObservedStart
from rmqtool.recovery.queue_ends import lags
from rmqtool.recovery.view import changed, file_with
from rmqtool.scan.index import read_header
from rmqtool.scan.segment_ends import record_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.start import StartPlan
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

_ORDINARY = frozenset({StopReason.ZERO_TAIL, StopReason.BLANK, StopReason.END, StopReason.NO_FILES})


@dataclass(frozen=True, slots=True)
class Proof:
    """Times are store times in ms, offsets bytes of the commit log; None where there is nothing.

    log_end, stop_reason: where the valid records end that begin with the first file, every body checked.
    last_offset, last_timestamp: of the last of them. lacking: messages among them without a unit in their
    queue; lacking_timestamp: the oldest. index_end_offset, index_end_timestamp: header of the newest index
    file.
    """

    log_end: int
    stop_reason: StopReason
    last_offset: int | None
    last_timestamp: int | None
    lacking: int
    lacking_timestamp: int | None
    index_end_offset: int | None
    index_end_timestamp: int | None

    @property
    def is_sound(self) -> bool:
        """The log ends as logs do, not in damage."""
        return self.stop_reason in _ORDINARY

    def safe(self, stored: Mapping[str, int], *, confirms: bool) -> dict[str, int]:
        """The latest values with which recovery still begins before everything that it has to repair.

        physic: the last valid record. logics: the same, or the oldest message without a unit. index: the
        end of the newest index file while that is inside the log. stored: as it is now; kept where the data
        says nothing. confirms: the release keeps a confirm offset.
        """
        physic = self.last_timestamp or 0
        logics = physic if self.lacking_timestamp is None else min(physic, self.lacking_timestamp)
        inside = self.index_end_offset is not None and self.index_end_offset < max(self.log_end, 1)
        index = self.index_end_timestamp or 0
        confirm = self.last_offset or 0
        return {
            "physic_msg_timestamp": physic,
            "logics_msg_timestamp": logics,
            "index_msg_timestamp": min(index, physic) if inside else 0,
            "master_flushed_offset": stored["master_flushed_offset"],
            "confirm_physical_offset": confirm if confirms else stored["confirm_physical_offset"],
        }


def prove(store: Store, release: str, settings: StartSettings, reading: ReadOptions) -> Proof:
    """Reads the whole log as a broker does that was not stopped in order and knows nothing.

    Raises `PlanRefusedError` when a broker of this release refuses such a store, `UsageError` for kinds of
    stores whose queues are not modelled, and reading errors.
    """
    if settings.rocksdb_queues or settings.dledger:
        raise UsageError(
            "the checkpoint of a store with RocksDB queues or DLedger cannot be proven from its files"
        )
    start = _start(store, release, settings, reading, dict.fromkeys(CHECKPOINT_FIELDS, 0))
    try:
        start.load()
        start.recover()
    except RefusedError as error:
        where = f"{error.refusal.path}: " if error.refusal.path else ""
        raise PlanRefusedError(
            f"{where}{error.refusal.message}: recover the store first, then prove its checkpoint"
        ) from None
    missing = lags(start)
    end, newest = start.end, _newest_index(store)
    return Proof(
        log_end=end.offset if end is not None else 0,
        stop_reason=end.reason if end is not None else StopReason.NO_FILES,
        last_offset=end.last_valid if end is not None else None,
        last_timestamp=_timestamp(start, end.last_valid) if end is not None else None,
        lacking=sum(one.messages for one in missing),
        lacking_timestamp=min((one.oldest_timestamp for one in missing), default=None),
        index_end_offset=newest[0] if newest else None,
        index_end_timestamp=newest[1] if newest else None,
    )


def start_with(
    store: Store, release: str, settings: StartSettings, reading: ReadOptions, values: Mapping[str, int]
) -> StartPlan | None:
    """Where recovery of an unclean stop would begin with these values; None when it never gets there."""
    start = _start(store, release, settings, reading, values)
    try:
        start.load()
    except RefusedError:
        return None
    return start.plan


def _start(
    store: Store, release: str, settings: StartSettings, reading: ReadOptions, values: Mapping[str, int]
) -> ObservedStart:
    checkpoint = file_with(store, "checkpoint", CHECKPOINT_SIZE, partial(Checkpoint.build, dict(values)))
    abort = file_with(store, "abort", 0, bytes)
    imagined = changed(store, put={"checkpoint": checkpoint, "abort": abort})
    return ObservedStart(imagined, traits_of(release), settings, reading)


def _timestamp(start: ObservedStart, offset: int | None) -> int | None:
    if offset is None:
        return None
    for one in start.loaded:
        if one.file is not None and one.base <= offset < one.base + start.log.size:
            with one.file.open("pread") as source:
                found: Any = record_at(source, offset - one.base)
            return None if found is None else int(found.store_timestamp)
    return None


def _newest_index(store: Store) -> tuple[int, int] | None:
    """End offset and end time of the newest index file that has items."""
    for file in reversed(store.index_files()):
        with file.open("pread") as source:
            header = read_header(source)
        if header is not None and header.end_timestamp:
            return header.end_physical_offset, header.end_timestamp
    return None
