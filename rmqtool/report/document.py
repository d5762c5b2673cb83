"""The document of the record: what the other rooms found, put side by side, with bounds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.output.verdict import headline
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.stats.report import LogStatistics
from rmqtool.repair.plan import tool_version
from rmqtool.report.bounds import bounded
from rmqtool.report.findings import FindingGroups
from rmqtool.report.map_reading import share_the_pass
from rmqtool.report.redacted import redacted
from rmqtool.report.segment_map import SegmentMap
from rmqtool.report.topic_sums import TopicSums
from rmqtool.report.volume import Timeline
from rmqtool.secrets import without_secrets
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from rmqtool.check.verify import Verification
    from rmqtool.recovery.diagnosis import Diagnosis
    from rmqtool.report.shape import RunShape

    Row = dict[str, Any]

SCHEMA = "rmqtool.report/1"
_STATS = (
    "messages", "bytes", "body_bytes", "compressed", "topics", "internal_messages", "first_timestamp",
    "last_timestamp", "largest", "log_bytes", "disk_bytes",
)  # fmt: skip
"""of the summary of `stats`"""
MOST_ROWS = 4096
"""segments in the document; of more, those in the middle are left out"""


@dataclass
class LogFindings:
    """What one pass over the log gives: the findings of `verify`, the map, sums by topic and by time."""

    run: Verification
    timeline: Timeline = field(default_factory=Timeline)

    def __post_init__(self) -> None:
        store = self.run.store
        self.groups = FindingGroups(str(store.given))
        self.map = SegmentMap(store, len(store.segments))
        self._sums = TopicSums()
        self.stats = LogStatistics(store, MessageFilter(), ("topic",), self.run.reading)

    def read(self) -> None:
        """The pass, to its end."""
        share_the_pass(self.run, self.map, self._taken)
        for one in self.run.findings():
            self.groups.take(one)
        sums = self._sums.table()
        self.stats.add_sums(sums, sums, None)

    def _taken(self, shape: RunShape) -> None:
        self._sums.add(shape.topics, shape.sums)
        self.stats.add_sums(None, None, shape.largest)
        self.timeline.add(shape.volume)

    @property
    def harmed(self) -> bool:
        """Whether anything from warning up was found."""
        return bool(self.run.tally.by_severity["error"] or self.run.tally.by_severity["warning"])

    def document(self) -> Row:
        """The sections that come of the log."""
        summary = self.stats.summary()
        return {
            "verify": {**self.run.summary(), "groups": self.groups.rows()},
            "stats": {name: summary[name] for name in _STATS},
            "topics": self.stats.groups.rows(),
            "volume": self.timeline.document(),
        }


def no_plan(why: str) -> Row:
    """The section of a plan that was not made."""
    return {"made": False, "why": why, "rows": []}


def map_document(found: LogFindings, left_out: dict[str, int]) -> Row:
    """The map, with the number of findings of each segment."""
    rows = [
        {**row, "findings": found.groups.by_path[row["path"]]} if row["type"] == "segment" else row
        for row in found.map.document_rows()
    ]
    if len(rows) > MOST_ROWS:
        left_out["map.rows"] = len(rows) - MOST_ROWS
        rows = [*rows[: MOST_ROWS // 2], *rows[-MOST_ROWS // 2 :]]
    return {"summary": found.map.summary(), "rows": rows}


def report_document(
    diagnosis: Diagnosis,
    answer: Row,
    found: LogFindings,
    more: Row,
    redaction: frozenset[str],
) -> Row:
    """The whole document, as it is embedded in the page and as `--json` prints it.

    answer: what `doctor` says, as its JSON has it. more: the sections `groups`, `plan` and `journals`.
    """
    left_out: dict[str, int] = {}
    sections = {"doctor": answer, **found.document(), **more}
    store = diagnosis.store
    complete = bool(answer.get("complete")) and not found.run.covered.not_covered
    document = {
        "created_timestamp": time.time_ns() // 1_000_000,
        "tool_version": tool_version(),
        "store": escape_name(str(store.given)),
        "release": answer.get("version"),
        "headline": headline(diagnosis.outcomes, diagnosis.verdict),
        "redaction": [],
        **bounded(sections, left_out),
        "map": map_document(found, left_out),
        "left_out": left_out,
        "complete": complete,
    }
    shown: Row = redacted(without_secrets(document), redaction)
    return shown
