"""Logs of compaction topics."""

from __future__ import annotations

from rmqtool.check.catalogue.entry import Code, Severity

_OFF = "with enableCompaction=false a broker serves the topic from the commit log, as far as that goes back"

ENTRIES = (
    Code(
        "CMP-PAIR",
        Severity.ERROR,
        "the compaction log of {topic}/{queue_id} has a file without one of the same name in its queue, or "
        "the reverse",
        f"a broker does not start with it; bring the other file back from a backup; {_OFF}",
    ),
    Code(
        "CMP-GAP",
        Severity.ERROR,
        "{length} bytes of the compaction log of {topic}/{queue_id} give no record ({part}): {found} "
        "{found:message is|messages are} not there",
        f"what has expired in the commit log is only here: bring both files back from a backup; {_OFF}",
    ),
    Code(
        "CMP-RECORD",
        Severity.ERROR,
        "{found} {found:record|records} of the compaction log of {topic}/{queue_id} {found:is|are} damaged "
        "({part}), from queue offset {queue_offset} on: a broker does not notice",
        f"what has expired in the commit log is only here: bring both files back from a backup; {_OFF}",
    ),
    Code(
        "CMP-UNIT",
        Severity.ERROR,
        "{found} {found:unit|units} of the queue of {topic}/{queue_id} {found:leads|lead} to no whole record "
        "of the compaction log, from queue offset {queue_offset} on",
        f"bring both files back from a backup; {_OFF}",
    ),
    Code(
        "CMP-UNSERVED",
        Severity.ERROR,
        "no unit leads to {found} {found:record|records} of the compaction log of {topic}/{queue_id}, from "
        "queue offset {queue_offset} on: consumers do not get {found:it|them}",
        f"bring the file of the queue back from a backup; {_OFF}",
    ),
)
