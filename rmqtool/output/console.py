"""Talk to the person: everything on stderr that is not data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rmqtool.output.sentences import MOST, describe
from rmqtool.output.text import safe
from rmqtool.secrets import hide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rmqtool.output.times import Zone


class Console:
    """Notes, warnings and closing summaries, controls escaped; on a terminal broken between words.

    `quiet` keeps all but warnings back. `before_write` runs before a line (the progress bar leaves the
    screen). zone: of times in summaries, by default UTC.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        before_write: Callable[[], None] | None = None,
        zone: Zone | None = None,
    ) -> None:
        self.quiet = quiet
        self._before_write = before_write
        self._zone = zone
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
        """The summary of a listing in sentences, not with `--quiet`; warns of all that is not covered."""
        rows = summary.get("not_covered", ())
        lines = dict.fromkeys(f"{row['path']}: {row['error']}" for row in rows if "error" in row)
        left = [line for line in lines if not self._said.intersection((line, line.partition(": ")[2]))]
        for line in left[:MOST]:
            self.warn(f"not covered: {line}")
        if summary.get("not_looked_at"):
            self.note(f"not looked at: {'; '.join(summary['not_looked_at'])}")
        if len(left) > MOST:
            self.warn(f"not covered: {len(left) - MOST:,} more places, all of them with --json")
        if not self.quiet:
            self._line(describe(summary, self._zone))

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
        from rmqtool.output.text_style import terminal_size, wrap

        size = terminal_size(sys.stderr)
        self._write("\n".join(wrap(safe(hide(text)), size and size[0], lead)))

    def _write(self, text: str) -> None:
        if self._before_write is not None:
            self._before_write()
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
