"""Every code that a finding can have. Codes are stable: scripts filter by them."""

from __future__ import annotations

from rmqtool.check.catalogue import compaction, config, index, layout, log, queues, state, timers
from rmqtool.check.catalogue.entry import Code, Severity

__all__ = ["CATALOGUE", "Code", "Severity"]

CATALOGUE: dict[str, Code] = {
    entry.code: entry
    for area in (layout, log, queues, compaction, state, timers, config, index)
    for entry in area.ENTRIES
}
