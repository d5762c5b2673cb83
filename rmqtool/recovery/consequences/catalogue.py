"""Every code that a consequence can have. Codes are stable: scripts filter by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.recovery.consequences import entries_log, entries_queues, entries_start

if TYPE_CHECKING:
    from rmqtool.recovery.consequences.entry import Entry

AREAS: dict[str, tuple[Entry, ...]] = {
    "No start": entries_start.REFUSALS,
    "Recovery and settings": entries_start.START,
    "Configuration files": entries_start.TABLES,
    "Commit log": entries_log.LOG,
    "Queues": entries_queues.QUEUES,
    "Index": entries_log.INDEX,
}
CATALOGUE: dict[str, Entry] = {entry.code: entry for entries in AREAS.values() for entry in entries}
