"""Messages in Arrow columns to what the encoder takes, without a Python loop over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.commitlog import TOPIC_LENGTH, record_size
from formats.crc_trailer import TRAILER_SIZE
from formats.primitives import sizeof
from formats.properties import CRC32, INNER_BASE, INNER_MULTI_QUEUE_OFFSET, INNER_NUM, KEYS, TAGS, UNIQ_KEY
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.broker.encoder import MessageColumns
from rmqtool.errors import UsageError
from rmqtool.messagestore.messages import Ack, IllegalMessageError, Message, PutStatus
from rmqtool.messagestore.records import LISTED
from rmqtool.scan.fields import ROW_WIDTH, Field, Refused, TopicColumn

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from rmqtool.messagestore.messages import Host
    from rmqtool.messagestore.records import RecordMaker
    from rmqtool.messagestore.topics import Topics
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.config_json import TopicConfig

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]
    Flags = npt.NDArray[np.bool_]
    TopicOf = Callable[[str], TopicConfig]

AT_ONCE = 1 << 13
"""messages that are prepared together: what is made of them stays in a cache"""
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
_NO_NAME = "__index_level_"
"""what pandas has columns begin with that were an index"""
_SINGLE = ("queue_id", "flag", "tags", "uniq_key", "born_timestamp")
_OFFSETS = {
    pa.string(): np.int32,
    pa.binary(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}
"""how the offsets of values are stored, by their type"""
_KEYS, _MAP = pa.list_(pa.string()), pa.map_(pa.string(), pa.string())
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
_ACK = partial(tuple.__new__, Ack)
"""`Ack._make` without a look at the length"""
_OWN = (KEYS, TAGS, UNIQ_KEY, INNER_NUM, INNER_BASE, INNER_MULTI_QUEUE_OFFSET)
_STATUS = {
    Refused.ILLEGAL: PutStatus.MESSAGE_ILLEGAL,
    Refused.PROPERTIES_SIZE: PutStatus.PROPERTIES_SIZE_EXCEEDED,
}
_REFUSED = {status: why for why, status in _STATUS.items()}
_INT = 1 << 31
_NOTHING = type(None)
_TEXTS = frozenset({str, _NOTHING})
_FEW = 1 << 13
"""queues up to which marking them costs less than sorting"""
_TAKES_NOTHING = (0, 0, 0, 0, -1, 0)
"""a topic in the table of `TopicColumn`"""
_NAMES = sum(len(f"{name}\x01\x02") for name in (UNIQ_KEY, KEYS, TAGS))


@dataclass(frozen=True, slots=True)
class Batch:
    """Some messages. columns: those that a store takes, in order; kept: their places among all.

    keys, which: topics and queues, and which each of `columns` goes to. refused: `scan.fields.Refused` of
    each of all. queue_ids, uniq_keys, topics: of all.
    """

    columns: MessageColumns
    kept: Ints
    keys: list[tuple[str, int]]
    which: Ints
    refused: Ints
    queue_ids: Ints
    uniq_keys: pa.StringArray
    topics: pa.StringArray


def columns_of(given: Any) -> pa.Table:
    """Messages that Arrow can take, as a table. The index of a data frame is a column if it has a name.

    Raises `UsageError` for columns that are unknown, missing or there twice, and what Arrow makes none of.
    """
    try:
        table = pa.table(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"messages are no table: {error}") from error
    table = table.drop_columns([name for name in table.column_names if name.startswith(_NO_NAME)])
    _check_columns(table)
    return table


def _check_columns(table: pa.Table) -> None:
    known = {*_TYPES, "keys", "properties"}
    unknown = [name for name in table.column_names if name not in known]
    if unknown:
        raise UsageError(f"messages have no column {unknown[0]}: known are {', '.join(sorted(known))}")
    twice = [name for name in table.column_names if table.column_names.count(name) > 1]
    if twice:
        raise UsageError(f"duplicate column {twice[0]}")
    missing = [name for name in ("topic", "body") if name not in table.column_names]
    if missing:
        raise UsageError(f"messages need a column {missing[0]}")


def singly(part: pa.RecordBatch, *, further: bool) -> bool:
    """Whether some of these messages are more than columns can say. further: queues that properties name.

    A born time below 0 stands for that of the append in columns; of properties of delayed messages, brokers
    demand numbers. Raises `UsageError`.
    """
    names = part.schema.names
    if "born_timestamp" in names and _lowest(_column(part, "born_timestamp")) < 0:
        return True
    if "properties" not in names:
        return False
    return further or bool(pc.any(pc.equal(_column(part, "topic"), SCHEDULE_TOPIC.encode())).as_py())


def batch_of(
    part: pa.RecordBatch, maker: RecordMaker, topics: Topics, topic_of: TopicOf, kernels: Kernels
) -> Batch:
    """Prepares messages.

    topic_of: settings of a topic; raises `IllegalMessageError` for one that takes no messages. Raises
    `UsageError` for a column of a wrong type, or null where there must be a value.
    """
    count = part.num_rows
    bodies = _values(part["body"], "body")
    found = _topics(part, maker, topics, topic_of)
    uniq_keys = _uniq_keys(part, maker)
    properties, refused = _properties(part, uniq_keys, sealed=maker.trailer)
    behind = TRAILER_SIZE if maker.trailer else 0
    room = count * (_NAMES + behind) + sum(int(one.offsets[-1] - one.offsets[0]) for one in properties)
    texts, rows = np.empty(room, np.uint8), np.zeros((count, ROW_WIDTH), np.int64)
    numbers = found.codes, found.queue_ids, _ints(part, "flag"), _ints(part, "born_timestamp")
    trimmed = int(not maker.separated and not maker.trailer)
    limits = behind, trimmed, maker.flags, maker.most_body, maker.most_record
    uniq, keys, tags, further = properties
    values = (*bodies, *uniq, *keys, *tags, *further)
    below = _below_0(part)
    found.queue_ids[below] = _INT  # which no topic has: the kernel refuses it
    used, odd = kernels.encoding.prepare_rows(values, numbers, found.table, limits, texts, rows, refused)
    found.queue_ids[below] = -1
    if used < 0:
        raise UsageError("a column has values outside of its bytes")
    codes, queue_ids, kept = found.codes, found.queue_ids, np.arange(count)
    if odd:
        for number in np.flatnonzero(refused == Refused.PROPERTIES_SIZE).tolist():
            refused[number] = _too_long(messages_of(part.slice(number, 1))[0], maker)
        kept = np.flatnonzero(refused == Refused.NOTHING)
        rows, codes, queue_ids = rows[kept], codes[kept], queue_ids[kept]
    span = int(queue_ids.max(initial=0)) + 1
    pairs, which = _distinct(codes * span + queue_ids, len(found.names) * span)
    return Batch(
        MessageColumns(
            rows, np.zeros((len(kept), 2), np.int64), bodies.data, found.data, texts, maker.address
        ),
        kept,
        [(found.names[pair // span], pair % span) for pair in pairs.tolist()],
        which,
        refused,
        found.queue_ids,
        uniq_keys,
        found.column,
    )


def _too_long(message: Message, maker: RecordMaker) -> Refused:
    """As what a message is refused whose properties have too many bytes."""
    try:
        status = maker.status_of_long(maker.properties(message)[0])
    except IllegalMessageError as error:
        status = error.status
    return _REFUSED[status]


def answer_of(batch: Batch, physical: Ints, status: str, failed: str) -> pa.RecordBatch:
    """The answer to each message. physical: offsets of those kept, -1 for what was not appended: `failed`."""
    count = len(batch.refused)
    slots, places = batch.columns.rows[:, Field.QUEUE_OFFSET], physical
    if len(physical) == count and (not count or physical[-1] >= 0):
        statuses, offsets = pa.repeat(status, count), slots.copy()
    else:
        offsets, places = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
        stored = physical >= 0
        offsets[batch.kept[stored]] = slots[stored]
        places[batch.kept] = physical
        codes = np.where(batch.refused > 0, batch.refused + 1, np.where(places < 0, 1, 0))
        names = pa.array([status, failed, *[one.value for one in _STATUS.values()]])
        statuses = names.take(pa.array(codes))
    arrays = [
        statuses,
        batch.topics,
        pa.array(batch.queue_ids),
        pa.array(offsets),
        pa.array(places),
        batch.uniq_keys,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ANSWER)


def messages_of(part: pa.RecordBatch) -> list[Message]:
    """Single messages, for what is not done in columns. Raises `UsageError` as `batch_of`."""
    names = part.schema.names
    found = {name: _column(part, name).to_pylist() for name in _TYPES if name in names}
    for name in {"topic", "tags", "uniq_key"}.intersection(names):
        found[name] = _cast(part[name], pa.string(), name).to_pylist()
    if None in found["topic"]:
        raise UsageError("column topic: has a null")
    _ints(part, "flag")
    none = [None] * part.num_rows
    keys = none
    if "keys" in names:
        keys = _cast(part["keys"], _KEYS if _lists(part["keys"]) else pa.string(), "keys").to_pylist()
    maps = _maps(part["properties"] if "properties" in names else pa.array(none))
    _further(maps)
    return [
        Message(
            topic,
            body or b"",
            queue_id=queue_id,
            keys=one or (),
            properties={name: value for name, value in pairs or () if name and value},
            flag=flag or 0,
            tags=tags,
            uniq_key=uniq_key,
            born_timestamp=born,
        )
        for topic, body, one, pairs, queue_id, flag, tags, uniq_key, born in zip(
            found["topic"],
            found["body"],
            keys,
            maps.to_pylist(),
            *(found.get(name, none) for name in _SINGLE),
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
    """Messages as columns; None where one has properties of its own or a host, or is not such a message."""
    if any(one.properties or one.born_host is not None or type(one.keys) not in LISTED for one in given):
        return None
    topics, bodies = [one.topic for one in given], [one.body for one in given]
    tags, uniq_keys = [one.tags for one in given], [one.uniq_key for one in given]
    try:
        if str in set(map(type, bodies)) or any(type(one) is not str for one in set(topics)):
            return None
        if not _TEXTS.issuperset(map(type, tags)) or not _TEXTS.issuperset(map(type, uniq_keys)):
            return None  # Arrow takes bytes for text
        born = _whole([one.born_timestamp for one in given], pa.int64())
        if _lowest(born) < 0:  # which stands for the time of the append in columns
            return None
        return pa.RecordBatch.from_pydict(
            {
                "topic": pa.array(topics, pa.string()),
                "body": pa.array(bodies, pa.large_binary()),
                "queue_id": _whole([one.queue_id for one in given], pa.int64()),
                "tags": pa.array(tags, pa.string()),
                "keys": pa.array([" ".join(one.keys) for one in given], pa.string()),
                "uniq_key": pa.array(uniq_keys, pa.string()),
                "flag": _whole([one.flag for one in given], pa.int32()),
                "born_timestamp": born,
            }
        )
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        return None


def _whole(numbers: list[Any], kind: pa.DataType) -> pa.Array:
    """Raises `TypeError` where one is not whole, of which Arrow takes what is in front of the point."""
    if not all(one is _NOTHING or hasattr(one, "__index__") for one in set(map(type, numbers))):
        raise TypeError
    return pa.array(numbers, kind)


def acks_of(given: list[Message], batch: Batch, physical: Ints, status: PutStatus, host: Host) -> list[Ack]:
    """Answers to messages none of which was refused. physical: as `answer_of` takes it."""
    columns = (
        repeat(status),
        [one.topic for one in given],
        batch.queue_ids.tolist(),
        batch.columns.rows[:, Field.QUEUE_OFFSET].tolist(),
        physical.tolist(),
        batch.uniq_keys.to_pylist(),
        repeat(host),
        repeat(""),
    )
    return list(map(_ACK, zip(*columns)))  # noqa: B905 - some have no end


def _column(part: pa.RecordBatch, name: str) -> pa.Array:
    return _cast(part[name], _TYPES[name], name)


def _cast(column: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """Values of a column as those of a type. Raises `UsageError`."""
    if column.type == kind:
        return column
    try:
        if pa.types.is_dictionary(column.type):  # Arrow does not decode one of views
            return column.dictionary.cast(kind).take(column.indices)
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"column {name}: {error}") from error


def _ints(part: pa.RecordBatch, name: str) -> Ints:
    """Numbers of a column, of a null what stands for it; none without the column. Raises `UsageError`."""
    if name not in part.schema.names:
        return np.empty(0, np.int64)
    null = 0 if name == "flag" else -1
    found: Ints = pc.fill_null(_column(part, name), null).to_numpy(zero_copy_only=False)
    if len(found) and name == "flag" and not (found.min() >= -_INT and found.max() < _INT):
        raise UsageError("column flag: has numbers of more than 32 bits")
    return found


def _below_0(part: pa.RecordBatch) -> Ints:
    """Messages with a number of a queue that there cannot be."""
    if "queue_id" not in part.schema.names:
        return np.empty(0, np.int64)
    given = _column(part, "queue_id")
    if _lowest(given) >= 0:
        return np.empty(0, np.int64)
    found: Ints = np.flatnonzero(pc.fill_null(pc.less(given, 0), False).to_numpy(zero_copy_only=False))
    return found


def _lowest(numbers: pa.Array) -> int:
    """Of those that there are, 0 without any."""
    return pc.min(numbers).as_py() or 0


def _distinct(values: Ints, bound: int) -> tuple[Ints, Ints]:
    """As `np.unique` with the inverse, of values in [0, bound)."""
    if bound > _FEW:
        found, which = np.unique(values, return_inverse=True)
        return found, which.reshape(-1)
    there = np.zeros(bound, np.bool_)
    there[values] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[values]


class _Values(NamedTuple):
    """Binary values: where each begins, and the last ends, in bytes."""

    offsets: Ints
    data: Bytes


def _values(column: pa.Array, name: str) -> _Values:
    """The bytes of a column, nothing of a null. Raises `UsageError` for another type, and ends that lie."""
    kind = _OFFSETS.get(column.type)
    if kind is None:
        kind, column = np.int64, _cast(column, pa.large_binary(), name)
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(b"").cast(column.type))
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets or b"", kind)[column.offset : column.offset + len(column) + 1]
    places = places.astype(np.int64, copy=False)
    if not len(places):
        places = np.zeros(1, np.int64)
    found = _Values(places, np.frombuffer(b"" if data is None else data, np.uint8))
    if not 0 <= places[0] <= places[-1] <= len(found.data):
        raise UsageError(f"column {name}: has values outside of its bytes")
    return found


class _Topics(NamedTuple):
    """Topics of messages. codes, queue_ids: of each message, the latter negative where it is to be given one.

    column: their names. names: of topics. table: `TopicColumn` of each topic. data: their names as stored.
    """

    column: pa.StringArray
    codes: Ints
    queue_ids: Ints
    names: list[str]
    table: Ints
    data: Bytes


def _topics(part: pa.RecordBatch, maker: RecordMaker, topics: Topics, topic_of: TopicOf) -> _Topics:
    """Topics of messages, with turns for those that name no queue."""
    column = _cast(part["topic"], pa.string(), "topic")
    if column.null_count:
        raise UsageError("column topic: has a null")
    encoded = column.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    names = encoded.dictionary.to_pylist()
    queue_ids = _ints(part, "queue_id")
    named = len(queue_ids) > 0
    queue_ids = queue_ids.copy() if named else np.full(len(codes), -1, np.int64)
    wanted = np.bincount(codes[queue_ids < 0] if named else codes, minlength=len(names)).tolist()
    data = bytearray()
    table: list[tuple[int, ...]] = []
    for name, many in zip(names, wanted, strict=True):
        try:
            magic, raw = maker.topic(name)
            topic = topic_of(name)
        except IllegalMessageError:
            table.append(_TAKES_NOTHING)
            continue
        raw = raw[sizeof(TOPIC_LENGTH[magic]) :]
        turn = topics.turns(topic, many) if many else 0
        fixed = record_size(magic, maker.flags, 0, 0, 0)
        table.append((magic, fixed, len(data), len(raw), topic.write_queue_nums, turn))
        data += raw
    rows = np.array(table, np.int64).reshape(-1, len(TopicColumn))
    return _Topics(column, codes, queue_ids, names, rows, np.frombuffer(bytes(data), np.uint8))


def _uniq_keys(part: pa.RecordBatch, maker: RecordMaker) -> pa.StringArray:
    """The id of each message, made where there is none. Raises `UsageError`."""
    made = maker.uniq_keys.next_keys(part.num_rows)
    if "uniq_key" not in part.schema.names:
        return made
    given = _cast(part["uniq_key"], pa.string(), "uniq_key")
    return pc.if_else(pc.equal(pc.binary_length(pc.fill_null(given, "")), 0), made, given)


def _properties(
    part: pa.RecordBatch, uniq_keys: pa.Array, *, sealed: bool
) -> tuple[tuple[_Values, _Values, _Values, _Values], Ints]:
    """Unique keys, keys and tags, and the further properties, each with its separator behind it.

    And which messages are refused for the latter, `Refused`. sealed: the store gives `__CRC32#` itself, and
    takes away that of a message (`CommitLog#asyncPutMessage`).
    """
    refused = np.zeros(part.num_rows, np.int64)
    none = _Values(np.zeros(part.num_rows + 1, np.int64), np.empty(0, np.uint8))
    keys, tags, further = none, none, none
    if "keys" in part.schema.names:
        given = part["keys"]
        if _lists(given):
            lists = _cast(given, _KEYS, "keys")
            given = pc.binary_join(lists, " ")
            if given.null_count > lists.null_count:  # a null among the keys of a message leaves none of them
                refused[pc.is_valid(lists).to_numpy(False) & pc.is_null(given).to_numpy(False)] = (
                    Refused.ILLEGAL
                )
        keys = _values(given, "keys")
    if "tags" in part.schema.names:
        tags = _values(part["tags"], "tags")
    if "properties" in part.schema.names:
        texts, odd = _further(_maps(part["properties"]), CRC32 if sealed else "")
        further = _values(texts, "properties")
        refused[odd] = Refused.ILLEGAL
    return (_values(uniq_keys, "uniq_key"), keys, tags, further), refused


def _lists(keys: pa.Array) -> bool:
    """Whether each message has a list of keys, and not one text."""
    return bool(pa.types.is_list(keys.type) or pa.types.is_large_list(keys.type))


def _maps(properties: pa.Array) -> pa.Array:
    """Properties as maps. Of a frame's dictionaries Arrow makes structs, null where one has no such name."""
    if not pa.types.is_struct(properties.type):
        return _cast(properties, _MAP, "properties")
    names = [field.name for field in properties.type]
    values = [_cast(one, pa.string(), "properties").to_pylist() for one in properties.flatten()]
    rows = [
        [(name, value) for name, value in zip(names, row, strict=True) if value is not None]
        for row in zip(*values, strict=True)
    ]
    return pa.array(rows, _MAP) if names else pa.nulls(len(properties), _MAP)


def _further(maps: pa.Array, left_out: str = "") -> tuple[pa.Array, Flags]:
    """Properties of messages that have some of their own, and whether the separator stands in one."""
    found, odd = [], np.zeros(len(maps), np.bool_)
    for number, pairs in enumerate(maps.to_pylist()):
        own = [(name, value) for name, value in pairs or () if name and value and name != left_out]
        if any(name in _OWN for name, _ in own):
            raise UsageError(f"column properties: {', '.join(_OWN)} are not given there")
        text = "".join(f"{name}\x01{value}\x02" for name, value in own)
        # a value may hold 0x01: brokers take the first for the end of the name
        odd[number] = text.count("\x02") != len(own) or any("\x01" in name for name, _ in own)
        found.append(text.encode())
    return pa.array(found, pa.large_binary()), odd
