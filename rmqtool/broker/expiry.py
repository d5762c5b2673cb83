"""When a broker deletes segments, and which: the rules of its cleaning.

`CleanCommitLogService`, `MappedFileQueue#deleteExpiredFileByTime`, `#deleteExpiredFileByOffset`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from rmqtool.store.disk import ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.store.config import StoreConfig

FIRST_RUN = 60.0
"""seconds from the start to the first look (`DefaultMessageStore#addScheduleTask`)"""
MANUAL_RUNS = 20
"""runs that a manual trigger is good for (`#executeDeleteFilesManually`)"""
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What one look decides. full: new messages are refused. at_once: age does not count. due: files go."""

    full: bool
    at_once: bool
    due: bool


def look(config: StoreConfig, used_percent: int, hour: int, *, manual: bool = False) -> Cleaning:
    """`#isTimeToDelete`, `#isSpaceToDelete`. used_percent: of the disk. hour: of the local clock."""
    limits = dict(ratios(config))
    full = used_percent > limits["diskSpaceWarningLevelRatio"]
    crowded = full or used_percent > limits["diskSpaceCleanForciblyRatio"]
    at_hour = any(part.strip().isdecimal() and int(part) == hour for part in config.delete_when.split(";"))
    due = manual or at_hour or crowded or used_percent > limits["diskMaxUsedSpaceRatio"]
    return Cleaning(full, crowded and config.clean_file_forcibly_enable, due)


def expired_segments(config: StoreConfig, modified: Sequence[int], now: int, *, at_once: bool) -> int:
    """How many of the oldest segments go in one run. modified: times (ms) of all, now: ms. Never the last."""
    limit = now - config.file_reserved_time * _HOUR_MS
    old = sum(1 for _ in takewhile(lambda time: at_once or time <= limit, modified[:-1]))
    return min(old, config.delete_file_batch_max)


def expired_below(last_offsets: Sequence[int], floor: int) -> int:
    """How many of the oldest files of a queue or of the index go; never the last.

    last_offsets: where the last entry of each leads. floor: lowest physical offset of the log.
    """
    return sum(1 for _ in takewhile(lambda offset: offset < floor, last_offsets[:-1]))
