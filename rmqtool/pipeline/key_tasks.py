"""What the tasks of `query-key` do: one store by its index, or a part of a log from end to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool.errors import RmqtoolError
from rmqtool.output.jsonrows import encode
from rmqtool.pipeline.opening import open_any
from rmqtool.pipeline.runner import Lost, lost_part
from rmqtool.query.by_key import KeySource
from rmqtool.query.key_query import KeyQuery
from rmqtool.query.reading import Reading
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.scan.table import table_schema
from rmqtool.store.coverage import Incomplete, unreadable
from rmqtool.store.live import is_live

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.pipeline.parts import LogPart
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.layout import Store

    Row = dict[str, Any]

_ADDED = frozenset({"store", "matched_keys", "note"})
"""columns of an answer that are none of the record table"""


@dataclass(frozen=True)
class Asked:
    """What is looked for. chosen: which messages count. columns: of the record table."""

    keys: tuple[str, ...]
    topic: str | None
    chosen: MessageFilter
    source: KeySource
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Unit:
    """What one task reads: a store by its index, or of a part of a log what lies in `ranges`."""

    store: str
    part: LogPart | None = None
    ranges: tuple[tuple[int, int], ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        """The segment: store and base."""
        return self.store, -1 if self.part is None else self.part.segment.base


def answer_schema(asked: Asked) -> pa.Schema:
    """Columns of an answer. note: what a task says of its work, as JSON, in rows that are no records."""
    columns = tuple(
        name for name in dict.fromkeys((*asked.columns, "segment", "physical_offset")) if name != "store"
    )
    more = [pa.field("matched_keys", pa.list_(pa.string())), pa.field("note", pa.string())]
    return pa.schema([pa.field("store", pa.string()), *table_schema(columns), *more])


@dataclass(frozen=True)
class KeyTask:
    """asked: broadcast."""

    asked: Any
    options: SourceOptions

    def __call__(self, unit: Unit) -> Iterator[tuple[Any, ...]]:
        """A unit → rows of `answer_schema`: its records and its notes."""
        names = answer_schema(self.asked.value).names
        for made in self._of(unit):
            known = set(made.schema.names)
            nothing = [None] * made.num_rows
            lists = [
                made[name].to_pylist(maps_as_pydicts="lossy") if name in known else nothing for name in names
            ]
            yield from zip(*lists, strict=True)

    def _of(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._answered(unit)
        except RmqtoolError as error:
            yield _noted(lost_unit(unit, Lost(str(error))))

    def _answered(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        asked: Asked = self.asked.value
        columns = tuple(name for name in answer_schema(asked).names if name not in _ADDED)
        for within in unit.ranges or (None,):
            store = _store_of(unit, self.options, within)
            if store is None:
                continue
            source = KeySource.INDEX if unit.part is None else KeySource.SCAN
            reading = Reading(live=is_live(store))
            query = KeyQuery(store, WantedKeys(asked.keys, asked.topic), source, reading, asked.chosen)
            listed = 0
            for batch, keys in query.batches(columns):
                listed += batch.num_rows
                yield _marked(batch, keys["matched_keys"], unit)
            yield _noted(_about(unit, _told(unit, query, listed)))


def _store_of(unit: Unit, options: SourceOptions, within: tuple[int, int] | None) -> Store | None:
    if unit.part is None:
        return open_any(unit.store, config=options.config)
    return unit.part.resolved(within)


def _marked(batch: pa.RecordBatch, matched: list[list[str]], unit: Unit) -> pa.RecordBatch:
    store = pa.repeat(pa.scalar(unit.store, pa.string()), batch.num_rows)
    keys = pa.array(matched, pa.list_(pa.string()))
    return batch.append_column("store", store).append_column("matched_keys", keys)


def lost_unit(unit: Unit, lost: Lost) -> Row:
    """The note of a unit without an answer."""
    row = unreadable(".", lost.error) if unit.part is None else lost_part(unit.part, lost)
    return _about(unit, {"rest": [], "not_covered": [row]})


def _about(unit: Unit, told: Row) -> Row:
    return {"store": unit.store, "segment": unit.key[1], **told}


def _noted(note: Row) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"store": [note["store"]], "note": [encode(note).decode()]})


def _told(unit: Unit, query: KeyQuery, listed: int) -> Row:
    """What `KeyQuery.summary` says, as far as it adds up."""
    answer = query.answer
    told: Row = {
        "messages": listed,
        "candidates": answer.candidates,
        "rejected_collisions": answer.collisions,
        "index_items_without_record": len(answer.missing),
        "index_files": answer.files,
        "not_used": answer.setbacks,
    }
    if unit.part is not None:
        return told | {"scanned": [list(one) for one in unit.ranges], "not_covered": query.not_covered()}
    # the index leaves to a scan what it does not cover
    left = [row for row in answer.not_covered if row["reason"] == Incomplete.LIMIT]
    rest = [[row["physical_offset"], row["physical_offset"] + row["length"]] for row in left]
    others = [row for row in query.not_covered() if row["reason"] != Incomplete.LIMIT]
    return told | {"rest": rest, "not_covered": others}
