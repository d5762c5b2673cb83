"""The table of log lines, by area. The first entry that fits a line explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.explain.table import (
    answers,
    append,
    broker,
    client,
    codes,
    compaction,
    controller,
    disk,
    dispatch,
    files,
    index,
    jvm,
    loading,
    pop,
    pulling,
    queues,
    recovery,
    remoting,
    replication,
    rocksdb,
    schedule,
    start,
    stop,
    tiered,
    timer,
    transactions,
)

if TYPE_CHECKING:
    from rmqtool.explain.entry import Entry

AREAS: dict[str, tuple[Entry, ...]] = {
    "Recovery of the commit log": recovery.ENTRIES,
    "Start": start.ENTRIES,
    "Stop": stop.ENTRIES,
    "RocksDB": rocksdb.ENTRIES,
    "Loading files": loading.ENTRIES,
    "Dispatch": dispatch.ENTRIES,
    "Consume queues": queues.ENTRIES,
    "Index": index.ENTRIES,
    "Disk space and cleaning": disk.ENTRIES,
    "Mapped files and flushing": files.ENTRIES,
    "Storing messages": append.ENTRIES,
    "Replication": replication.ENTRIES,
    "Controller and role changes": controller.ENTRIES,
    "Timer messages": timer.ENTRIES,
    "Delayed messages": schedule.ENTRIES,
    "Transactions": transactions.ENTRIES,
    "Pop consumption": pop.ENTRIES,
    "Compaction topics": compaction.ENTRIES,
    "Tiered storage": tiered.ENTRIES,
    "Broker": broker.ENTRIES,
    "Offsets, pulls and subscriptions": pulling.ENTRIES,
    "Answers to clients": answers.ENTRIES,
    "Codes in answers": codes.ENTRIES,
    "Remoting": remoting.ENTRIES,
    "Clients": client.ENTRIES,
    "Java and the machine": jvm.ENTRIES,
}
"""title of the area → its entries"""

ENTRIES: tuple[Entry, ...] = tuple(entry for entries in AREAS.values() for entry in entries)
