"""The other tables: units, index items, committed offsets, topics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool.query.groups import committed_offsets
from rmqtool.query.sql.dataset import Part, StoreDataset, of_batches, within
from rmqtool.query.topics import SYSTEM_TOPICS, known_topics
from rmqtool.scan.file_rows import not_covered
from rmqtool.scan.files import FileReader, RowBatch
from rmqtool.scan.index_batches import ITEM_SCHEMA
from rmqtool.scan.unit_batches import BATCH_UNIT_SCHEMA, UNIT_SCHEMA
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import as_text, topic_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.dataset as ds

    from rmqtool.query.sql.dataset import Ask, Lacking
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

CONSUMEQUEUE = pa.schema(
    [
        *UNIT_SCHEMA,
        ("ext_tags_code", pa.int64()),
        *(field for field in BATCH_UNIT_SCHEMA if field.name not in UNIT_SCHEMA.names),
    ]
)
"""plain and batch units; what a kind of unit has not is null"""

CONSUMER_OFFSETS = pa.schema(
    [
        ("consumer_group", pa.string()),
        ("topic", pa.string()),
        ("queue_id", pa.int32()),
        ("committed_offset", pa.int64()),
    ]
)
TOPICS = pa.schema(
    [
        ("topic", pa.string()),
        ("configured", pa.bool_()),
        ("perm", pa.int32()),
        ("read_queue_nums", pa.int32()),
        ("write_queue_nums", pa.int32()),
        ("ordered", pa.bool_()),
        ("queue_type", pa.string()),
        ("cleanup_policy", pa.string()),
        ("attributes", pa.map_(pa.string(), pa.string())),
        ("queue_dirs", pa.int32()),
    ]
)


class FilesTable:
    """Rows of one type out of files of some kinds, file by file. hidden: columns that are null throughout."""

    def __init__(
        self,
        store: Store,
        kinds: tuple[FileKind, ...],
        row_type: str,
        schema: pa.Schema,
        lacking: Lacking,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self._store = store
        self._files = [file for kind in kinds for file in store.of_kind(kind) if file.regular]
        self._type = row_type
        self._hidden = hidden
        self._schema = schema
        self._lacking = lacking

    def dataset(self, name: str) -> StoreDataset:
        """The table for a database."""
        parts = [Part(file.display_path, self._guarantee_of(file)) for file in self._files]
        return StoreDataset(name, self._schema, parts, self._read, self._lacking)

    def _guarantee_of(self, file: StoreFile) -> Any:
        bounds: dict[str, tuple[Any, Any]] = {"path": (file.display_path, file.display_path)}
        topic = None if file.topic is None else topic_keys(file.topic)["topic"]  # as in the units
        if topic is not None and "topic" in self._schema.names:
            bounds["topic"] = (topic, topic)
        if file.queue_id is not None and "queue_id" in self._schema.names:
            bounds["queue_id"] = (file.queue_id, file.queue_id)

        def guarantee(_: frozenset[str]) -> ds.Expression:
            return within(bounds)

        return guarantee

    def _read(self, chosen: list[int], ask: Ask) -> Iterator[pa.RecordBatch]:
        with FileReader(self._store) as reader:
            for number in chosen:
                yield from of_batches(self._rows(reader, self._files[number]), ask)

    def _rows(self, reader: FileReader, file: StoreFile) -> Iterator[pa.RecordBatch]:
        for item in reader.read(file):
            if isinstance(item, RowBatch):
                if item.type == self._type:
                    yield self._arranged(item.batch)
            elif item["type"] == "gap":
                self._lacking.add(not_covered(item))

    def _arranged(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        known = set(batch.schema.names) - self._hidden
        columns = [
            batch[field.name] if field.name in known else pa.nulls(batch.num_rows, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


_TAG_HASHES = frozenset({"tags_code", "ext_tags_code"})
_KEY_HASHES = frozenset({"key_hash", "slot"})
_SHOWN: frozenset[str] = frozenset()


def consumequeue(store: Store, lacking: Lacking, *, hashes: bool = True) -> StoreDataset:
    """Units of all queues. hashes: False leaves out what tags could be found by."""
    kinds = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
    hidden = _SHOWN if hashes else _TAG_HASHES
    return FilesTable(store, kinds, "unit", CONSUMEQUEUE, lacking, hidden).dataset("consumequeue")


def index_items(store: Store, lacking: Lacking, *, hashes: bool = True) -> StoreDataset:
    """Items of all index files. hashes: False leaves out what keys could be found by."""
    hidden = _SHOWN if hashes else _KEY_HASHES
    return FilesTable(store, (FileKind.INDEX,), "index_item", ITEM_SCHEMA, lacking, hidden).dataset(
        "index_items"
    )


def consumer_offsets(store: Store) -> pa.Table:
    """Committed offsets of all groups."""
    rows = [
        {
            "consumer_group": as_text(one.group),
            "topic": as_text(one.topic),
            "queue_id": one.queue_id,
            "committed_offset": one.offset,
        }
        for one in committed_offsets(store)
    ]
    return pa.Table.from_pylist(rows, schema=CONSUMER_OFFSETS)


def topics(store: Store) -> pa.Table:
    """Topics with settings or with queue directories."""
    kinds = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
    places = Counter(queue.topic for kind in kinds for queue in store.queues(kind))
    rows: list[dict[str, Any]] = []
    for name in known_topics(store):
        found = store.topics.get(name)
        if found is None and name in SYSTEM_TOPICS and name not in places:
            continue
        row: dict[str, Any] = {
            "topic": as_text(name),
            "configured": found is not None,
            "queue_dirs": places[name],
        }
        if found is not None:
            row |= {
                "perm": found.perm,
                "read_queue_nums": found.read_queue_nums,
                "write_queue_nums": found.write_queue_nums,
                "ordered": found.order,
                "queue_type": found.queue_type,
                "cleanup_policy": found.cleanup_policy,
                "attributes": [(as_text(key), as_text(value)) for key, value in found.attributes.items()],
            }
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=TOPICS)
