"""Writes docs/log-lines.md from the table of log lines: python docs/log_lines_page.py [--check]."""

from __future__ import annotations

import sys
from pathlib import Path

from rmqtool.explain.table import AREAS, ENTRIES

PAGE = Path(__file__).parent / "log-lines.md"

HEAD = f"""\
# Log lines

The {len(ENTRIES)} causes that `rmqtool explain` knows, with {sum(len(one.lines) for one in ENTRIES)} wordings
of RocketMQ 4.7 to 5.3. **problem**: something is damaged, lost or refused. **notice**: harmless by itself,
but worth knowing. **normal**: every broker writes it. Words in angle brackets stand for values of the line.
`F..` are numbers of the catalogue of failure modes that the tests are built on.

"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for area, entries in AREAS.items():
        parts.append(f"## {area}\n\n")
        for entry in entries:
            where = ", ".join(f"`{one}`" for one in entry.source)
            known = f" Releases: {entry.releases}." if entry.releases else ""
            incidents = f" ({', '.join(entry.incidents)})" if entry.incidents else ""
            parts.append(f"### `{entry.id}`: {entry.severity}{incidents}\n\n")
            parts += [f"    {_shown(line)}\n" for line in entry.lines]
            parts.append(f"\n{entry.meaning} *Look at:* {entry.look}{known}")
            if entry.next:
                parts.append(" *Next:* " + ", ".join(f"`rmqtool {_shown(one)}`" for one in entry.next) + ".")
            parts.append(f" *Written by* {where}.\n\n" if where else "\n\n")
    return "".join(parts).rstrip("\n") + "\n"


def _shown(template: str) -> str:
    text = template.replace("\t", " ").strip()
    return text.replace("{}", "…").replace("{", "<").replace("}", ">")


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else "docs/log-lines.md: not current")
    PAGE.write_text(page(), encoding="utf-8")
