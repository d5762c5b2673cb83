"""What is asked for, the pieces of work that go to tasks, and the columns of what they answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool.pipeline.runner import Lost, lost_part
from rmqtool.query.by_key import KeySource
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.scan.table import table_schema
from rmqtool.store.coverage import Incomplete, unreadable

if TYPE_CHECKING:
    from rmqtool.pipeline.parts import LogPart

    Row = dict[str, Any]
    Ranges = tuple[tuple[int, int], ...]


class Join(StrEnum):
    """How keys and messages meet."""

    AUTO = "auto"
    BROADCAST = "broadcast"
    SHUFFLE = "shuffle"


@dataclass(frozen=True)
class KeyRequest:
    """What is looked for. topic: the keys are meant in it alone, None in all. chosen: which messages count.

    columns: of the record table. keys: all of them in a broadcast join, else none.
    """

    topic: str | None = None
    chosen: MessageFilter = field(default_factory=MessageFilter)
    source: KeySource = KeySource.AUTO
    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    @cached_property
    def wanted(self) -> WantedKeys:
        """The keys as columns, made once in a worker."""
        return WantedKeys(self.keys, self.topic)

    @property
    def window(self) -> tuple[int | None, int | None]:
        """Store time [from, to)."""
        return self.chosen.store_from, self.chosen.store_to


@dataclass(frozen=True)
class Unit:
    """What one task reads: a store by its index, or of a part of a log what lies in `ranges`."""

    store: str
    part: LogPart | None = None
    ranges: Ranges = ()
    number: int = 0
    """of the store among those asked"""
    place: int = 0
    """of the segment in its store"""

    @property
    def key(self) -> tuple[str, int]:
        """The segment: store and base."""
        return self.store, -1 if self.part is None else self.part.segment.base

    def lost(self, lost: Lost) -> Row:
        """The note of a unit without an answer."""
        row = unreadable(".", lost.error) if self.part is None else lost_part(self.part, lost)
        return self.about({"lost": True, "not_covered": [row]})

    def about(self, reported: Row) -> Row:
        """A note: what a task says of its work."""
        return {"store": self.store, "segment": self.key[1], **reported}


@dataclass(frozen=True)
class ItemUnit:
    """Items [first, end) of an index file. number: of the store, file: of the file, among all asked."""

    store: str
    number: int
    path: str
    file: int
    first: int
    end: int

    def lost(self, lost: Lost) -> Row:
        """The file is not used; what it would have answered is read from the log."""
        return {"store": self.store, "file": self.file, "path": self.path, "error": lost.error}


@dataclass(frozen=True)
class Bucket:
    """Records of one store near each other, physical offsets from `number` times `size` on."""

    store: str
    number: int
    size: int

    def lost(self, lost: Lost) -> Row:
        """The note of a bucket without an answer."""
        row = {"path": "commitlog", "physical_offset": self.number * self.size, "length": self.size}
        return {
            "store": self.store,
            "not_covered": [row | {"reason": Incomplete.UNREADABLE.value, "error": lost.error}],
        }


PROBES = pa.schema(
    [
        ("store", pa.int32()),
        ("segment", pa.int64()),
        ("unit", pa.int32()),
        ("physical_offset", pa.int64()),
        ("kind", pa.int8()),
        ("code", pa.int64()),
        ("key", pa.string()),
        ("note", pa.string()),
    ]
)
"""Of a shuffle join: records, or items (`unit` is then the file), with the code that a wanted key must have.

key: the key of the record that has the code, where its topic and time are wanted. kind: `Kind`.
"""


class Kind:
    """What a row of `PROBES` says of its record."""

    OUTSIDE = -1
    """has a key with the code in a topic that the index was not asked for"""
    CODE = 0
    """has a key with the code"""
    RECORD = 1
    """was read, and is a candidate whatever its keys are"""
    BEYOND = 2
    """was read, and lies outside of the window"""
    MISSING = 3
    """is not there, and lies in front of the log"""
    MISDIRECTED = 4
    """is not there although the log reaches so far back"""


def hits_schema(asked: KeyRequest) -> pa.Schema:
    """Records with wanted keys. kept: they pass the filters, else their columns are null.

    note: what a task says of its work, as JSON, in rows that are not records.
    """
    columns = tuple(
        name for name in dict.fromkeys((*asked.columns, "segment", "physical_offset")) if name != "store"
    )
    return pa.schema(
        [
            ("store", pa.string()),
            *table_schema(columns),
            ("matched_keys", pa.list_(pa.string())),
            ("kept", pa.bool_()),
            ("note", pa.string()),
        ]
    )


def noted(note: Row) -> pa.RecordBatch:
    """A note as a row; as ASCII, so that a path that is not UTF-8 comes back as it was."""
    return pa.RecordBatch.from_pydict({"note": [json.dumps(note, default=int)]})
