"""The whole answer of `query-key`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rmqtool.query.by_key import KeySource, find_keys
from rmqtool.query.lost_place import LOOKED_AT, known_place
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.select_found import passing
from rmqtool.scan.picked import Damaged, Missing, pick
from rmqtool.store.coverage import Incomplete, coverage, each_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from rmqtool.query.by_key import KeyAnswer
    from rmqtool.query.duplicates.found import Twice
    from rmqtool.query.wanted_keys import WantedKeys
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]

_NAMED = 1000
"""keys without a message that the summary names; the rest is counted"""


def places_known(store: Store, offsets: Iterable[int]) -> list[tuple[str, Row]]:
    """What lies at the first of these places, where an index knew a message, in words and as rows."""
    return [known_place(store.segments, offset) for offset in sorted(offsets)[:LOOKED_AT]]


@dataclass
class KeyQuery:
    """Messages with wanted keys that pass `chosen`, whose bounds of store time are the window searched.

    limit: the latest so many, None for all. twice: list only what is there more than once. unread: what
    of the log cannot be opened, as rows of `not_covered`.
    """

    store: Store
    wanted: WantedKeys
    source: KeySource
    reading: ReadOptions
    chosen: MessageFilter = field(default_factory=MessageFilter)
    limit: int | None = None
    twice: Twice | None = None
    unread: Sequence[Row] = ()
    missing: list[Missing] = field(default_factory=list)
    damaged: list[Damaged] = field(default_factory=list)

    @cached_property
    def answer(self) -> KeyAnswer:
        """Where the records lie."""
        window = (self.chosen.store_from, self.chosen.store_to)
        return find_keys(self.store, self.wanted, window=window, source=self.source, reading=self.reading)

    @cached_property
    def kept(self) -> list[int]:
        """Physical offsets of the records that pass and, with `twice`, are there more than once."""
        found, lost = passing(self.store.segments, sorted(self.answer.matches), self.chosen)
        self.missing += lost
        return found if self.twice is None else self.twice.among(found)

    @cached_property
    def known_places(self) -> list[tuple[str, Row]]:
        """See `places_known`."""
        return places_known(self.store, {one.physical_offset for one in self.answer.missing})

    def notes(self) -> Iterator[str]:
        """What comes before everything else that is said of the answer."""
        verb = "the index knows one more" if self.answer.matches else "not found, but the index knew it"
        for words, _ in self.known_places:
            yield f"{verb}: {words}"
        more = len(self.answer.missing) - len(self.known_places)
        if more:
            yield f"the index knows {more} further places without a record"

    @property
    def offsets(self) -> list[int]:
        """Those that are listed."""
        return self.kept if self.limit is None else self.kept[-self.limit :]

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, dict[str, list[list[str]]]]]:
        """The records in physical order, and for each its `matched_keys` and, with `twice`, `shared_keys`."""
        wanted = tuple(dict.fromkeys((*columns, "physical_offset")))
        for part in pick(self.store.segments, self.offsets, wanted, damaged=self.damaged):
            if isinstance(part, Missing):
                self.missing.append(part)
                continue
            places = part["physical_offset"].to_pylist()
            keys = {"matched_keys": [sorted(self.answer.matches[place]) for place in places]}
            if self.twice is not None:
                keys["shared_keys"] = [self.twice.of_offset[place] for place in places]
            yield part.select(list(columns)), keys

    def summary(self, listed: int, hide: frozenset[str] = frozenset()) -> Row:
        """The closing summary. hide: classes that are redacted."""
        answer = self.answer
        found = {key for keys in answer.matches.values() for key in keys}
        lacking = [key for key in self.wanted.keys if key not in found]
        reported: Row = {
            "messages": listed,
            "source": answer.source,
            "candidates": answer.candidates,
            "rejected_collisions": answer.collisions,
            "window": list(answer.window),
            "keys": len(self.wanted.keys),
            "keys_not_found": len(lacking),
            "index_files": answer.files,
            "index_files_not_used": answer.setbacks,
            "index_items_without_record": len(answer.missing),
            "index_knew": [row for _, row in self.known_places],
            "scanned": [list(one) for one in answer.scanned],
        }
        if not self.chosen.selects_all or self.twice is not None:
            reported["kept_back"] = len(answer.matches) - len(self.kept)
        if self.twice is not None:
            reported |= self.twice.reported.summary()
        if self.wanted.topic is None:
            reported["topics"] = answer.topics
        if len(self.wanted.keys) > 1 and not hide & {"keys", "properties"}:
            reported["not_found"] = lacking[:_NAMED]
        return reported | coverage(self.not_covered())

    def not_covered(self) -> list[Row]:
        """What might hold a wanted key and was not looked at, or is not listed."""
        rows = [*self.unread, *self.answer.not_covered]
        left_out = len(self.kept) - len(self.offsets)
        if left_out:
            rows.append({"path": "commitlog", "messages": left_out, "reason": Incomplete.LIMIT})
        return each_once([*rows, *map(Missing.row, self.missing), *map(Damaged.row, self.damaged)])
