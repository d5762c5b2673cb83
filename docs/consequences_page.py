"""Writes docs/consequences.md from the catalogue: python docs/consequences_page.py [--check]."""

from __future__ import annotations

import sys
from pathlib import Path

from rmqtool.check.catalogue.numbered import of_many
from rmqtool.recovery.consequences.behaviours import BEHAVIOURS
from rmqtool.recovery.consequences.catalogue import AREAS

PAGE = Path(__file__).parent / "consequences.md"

HEAD = """\
# Consequences

What `rmqtool doctor` predicts of a start. Codes are stable. Severities: **error**, the start costs
something, or there is none: the store is not safe to start, and every unsafe one has an error that says why;
**warning**, the start itself costs nothing, but something will be missed, or go wrong later; **note**, worth
knowing, as a sound store may look like that too.

In JSON a consequence has `code`, `severity`, `message`, `hint`, `paths` (files and directories concerned,
relative to the store), and the facts that its sentence names in angle brackets. Each queue that comes to harm
has consequences of its own, with `topic` and `queue_id`.

"""
BEHAVIOUR = """\
## What brokers do

The behaviours behind the codes. `start`: what a start makes of what lies there; `run`: what a running broker
does with a bad record; `seen`: observed with the real stores of 4.9.8 and 5.3.3; `more`: what else is
reported.

| | behaviour | codes |
| --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, entries in AREAS.items():
        parts.append(f"## {title}\n\n| code | severity | meaning | next | releases |\n")
        parts.append("| --- | --- | --- | --- | --- |\n")
        for entry in sorted(entries, key=lambda one: one.code):
            anchor = f'<a id="{entry.anchor}"></a>`{entry.code}`'
            cells = (anchor, entry.severity, _shown(of_many(entry.sentence)), entry.hint, entry.releases)
            parts.append("| " + " | ".join(cells) + " |\n")
        parts.append("\n")
    parts.append(BEHAVIOUR)
    for one in BEHAVIOURS:
        codes = ", ".join(f"`{code}`" for code in one.codes)
        said = "; ".join(part for part in (codes, one.why) if part)
        parts.append(f"| {one.id} | {_shown(one.what)} | {said} |\n")
    return "".join(parts).rstrip("\n") + "\n"


def _shown(template: str) -> str:
    text = template.replace("{}", "…").replace("{reason}", "{the reason}")
    return text.replace("{", "&lt;").replace("}", "&gt;").replace("|", "\\|")


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else "docs/consequences.md: not current")
    PAGE.write_text(page(), encoding="utf-8")
