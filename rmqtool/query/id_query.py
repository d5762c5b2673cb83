"""The whole answer of `query-id`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rmqtool.query.target import by_id
from rmqtool.scan.picked import Missing, pick
from rmqtool.store.coverage import coverage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from rmqtool.query.reading import Reading
    from rmqtool.query.target import Answer
    from rmqtool.store.layout import Store

Row = dict[str, Any]


@dataclass
class IdQuery:
    """All records with an id."""

    store: Store
    given: str
    reading: Reading
    missing: list[Missing] = field(default_factory=list)

    @cached_property
    def answer(self) -> Answer:
        """Where they lie, and how they were found."""
        return by_id(self.store, self.given, self.reading)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records, in physical order."""
        for part in pick(self.store.segments, sorted(self.answer.matches), columns):
            if isinstance(part, Missing):
                self.missing.append(part)
            else:
                yield part

    def summary(self, listed: int, hide: frozenset[str] = frozenset()) -> Row:
        """The closing summary. hide: classes that are redacted; an id holds a host and stands for a key."""
        told: Row = {"kind": self.answer.kind, "source": self.answer.source, "messages": listed}
        if not hide & {"hosts", "keys", "properties"}:
            told |= {"id": self.given, "id_parts": self.answer.id_parts}
        return told | coverage(self.not_covered())

    def not_covered(self) -> list[Row]:
        """What could not be read and might have the id."""
        return [*self.answer.unreadable, *map(Missing.row, self.missing)]
