"""Messages in Arrow columns to what the encoder takes, without a Python loop over them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.commitlog import (
    FLAT_HEADERS,
    MAX_PROPERTIES_LENGTH,
    MESSAGE_MAGIC_CODE_V2,
    PROPERTIES_LENGTH,
    TOPIC_LENGTH,
    SysFlag,
)
from formats.crc_trailer import TRAILER_SIZE
from formats.primitives import sizeof
from formats.properties import CRC32, INNER_BASE, INNER_MULTI_QUEUE_OFFSET, INNER_NUM, KEYS, TAGS, UNIQ_KEY
from rmqtool.broker.encoder import MessageColumns
from rmqtool.errors import UsageError
from rmqtool.messagestore.messages import Ack, IllegalMessageError, Message, PutStatus
from rmqtool.scan.fields import ROW_WIDTH, Field

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from rmqtool.messagestore.messages import Host
    from rmqtool.messagestore.records import RecordMaker
    from rmqtool.messagestore.topics import Topics
    from rmqtool.store.config_json import TopicConfig

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]
    Flags = npt.NDArray[np.bool_]
    TopicOf = Callable[[str], TopicConfig]

AT_ONCE = 1 << 16
"""messages that are prepared together"""
_TYPES = {
    "topic": pa.large_binary(),
    "body": pa.large_binary(),
    "queue_id": pa.int64(),
    "tags": pa.large_binary(),
    "uniq_key": pa.large_binary(),
    "flag": pa.int64(),
    "born_timestamp": pa.int64(),
}
"""columns of messages, beside `keys` and `properties`, and as what they are read"""
_SINGLE = ("queue_id", "flag", "tags", "uniq_key", "born_timestamp")
ANSWER = pa.schema(
    {
        "status": pa.string(),
        "topic": pa.string(),
        "queue_id": pa.int64(),
        "queue_offset": pa.int64(),
        "physical_offset": pa.int64(),
        "uniq_key": pa.string(),
    }
)
"""of the table that answers"""
_OWN = (KEYS, TAGS, UNIQ_KEY, CRC32, INNER_NUM, INNER_BASE, INNER_MULTI_QUEUE_OFFSET)
_ILLEGAL = (None, PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED)
_INT = 1 << 31


@dataclass(frozen=True, slots=True)
class Batch:
    """Some messages. columns: those that a store takes, in order; kept: their places among all.

    keys, which: topics and queues, and which each of `columns` goes to. refused: for each of all the place of
    its status in `statuses`, 0 for none. uniq_keys, topics: of all.
    """

    columns: MessageColumns
    kept: Ints
    keys: list[tuple[str, int]]
    which: Ints
    refused: Ints
    queue_ids: Ints
    uniq_keys: pa.Array
    topics: pa.Array


def check_columns(table: pa.Table) -> None:
    """Raises `UsageError` for columns that are unknown or missing."""
    known = {*_TYPES, "keys", "properties"}
    unknown = [name for name in table.column_names if name not in known]
    if unknown:
        raise UsageError(f"messages have no column {unknown[0]}: known are {', '.join(sorted(known))}")
    missing = [name for name in ("topic", "body") if name not in table.column_names]
    if missing:
        raise UsageError(f"messages need a column {missing[0]}")


def batch_of(part: pa.RecordBatch, maker: RecordMaker, topics: Topics, topic_of: TopicOf) -> Batch:
    """Prepares messages.

    topic_of: settings of a topic; raises `IllegalMessageError` for one that takes no messages. Raises
    `UsageError` for a column of a wrong type, or null where there must be a value.
    """
    count = part.num_rows
    rows, refused = np.zeros((count, ROW_WIDTH), np.int64), np.zeros(count, np.int64)
    rows[:, Field.STORE_TIMESTAMP] = -1
    rows[:, Field.BORN_TIMESTAMP] = _ints(part, "born_timestamp", -1)
    rows[:, Field.FLAG] = _ints(part, "flag", 0)
    bodies = _spans(_column(part, "body"), rows, Field.BODY_POSITION)
    names, raw_topics, queue_ids = _topics(part, rows, refused, maker, topics, topic_of)
    uniq_keys = _uniq_keys(part, maker)
    properties, separated = _properties(part, uniq_keys, maker)
    refused[separated & (refused == 0)] = 1
    texts = _spans(properties, rows, Field.PROPERTIES_POSITION)
    if not maker.separated and not maker.trailer:
        rows[:, Field.PROPERTIES_LENGTH] -= 1
    refused[(rows[:, Field.BODY_LENGTH] > maker.most_body) & (refused == 0)] = 1
    refused[(rows[:, Field.PROPERTIES_LENGTH] > MAX_PROPERTIES_LENGTH) & (refused == 0)] = 2
    ip, port = maker.host
    wide = len(ip) != len(bytes(4))
    rows[:, Field.SYS_FLAG] = int(SysFlag.BORNHOST_V6 | SysFlag.STOREHOST_V6) if wide else 0
    texts_of = sizeof(TOPIC_LENGTH[MESSAGE_MAGIC_CODE_V2]) + sizeof(PROPERTIES_LENGTH)
    sizes = np.full(count, FLAT_HEADERS[wide, wide].size + texts_of, np.int64)
    for field in (Field.BODY_LENGTH, Field.TOPIC_LENGTH, Field.PROPERTIES_LENGTH):
        sizes += rows[:, field]
    sizes -= rows[:, Field.MAGIC] != MESSAGE_MAGIC_CODE_V2
    refused[(sizes > maker.most_record) & (refused == 0)] = 1
    kept = np.flatnonzero(refused == 0)
    pairs, which = np.unique(rows[kept, Field.TOPIC_POSITION] * _INT + queue_ids[kept], return_inverse=True)
    rows[:, Field.QUEUE_ID] = queue_ids
    columns = MessageColumns(
        rows[kept],
        np.zeros((len(kept), 2), np.int64),
        bodies,
        raw_topics,
        texts,
        np.frombuffer(ip + port.to_bytes(4, "big", signed=True), np.uint8),
    )
    keys = [(names[pair // _INT], pair % _INT) for pair in pairs.tolist()]
    return Batch(columns, kept, keys, which.reshape(-1), refused, queue_ids, uniq_keys, part["topic"])


def answer_of(batch: Batch, physical: Ints, status: str, failed: str) -> pa.RecordBatch:
    """The answer to each message. physical: offsets of those kept, -1 for what was not appended: `failed`."""
    count = len(batch.refused)
    offsets, places = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    stored = physical >= 0
    offsets[batch.kept[stored]] = batch.columns.rows[stored, Field.QUEUE_OFFSET]
    places[batch.kept] = physical
    codes = np.where(batch.refused > 0, batch.refused + 1, np.where(places < 0, 1, 0))
    names = pa.array([status, failed, *[one.value for one in _ILLEGAL if one]])
    arrays = [
        pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), names).dictionary_decode(),
        batch.topics.cast(pa.string()),
        pa.array(batch.queue_ids),
        pa.array(offsets),
        pa.array(places),
        batch.uniq_keys.cast(pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ANSWER)


def messages_of(part: pa.RecordBatch) -> list[Message]:
    """Single messages, for what is not done in columns. Raises `UsageError` as `batch_of`."""
    found = {name: _column(part, name).to_pylist() for name in _TYPES if name in part.schema.names}
    found["topic"] = part["topic"].cast(pa.string()).to_pylist()
    if None in found["topic"] or None in found["body"]:
        raise UsageError("columns topic and body: have a null")
    _ints(part, "flag", 0)
    keys = part["keys"].to_pylist() if "keys" in part.schema.names else [None] * part.num_rows
    maps = part["properties"]
    _further(maps)
    return [
        Message(
            topic,
            body,
            queue_id=queue_id,
            keys=one or (),
            properties={name: value for name, value in pairs or () if name and value},
            flag=flag or 0,
            tags=None if tags is None else tags.decode(),
            uniq_key=None if uniq_key is None else uniq_key.decode(),
            born_timestamp=born,
        )
        for topic, body, one, pairs, queue_id, flag, tags, uniq_key, born in zip(
            found["topic"],
            found["body"],
            keys,
            maps.to_pylist(),
            *(found.get(name, [None] * part.num_rows) for name in _SINGLE),
            strict=True,
        )
    ]


def table_of(acks: list[Ack]) -> pa.RecordBatch:
    """The answer to single messages, in columns."""
    values = (
        zip(*((one.status.value, *one[1:6]) for one in acks), strict=True) if acks else [()] * len(ANSWER)
    )
    arrays = [pa.array(one, kind) for one, kind in zip(values, ANSWER.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ANSWER)


def part_of(given: list[Message]) -> pa.RecordBatch | None:
    """Messages as columns; None where one has properties of its own or a host, or is no such message."""
    if any(one.properties or one.born_host is not None or type(one.keys) is str for one in given):
        return None
    try:
        return pa.RecordBatch.from_pydict(
            {
                "topic": pa.array([one.topic for one in given], pa.string()),
                "body": pa.array([one.body for one in given], pa.large_binary()),
                "queue_id": pa.array([one.queue_id for one in given], pa.int64()),
                "tags": pa.array([one.tags for one in given], pa.string()),
                "keys": pa.array([" ".join(one.keys) for one in given], pa.string()),
                "uniq_key": pa.array([one.uniq_key for one in given], pa.string()),
                "flag": pa.array([one.flag for one in given], pa.int32()),
                "born_timestamp": pa.array([one.born_timestamp for one in given], pa.int64()),
            }
        )
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        return None


def acks_of(given: list[Message], batch: Batch, physical: Ints, status: PutStatus, host: Host) -> list[Ack]:
    """Answers to messages none of which was refused. physical: as `answer_of` takes it."""
    columns = (
        repeat(status),
        [one.topic for one in given],
        batch.queue_ids.tolist(),
        batch.columns.rows[:, Field.QUEUE_OFFSET].tolist(),
        physical.tolist(),
        batch.uniq_keys.cast(pa.string()).to_pylist(),
        repeat(host),
        repeat(""),
    )
    return list(map(Ack._make, zip(*columns)))  # noqa: B905 - some have no end


def _column(part: pa.RecordBatch, name: str) -> pa.Array:
    column = part[name]
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.cast(_TYPES[name])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"column {name}: {error}") from error


def _ints(part: pa.RecordBatch, name: str, default: int) -> Ints:
    if name not in part.schema.names:
        return np.full(part.num_rows, default, np.int64)
    found: Ints = pc.fill_null(_column(part, name), default).to_numpy(zero_copy_only=False)
    if len(found) and name == "flag" and not (found.min() >= -_INT and found.max() < _INT):
        raise UsageError("column flag: has numbers of more than 32 bits")
    return found


def _spans(column: pa.Array, rows: Ints, position: Field) -> Bytes:
    """Puts places and lengths of binary values into `rows`; the bytes that they count in."""
    if column.null_count:
        column = pc.fill_null(column, b"")
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    rows[:, position] = places[:-1]
    rows[:, position + 1] = np.diff(places)
    return np.frombuffer(b"" if data is None else data, np.uint8)


def _topics(
    part: pa.RecordBatch,
    rows: Ints,
    refused: Ints,
    maker: RecordMaker,
    topics: Topics,
    topic_of: TopicOf,
) -> tuple[dict[int, str], Bytes, Ints]:
    """Topics, magic and queue numbers into `rows`: names by place, their bytes, queue numbers of all."""
    column = part["topic"]
    if column.null_count:
        raise UsageError("column topic: has a null")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    encoded = column.cast(pa.string()).dictionary_encode()
    codes = encoded.indices.to_numpy()
    given = _ints(part, "queue_id", -1)
    names: dict[int, str] = {}
    data = bytearray()
    queue_ids = given.copy()
    for code, name in enumerate(encoded.dictionary.to_pylist()):
        mine = codes == code
        try:
            magic, raw = maker.topic(name)
            topic = topic_of(name)
        except IllegalMessageError:
            refused[mine] = 1
            continue
        raw = raw[sizeof(TOPIC_LENGTH[magic]) :]
        rows[mine, Field.TOPIC_POSITION], rows[mine, Field.TOPIC_LENGTH] = len(data), len(raw)
        rows[mine, Field.MAGIC] = magic
        names[len(data)] = name
        data += raw
        free = mine & (given < 0)
        queue_ids[free] = topics.next_queues(topic, int(free.sum()))
        refused[mine & (queue_ids >= topic.write_queue_nums)] = 1
    return names, np.frombuffer(bytes(data), np.uint8), queue_ids


def _uniq_keys(part: pa.RecordBatch, maker: RecordMaker) -> pa.Array:
    """The id of each message, made where there is none."""
    made = maker.uniq_keys.next_keys(part.num_rows)
    if "uniq_key" not in part.schema.names:
        return made
    given = _column(part, "uniq_key")
    return pc.if_else(pc.equal(pc.binary_length(pc.fill_null(given, b"")), 0), made, given)


def _properties(part: pa.RecordBatch, uniq_keys: pa.Array, maker: RecordMaker) -> tuple[pa.Array, Flags]:
    """The stored properties, every one of them with its separator, and room for the CRC.

    And whether a value has the separator in it, which no store takes.
    """
    parts, separated = _pair(UNIQ_KEY, uniq_keys), _has_separator(uniq_keys)
    if "keys" in part.schema.names:
        keys = part["keys"]
        if pa.types.is_list(keys.type) or pa.types.is_large_list(keys.type):
            keys = pc.binary_join(keys.cast(pa.list_(pa.string())), " ")
        parts += _pair(KEYS, keys.cast(pa.large_binary()))
        separated |= _has_separator(keys)
    if "tags" in part.schema.names:
        tags = _column(part, "tags")
        parts += _pair(TAGS, tags)
        separated |= _has_separator(tags)
    if "properties" in part.schema.names:
        further, odd = _further(part["properties"])
        parts.append(further)
        separated |= odd
    if maker.trailer:
        parts.append(pa.scalar(bytes(TRAILER_SIZE), pa.large_binary()))
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary())), separated


def _has_separator(values: pa.Array) -> Flags:
    found: Flags = pc.fill_null(pc.match_substring(values, "\x02"), fill_value=False).to_numpy(
        zero_copy_only=False
    )
    return found.copy()


def _pair(name: str, values: pa.Array) -> list[Any]:
    """What joins to `name 0x01 value 0x02` of each, to nothing for one that is null or empty."""
    before, after, nothing = (
        pa.scalar(one, pa.large_binary()) for one in (f"{name}\x01".encode(), b"\x02", b"")
    )
    if not values.null_count and pc.all(pc.greater(pc.binary_length(values), 0)).as_py():
        return [before, values, after]
    pairs = pc.binary_join_element_wise(before, values, after, nothing)
    return [pc.if_else(pc.greater(pc.fill_null(pc.binary_length(values), 0), 0), pairs, nothing)]


def _further(maps: pa.Array) -> tuple[pa.Array, Flags]:
    """Properties of messages that have some of their own, and whether the separator stands in one."""
    if not pa.types.is_map(maps.type):
        raise UsageError("column properties: is no map of strings")
    found, odd = [], np.zeros(len(maps), np.bool_)
    for number, pairs in enumerate(maps.to_pylist()):
        own = [(name, value) for name, value in pairs or () if name and value]
        if any(name in _OWN for name, _ in own):
            raise UsageError(f"column properties: {', '.join(_OWN)} are not given there")
        text = "".join(f"{name}\x01{value}\x02" for name, value in own)
        odd[number] = text.count("\x02") != len(own)
        found.append(text.encode())
    return pa.array(found, pa.large_binary()), odd
