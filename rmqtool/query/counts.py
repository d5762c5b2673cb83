"""What a listing has counted so far: its closing summary, and the exit code that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.errors import ExitCode, worst
from rmqtool.scan.events import TailContent
from rmqtool.store.coverage import Incomplete, coverage

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]


@dataclass
class Counts:
    """What every listing counts. Gaps are bytes that are not what should lie there."""

    gaps: int = 0
    not_covered: list[Row] = field(default_factory=list)

    @property
    def unreadable(self) -> bool:
        """Whether something could not be read, as opposed to not wanted."""
        return any(row["reason"] == Incomplete.UNREADABLE for row in self.not_covered)

    @property
    def is_damaged(self) -> bool:
        """Whether anything was met that a broker does not leave there on purpose."""
        return bool(self.gaps)

    def summary(self) -> Row:
        """The closing summary."""
        return coverage(self.not_covered)

    def exit_code(self) -> ExitCode:
        """What the counts mean to a script."""
        return worst(
            [
                ExitCode.DAMAGE if self.is_damaged else ExitCode.OK,
                ExitCode.INCOMPLETE if self.unreadable else ExitCode.OK,
            ]
        )


@dataclass
class LogCounts(Counts):
    """Of a commit log. redaction: the classes of values that are hidden.

    skipped: how many segments were passed over because of the times in their ends.
    """

    messages: int = 0
    bytes: int = 0
    blanks: int = 0
    gap_bytes: int = 0
    bad_crc: int = 0
    bad_inner: int = 0
    misplaced: int = 0
    torn: int = 0
    tail: str | None = None
    first_offset: int | None = None
    end_offset: int | None = None
    redaction: frozenset[str] = frozenset()
    skipped: Callable[[], int] = lambda: 0

    @property
    def is_damaged(self) -> bool:
        """Whether anything was met that a broker does not leave there on purpose."""
        damage = self.gaps, self.bad_crc, self.bad_inner, self.misplaced, self.torn
        return any(damage) or self.tail == TailContent.GARBAGE

    def summary(self) -> Row:
        """The closing summary."""
        reported: Row = {
            "messages": self.messages,
            "bytes": self.bytes,
            "blanks": self.blanks,
            "gaps": self.gaps,
            "gap_bytes": self.gap_bytes,
            "bad_crc": self.bad_crc,
            "first_offset": self.first_offset,
            "end_offset": self.end_offset,
            "tail": self.tail,
        }
        if self.skipped():
            reported["segments_skipped"] = self.skipped()
        if self.bad_inner:
            reported["bad_inner"] = self.bad_inner
        if self.misplaced:
            reported["misplaced"] = self.misplaced
        if self.torn:
            reported["torn"] = self.torn
        if self.redaction:
            reported["redaction"] = sorted(self.redaction)
        return reported | super().summary()


@dataclass
class FileCounts(Counts):
    """Of files beside the commit log. newer: one of them has a format that this release does not decode."""

    files: int = 0
    rows: int = 0
    by_type: dict[str, int] = field(default_factory=dict)
    undecoded: int = 0
    newer: bool = False
    damaged: int = 0

    @property
    def is_damaged(self) -> bool:
        """Whether anything was met that a broker does not leave there on purpose."""
        return bool(self.gaps or self.damaged)

    def add(self, kind: str, number: int = 1) -> None:
        """Counts rows of one type."""
        self.rows += number
        self.by_type[kind] = self.by_type.get(kind, 0) + number
        if kind == "gap":
            self.gaps += number

    def summary(self) -> Row:
        """The closing summary."""
        reported: Row = {
            "files": self.files,
            "rows": self.rows,
            "gaps": self.gaps,
            "undecoded": self.undecoded,
            "damaged": self.damaged,
            "by_type": self.by_type,
        }
        return reported | super().summary()

    def exit_code(self) -> ExitCode:
        """What the counts mean to a script."""
        return worst([super().exit_code(), ExitCode.NEWER_FORMAT if self.newer else ExitCode.OK])
