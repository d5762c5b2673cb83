"""What the tasks of a join say of each store, added up, and the stores' summaries made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.pipeline.keys.key_request import Unit
from rmqtool.pipeline.parts import log_parts
from rmqtool.query.by_key import KeySource, items_without_record
from rmqtool.query.key_query import places_known
from rmqtool.query.lost_end import lost_end
from rmqtool.query.lost_place import LOOKED_AT, where_items_lead, without_key
from rmqtool.query.message_filter import MessageFilter
from rmqtool.scan.picked import Missing, pick
from rmqtool.store.coverage import Incomplete, coverage, each_once, holes_in, rest_of_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from rmqtool.pipeline.keys.key_request import KeyRequest
    from rmqtool.pipeline.keys.running import Made
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.layout import Store

    Row = dict[str, Any]
    Ranges = list[tuple[int, int]]


@dataclass
class StoreSums:
    """As `query.by_key.KeyAnswer`, without the matches.

    without_record: the first places that items lead to and that hold no record; inside: the first of those
    that have not expired, missing_inside: how many they are.
    """

    candidates: int = 0
    collisions: int = 0
    missing: int = 0
    without_record: set[int] = field(default_factory=set)
    inside: set[int] = field(default_factory=set)
    missing_inside: int = 0
    topics: int = 0
    index_files: list[str] = field(default_factory=list)
    not_used: dict[str, str] = field(default_factory=dict)
    rest: Ranges = field(default_factory=list)
    not_covered: list[Row] = field(default_factory=list)

    def add(self, note: Row) -> None:
        """Takes in what a task said."""
        for name in ("candidates", "collisions", "missing", "missing_inside", "topics"):
            setattr(self, name, getattr(self, name) + note.get(name, 0))
        self.without_record.update(note.get("without_record", ()))
        self.inside.update(note.get("inside", ()))
        self.index_files += note.get("index_files", ())
        self.not_used |= note.get("not_used", {})
        self.rest += [(low, high) for low, high in note.get("rest", ())]
        self.not_covered += note.get("not_covered", ())

    def summary(self, store: Store, asked: KeyRequest, unread: list[Row]) -> Row:
        """What `KeyQuery.summary` says of where the answer comes from."""
        scanned = [] if asked.source is KeySource.INDEX else self.rest
        row: Row = {
            "source": "+".join(["index"] * bool(self.index_files) + ["scan"] * bool(scanned)) or "index",
            "candidates": self.candidates,
            "rejected_collisions": self.collisions,
            "window": list(asked.window),
            "index_files": self.index_files,
            "index_files_not_used": self.not_used,
            "index_items_without_record": self.missing,
            "index_knew": [place for _, place in places_known(store, self.without_record)],
            "scanned": [list(one) for one in scanned],
        }
        if asked.topic is None:
            row["topics"] = self.topics
        rows = [*unread, *holes_in(store.segments, sorted(scanned))]
        if asked.source is KeySource.INDEX:
            for low, high in self.rest:
                rows += rest_of_log(list(store.segments), low, Incomplete.LIMIT, end=high)
            places = sorted(self.inside)[:LOOKED_AT]
            found = pick(store.segments, places, ("physical_offset",))
            lost = {one.physical_offset: one for one in found if isinstance(one, Missing)}
            rows += items_without_record(
                [lost.get(at) or without_key(at) for at in places], self.missing_inside
            )
        else:
            first, last = asked.window
            rows += lost_end(store, MessageFilter(store_from=first, store_to=last))
            rows += where_items_lead(store.segments, self.inside)
        own = sorted(self.not_covered, key=lambda row: row.get("physical_offset", -1))
        return row | coverage([*rows, *each_once(own)])


def take(sums: Mapping[str, StoreSums], notes: list[Row]) -> None:
    """Adds notes to the sums of their stores."""
    for note in notes:
        sums[note["store"]].add(note)


def scan(
    made: Made,
    task: Callable[[Unit], Iterator[pa.RecordBatch]],
    stores: Mapping[str, Store],
    options: SourceOptions,
    sums: Mapping[str, StoreSums],
) -> None:
    """Reads what no index answers for."""
    units = [
        unit
        for number, (path, store) in enumerate(stores.items())
        for unit in _units(path, number, store, options, sums[path].rest)
    ]
    made.by_item(units, task)
    take(sums, made.notes)


def _units(path: str, number: int, store: Store, options: SourceOptions, ranges: Ranges) -> Iterator[Unit]:
    places = {segment: place for place, segment in enumerate(store.segments)}
    parts = log_parts(
        store,
        options.part_bytes,
        lambda segment: any(low < segment.end and high > segment.base for low, high in ranges),
    )
    for part in parts:
        yield Unit(path, part, tuple(ranges), number, places[part.segment])
