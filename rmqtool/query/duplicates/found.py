"""Which of the records that a query has found are there more than once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.query.duplicates.batches import BatchWalk
from rmqtool.query.duplicates.suspects import COLUMNS, keyed
from rmqtool.query.duplicates.verdict import Duplicates
from rmqtool.scan.picked import Missing, pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.query.wanted_keys import WantedKeys
    from rmqtool.store.segments import SegmentSet


class Twice:
    """By UNIQ_KEY, or with `by_key` by the wanted elements of KEYS; `reported` has the sums afterwards."""

    def __init__(self, segments: SegmentSet, wanted: WantedKeys, *, by_key: bool) -> None:
        self._segments = segments
        self._wanted = wanted
        self._by_key = by_key
        self.reported = Duplicates(BatchWalk(segments))
        self.of_offset: dict[int, list[str]] = {}
        """physical offset → the keys that it shares with others"""

    @cached_property
    def _keys(self) -> pa.Array:
        return pa.array(self._wanted.keys, pa.string())

    def among(self, offsets: Sequence[int]) -> list[int]:
        """Those that are there more than once, ascending; what cannot be read is reported by who lists it."""
        parts = [
            keyed(part, by_key=self._by_key)
            for part in pick(self._segments, offsets, COLUMNS)
            if not isinstance(part, Missing)
        ]
        table = pa.concat_tables(parts) if parts else None
        if table is not None and self._by_key:
            table = table.filter(pc.is_in(table["key"], self._keys))
        for row in self.reported.rows(table):
            for offset in row["physical_offsets"]:
                self.of_offset.setdefault(offset, []).append(row["key"])
        return sorted(self.of_offset)
