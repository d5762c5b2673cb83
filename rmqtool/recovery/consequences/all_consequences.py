"""All consequences of a start, the worst first."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from rmqtool.recovery.consequences import index, log, queues, starting, tables
from rmqtool.recovery.consequences.entry import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.recovery.consequences.consequence import Consequence
    from rmqtool.recovery.consequences.finding_context import FindingContext

_PARTS = (
    starting.refusals,
    starting.blocked,
    starting.blocked_files,
    log.cuts,
    log.dispatching,
    queues.batches,
    queues.harm,
    queues.delayed,
    queues.timers,
    queues.compaction,
    tables.tables,
    starting.denied,
    starting.settings,
    log.unnoticed,
    index.index,
    starting.recovery,
    log.names,
)
_WITHOUT_READING = (starting.refusals, tables.tables, starting.denied, starting.settings, log.names)
_RANK = {severity: rank for rank, severity in enumerate((Severity.ERROR, Severity.WARNING, Severity.NOTE))}


def consequences_of(scene: FindingContext) -> tuple[Consequence, ...]:
    """Everything that follows from the start; within one severity in the order of the parts."""
    return worst_first(chain.from_iterable(part(scene) for part in _PARTS))


def certain_before_reading(scene: FindingContext) -> tuple[Consequence, ...]:
    """What follows already from a start that was not gone through to its end."""
    return worst_first(chain.from_iterable(part(scene) for part in _WITHOUT_READING))


def worst_first(found: Iterable[Consequence]) -> tuple[Consequence, ...]:
    """By severity, else in the order given."""
    return tuple(sorted(found, key=lambda one: _RANK[one.severity]))
