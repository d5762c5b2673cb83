"""The consume-queue units of one record, and whether they agree with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from formats.commitlog import SysFlag, transaction_of
from formats.consumequeue import BatchUnit, Unit, is_ext_address, is_pre_blank
from formats.errors import FormatError
from formats.java import java_parse_int
from formats.primitives import sizeof
from formats.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, INNER_NUM
from formats.tags_code import SCHEDULE_TOPIC, parse_delay_levels, tags_code_of
from rmqtool.broker.file_rules import lmq_of
from rmqtool.errors import RmqtoolError
from rmqtool.query.queue_ends import SCHEMAS
from rmqtool.query.unit_tags import UnitTags
from rmqtool.scan.multi import further_places
from rmqtool.store.kinds import FileKind
from rmqtool.store.rocksdb import rocksdb_queue_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.query.one_record import OneRecord
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Queue, Store


@dataclass(frozen=True)
class UnitView:
    """One unit that should belong to a record.

    path, position, slot: where it lies or should lie; path is None without such a file. values: its fields,
    None when there is none. differences: (field, expected, found) where it disagrees with the record. absent:
    why there is no unit to compare; wanted is False where there should be none, error is set where the file
    could not be read. ext_tags_code: what an extension address resolves to. meaning: what its tags code is.
    """

    kind: FileKind
    topic: str
    queue_id: int
    slot: int
    path: str | None = None
    position: int | None = None
    values: dict[str, int] | None = None
    state: str | None = None
    absent: str | None = None
    ext_tags_code: int | None = None
    meaning: str = ""
    differences: list[tuple[str, Any, Any]] = field(default_factory=list)
    wanted: bool = True
    error: str | None = None

    @property
    def agrees(self) -> bool | None:
        """None when there is nothing to compare."""
        return None if self.values is None or self.state in {"zero", "pre_blank"} else not self.differences


@dataclass(frozen=True)
class _Wanted:
    physical_offset: int
    size: int
    tags_code: int | None
    store_timestamp: int
    batch_size: int


def units_of(store: Store, record: OneRecord) -> tuple[UnitView, list[UnitView]]:
    """The unit in the record's own queue, and those of multi-dispatch in other queues."""
    values = record.values
    queue_id, slot = int(values["queue_id"]), int(values["queue_offset"])
    wanted = _wanted(store, record)
    transaction = transaction_of(values["sys_flag"])
    if transaction in {"prepared", "rollback"}:
        absent = f"a {transaction} record has no consume queue entry"
        return UnitView(FileKind.CONSUMEQUEUE, record.topic, queue_id, slot, absent=absent, wanted=False), []
    own = _unit(store, record.topic, queue_id, slot, wanted)
    return own, [_unit(store, *place, wanted, plain=True) for place in _dispatched(store, record)]


def _wanted(store: Store, record: OneRecord) -> _Wanted:
    values, properties = record.values, record.properties
    levels = None
    try:
        if store.config is not None and store.config.is_set("message_delay_level"):
            levels = parse_delay_levels(store.config.message_delay_level)
        code: int | None = tags_code_of(record.topic, properties, values["store_timestamp"], levels)
    except FormatError:
        code = None
    inner = values["sys_flag"] & SysFlag.INNER_BATCH
    number = java_parse_int(properties.get(INNER_NUM, ""), 16) if inner else 1
    return _Wanted(record.physical_offset, values["total_size"], code, values["store_timestamp"], number or 1)


def _dispatched(store: Store, record: OneRecord) -> Iterator[tuple[str, int, int]]:
    """(topic, queue, queue offset) of the other queues that get the record (`MultiDispatchUtils`)."""
    names = record.properties.get(INNER_MULTI_DISPATCH)
    offsets = record.properties.get(INNER_MULTI_QUEUE_OFFSET)
    if names is None or offsets is None:
        return
    own = int(record.values["queue_id"])
    for name, number, offset in further_places(names, offsets, own, lmq=lmq_of(store)) or ():
        if offset is not None and offset >= 0:
            yield name, number, offset


def _unit(
    store: Store, topic: str, queue_id: int, slot: int, wanted: _Wanted, *, plain: bool = False
) -> UnitView:
    kinds = (FileKind.CONSUMEQUEUE,) if plain else (FileKind.BATCHCONSUMEQUEUE, FileKind.CONSUMEQUEUE)
    for kind in kinds:
        queue = next((q for q in store.queues(kind) if (q.topic, q.queue_id) == (topic, queue_id)), None)
        if queue is None or not queue.files:
            continue
        view = UnitView(kind, topic, queue_id, slot)
        found: tuple[StoreFile, int] | None = None
        try:
            find = _batch_place if kind is FileKind.BATCHCONSUMEQUEUE else _plain_place
            found = find(queue, slot)
            if found is None:
                return replace(view, absent=f"no file of the queue holds queue offset {slot}")
            return _compared(store, view, *found, wanted)
        except RmqtoolError as error:
            path = None if found is None else found[0].display_path
            return replace(view, path=path, absent=str(error), error=str(error))
    absent = (
        "the queues are in RocksDB, which is not decoded"
        if rocksdb_queue_files(store)
        else "there is no such queue"
    )
    return UnitView(FileKind.CONSUMEQUEUE, topic, queue_id, slot, absent=absent)


def _plain_place(queue: Queue, slot: int) -> tuple[StoreFile, int] | None:
    at = slot * sizeof(Unit)
    for file in queue.files:
        base = file.base_offset or 0
        if base <= at and at + sizeof(Unit) <= base + file.size:
            return file, at - base
    return None


def _batch_place(queue: Queue, slot: int) -> tuple[StoreFile, int] | None:
    """The last unit whose base offset is not above `slot`; bases ascend through all files."""
    width = sizeof(BatchUnit)
    for file in reversed(queue.files):
        with file.open("pread") as source:
            low, high = 0, source.size // width
            while low < high:
                middle = (low + high) // 2
                unit = BatchUnit.parse(source.window(middle * width, width).tobytes())
                if unit.size <= 0 or unit.base_offset > slot:
                    high = middle
                else:
                    low = middle + 1
        if low:
            return file, (low - 1) * width
    return None


def _compared(store: Store, view: UnitView, file: StoreFile, position: int, wanted: _Wanted) -> UnitView:
    schema = SCHEMAS[view.kind]
    with file.open("pread") as source:
        raw = source.window(position, sizeof(schema)).tobytes()
    parsed = schema.parse(raw)
    values = {name: int(value) for name, value in parsed.items() if name[0] != "_"}
    state = _state(values, raw)
    resolved = _resolve(store, view, values["tags_code"])
    differences = [] if state in {"zero", "pre_blank"} else list(_differences(values, resolved, wanted, view))
    return UnitView(
        view.kind,
        view.topic,
        view.queue_id,
        (file.base_offset or 0) // sizeof(schema) + position // sizeof(schema),
        file.display_path,
        position,
        values,
        state,
        None,
        resolved,
        _meaning(view.topic, values["tags_code"], wanted),
        differences,
    )


def _state(values: dict[str, int], raw: bytes) -> str:
    if not any(raw):
        return "zero"
    if is_pre_blank(values["physical_offset"], values["size"], values["tags_code"]):
        return "pre_blank"
    return "ok" if values["physical_offset"] >= 0 and values["size"] > 0 else "invalid"


def _resolve(store: Store, view: UnitView, tags_code: int) -> int | None:
    if not is_ext_address(tags_code):
        return None
    with UnitTags(store, view.topic, view.queue_id) as tags:
        return tags.behind(tags_code)


def _differences(
    values: dict[str, int], resolved: int | None, wanted: _Wanted, view: UnitView
) -> Iterator[tuple[str, Any, Any]]:
    expected: dict[str, int | None] = {
        "physical_offset": wanted.physical_offset,
        "size": wanted.size,
        "tags_code": wanted.tags_code,
    }
    found: dict[str, int | None] = dict(values)
    if is_ext_address(values["tags_code"]):
        found["tags_code"] = resolved
    if view.kind is FileKind.BATCHCONSUMEQUEUE:
        expected |= {"store_timestamp": wanted.store_timestamp, "base_offset": view.slot}
        expected["batch_size"] = wanted.batch_size
    for name, value in expected.items():
        if value is not None and found[name] != value:
            yield name, value, found[name]


def _meaning(topic: str, tags_code: int, wanted: _Wanted) -> str:
    if is_ext_address(tags_code):
        return "extension address"
    if tags_code == 0:
        return "no tags"
    if topic == SCHEDULE_TOPIC and tags_code > wanted.store_timestamp > 0:
        return "time of delivery"
    return "hash of TAGS"
