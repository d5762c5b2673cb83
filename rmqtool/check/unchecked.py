"""What of a store no check reads: messages and queues that make a run incomplete, and files that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.check.timers import checks_wheel
from rmqtool.store.coverage import Incomplete, unreadable
from rmqtool.store.kinds import COMPACTION_KINDS, QUEUE_KINDS, FileKind
from rmqtool.store.rocksdb import queues_only_in_rocksdb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.check.findings import Finding
    from rmqtool.store.coverage import Row
    from rmqtool.store.layout import Store

_NAMED = {
    FileKind.TIMERWHEEL: "timer wheel",
    FileKind.TIMERLOG: "timer log",
    FileKind.COMPACTION_LOG: "compaction log",
    FileKind.COMPACTION_CQ: "compaction queues",
    FileKind.DLEDGER_INDEX: "DLedger index",
    FileKind.TRANSACTION_STATE: "transaction state",
    FileKind.EPOCH: "epoch file",
    FileKind.BROKER_IDENTITY: "broker identity",
    FileKind.ROCKSDB: "RocksDB",
}


def unchecked_rows(store: Store) -> Iterator[Row]:
    """Rows of `not_covered` for messages and queues in forms that are not read."""
    ledger = [file for file in store.of_kind(FileKind.DLEDGER_DATA) if file.size]
    if ledger:
        words = f"{len(ledger)} files of a DLedger log, whose records are not checked"
        yield unreadable(ledger[0].path.partition("/")[0], words)
    if queues_only_in_rocksdb(store):
        yield unreadable("consumequeue", "the queues are in RocksDB and are not checked")
    for queue in (queue for kind in QUEUE_KINDS for queue in store.queues(kind) if queue.topic is None):
        for file in (file for file in queue.files if file.size):
            if file.base_offset is None:
                yield unreadable(
                    file.display_path, "not checked: its name does not say where in its queue it is"
                )
            elif not queue.is_one:
                yield unreadable(file.display_path, "not checked: its queue is unknown")


def unchecked_names(store: Store, *, compaction: bool) -> list[str]:
    """Kinds of file with derived or passing state that lie there and are not looked at.

    compaction: compaction logs are.
    """
    checked = {*COMPACTION_KINDS} if compaction else set()
    if checks_wheel(store):
        checked.add(FileKind.TIMERWHEEL)
    named = {kind: name for kind, name in _NAMED.items() if kind not in checked}
    return [name for kind, name in named.items() if any(file.size for file in store.of_kind(kind))]


def unchecked_index(one: Finding) -> Row:
    """The row of an index file with items whose slots nobody can tell (IDX-GEOMETRY)."""
    return {"path": one.path, "reason": Incomplete.DAMAGE.value, "error": one.message}
