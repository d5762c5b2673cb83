"""What the consequences are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmqtool.check.findings import Finding
    from rmqtool.recovery.matching import WrongEntries
    from rmqtool.recovery.observed_start import ObservedStart
    from rmqtool.recovery.outcome import Outcome
    from rmqtool.recovery.skipped_records import HiddenRecords
    from rmqtool.recovery.unbuilt_queues import UnbuiltQueue


@dataclass(frozen=True, slots=True)
class FindingContext:
    """start: the start that was gone through, as far as it came. outcome: what is reported of it already.

    hidden_records: messages behind fillers. gaps: (path, offset, length) of damage in files that recovery
    does not read. wrong: entries that do not lead to their message. wrong_tags: those that do, with other
    tags. unbuilt: queues that records list, without `enableMultiDispatch`. compaction: what is wrong in
    compaction logs.
    """

    start: ObservedStart
    outcome: Outcome
    hidden_records: tuple[HiddenRecords, ...] = ()
    gaps: tuple[tuple[str, int, int], ...] = ()
    wrong: tuple[WrongEntries, ...] = ()
    wrong_tags: tuple[WrongEntries, ...] = ()
    unbuilt: tuple[UnbuiltQueue, ...] = ()
    compaction: tuple[Finding, ...] = ()
