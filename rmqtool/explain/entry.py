"""One row of the table: a line that RocketMQ writes, and what it means.

A line is written as a template. `{name}` stands for a value that the line carries: its form follows from the
name (see `FORMS`). `{}` and `{text}` are any text, `{word}` and `{int}` a word and a number that nobody
needs. The rest is literal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Severity = Literal["normal", "notice", "problem"]
SEVERITIES: tuple[Severity, ...] = ("problem", "notice", "normal")
"""worst first. notice: harmless by itself, but worth knowing"""

_INT = r"-?\d+"
FORMS = {
    "physical_offset": _INT,
    "from_offset": _INT,
    "queue_id": r"\d+",
    "queue_offset": _INT,
    "min_offset": _INT,
    "max_offset": _INT,
    "size": _INT,
    "diff": _INT,
    "first_crc": _INT,
    "second_crc": _INT,
    "expected": _INT,
    "found": _INT,
    "millis": r"\d+",
    "count": r"\d+",
    "code": _INT,
    "flags": r"\d+",
    "ratio": r"-?\d+(?:\.\d+)?(?:[eE]-?\d+)?",
    "magic": r"[0-9a-fA-F]+",
    "int": _INT,
    "topic": r"[%\w|.@$:/-]+",
    "group": r"[%\w|.@$:/-]+",
    "path": r"\S+",
    "other_path": r"\S+",
    "word": r"[^\s,\]]+",
}
"""value name → what it looks like"""

_UNNAMED = frozenset({"", "int", "word", "text"})
"""values that nobody needs: they may stand in a line several times"""
_PLACE = re.compile(r"\{(\w*)\}")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Entry:
    """A line and its meaning.

    id: stable, area and name. lines: templates, one for each wording of the releases. meaning: what happened.
    look: the evidence to look at. next: rmqtool command lines, without the program's name, in which STORE and
    values of the line may stand. incidents: numbers of the catalogue of failure modes. source: where the line
    is written, `Class#method`. releases: in which it occurs, empty for all. derive: name of a function of
    `derived` that reads the values.
    """

    id: str
    severity: Severity
    lines: tuple[str, ...]
    meaning: str
    look: str
    next: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    releases: str = ""
    derive: str | None = None

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """One pattern for each template, to be searched for in a line."""
        return tuple(re.compile(_regex(line)) for line in self.lines)

    @cached_property
    def loose_patterns(self) -> tuple[re.Pattern[str], ...]:
        """The same, blind to digits: they match whatever `patterns` match when its digits are changed."""
        return tuple(re.compile(_regex(line, loose=True)) for line in self.lines)

    @cached_property
    def anchors(self) -> tuple[str, ...]:
        """For each template the longest literal text in it, which every line that matches contains."""
        return tuple(max(_PLACE.split(line)[::2], key=len) for line in self.lines)

    @property
    def tells_digits(self) -> bool:
        """Whether literal digits matter, so that two lines that differ in digits only differ in meaning."""
        return any(_DIGITS.search(part) for line in self.lines for part in _PLACE.split(line)[::2])

    @cached_property
    def names(self) -> frozenset[str]:
        """The values that every wording carries."""
        return frozenset.intersection(*(frozenset(one.groupindex) for one in self.patterns))

    def values(self, text: str) -> dict[str, str] | None:
        """The values in a line, None when this is not such a line."""
        for anchor, pattern in zip(self.anchors, self.patterns, strict=True):
            if anchor in text and (match := pattern.search(text)):
                return {name: value for name, value in match.groupdict().items() if value is not None}
        return None


def _regex(template: str, *, loose: bool = False) -> str:
    parts = _PLACE.split(template)
    written = ""
    for index, part in enumerate(parts):
        if index % 2 == 0:
            literal = re.escape(part)
            written += _DIGITS.sub(r"\\d+", literal) if loose else _bounded(literal, part, parts, index)
            continue
        last = index == len(parts) - 2 and not parts[-1]
        form = FORMS.get(part, ".*" if last else ".*?")
        written += f"(?:{form})" if loose or part in _UNNAMED else f"(?P<{part}>{form})"
    return written


def _bounded(literal: str, part: str, parts: list[str], index: int) -> str:
    """A template that ends in a digit must not match the front of a longer number or word."""
    return literal + r"(?!\w)" if index == len(parts) - 1 and part[-1:].isdigit() else literal
