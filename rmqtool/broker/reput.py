"""Dispatching after recovery, while the start waits for it: `ReputMessageService#doReput`.

It reads no bodies and checks no CRC, and behind damage it goes on in its own way: over a record whose fields
do not add up by the record's stated size, over anything else to the end of what was readable there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.broker.java import rem
from rmqtool.broker.log_walk import FileWalk, Halt
from rmqtool.broker.record_check import Rules, StopReason, Verdict
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.scan.options import ReadOptions


@dataclass
class Reput:
    """One catching up, from `offset` to `end`.

    skipped: ranges [from, to) that were passed over for good. stuck: it can never arrive, so that the start
    waits for ever. take: called with every run, with the base of its file. fillers: offsets of filler records
    that it passed.
    """

    log: MappedFiles
    offset: int
    end: int
    rules: Rules
    reading: ReadOptions
    take: Callable[[Records, int], object]
    bounded: bool
    """since 5.0 nothing is read that reaches beyond `end`"""
    skipped: list[tuple[int, int]] = field(default_factory=list)
    stuck: bool = False
    fillers: list[int] = field(default_factory=list)

    def run(self) -> None:
        """Dispatches until `offset` reaches `end` or nothing moves any more."""
        self.offset = max(self.offset, self.log.min_offset)
        while self.offset < self.end and not self.stuck:
            before = self.offset
            one = self.log.at(self.offset, or_first=self.offset == 0)
            position = rem(self.offset, self.log.size)
            if one is None or position >= one.wrote or one.file is None:
                self.stuck = True
                return
            self.offset = one.base + position
            self._slice(one, position)
            self.stuck |= self.offset == before

    def _slice(self, one: MappedFile, position: int) -> None:
        """One pass over what is readable of a file from `position` on.

        `read` counts like the broker: what is skipped by a stated size is not in it.
        """
        if one.file is None:
            return
        length, read, at = one.wrote - position, 0, position
        with self.reading.open(one.file) as source:
            walk = FileWalk(source, one.base, one.wrote, self.rules, self.reading.kernels)
            while read < length and (self.offset < self.end or not self.bounded):
                taken, halt = self._records(walk, one.base, at)
                at, read = at + taken, read + taken
                if halt is None or read >= length:
                    return
                if halt.verdict.size <= 0:
                    self._leave(halt.verdict, length - read)
                    return
                if not self._skip(halt.verdict.size):
                    return
                at += halt.verdict.consumed

    def _records(self, walk: FileWalk, base: int, at: int) -> tuple[int, Halt | None]:
        """Dispatches from position `at` on; bytes of records, and what stopped it (None: the end given)."""
        taken = 0
        for item in walk.walk(at):
            if isinstance(item, Halt):
                return taken, item
            run = self._within(item, base)
            if len(run.rows):
                self.take(run, base)
                last = run.rows[-1]
                step = int(last[Field.POSITION] + last[Field.STORE_SIZE]) - at - taken
                self.offset += step
                taken += step
            if len(run.rows) < len(item.rows):
                return taken, None
        return taken, None

    def _leave(self, verdict: Verdict, rest: int) -> None:
        """A filler, or bytes that are not a record: on to the next file, or the end of what can be read."""
        if verdict.reason is StopReason.BLANK:
            self.fillers.append(self.offset)
            self.offset += self.log.size - rem(self.offset, self.log.size)
        elif verdict.reason is StopReason.TOO_LARGE or not self.rules.settings.master:
            self.stuck = True
        else:
            self.skipped.append((self.offset, self.offset + rest))
            self.offset += rest

    def _skip(self, size: int) -> bool:
        """A record whose fields do not add up: on by its stated size, though reading goes on behind them."""
        if self.bounded and self.offset + size > self.end:
            self.stuck = True
            return False
        self.skipped.append((self.offset, self.offset + size))
        self.offset += size
        return True

    def _within(self, run: Records, base: int) -> Records:
        """Since 5.0 a record that reaches beyond the end is left for later."""
        if not self.bounded:
            return run
        ends = run.rows[:, Field.POSITION] + run.rows[:, Field.STORE_SIZE] + base
        return Records(run.rows[ends <= self.end], run.window, run.origin)
