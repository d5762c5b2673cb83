"""When a broker deletes segments, and which: the rules of its cleaning.

`CleanCommitLogService`, `MappedFileQueue#deleteExpiredFileByTime`, `#deleteExpiredFileByOffset`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from formats.java import java_parse_int, java_split

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
    at_hour = _at_hour(config.delete_when, hour)
    if at_hour is None:
        return Cleaning(full=False, at_once=False, due=False)
    limits = dict(ratios(config))
    full = used_percent > limits["diskSpaceWarningLevelRatio"]
    crowded = full or used_percent > limits["diskSpaceCleanForciblyRatio"]
    due = manual or at_hour or crowded or used_percent > limits["diskMaxUsedSpaceRatio"]
    return Cleaning(full, crowded and config.clean_file_forcibly_enable, due)


def _at_hour(when: str, hour: int) -> bool | None:
    """`UtilAll#isItTimeToDo`; None where it throws, so that a look does nothing at all."""
    for part in java_split(when, ";"):
        given = java_parse_int(part)
        if given is None or given == hour:
            return None if given is None else True
    return False


def expired_segments(config: StoreConfig, modified: Sequence[int], now: int, *, at_once: bool) -> int:
    """How many of the oldest segments go in one run. modified: times (ms) of all, now: ms. Never the last."""
    old = max(len(modified) - 1, 0) if at_once else aged(config, modified, now)
    return min(old, max(config.delete_file_batch_max, 1))  # brokers count when one is deleted


def aged(config: StoreConfig, modified: Sequence[int], now: int) -> int:
    """How many of the oldest segments are older than `fileReservedTime`, as `expired_segments`."""
    return sum(1 for _ in takewhile(lambda time: reserved_until(config, time) <= now, modified[:-1]))


def reserved_until(config: StoreConfig, modified: int) -> int:
    """Time (ms) at which a segment that was modified then is old enough to go."""
    return modified + config.file_reserved_time * _HOUR_MS


def expired_below(last_offsets: Sequence[int], floor: int) -> int:
    """How many of the oldest files of a queue or of the index go; never the last.

    last_offsets: where the last entry of each leads. floor: lowest physical offset of the log.
    """
    return sum(1 for _ in takewhile(lambda offset: offset < floor, last_offsets[:-1]))


def ratios(config: StoreConfig) -> list[tuple[str, int]]:
    """Percentages, bounded as the broker bounds them."""
    return [
        ("diskMaxUsedSpaceRatio", min(max(config.disk_max_used_space_ratio, 10), 95)),
        ("diskSpaceCleanForciblyRatio", min(max(config.disk_space_clean_forcibly_ratio, 30), 85)),
        ("diskSpaceWarningLevelRatio", min(max(config.disk_space_warning_level_ratio, 35), 90)),
    ]
