"""What a log says, counted by cause; bounded however long the log is."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.explain.header import exception_of, message_of

if TYPE_CHECKING:
    from rmqtool.explain.entry import Entry

SAMPLES = 5
"""lines of a cause whose values are kept"""
_MOST_EXCEPTIONS = 50
_SHOWN = 1000
_HEX = re.compile(r"\b(?=[0-9A-Fa-f]*\d)[0-9A-Fa-f]{16,}\b")
_NUMBER = re.compile(r"\d+(?:\.\d+)*(?::\d+)?")


@dataclass
class Seen:
    """How often, from when to when, and one line of it with its place (source and line number)."""

    example: str
    source: str
    line: int
    count: int = 0
    first: int | None = None
    last: int | None = None
    exceptions: Counter[str] = field(default_factory=Counter)

    def add(self, count: int, times: tuple[int | None, ...]) -> None:
        """Counts `count` more, and stretches the span over the times."""
        self.count += count
        known = [one for one in (*times, self.first, self.last) if one is not None]
        if known:
            self.first, self.last = min(known), max(known)

    def with_exception(self, name: str, count: int) -> None:
        """Counts exceptions that were printed below."""
        if name in self.exceptions or len(self.exceptions) < _MOST_EXCEPTIONS:
            self.exceptions[name] += count


@dataclass
class Cause(Seen):
    """Lines that one entry of the table explains; `samples` are values of some of them."""

    entry: Entry = field(kw_only=True)
    samples: list[dict[str, str]] = field(default_factory=list)

    def sample(self, values: dict[str, str]) -> None:
        """Keeps the values of a line when they are new and there are not many yet."""
        if len(self.samples) < SAMPLES and values not in self.samples:
            self.samples.append(values)


@dataclass
class Unknown(Seen):
    """Alarming lines that no entry explains, and that differ in numbers only."""

    level: str | None = field(kw_only=True)
    template: str = field(kw_only=True)


@dataclass
class Tally:
    """Everything that was read so far.

    causes and unknown by id and (level, template), of the latter `most_unknown` at most. unlisted: alarming
    lines whose template found no room. records: lines that open an entry of a log; lines: all. explained:
    lines that an entry of the table fits.
    """

    most_unknown: int = 20_000
    causes: dict[str, Cause] = field(default_factory=dict)
    unknown: dict[tuple[str | None, str], Unknown] = field(default_factory=dict)
    unlisted: int = 0
    lines: int = 0
    records: int = 0
    bytes: int = 0

    def cause(self, entry: Entry, line: str, source: str, number: int) -> Cause:
        """The cause that an entry stands for, made with this line as its example when it is new."""
        if entry.id not in self.causes:
            self.causes[entry.id] = Cause(line[:_SHOWN], source, number, entry=entry)
        return self.causes[entry.id]

    def alarm(self, level: str | None, line: str, source: str, number: int) -> Unknown | None:
        """The group of an unexplained line, None when there are too many."""
        template = template_of(line)
        known = self.unknown.get((level, template))
        if known is None and len(self.unknown) < self.most_unknown:
            known = Unknown(line[:_SHOWN], source, number, level=level, template=template)
            self.unknown[level, template] = known
        return known

    @property
    def unknown_lines(self) -> int:
        """Alarming lines without explanation."""
        return self.unlisted + sum(one.count for one in self.unknown.values())

    @property
    def explained(self) -> int:
        """Lines that the table explains."""
        return sum(one.count for one in self.causes.values())


def template_of(line: str) -> str:
    """The message of a line with its numbers, addresses and ids replaced."""
    message = message_of(line).strip()
    name = exception_of(message)
    text = name if name and len(message) > 300 else message
    return _NUMBER.sub("#", _HEX.sub("#", text[:400]))[:240]
