"""The whole answer of `query-id`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.select_found import passing
from rmqtool.query.target import readings_of
from rmqtool.scan.picked import Damaged, Missing, pick
from rmqtool.store.coverage import coverage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from rmqtool.query.target import Answer
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]


@dataclass
class IdQuery:
    """All records with an id that pass `chosen`. unread: what of the log cannot be opened."""

    store: Store
    given: str
    reading: ReadOptions
    chosen: MessageFilter = field(default_factory=MessageFilter)
    unread: Sequence[Row] = ()
    missing: list[Missing] = field(default_factory=list)
    damaged: list[Damaged] = field(default_factory=list)

    @cached_property
    def answers(self) -> list[Answer]:
        """Where they lie, and how they were found: one for each way of reading the id that found some."""
        return readings_of(self.store, self.given, self.reading)

    @cached_property
    def found_by(self) -> dict[int, str]:
        """Physical offset → how the id is read to mean that record, in physical order."""
        found: dict[int, list[str]] = {}
        for one in self.answers:
            for offset in one.matches:
                found.setdefault(offset, []).append(one.kind)
        return {offset: "+".join(found[offset]) for offset in sorted(found)}

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, list[str]]]:
        """The records, and how each was found."""
        offsets, lost = passing(self.store.segments, list(self.found_by), self.chosen)
        self.missing += lost
        wanted = tuple(dict.fromkeys((*columns, "physical_offset")))
        for part in pick(self.store.segments, offsets, wanted, damaged=self.damaged):
            if isinstance(part, Missing):
                self.missing.append(part)
            else:
                places = part["physical_offset"].to_pylist()
                yield part.select(list(columns)), [self.found_by[place] for place in places]

    def summary(self, listed: int, hide: frozenset[str] = frozenset()) -> Row:
        """The closing summary. hide: classes that are redacted; an id holds a host and stands for a key."""
        hidden = bool(hide & {"hosts", "keys", "properties"})
        readings = [
            {"kind": one.kind, "source": one.source, "messages": len(one.matches)}
            | ({} if hidden else {"id_parts": one.id_parts})
            for one in self.answers
        ]
        reported: Row = {
            name: "+".join(dict.fromkeys(str(one[name]) for one in readings)) for name in ("kind", "source")
        }
        reported |= {"messages": listed, "readings": readings}
        if not self.chosen.selects_all:
            reported["kept_back"] = len(self.found_by) - listed - len(self.missing)
        if not hidden:
            reported |= {"id": self.given, "id_parts": self.answers[0].id_parts}
        return reported | coverage(self.not_covered())

    def not_covered(self) -> list[Row]:
        """What could not be read and might have the id."""
        return [
            *self.unread,
            *(row for one in self.answers for row in one.unreadable),
            *map(Missing.row, self.missing),
            *map(Damaged.row, self.damaged),
        ]
