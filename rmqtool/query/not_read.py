"""What a scan met that is not a record, as rows of `not_covered`: an answer may lack what lay there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.scan.events import Doubtful, Gap, Tail, TailContent, Unreadable
from rmqtool.store.coverage import Incomplete, rest_of_log, unreadable
from rmqtool.store.doubts import doubtful

if TYPE_CHECKING:
    from rmqtool.store.segments import Segment

Row = dict[str, Any]


def not_read(segment: Segment, event: object) -> list[Row]:
    """A row for a range that could not be read or is damaged, none for anything else.

    Zeros and older records behind the end of the log are as they should be.
    """
    if isinstance(event, Unreadable):
        return [unreadable(segment.file.display_path, event.reason, event.position, event.length)]
    if isinstance(event, Doubtful):
        start = segment.base + event.position
        rows = rest_of_log([segment], start, Incomplete.DAMAGE, end=start + event.length)
        return [row | doubtful(event.records, event.cause) for row in rows]
    if not isinstance(event, Gap | Tail):
        return []
    if isinstance(event, Tail) and event.content is not TailContent.GARBAGE:
        return []
    start = segment.base + event.position
    return rest_of_log([segment], start, Incomplete.DAMAGE, end=start + event.length)
