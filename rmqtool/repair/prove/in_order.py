"""Whether a store is in order as it lies: what nobody finds fault with, no repair makes better.

A repair reads more into a log than is proven: it has to, where something is broken. Of a store that was
stopped cleanly, in which the verification finds no error and from which a start takes nothing, it would move
records whose places are as good as any, such as those of its own result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.checkpoint import CHECKPOINT_SIZE
from rmqtool.broker.settings import settings_of
from rmqtool.check.findings import Severity
from rmqtool.recovery.view import changed, file_with
from rmqtool.repair.keep.rocksdb import has_rocksdb_queues
from rmqtool.repair.prove.started import begin, costs_of
from rmqtool.repair.prove.verified import bytes_to_verify, findings_of
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import data_bytes
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from rmqtool.check.findings import Finding
    from rmqtool.scan.counted import Counted
    from rmqtool.store.layout import Store

_CHECKPOINT, _ABORT = "checkpoint", "abort"
_STAY = "CL-", "CQ-PRE-BLANK"
"""codes of warnings that no repair ends: odd values in records, such as times; entries that no message has"""


def in_order(store: Store, release: str, counted: Counted) -> bool:
    """Reads what a start of the release reads, then the store up to the first finding that counts."""
    if any(store.of_kind(FileKind.ABORT)) or has_rocksdb_queues(store):
        return False  # nobody reads a database, so nobody has held its entries against the records
    settings = settings_of(store)
    begun = [begin(one, release, settings, counted) for one in (store, _crashed(store))]
    size = bytes_to_verify(store)
    counted.announce(size)
    starts = [costs_of(one, counted) for one in begun]
    with counted.stage(size) as reading:
        if starts[0].outcome.lags or any(one.harm or one.lost for one in starts):
            return False
        kernels = reading.given or choose_kernels(data_bytes(store.segments))
        return not any(_counts(one) for one in findings_of(store, reading, kernels))


def _crashed(store: Store) -> Store:
    """The store as a crash leaves it that knows nothing of what was flushed."""
    checkpoint = file_with(store, _CHECKPOINT, CHECKPOINT_SIZE, lambda: bytes(CHECKPOINT_SIZE))
    return changed(store, put={_CHECKPOINT: checkpoint, _ABORT: file_with(store, _ABORT, 0, bytes)})


def _counts(one: Finding) -> bool:
    if one.severity is Severity.NOTE:
        return False
    return one.severity is Severity.ERROR or not one.code.startswith(_STAY)
