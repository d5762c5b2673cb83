"""What merely points into damage is reported from the damage: findings get their `caused_by` as they pass.

Damage of the log is known by physical offset, damage of any file by position. A unit, item or record that is
wrong at such a place is wrong because of it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.check.log import GAP_CODES
from rmqtool.check.ranges import Ranges, RangesByCode
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.check.findings import Finding
    from rmqtool.check.ranges import Range

_NO_RECORD = frozenset({*GAP_CODES.values(), "CL-TAIL", "DIR-GAP", "DIR-SIZE", "DIR-UNREADABLE", "X-LOST"})
"""damage after which no record begins where units and items may point"""

_HARMLESS = frozenset({"CL-BLANK-LENGTH", "CL-BLANK-REST", "CL-STALE", "DIR-EMPTY-FILE", "DIR-OVERLAP"})
"""findings of the log that nothing else comes from"""

_BY_CONTENT = frozenset({"CQ-TAGS", "CQ-EXT", "IDX-HASH", "IDX-MISSING", "IDX-BEHIND", "IDX-ABSENT"})
"""what properties that cannot be read may explain: the record itself is whole and lies where it lay"""

_WITHOUT_UNIT = frozenset({"CFG-OFFSET-BEYOND", "X-GHOST", "CQ-BEHIND", "BCQ-BEHIND"})

_WHOLE_FILE = frozenset({"DIR-SIZE", "DIR-EMPTY-FILE", "DIR-TWIN", "DIR-OVERLAP"})
"""findings that explain whatever else is odd in the same file"""

_FRAMES = frozenset({*GAP_CODES.values(), "CL-BLANK-LENGTH", "CL-TAIL"})

_LATER = frozenset({"CP-FUTURE", "CP-CONFIRM"})
"""what a checkpoint knows of a log that was longer, or whose last record is not the one it had"""

_EARLY = frozenset({"IDX-TIME", "IDX-HEADER"})
"""found while the log is read, perhaps before the record's own time is judged"""

_HELD = 10_000


class Causes:
    """Every finding of a run passes through `reported`."""

    def __init__(self) -> None:
        self._log = RangesByCode()
        self._places: defaultdict[str | None, RangesByCode] = defaultdict(RangesByCode)
        self._files: dict[str | None, str] = {}
        self._slots: defaultdict[tuple[str | None, int | None], RangesByCode] = defaultdict(RangesByCode)
        self._batches: dict[tuple[str | None, int | None], str] = {}
        self._shortened: dict[tuple[str | None, int | None], str] = {}
        self._index_lost: str | None = None
        self._item_offsets: list[tuple[int, str]] = []
        self._begins: set[str | None] = set()
        """index files whose header has a wrong begin_timestamp"""
        self._elsewhere: dict[int | None, str] = {}
        """records that a unit of another queue points to"""
        self.log_end: int | None = None
        """physical offset behind the last record"""

    @property
    def lost(self) -> Ranges:
        """Ranges of physical offsets where no record can be."""
        lost = Ranges()
        for one in self._log:
            if one.code in _NO_RECORD:
                lost.add(*one)
        return lost

    def torn(self, start: int, end: int) -> None:
        """What is left of records beside unreadable bytes; it has no finding of its own."""
        self._log.add(start, end, "DIR-UNREADABLE")

    def with_causes(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The same findings; what comes from others that passed before says so."""
        for one in findings:
            cause = one.caused_by or self._cause(one)
            self._note(one, cause or one.code)
            yield one if cause is None else replace(one, caused_by=cause)

    def deferred(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings of a pass over the log; those that its last records may explain come last."""
        held: list[Finding] = []
        for one in findings:
            if one.code in _EARLY and len(held) < _HELD:
                held.append(one)
            else:
                yield one
        yield from held

    def _note_index(self, one: Finding, root: str) -> None:
        of_a_file = one.code in ("DIR-EMPTY-FILE", "DIR-UNREADABLE") and _in_index(one)
        if one.code in ("IDX-SIZE", "IDX-UNREADABLE") or of_a_file:
            self._index_lost = self._index_lost or one.code
        elif one.code == "IDX-AHEAD":
            self._log.add(one.expected, one.found + 1, root)
        elif one.code == "IDX-DANGLING" and one.physical_offset is not None:
            insort(self._item_offsets, (one.physical_offset, root))
        elif one.code == "IDX-HEADER" and one.part == "begin_timestamp":
            self._begins.add(one.path)

    def _note(self, one: Finding, root: str) -> None:
        self._note_index(one, root)
        if one.code in _WHOLE_FILE:
            self._files.setdefault(one.path, one.code)
        queue = one.topic, one.queue_id
        if one.code.startswith("BCQ-"):
            self._batches.setdefault(queue, root)
        if one.code.endswith("-FOREIGN"):
            self._elsewhere[one.physical_offset] = root
        if one.code in ("CQ-BEHIND", "BCQ-BEHIND", "X-GHOST"):
            self._shortened.setdefault(queue, root)
        if one.length is None:
            return
        if one.code.startswith(("CQ-", "DIR-UNREADABLE")) and one.queue_offset is not None:
            end = one.queue_offset + one.length // UNIT.itemsize
            self._slots[queue].add(one.queue_offset, end, root)
        if one.position is not None:
            self._places[one.path].add(one.position, one.position + one.length, root)
        of_the_log = one.code.startswith(("CL-", "DIR-", "X-LOST")) and one.code not in _HARMLESS
        if of_the_log and one.physical_offset is not None:
            self._log.add(one.physical_offset, one.physical_offset + one.length, root)

    def _cause(self, one: Finding) -> str | None:
        if one.code.startswith("DIR-"):
            return None
        if one.code.startswith("CL-"):
            if one.code in _FRAMES and one.path in self._files:
                return self._files[one.path]
            place = self._around(one)
            return place.code if place is not None and place.start == one.physical_offset else None
        place = self._around(one, *(() if one.code in _BY_CONTENT else ("CL-PROPERTIES",)))
        if one.code in _LATER:
            place = self._at_the_end()
        if place is not None and place.code == one.code:
            place = self._around(one, "CL-PROPERTIES", one.code)
            return None if place is None else place.code
        if place is not None:
            return place.code
        if one.code.startswith("IDX-"):
            return self._cause_in_index(one)
        if one.code in _WITHOUT_UNIT:
            return self._cause_of_absence(one)
        return self._at_position(one)

    def _around(self, one: Finding, *but: str) -> Range | None:
        """The innermost damage of the log where a finding is, among other codes than `but`."""
        offset = one.physical_offset
        return None if offset is None else self._log.over(offset, offset + 1, but)

    def _at_the_end(self) -> Range | None:
        """Damage that begins where the log ends, or reaches that far."""
        end = self.log_end
        return None if end is None else self._log.over(end, end + 1, ()) or self._log.over(end - 1, end, ())

    def _cause_of_absence(self, one: Finding) -> str | None:
        """Why records have no unit, or a group's offset has no queue to point into."""
        queue = one.topic, one.queue_id
        if one.code == "CFG-OFFSET-BEYOND":
            return self._shortened.get(queue)
        if one.code == "X-GHOST" and one.queue_offset is not None:
            if one.physical_offset in self._elsewhere:
                return self._elsewhere[one.physical_offset]
            if queue in self._batches:
                return self._batches[queue]
            place = self._slots[queue].over(one.queue_offset, one.queue_offset + one.found, (one.code,))
            if place is not None:
                return place.code
        return self._files.get(one.path)

    def _at_position(self, one: Finding) -> str | None:
        if not one.length or one.position is None:
            return None
        place = self._places[one.path].over(one.position, one.position + one.length, (one.code,))
        return None if place is None else place.code

    def _cause_in_index(self, one: Finding) -> str | None:
        if one.code in ("IDX-ABSENT", "IDX-BEHIND", "IDX-MISSING"):
            if self._index_lost is not None:
                return self._index_lost
            start, end = one.physical_offset or 0, (one.physical_offset or 0) + (one.length or 0)
            at = bisect_left(self._item_offsets, (start, ""))
            inside = at < len(self._item_offsets) and self._item_offsets[at][0] < end
            return self._item_offsets[at][1] if inside else None
        of_time = one.code == "IDX-TIME" or (one.code == "IDX-HEADER" and one.part == "end_timestamp")
        if of_time and one.path in self._begins:
            return "IDX-HEADER"
        return self._at_position(one)


def _in_index(one: Finding) -> bool:
    return (one.path or "").partition("/")[0] == "index"
