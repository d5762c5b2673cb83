"""Room on the store's disk, and what a broker deletes for want of it (`CleanCommitLogService`)."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqtool.broker.expiry import aged, expired_segments, ratios
from rmqtool.errors import StoreIOError
from rmqtool.store.config import config_of
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from rmqtool.store.layout import Store

_EFFECTS = {
    "diskMaxUsedSpaceRatio": "segments older than fileReservedTime are deleted at any hour",
    "diskSpaceCleanForciblyRatio": "the oldest segments are deleted whatever their age",
    "diskSpaceWarningLevelRatio": "new messages are refused, the oldest segments deleted",
}


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes of the file system that the store lies on."""

    total: int
    used: int
    usable: int

    @property
    def used_percent(self) -> int:
        """As the broker counts: rounded up, what is kept for root is neither used nor usable."""
        return -(-100 * self.used // max(self.used + self.usable, 1))

    def until(self, percent: int) -> int:
        """Bytes that may still be written before more than `percent` are used."""
        return max((self.used + self.usable) * percent // 100 - self.used, 0)


def room_of(path: str | os.PathLike[str]) -> Room:
    """Asks the file system of a path. Raises `StoreIOError`."""
    try:
        found = os.statvfs(path)
    except OSError as error:
        raise StoreIOError(f"{escape_name(os.fspath(path))}: {error.strerror}") from error
    total = found.f_blocks * found.f_frsize
    return Room(total, total - found.f_bfree * found.f_frsize, found.f_bavail * found.f_frsize)


def disk_outlook(store: Store, room: Room | None = None, now_ns: int | None = None) -> dict[str, Any]:
    """How full the disk is, the thresholds of cleaning, and the files that each would cost.

    room, now_ns: instead of asking the file system and the clock. `expired` are segments past
    `fileReservedTime` by their modification time, oldest first, never the last segment; `forced` those that a
    disk past `diskSpaceCleanForciblyRatio` costs in one run, whatever their age.
    """
    config = store.config or config_of({})
    found = room or room_of(store.root)
    segments = [one.file for one in store.segments]
    modified = [one.mtime_ns // 1_000_000 for one in segments]
    now = (time.time_ns() if now_ns is None else now_ns) // 1_000_000
    forced = segments[: expired_segments(config, modified, now, at_once=True)]
    thresholds = [
        {
            "name": name,
            "percent": percent,
            "passed": found.used_percent > percent,
            "bytes_until": found.until(percent),
            "effect": _EFFECTS[name],
        }
        for name, percent in ratios(config)
    ]
    return {
        "total_bytes": found.total,
        "usable_bytes": found.usable,
        "used_percent": found.used_percent,
        "thresholds": thresholds,
        "next_threshold": next((one for one in thresholds if not one["passed"]), None),
        "delete_when": config.delete_when,
        "file_reserved_hours": config.file_reserved_time,
        "expired": [file.display_path for file in segments[: aged(config, modified, now)]],
        "forced": [file.display_path for file in forced] if config.clean_file_forcibly_enable else [],
    }
