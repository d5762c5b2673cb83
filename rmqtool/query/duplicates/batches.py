"""Whether two records with one UNIQ_KEY are of one batch although others lie between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.scan.picked import Missing, pick

if TYPE_CHECKING:
    from rmqtool.store.segments import SegmentSet

_SAME = ("uniq_key", "topic", "queue_id", "born_timestamp", "born_host")
_COLUMNS = (*_SAME, "queue_offset", "store_size")


class BatchWalk:
    """Goes from record to record: those of a batch follow each other without a gap in log and queue.

    Asked for where not all records of a batch are looked at: by an element of KEYS, or with filters.
    """

    def __init__(self, segments: SegmentSet) -> None:
        self._segments = segments

    def joins(self, first: int, last: int) -> bool:
        """Whether the records from the one at `first` to the one at `last` are of one batch."""
        before = self._record(first)
        while before is not None and first < last:
            first += before["store_size"]
            one = self._record(first)
            if (
                one is None
                or one["queue_offset"] != before["queue_offset"] + 1
                or any(one[name] != before[name] for name in _SAME)
            ):
                return False
            before = one
        return first == last

    def _record(self, physical_offset: int) -> dict[str, Any] | None:
        for part in pick(self._segments, [physical_offset], _COLUMNS):
            if not isinstance(part, Missing):
                found: list[dict[str, Any]] = part.to_pylist()
                return found[0]
        return None
