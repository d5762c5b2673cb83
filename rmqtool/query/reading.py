"""How a query reads the log where it has to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Reading:
    """Threads, kind of access, rate, progress, whether a broker may be writing; see `scan.log.LogScan`."""

    jobs: int = 1
    safe_io: bool = False
    bytes_per_second: int | None = None
    advance: Callable[[int], object] | None = None
    live: bool = False

    def as_scan(self) -> dict[str, Any]:
        """The same as arguments of `LogScan`."""
        return {
            "jobs": self.jobs,
            "safe_io": self.safe_io,
            "bytes_per_second": self.bytes_per_second,
            "advance": self.advance,
            "live": self.live,
        }
