"""Talk to the person: everything on stderr that is not data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rmqtool.output.text import safe
from rmqtool.secrets import hide

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LEFT_OUT = frozenset({"schema", "type", "complete", "incomplete_reason"})


class Talk:
    """Notes, warnings and closing summaries; one line each, controls escaped.

    `quiet` keeps all but warnings back. `before_write` runs before a line (the progress bar leaves the
    screen).
    """

    def __init__(self, *, quiet: bool = False, before_write: Callable[[], None] | None = None) -> None:
        self.quiet = quiet
        self._before_write = before_write

    def note(self, text: str) -> None:
        """Worth knowing; not with `--quiet`."""
        if not self.quiet:
            self._line(text)

    def warn(self, text: str) -> None:
        """Something that changes what the result means; always shown."""
        self._line(f"warning: {text}")

    def closing(self, summary: Mapping[str, Any]) -> None:
        """The summary of a listing in one line; not with `--quiet`."""
        if not self.quiet:
            self._line(describe(summary))

    def _line(self, text: str) -> None:
        if self._before_write is not None:
            self._before_write()
        sys.stderr.write(f"{safe(hide(text))}\n")
        sys.stderr.flush()


def describe(summary: Mapping[str, Any]) -> str:
    """A summary as one line: its plain values, then whether it is complete."""
    parts = [_part(name, value) for name, value in summary.items() if name not in _LEFT_OUT]
    told = ", ".join(part for part in parts if part)
    state = "complete" if summary["complete"] else f"incomplete ({summary['incomplete_reason']})"
    left = "".join(_left(row) for row in summary.get("not_covered", ()) if "error" not in row)
    return f"{told}; {state}{left}" if told else state + left


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
    words = name.replace("_", " ")
    if name == "by_severity":
        return ", ".join(f"{severity} {count:,}" for severity, count in value.items() if count)
    if isinstance(value, bool) or value is None or isinstance(value, (list, dict)):
        return f"{words} {str(value).lower()}" if isinstance(value, bool) else ""
    if isinstance(value, int) and not name.endswith(("offset", "timestamp")):
        return f"{value:,} {words}"
    return f"{words} {value}"
