"""Talk to the person: everything on stderr that is not data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rmqtool.output.text import safe
from rmqtool.secrets import hide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_LEFT_OUT = frozenset({"schema", "type", "complete", "incomplete_reason"})
_MOST = 8
"""places not covered that are named one by one"""
_ALSO_ZERO = frozenset({"messages", "records", "rows", "findings", "changes"})
"""counts that answer what was asked; of others nothing is said where there are none"""
_WORDS = {
    "bad_crc": "bodies with a bad CRC",
    "queue_id": "queue",
    "index_items_without_record": "index entries without record",
}


class Console:
    """Notes, warnings and closing summaries; one line each, controls escaped.

    `quiet` keeps all but warnings back. `before_write` runs before a line (the progress bar leaves the
    screen).
    """

    def __init__(self, *, quiet: bool = False, before_write: Callable[[], None] | None = None) -> None:
        self.quiet = quiet
        self._before_write = before_write
        self._said: set[str] = set()

    def note(self, text: str) -> None:
        """Worth knowing; not with `--quiet`."""
        if not self.quiet:
            self._said.add(text)
            self._line(text)

    def warn(self, text: str) -> None:
        """Something that changes what the result means; always shown."""
        self._said.add(text)
        self._line(f"warning: {text}")

    def closing(self, summary: Mapping[str, Any]) -> None:
        """The summary of a listing in one line, not with `--quiet`; warns of all that is not covered."""
        rows = summary.get("not_covered", ())
        lines = dict.fromkeys(f"{row['path']}: {row['error']}" for row in rows if "error" in row)
        left = [line for line in lines if not self._said.intersection((line, line.partition(": ")[2]))]
        for line in left[:_MOST]:
            self.warn(f"not covered: {line}")
        if summary.get("not_looked_at"):
            self.note(f"not looked at: {'; '.join(summary['not_looked_at'])}")
        if len(left) > _MOST:
            self.warn(f"not covered: {len(left) - _MOST:,} more places, all of them with --json")
        if not self.quiet:
            self._line(describe(summary))

    def do_next(self, steps: Iterable[tuple[str, str]]) -> None:
        """Commands to copy, each with what it is good for; not with `--quiet`."""
        if self.quiet:
            return
        self._line("")
        self._line("Do next")
        for command, why in steps:
            self._write(f"  {safe(hide(command))}")  # whole: a line that is broken cannot be copied
            self._line(why, "      ")

    def _line(self, text: str, lead: str = "") -> None:
        """A text in as many lines as the terminal takes, in pipes in one."""
        from rmqtool.output.look import terminal_width, wrap

        self._write("\n".join(wrap(safe(hide(text)), terminal_width(sys.stderr), lead)))

    def _write(self, text: str) -> None:
        if self._before_write is not None:
            self._before_write()
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def describe(summary: Mapping[str, Any]) -> str:
    """A summary as one line: its plain values that are not zero, then whether it is complete."""
    parts = [_part(name, value) for name, value in summary.items() if name not in _LEFT_OUT]
    reported = ", ".join(part for part in parts if part)
    state = "complete" if summary["complete"] else f"incomplete ({summary['incomplete_reason']})"
    rows = [row for row in summary.get("not_covered", ()) if "error" not in row]
    left = "".join(map(_left, rows[:_MOST])) + (f", and {len(rows) - _MOST:,} more" * (len(rows) > _MOST))
    return f"{reported}; {state}{left}" if reported else state + left


def _left(row: Mapping[str, Any]) -> str:
    """Where reading stopped; what could not be read has a warning of its own."""
    files = f" in {row['files']} files" if "files" in row else ""
    if "messages" in row and "length" not in row:
        return f", left: {row['messages']:,} messages in {row['path']}"
    at = row.get("position", row.get("physical_offset"))
    start = "" if at is None else f" from {at} on"
    length = f", {row['length']:,} bytes" if "length" in row else ""
    return f", left: {row['path']}{start}{length}{files}"


def _part(name: str, value: Any) -> str:
    words = _WORDS.get(name, name.replace("_", " "))
    if name == "by_severity":
        return ", ".join(f"{severity} {count:,}" for severity, count in value.items() if count)
    if isinstance(value, bool) or value is None or isinstance(value, (list, dict)):
        return f"{words} {str(value).lower()}" if isinstance(value, bool) else ""
    if isinstance(value, int) and not name.endswith(("offset", "timestamp", "_id")):
        if not value and name not in _ALSO_ZERO:
            return ""
        return f"{value:,} {words if value != 1 else _singular(words)}"
    return f"{words} {value}"


def _singular(words: str) -> str:
    """Of a plural noun, perhaps with words around it: keys not found, internal messages."""
    parts = words.split()
    for number, word in enumerate(parts):
        if word.endswith("s") and not word.endswith("ss"):
            parts[number] = f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
            break
    return " ".join(parts)
