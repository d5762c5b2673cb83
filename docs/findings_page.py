"""Writes docs/findings.md from the catalogue: python docs/findings_page.py [--check]."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fixtures.mutators import HEALTHY, INCIDENTS, codes_of
from rmqtool.check.catalogue import CATALOGUE

PAGE = Path(__file__).parent / "findings.md"

HEAD = """\
# Findings

What `rmqtool verify` can find. Codes are stable. Severities: **error**, data is damaged or lost; **warning**,
something that a broker or a consumer trips over; **note**, worth knowing, as a healthy store may look like
that too. Some findings are milder than here where `abort` lies in the store or a broker holds it: queues and
index may then merely be behind.

A finding has `path`, `position`, `physical_offset` and `length` of the whole record, entry or range
concerned, `field` for the part of it, `expected` and `found`. What disagrees with its record has the record's
`physical_offset`; what merely points into damage, or follows from another finding, has `caused_by`, the code
of that. Words in angle brackets stand for facts of the finding.

"""

AREAS = {
    "DIR": "Directory layout",
    "CL": "Commit log",
    "CQ": "Consume queues",
    "BCQ": "Batch consume queues",
    "IDX": "Index files",
    "CMP": "Logs of compaction topics",
    "CP": "Checkpoint, abort and lock",
    "TMR": "Timers",
    "CFG": "Configuration files",
    "X": "Cross checks",
}


INCIDENT_HEAD = """\
## Incidents

What happened to a store, and the codes that its traces get. Consume queue and index entries that point into
the damage are found as well; they carry `caused_by`. Tests make every one of these traces and hold the
findings to it.

| no. | incident | codes |
| --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for area, title in AREAS.items():
        entries = [
            entry for entry in CATALOGUE.values() if entry.code.rpartition("-")[0].split("-")[0] == area
        ]
        parts.append(f"## {title}\n\n| code | severity | meaning | next |\n| --- | --- | --- | --- |\n")
        for entry in sorted(entries, key=lambda one: one.code):
            sentence = entry.of_many.replace("{", "&lt;").replace("}", "&gt;").replace("|", "\\|")
            anchor = f'<a id="{entry.anchor}"></a>`{entry.code}`'
            parts.append(f"| {anchor} | {entry.severity} | {sentence} | {entry.hint} |\n")
        parts.append("\n")
    parts.append(INCIDENT_HEAD)
    for number, title in INCIDENTS.items():
        codes = ", ".join(f"[`{code}`](#{CATALOGUE[code].anchor})" for code in codes_of(number))
        parts.append(f"| {number} | {title} | {codes or HEALTHY[number]} |\n")
    return "".join(parts).rstrip("\n") + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else "docs/findings.md: not current")
    PAGE.write_text(page(), encoding="utf-8")
