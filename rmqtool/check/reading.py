"""How, and how much, a verification reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.check.levels import Level
from rmqtool.scan.reader import ReadOptions
from rmqtool.store.access import Access

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Reading:
    """What the caller asked for.

    jobs: segments scanned at once. bytes_per_second: None without bound. advance: told how many bytes are
    done.
    """

    jobs: int = 1
    level: Level = Level.DEFAULT
    safe_io: bool = False
    bytes_per_second: int | None = None
    advance: Callable[[int], object] | None = None

    def access(self, *, live: bool) -> Access:
        """How files are opened; one rate for all of them."""
        return Access.of(self.bytes_per_second, careful=self.safe_io, live=live)

    def options(self, access: Access, *, live: bool) -> ReadOptions:
        """How the log is read, by files that are opened as `access` says."""
        return ReadOptions(access, self.jobs, live, self.advance)

    def done(self, count: int) -> None:
        """Tells whoever waits that `count` more bytes are done."""
        if self.advance is not None:
            self.advance(count)
