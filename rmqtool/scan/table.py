"""The record table: names, types and meaning of its columns, and how a batch of rows becomes Arrow.

Tables, JSON, Parquet, SQL and Spark rows are all this table; the meaning of each column for users is in
docs/table.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from formats.commitlog import MESSAGE_MAGIC_CODE_V2, SysFlag
from rmqtool.scan import fields as f
from rmqtool.scan import text
from rmqtool.scan.bodies import Bodies
from rmqtool.scan.fields import Alike, CrcState, Field, Issue, Summary
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
    columns: Sequence[Column]
    """that are wanted"""
    rows: npt.NDArray[np.int64] = field(init=False)
    window: npt.NDArray[np.uint8] = field(init=False)
    origin: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows, self.window, self.origin = self.records.rows, self.records.window, self.records.origin

    def ints(self, column: Field) -> npt.NDArray[np.int64]:
        """One field of all records, contiguous."""
        return np.ascontiguousarray(self.rows[:, column])

    @cached_property
    def places(self) -> npt.NDArray[np.int64]:
        """Where the records begin in the window."""
        return self.ints(Field.POSITION) - self.origin

    @cached_property
    def _numbers(self) -> tuple[dict[Field, pa.Array], dict[Field, list[int]]]:
        kinds = {one.as_is: one.type for one in self.columns if one.as_is is not None}
        numeric = {one: kind for one, kind in kinds.items() if one not in f.TEXTS}
        return text.fields_as_numbers(self.kernels, self.rows, numeric)

    def number(self, column: Field, arrow: pa.DataType) -> pa.Array:
        """A field that is a number of its own."""
        found = self._numbers[0].get(column)
        return text.numbers(self.rows[:, column], arrow) if found is None else found

    @property
    def summary(self) -> dict[Field, list[int]]:
        """What `Summary` says of the fields of `SUMMARISED`."""
        return self._numbers[1]

    def only(self, column: Field) -> int | None:
        """The value that a field has in all records, None where there are several."""
        lowest, highest, _ = self.summary[column]
        return lowest if lowest == highest else None

    def _bit(self, column: Field, bits: int) -> npt.NDArray[np.bool_]:
        value = self.only(column)
        if value is not None:
            return np.full(len(self.rows), value & bits != 0)
        return np.asarray((self.rows[:, column] & bits) != 0, np.bool_)

    def has(self, issue: Issue) -> npt.NDArray[np.bool_]:
        """Which records have one of these issues."""
        return self._bit(Field.ISSUES, int(issue))

    @cached_property
    def physical_offsets(self) -> npt.NDArray[np.int64]:
        """Where each record lies in the log, or says that it lay."""
        if self.base is None:
            return self.ints(Field.STORED_PHYSICAL_OFFSET)
        return self.places + (self.base + self.origin)

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
        places = self.places + (f.OFF_STORE_HOST + born_extra)
        return np.full(len(places), places[0]) if self.alike(Alike.STORE_HOST) else places

    @cached_property
    def bodies(self) -> Bodies:
        """Bodies of the batch."""
        compressed = bool(self._bit(Field.SYS_FLAG, SysFlag.COMPRESSED).any())
        return Bodies(self.records, self.plain, compressed=compressed)

    @cached_property
    def _texts(self) -> tuple[dict[Field, pa.Array], int]:
        texts = [one.as_is for one in self.columns if one.as_is in f.TEXTS]
        return self._copied(texts, reduce(or_, (one.alike for one in self.columns if one.alike), 0))

    def _copied(self, positions: Sequence[Field], compared: int) -> tuple[dict[Field, pa.Array], int]:
        sizes = {one: self.summary[Field(one + 1)][Summary.TOTAL] for one in positions}
        return text.fields_as_binary(self.kernels, self.window, self.origin, self.rows, sizes, compared)

    def text(self, position: Field) -> pa.Array:
        """One of `TEXTS` as it lies, nothing where it is absent."""
        found = self._texts[0].get(position)
        return self._copied([position], 0)[0][position] if found is None else found

    def alike(self, what: Alike) -> bool:
        """Whether all records have this in common; False without a record."""
        return len(self.rows) > 0 and bool(self._texts[1] & what)

    @cached_property
    def property_maps(self) -> Maps:
        """Properties of the batch as maps."""
        return property_maps(
            self.kernels, *text.spans(self.text(Field.PROPERTIES_POSITION)), self.has(Issue.PROPERTIES_UTF8)
        )

    @cached_property
    def properties_lost(self) -> npt.NDArray[np.bool_]:
        """Of which records the maps do not say all: ill-formed, dropped or empty parts, equal names."""
        maps = self.property_maps
        lost = self.has(Issue.PROPERTIES_UTF8 | Issue.PROPERTIES_SYNTAX) | maps.empty
        return np.asarray(lost | (maps.counts != self.ints(Field.PROPERTY_COUNT)), np.bool_)

    def span(self, position: Field, issue: Issue) -> pa.Array:
        """A text field as string column, null where it is absent."""
        array = self.text(position)
        if self.summary[Field(position + 1)][Summary.LOWEST] < 0:
            present = text.validity(self.rows[:, position + 1] >= 0)
            array = pa.Array.from_buffers(array.type, len(array), [present, *array.buffers()[1:]])
        return text.decoded(array, self.has(issue))


def _repeated(value: str | int | None, count: int, arrow: pa.DataType) -> pa.Array:
    if isinstance(value, str):
        return text.repeated(value.encode(), count)
    return pa.repeat(pa.scalar(value, arrow), count)


def _named(
    column: Field, names: Sequence[str | None], code: Callable[[Any], Any]
) -> Callable[[Batch], pa.Array]:
    """Names for what a field holds. code: their places, of one value or many."""

    def build(batch: Batch) -> pa.Array:
        value = batch.only(column)
        if value is not None:  # as usual
            return _repeated(names[int(code(value))], len(batch.rows), _str)
        which = code(batch.rows[:, column]).astype(np.int8)
        return pa.DictionaryArray.from_arrays(pa.array(which), pa.array(names, _str)).dictionary_decode()

    return build


_CRC_NAMES: list[str | None] = ["absent", "ok", "bad", None]
_TRANSACTION_NAMES = ["none", "prepared", "commit", "rollback"]
_COMPRESSION_NAMES = ["zlib", "lz4", "zstd", "zlib", "unknown", "unknown", "unknown", "unknown", None]


def _topic(batch: Batch) -> pa.Array:
    good = ~batch.has(Issue.TOPIC_UTF8)
    if batch.alike(Alike.TOPIC) and good.all():  # as usual, of one queue
        place, length = batch.rows[0, Field.TOPIC_POSITION] - batch.origin, batch.rows[0, Field.TOPIC_LENGTH]
        return text.repeated(batch.window[place : place + length].tobytes(), len(good))
    places, lengths = batch.ints(Field.TOPIC_POSITION) - batch.origin, batch.ints(Field.TOPIC_LENGTH)
    return text.strings(batch.kernels, batch.window, places, lengths, good, ~good)


def _topic_hex(batch: Batch) -> pa.Array:
    bad = batch.has(Issue.TOPIC_UTF8)
    if not bad.any():
        return pa.nulls(len(bad), pa.string())
    places, lengths = batch.ints(Field.TOPIC_POSITION) - batch.origin, batch.ints(Field.TOPIC_LENGTH)
    raw = text.binary(batch.kernels, batch.window, places, lengths, bad).to_pylist()
    return pa.array([None if item is None else item.hex() for item in raw], pa.string())


def _lost_properties(batch: Batch) -> pa.Array:
    lengths = np.maximum(batch.ints(Field.PROPERTIES_LENGTH), 0)
    places = batch.ints(Field.PROPERTIES_POSITION) - batch.origin
    return text.binary(batch.kernels, batch.window, places, lengths, batch.properties_lost)


def _compression(flags: Any) -> Any:
    return np.where(flags & 1, (flags >> 8) & 7, 8)


def _record(batch: Batch) -> pa.Array:
    present = np.ones(len(batch.rows), bool)
    return text.binary(batch.kernels, batch.window, batch.places, batch.ints(Field.STORE_SIZE), present)


def _born_host(batch: Batch) -> pa.Array:
    places = batch.places + f.OFF_BORN_HOST
    return text.hosts(batch.window, places, batch.born_v6, alike=batch.alike(Alike.BORN_HOST))


def _store_host(batch: Batch) -> pa.Array:
    places = batch.store_host_positions
    return text.hosts(batch.window, places, batch.store_v6, alike=batch.alike(Alike.STORE_HOST))


def _plain_body(batch: Batch) -> pa.Array:
    return batch.text(Field.BODY_POSITION) if batch.bodies.as_stored else batch.bodies.plain()


def _plain_length(batch: Batch) -> pa.Array:
    if batch.bodies.as_stored and batch.summary[Field.BODY_LENGTH][Summary.LOWEST] >= 0:
        return batch.number(Field.BODY_LENGTH, _i32)
    return batch.bodies.plain_lengths()


@dataclass(frozen=True)
class Column:
    """A column of the record table: Arrow type, whether a null can stand in it, and how it is made."""

    name: str
    type: pa.DataType
    build: Callable[[Batch], pa.Array] = field(repr=False)
    default: bool = True
    """part of the table unless columns are named"""
    as_is: Field | None = None
    """a field that it shows as it is, taken together with others"""
    alike: int = 0
    """`Alike`: it is made in another way where all records have this in common"""


def _number(name: str, column: Field, arrow: pa.DataType, *, default: bool = True) -> Column:
    return Column(name, arrow, lambda batch: batch.number(column, arrow), default, column)


def _property(name: str, column: Field) -> Column:
    return Column(name, _str, lambda batch: batch.span(column, Issue.PROPERTIES_UTF8), as_is=column)


_i32, _i64, _str = pa.int32(), pa.int64(), pa.string()

COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Column("store", _str, lambda b: _repeated(b.store or "", len(b.rows), _str), default=False),
        Column("path", _str, lambda b: _repeated(b.path, len(b.rows), _str)),
        Column("segment", _i64, lambda b: _repeated(b.base, len(b.rows), _i64)),
        _number("position", Field.POSITION, _i64),
        Column("physical_offset", _i64, lambda b: text.numbers(b.physical_offsets, _i64)),
        _number("stored_physical_offset", Field.STORED_PHYSICAL_OFFSET, _i64),
        _number("store_size", Field.STORE_SIZE, _i32),
        Column("magic", _str, _named(Field.MAGIC, ["V1", "V2"], lambda code: code == MESSAGE_MAGIC_CODE_V2)),
        _number("body_crc", Field.BODY_CRC, _i32),
        Column("crc", _str, _named(Field.CRC_STATE, _CRC_NAMES, np.asarray)),
        Column("topic", _str, _topic, alike=Alike.TOPIC),
        Column("topic_hex", _str, _topic_hex),
        _number("queue_id", Field.QUEUE_ID, _i32),
        _number("queue_offset", Field.QUEUE_OFFSET, _i64),
        _number("flag", Field.FLAG, _i32),
        _number("sys_flag", Field.SYS_FLAG, _i32),
        Column("compression", _str, _named(Field.SYS_FLAG, _COMPRESSION_NAMES, _compression)),
        Column(
            "transaction", _str, _named(Field.SYS_FLAG, _TRANSACTION_NAMES, lambda flags: (flags >> 2) & 3)
        ),
        _number("born_timestamp", Field.BORN_TIMESTAMP, _i64),
        Column("born_host", _str, _born_host, alike=Alike.BORN_HOST),
        _number("store_timestamp", Field.STORE_TIMESTAMP, _i64),
        Column("store_host", _str, _store_host, alike=Alike.STORE_HOST),
        _number("reconsume_times", Field.RECONSUME_TIMES, _i32),
        _number("prepared_transaction_offset", Field.PREPARED_TRANSACTION_OFFSET, _i64),
        Column(
            "offset_msg_id",
            _str,
            lambda b: text.offset_message_ids(
                b.kernels, b.window, b.store_host_positions, b.store_v6, b.physical_offsets
            ),
            alike=Alike.STORE_HOST,
        ),
        _property("tags", Field.TAGS_POSITION),
        Column(
            "keys",
            pa.list_(_str),
            lambda b: text.split_words(b.span(Field.KEYS_POSITION, Issue.PROPERTIES_UTF8)),
            as_is=Field.KEYS_POSITION,
        ),
        _property("uniq_key", Field.UNIQ_KEY_POSITION),
        Column("properties", PROPERTIES, lambda b: b.property_maps.column),
        Column(
            "properties_raw",
            pa.binary(),
            lambda b: b.text(Field.PROPERTIES_POSITION),
            as_is=Field.PROPERTIES_POSITION,
        ),
        Column("properties_lost", pa.bool_(), lambda b: pa.array(b.properties_lost), default=False),
        Column("lost_properties", pa.binary(), _lost_properties, default=False),
        _number("body_length", Field.BODY_LENGTH, _i32),
        Column("plain_length", _i32, _plain_length),
        Column("body", pa.binary(), lambda b: b.text(Field.BODY_POSITION), as_is=Field.BODY_POSITION),
        Column("plain_body", pa.binary(), _plain_body, default=False),
        Column("body_sha256", _str, lambda b: b.bodies.stored_sha256(), default=False),
        Column("plain_body_sha256", _str, lambda b: b.bodies.plain_sha256(), default=False),
        Column("record", pa.binary(), _record, default=False),
        _number("issues", Field.ISSUES, _i32, default=False),
    )
}

PLAIN_COLUMNS = frozenset({"plain_length", "plain_body", "plain_body_sha256"})
"""columns for which bodies are decompressed"""

DEFAULT_COLUMNS = tuple(name for name, column in COLUMNS.items() if column.default)


def table_schema(columns: Sequence[str] = DEFAULT_COLUMNS) -> pa.Schema:
    """Arrow schema of the named columns, in their order."""
    return _schema(tuple(columns))


@lru_cache
def _schema(columns: tuple[str, ...]) -> pa.Schema:
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
    wanted = [COLUMNS[name] for name in columns]
    batch = Batch(records, base, path, store, kernels, plain, wanted)
    arrays = [one.build(batch) for one in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=table_schema(columns))


def crc_states(records: Records) -> npt.NDArray[np.int64]:
    """CrcState of each record."""
    return records.rows[:, Field.CRC_STATE]


def bad_bodies(records: Records) -> npt.NDArray[np.int64]:
    """Positions of the records of the run whose body fails its CRC."""
    positions: npt.NDArray[np.int64] = records.rows[crc_states(records) == CrcState.BAD, Field.POSITION]
    return positions
