"""The record table: names, types and meaning of its columns, and how a batch of rows becomes Arrow.

Tables, JSON, Parquet, SQL and Spark rows are all this table; the meaning of each column for users is in
docs/table.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from formats.commitlog import MESSAGE_MAGIC_CODE_V2, SysFlag
from rmqtool.scan import fields as f
from rmqtool.scan import text
from rmqtool.scan.bodies import Bodies
from rmqtool.scan.fields import CrcState, Field, Issue
from rmqtool.scan.maps import property_maps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from rmqtool.scan.bodies import Plain
    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.maps import Maps

PROPERTIES = pa.map_(pa.string(), pa.string())


@dataclass
class Batch:
    """One run of records on its way to columns. Parts that several columns need are computed once."""

    records: Records
    base: int | None
    """of the segment; None where records lie in another file than a commit log"""
    path: str
    store: str | None
    kernels: Kernels
    plain: Sequence[Plain] | None
    rows: npt.NDArray[np.int64] = field(init=False)
    window: npt.NDArray[np.uint8] = field(init=False)
    origin: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows, self.window, self.origin = self.records.rows, self.records.window, self.records.origin

    def ints(self, column: Field) -> npt.NDArray[np.int64]:
        """One field of all records, contiguous."""
        return np.ascontiguousarray(self.rows[:, column])

    def _bit(self, column: Field, bits: int) -> npt.NDArray[np.bool_]:
        return np.asarray((self.rows[:, column] & bits) != 0, np.bool_)

    def has(self, issue: Issue) -> npt.NDArray[np.bool_]:
        """Which records have one of these issues."""
        return self._bit(Field.ISSUES, int(issue))

    @cached_property
    def physical_offsets(self) -> npt.NDArray[np.int64]:
        """Where each record lies in the log, or says that it lay."""
        if self.base is None:
            return self.ints(Field.STORED_PHYSICAL_OFFSET)
        return self.base + self.ints(Field.POSITION)

    @cached_property
    def born_v6(self) -> npt.NDArray[np.bool_]:
        """Which records have an IPv6 born host."""
        return self._bit(Field.SYS_FLAG, SysFlag.BORNHOST_V6)

    @cached_property
    def store_v6(self) -> npt.NDArray[np.bool_]:
        """Which records have an IPv6 store host."""
        return self._bit(Field.SYS_FLAG, SysFlag.STOREHOST_V6)

    @cached_property
    def store_host_positions(self) -> npt.NDArray[np.int64]:
        """Places of the store hosts in the window."""
        born_extra = self.born_v6 * f.HOST_V6_EXTRA
        return self.ints(Field.POSITION) - self.origin + f.OFF_STORE_HOST + born_extra

    @cached_property
    def bodies(self) -> Bodies:
        """Bodies of the batch."""
        return Bodies(self.records, self.kernels, self.plain)

    @cached_property
    def property_maps(self) -> Maps:
        """Properties of the batch as maps."""
        return property_maps(
            self.kernels,
            self.window,
            self.ints(Field.PROPERTIES_POSITION) - self.origin,
            self.ints(Field.PROPERTIES_LENGTH),
            self.has(Issue.PROPERTIES_UTF8),
        )

    @cached_property
    def properties_lost(self) -> npt.NDArray[np.bool_]:
        """Of which records the maps do not say all: ill-formed, dropped or empty parts, equal names."""
        maps = self.property_maps
        lost = self.has(Issue.PROPERTIES_UTF8 | Issue.PROPERTIES_SYNTAX) | maps.empty
        return np.asarray(lost | (maps.counts != self.ints(Field.PROPERTY_COUNT)), np.bool_)

    def raw_properties(self, present: npt.NDArray[np.bool_]) -> pa.Array:
        """Properties as stored, null where `present` is false."""
        lengths = np.maximum(self.ints(Field.PROPERTIES_LENGTH), 0)
        places = self.ints(Field.PROPERTIES_POSITION) - self.origin
        return text.binary(self.kernels, self.window, places, lengths, present)

    def span(self, position: Field, issue: Issue) -> pa.Array:
        """A text field as string column, null where it is absent."""
        lengths = self.ints(Field(position + 1))
        places = self.ints(position) - self.origin
        return text.strings(self.kernels, self.window, places, lengths, lengths >= 0, self.has(issue))


def _int(column: Field, arrow: pa.DataType) -> Callable[[Batch], pa.Array]:
    return lambda batch: text.numbers(batch.rows[:, column], arrow)


def _repeated(value: str | int | None, count: int, arrow: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, arrow), count)


def _chosen(names: Sequence[str | None], which: npt.NDArray[Any]) -> pa.Array:
    if len(which) and (which == which[0]).all():  # as usual
        return pa.repeat(pa.scalar(names[int(which[0])], pa.string()), len(which))
    return pa.DictionaryArray.from_arrays(
        pa.array(which.astype(np.int8)), pa.array(names, pa.string())
    ).dictionary_decode()


_CRC_NAMES: list[str | None] = ["absent", "ok", "bad", None]
_TRANSACTION_NAMES = ["none", "prepared", "commit", "rollback"]
_COMPRESSION_NAMES = ["zlib", "lz4", "zstd", "zlib", "unknown", "unknown", "unknown", "unknown", None]


def _compression(batch: Batch) -> pa.Array:
    flags = batch.rows[:, Field.SYS_FLAG]
    return _chosen(_COMPRESSION_NAMES, np.where(flags & 1, (flags >> 8) & 7, 8))


def _topic(batch: Batch) -> pa.Array:
    places, lengths = batch.ints(Field.TOPIC_POSITION) - batch.origin, batch.ints(Field.TOPIC_LENGTH)
    good = ~batch.has(Issue.TOPIC_UTF8)
    length = int(lengths[0]) if len(lengths) else 0
    if good.all() and (lengths == length).all() and batch.kernels.same_spans(batch.window, places, length):
        # as usual, of one queue
        raw = batch.window[places[0] : places[0] + length] if len(places) else batch.window[:0]
        return pa.repeat(raw.tobytes().decode(), len(lengths))
    return text.strings(batch.kernels, batch.window, places, lengths, good, ~good)


def _topic_hex(batch: Batch) -> pa.Array:
    bad = batch.has(Issue.TOPIC_UTF8)
    if not bad.any():
        return pa.nulls(len(bad), pa.string())
    places, lengths = batch.ints(Field.TOPIC_POSITION) - batch.origin, batch.ints(Field.TOPIC_LENGTH)
    raw = text.binary(batch.kernels, batch.window, places, lengths, bad).to_pylist()
    return pa.array([None if item is None else item.hex() for item in raw], pa.string())


def _record(batch: Batch) -> pa.Array:
    places = batch.ints(Field.POSITION) - batch.origin
    present = np.ones(len(places), bool)
    return text.binary(batch.kernels, batch.window, places, batch.ints(Field.STORE_SIZE), present)


def _born_host(batch: Batch) -> pa.Array:
    places = batch.ints(Field.POSITION) - batch.origin + f.OFF_BORN_HOST
    return text.hosts(batch.kernels, batch.window, places, batch.born_v6)


@dataclass(frozen=True)
class Column:
    """A column of the record table: Arrow type, whether a null can stand in it, and how it is made."""

    name: str
    type: pa.DataType
    build: Callable[[Batch], pa.Array] = field(repr=False)
    default: bool = True
    """part of the table unless columns are named"""


_i32, _i64, _str = pa.int32(), pa.int64(), pa.string()

COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Column("store", _str, lambda b: _repeated(b.store or "", len(b.rows), _str), default=False),
        Column("path", _str, lambda b: _repeated(b.path, len(b.rows), _str)),
        Column("segment", _i64, lambda b: _repeated(b.base, len(b.rows), _i64)),
        Column("position", _i64, _int(Field.POSITION, _i64)),
        Column("physical_offset", _i64, lambda b: text.numbers(b.physical_offsets, _i64)),
        Column("stored_physical_offset", _i64, _int(Field.STORED_PHYSICAL_OFFSET, _i64)),
        Column("store_size", _i32, _int(Field.STORE_SIZE, _i32)),
        Column(
            "magic", _str, lambda b: _chosen(["V1", "V2"], b.rows[:, Field.MAGIC] == MESSAGE_MAGIC_CODE_V2)
        ),
        Column("body_crc", _i32, _int(Field.BODY_CRC, _i32)),
        Column("crc", _str, lambda b: _chosen(_CRC_NAMES, b.rows[:, Field.CRC_STATE])),
        Column("topic", _str, _topic),
        Column("topic_hex", _str, _topic_hex),
        Column("queue_id", _i32, _int(Field.QUEUE_ID, _i32)),
        Column("queue_offset", _i64, _int(Field.QUEUE_OFFSET, _i64)),
        Column("flag", _i32, _int(Field.FLAG, _i32)),
        Column("sys_flag", _i32, _int(Field.SYS_FLAG, _i32)),
        Column("compression", _str, _compression),
        Column(
            "transaction", _str, lambda b: _chosen(_TRANSACTION_NAMES, (b.rows[:, Field.SYS_FLAG] >> 2) & 3)
        ),
        Column("born_timestamp", _i64, _int(Field.BORN_TIMESTAMP, _i64)),
        Column("born_host", _str, _born_host),
        Column("store_timestamp", _i64, _int(Field.STORE_TIMESTAMP, _i64)),
        Column(
            "store_host", _str, lambda b: text.hosts(b.kernels, b.window, b.store_host_positions, b.store_v6)
        ),
        Column("reconsume_times", _i32, _int(Field.RECONSUME_TIMES, _i32)),
        Column("prepared_transaction_offset", _i64, _int(Field.PREPARED_TRANSACTION_OFFSET, _i64)),
        Column(
            "offset_msg_id",
            _str,
            lambda b: text.offset_message_ids(
                b.kernels, b.window, b.store_host_positions, b.store_v6, b.physical_offsets
            ),
        ),
        Column("tags", _str, lambda b: b.span(Field.TAGS_POSITION, Issue.PROPERTIES_UTF8)),
        Column(
            "keys",
            pa.list_(_str),
            lambda b: text.split_words(b.span(Field.KEYS_POSITION, Issue.PROPERTIES_UTF8)),
        ),
        Column("uniq_key", _str, lambda b: b.span(Field.UNIQ_KEY_POSITION, Issue.PROPERTIES_UTF8)),
        Column("properties", PROPERTIES, lambda b: b.property_maps.column),
        Column("properties_raw", pa.binary(), lambda b: b.raw_properties(np.ones(len(b.rows), bool))),
        Column("properties_lost", pa.bool_(), lambda b: pa.array(b.properties_lost), default=False),
        Column("lost_properties", pa.binary(), lambda b: b.raw_properties(b.properties_lost), default=False),
        Column("body_length", _i32, _int(Field.BODY_LENGTH, _i32)),
        Column("plain_length", _i32, lambda b: b.bodies.plain_lengths()),
        Column("body", pa.binary(), lambda b: b.bodies.stored()),
        Column("plain_body", pa.binary(), lambda b: b.bodies.plain(), default=False),
        Column("body_sha256", _str, lambda b: b.bodies.stored_sha256(), default=False),
        Column("plain_body_sha256", _str, lambda b: b.bodies.plain_sha256(), default=False),
        Column("record", pa.binary(), _record, default=False),
        Column("issues", _i32, _int(Field.ISSUES, _i32), default=False),
    )
}

PLAIN_COLUMNS = frozenset({"plain_length", "plain_body", "plain_body_sha256"})
"""columns for which bodies are decompressed"""

DEFAULT_COLUMNS = tuple(name for name, column in COLUMNS.items() if column.default)


def table_schema(columns: Sequence[str] = DEFAULT_COLUMNS) -> pa.Schema:
    """Arrow schema of the named columns, in their order."""
    return pa.schema([pa.field(name, COLUMNS[name].type) for name in columns])


def to_batch(
    records: Records,
    *,
    base: int | None,
    path: str,
    kernels: Kernels,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    store: str | None = None,
    plain: Sequence[Plain] | None = None,
) -> pa.RecordBatch:
    """Rows of a scan (made with `Check.TEXT`) as one Arrow batch; the window may be dropped afterwards.

    base: as for `Batch`. plain: the bodies as `bodies.inflate` gives them, where that is known already.
    """
    batch = Batch(records, base, path, store, kernels, plain)
    arrays = [COLUMNS[name].build(batch) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table_schema(columns))


def crc_states(records: Records) -> npt.NDArray[np.int64]:
    """CrcState of each record."""
    return records.rows[:, Field.CRC_STATE]


def bad_bodies(records: Records) -> npt.NDArray[np.int64]:
    """Positions of the records of the run whose body fails its CRC."""
    positions: npt.NDArray[np.int64] = records.rows[crc_states(records) == CrcState.BAD, Field.POSITION]
    return positions
