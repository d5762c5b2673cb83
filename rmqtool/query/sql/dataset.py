"""Tables that are read again by every scan, of the columns and parts that a query asks for.

A `RecordBatchReader` could be read only once, and what merely offers an Arrow stream is reported neither
columns nor conditions; a dataset with its own `scanner` is reported both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from rmqtool.errors import RmqtoolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Row = dict[str, Any]

_ROW = "__row"


@dataclass
class Lacking:
    """What scans could not cover, each range once however often it was read; and the error that ended one.

    scanned: names of the tables that were read at all. interrupted: scans end at their next batch.
    """

    rows: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    scanned: set[str] = field(default_factory=set)
    error: RmqtoolError | KeyboardInterrupt | None = None
    interrupted: Event = field(default_factory=Event)

    def end_if_interrupted(self) -> None:
        """Raises `KeyboardInterrupt` where the query was interrupted."""
        if self.interrupted.is_set():
            raise KeyboardInterrupt

    def add(self, row: Row) -> None:
        """A row of `not_covered`."""
        place = row.get("position", row.get("physical_offset"))
        self.rows[row["path"], place, row["reason"]] = row


@dataclass(frozen=True)
class Part:
    """A piece of a table. guarantee: the condition that all its rows fulfil, given the names it is about."""

    name: str
    guarantee: Callable[[frozenset[str]], ds.Expression]


@dataclass(frozen=True)
class Ask:
    """What a scan wants: columns, in order; a condition, None for all rows; the names in it."""

    columns: tuple[str, ...]
    condition: ds.Expression | None
    names: tuple[str, ...]

    def passing(self, batch: pa.RecordBatch) -> pa.Array:
        """Indices of the rows of a batch (with `names`) that fulfil the condition."""
        numbered = pa.Table.from_batches([batch]).append_column(
            _ROW, pa.array(range(batch.num_rows), pa.int64())
        )
        return numbered.filter(self.condition)[_ROW].combine_chunks()


class Scan:
    """What a database wants of a scanner. Batches are made when they are asked for, in the asking thread.

    Not a `pyarrow.dataset.Scanner`: that reads ahead in threads of its own, which outlive a query that has
    enough and meet an interpreter that ends.
    """

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._schema = schema
        self._batches = batches

    def to_reader(self) -> pa.RecordBatchReader:
        """Once."""
        return pa.RecordBatchReader.from_batches(self._schema, self._batches)


class StoreDataset(ds.InMemoryDataset):  # type: ignore[misc]
    """A table in parts. read: (chosen parts, what is wanted) → batches with just the columns wanted."""

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        parts: Sequence[Part],
        read: Callable[[list[int], Ask], Iterator[pa.RecordBatch]],
        lacking: Lacking,
    ) -> None:
        super().__init__(schema.empty_table())
        self._name = name
        self._own = schema
        self._parts = tuple(parts)
        self._read = read
        self._lacking = lacking

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return self._own

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002 - pyarrow's name
        **_: Any,
    ) -> Scan:
        """A scan of the named columns of the rows that fulfil `filter`."""
        wanted = tuple(self._own.names if columns is None else columns)
        words = set() if filter is None else set(re.findall(r"\w+", str(filter)))
        ask = Ask(wanted, filter, tuple(name for name in self._own.names if name in words))
        schema = pa.schema([self._own.field(name) for name in wanted])
        return Scan(schema, self._batches(ask))

    def _batches(self, ask: Ask) -> Iterator[pa.RecordBatch]:
        self._lacking.scanned.add(self._name)
        try:
            for batch in self._read(self.chosen(ask), ask):
                self._lacking.end_if_interrupted()
                yield batch
        except (RmqtoolError, KeyboardInterrupt) as error:  # the database would make text of it
            self._lacking.error = error
            raise

    def chosen(self, ask: Ask) -> list[int]:
        """Numbers of the parts that may hold rows; Arrow compares the condition with their guarantees."""
        if ask.condition is None:
            return list(range(len(self._parts)))
        names = frozenset(ask.names)
        form, system = ds.IpcFileFormat(), LocalFileSystem()
        fragments = [
            form.make_fragment(str(number), system, partition_expression=part.guarantee(names))
            for number, part in enumerate(self._parts)
        ]
        known = ds.FileSystemDataset(fragments, self._own, form, system)
        return sorted(int(one.path) for one in known.get_fragments(filter=ask.condition))


def within(bounds: Mapping[str, tuple[Any, Any]]) -> ds.Expression:
    """The condition that each named column lies in [least, greatest]."""
    found = ds.scalar(True)
    for name, (low, high) in bounds.items():
        found = found & (ds.field(name) >= low) & (ds.field(name) <= high)
    return found


def small_table(name: str, table: pa.Table, lacking: Lacking) -> StoreDataset:
    """A table that is made beforehand, in one part."""

    def read(_chosen: list[int], ask: Ask) -> Iterator[pa.RecordBatch]:
        return of_batches(iter(table.to_batches()), ask)

    return StoreDataset(name, table.schema, [Part(name, lambda _names: ds.scalar(True))], read, lacking)


def of_batches(batches: Iterator[pa.RecordBatch], ask: Ask) -> Iterator[pa.RecordBatch]:
    """What a scan wants of whole batches."""
    for batch in batches:
        kept = batch if ask.condition is None else batch.take(ask.passing(batch))
        if kept.num_rows:
            yield kept.select(list(ask.columns))
