"""Keys as a table of Spark: an Arrow file that is written once, in pieces, and sent to the executors."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rmqtool.pipeline.arrow_map import map_in_arrow
from rmqtool.pipeline.session import parallelism
from rmqtool.pipeline.types import arrow_of, struct_of
from rmqtool.query.key_columns import hash_columns
from rmqtool.query.key_sieve import KeySieve, codes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = pa.schema([("code", pa.int64()), ("key", pa.string()), ("number", pa.int64())])
_IN_A_BATCH = 1 << 16
_IN_A_PARTITION = 200_000
"""keys that one task of a join holds, about"""


@dataclass(frozen=True)
class KeyTable:
    """path: of the file, as long as the keys are needed. count: of lines, a key may be in several."""

    path: str
    count: int

    @classmethod
    def written(cls, keys: Iterable[str], directory: str) -> KeyTable:
        """Takes the keys, some at a time."""
        path = os.path.join(directory, f"keys-{uuid.uuid4().hex}.arrow")
        count, left = 0, iter(keys)
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
            while some := list(islice(left, _IN_A_BATCH)):
                texts = pa.array(some, pa.string())
                numbers = np.arange(count, count + len(some))
                writer.write_batch(
                    pa.record_batch([codes_of(*hash_columns(texts)), texts, numbers], schema=_SCHEMA)
                )
                count += len(some)
        return cls(path, count)

    def sieve(self, topic: str | None) -> KeySieve:
        """Which codes may be wanted."""
        return KeySieve.of((batch["code"].to_numpy() for batch in self._batches()), self.count, topic)

    def keys(self) -> tuple[str, ...]:
        """All of them, for a few."""
        return tuple(dict.fromkeys(key for batch in self._batches() for key in batch["key"].to_pylist()))

    def frame(self, session: SparkSession) -> DataFrame:
        """Columns `code`, `wanted_key`, `number` (of its first line), each key once; by code."""
        from pyspark.sql import functions as f

        session.sparkContext.addFile(self.path)
        width = parallelism(session)
        batches = max(-(-self.count // _IN_A_BATCH), 1)
        struct = struct_of(_SCHEMA)
        read = _ReadKeys(os.path.basename(self.path), arrow_of(struct))
        lines = map_in_arrow(session.range(0, batches, 1, min(batches, 4 * width)), read, struct)
        apart = lines.repartition(max(self.count // _IN_A_PARTITION, width), "code")
        return apart.groupBy("code", f.col("key").alias("wanted_key")).agg(f.min("number").alias("number"))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(self.path) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)


@dataclass(frozen=True)
class _ReadKeys:
    """Reads batches of the file of this name, as it was sent, by their numbers."""

    name: str
    schema: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import SparkFiles

        with pa.memory_map(SparkFiles.get(self.name)) as file:
            reader = pa.ipc.open_file(file)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    if number < reader.num_record_batches:
                        found = reader.get_batch(number)
                        yield pa.RecordBatch.from_arrays(found.columns, schema=self.schema)
